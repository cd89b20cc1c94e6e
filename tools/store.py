"""`store`: keep a scene (spec T4)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.ingest.store import NewScene
from madeleine.memory.model import Category, DatedAction, Scene
from madeleine.memory.rules.ranking.inferable import ADVICE, NON_INFERABLE, is_non_inferable
from madeleine.tools.arguments import Arguments, Emotions, Line, LongText, Share, Short
from madeleine.tools.replies import notice, present
from madeleine.tools.tool import NUMBER, TEXT, Call, Tool, answer_schema


class DatedEntry(Arguments):
    date: Short
    action: Line


class StoreArguments(Arguments):
    text: Annotated[LongText, Field(description="What happened, in sentences that make sense alone.")]
    when: Annotated[
        Short | Annotated[list[Short | DatedEntry], Field(min_length=1, max_length=50)] | None,
        Field(description="Date (YYYY-MM-DD or ISO time), or a timeline."),
    ] = None
    actors: Annotated[list[Short], Field(max_length=50, description="Who took part; the speaker first.")] = []
    setting: Line | None = None
    dialogue: Annotated[list[Line], Field(max_length=50, description="Quotes worth keeping.")] = []
    sensory: Annotated[list[Line], Field(max_length=50)] = []
    feeling: Annotated[Line | None, Field(description="In the first person.")] = None
    category: Category = "episodic"
    importance: Annotated[Share | None, Field(description="0 noise, 0.5 default, 1 critical.")] = None
    emotions: Emotions = []
    lesson: Annotated[Line | None, Field(description="What to do differently from now on.")] = None
    themes: Annotated[list[Short], Field(max_length=20)] = []
    session_id: Short | None = None
    pinned: Annotated[bool, Field(description="Never fades.")] = False
    key: Annotated[Short | None, Field(description="Idempotency key for repeated calls.")] = None


async def run(call: Call, arguments: StoreArguments) -> dict[str, Any]:
    [stored] = await call.use.store(call.scope, [new_scene(arguments, request=call.request_key())])
    found = {
        "id": stored.memory.id,
        "status": stored.status,
        "reinforced": stored.memory.scene.action if stored.status == "reinforced" else None,
        "category": stored.memory.category,
        "importance": stored.memory.importance,
        "access_count": stored.memory.access_count if stored.status == "reinforced" else None,
        "repeated": True if stored.repeated and arguments.key is not None else None,
        "resembles": stored.resembles,
        "redacted": dict(stored.redacted) or None,
    }
    unembedded = f"Stored; found by its words only until it can be embedded. {stored.unembedded}"
    advice = ADVICE if NON_INFERABLE in call.use.recall.config.themes else ""
    return present(found) | notice(
        unembedded if stored.unembedded else "", "" if is_non_inferable(stored.memory.themes) else advice
    )


def new_scene(arguments: StoreArguments, *, request: str = "") -> NewScene:
    """`request` stands in for a key that the caller did not give."""
    given = arguments.when
    items = [given] if isinstance(given, str) else given or []
    return NewScene(
        scene=Scene(
            action=arguments.text.strip(),
            actors=tuple(dict.fromkeys(arguments.actors)),
            when=tuple(item if isinstance(item, str) else DatedAction(item.date, item.action) for item in items),
            setting=arguments.setting or "",
            dialogue=tuple(arguments.dialogue),
            sensory=tuple(arguments.sensory),
        ),
        feeling=arguments.feeling or "",
        category=arguments.category,
        importance=arguments.importance,
        emotions=tuple(dict.fromkeys(arguments.emotions)),
        lesson=arguments.lesson or "",
        themes=tuple(dict.fromkeys(arguments.themes)),
        session_id=arguments.session_id or "",
        pinned=arguments.pinned,
        key=arguments.key if arguments.key is not None else request or None,
    )


TOOL = Tool(
    name="store",
    description=(
        "Keep a scene in long-term memory, at once recallable. Use it for what should be known in later "
        "conversations: an event, a decision, a preference, a feeling, a lesson. One scene a call. An earlier memory "
        "that says the same is reinforced instead; what differs in a number, a date, a name or a negation is kept "
        "apart."
    ),
    arguments=StoreArguments,
    answers=answer_schema(
        ("id", "status", "category", "importance"),
        id=TEXT,
        status={"enum": ["stored", "reinforced"]},
        reinforced=TEXT,
        category=TEXT,
        importance=NUMBER,
    ),
    run=run,
    read_only=False,
    destructive=False,
    idempotent=False,
    shows=False,
)
