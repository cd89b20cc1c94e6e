"""`store`: keep a scene (spec T4)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.ingest.store import NewScene
from madeleine.memory.model import Category, DatedAction, Scene
from madeleine.memory.recall.ranking import ADVICE, NON_INFERABLE_THEME, is_non_inferable
from madeleine.tools.arguments import Arguments, Emotions, Line, LongText, Share, Short, unique
from madeleine.tools.replies import not_embedded, notice, present
from madeleine.tools.tool import Call, Tool, answer_schema


class DatedEntry(Arguments):
    date: Short
    action: Line


class StoreArguments(Arguments):
    text: Annotated[LongText, Field(description="What happened, in sentences that make sense alone.")]
    when: Annotated[
        Short | Annotated[list[Short | DatedEntry], Field(min_length=1, max_length=50)] | None,
        Field(description="Date (YYYY-MM-DD or ISO time), or a timeline."),
    ] = None
    actors: Annotated[list[Short], Field(max_length=50, description="Participants, the speaker first.")] = []
    setting: Line | None = None
    dialogue: Annotated[list[Line], Field(max_length=50, description="Quotes worth keeping.")] = []
    sensory: Annotated[list[Line], Field(max_length=50)] = []
    feeling: Annotated[Line | None, Field(description="In the first person.")] = None
    category: Category = "episodic"
    importance: Annotated[Share | None, Field(description="0 noise, 0.5 default, 1 critical.")] = None
    emotions: Emotions = []
    lesson: Annotated[Line | None, Field(description="What to do differently in future.")] = None
    themes: Annotated[list[Short], Field(max_length=20)] = []
    session_id: Short | None = None
    pinned: Annotated[bool, Field(description="Never fades.")] = False
    key: Annotated[Short | None, Field(description="Idempotency key for repeated calls.")] = None


async def run(call: Call, arguments: StoreArguments) -> dict[str, Any]:
    [stored] = await call.use.store(call.scope, [new_scene(arguments, request_key=call.request_key())])
    memory, reinforced = stored.memory, stored.status == "reinforced"
    advice_due = NON_INFERABLE_THEME in call.use.recall.config.themes and not is_non_inferable(memory.themes)
    return present(
        {
            "id": memory.id,
            "status": stored.status,
            "reinforced": memory.scene.action if reinforced else None,
            "category": memory.category,
            "importance": memory.importance,
            "access_count": memory.access_count if reinforced else None,
            "repeated": (stored.repeated and arguments.key is not None) or None,
            "resembles": stored.resembles,
            "redacted": dict(stored.redacted),
        }
    ) | notice(not_embedded("Stored", stored.unembedded), ADVICE if advice_due else "")


def new_scene(arguments: StoreArguments, *, request_key: str = "") -> NewScene:
    """`request_key` replaces a key that the caller did not give."""
    timeline = [arguments.when] if isinstance(arguments.when, str) else arguments.when or []
    return NewScene(
        scene=Scene(
            action=arguments.text.strip(),
            actors=unique(arguments.actors),
            when=tuple(item if isinstance(item, str) else DatedAction(item.date, item.action) for item in timeline),
            setting=arguments.setting or "",
            dialogue=tuple(arguments.dialogue),
            sensory=tuple(arguments.sensory),
        ),
        feeling=arguments.feeling or "",
        category=arguments.category,
        importance=arguments.importance,
        emotions=unique(arguments.emotions),
        lesson=arguments.lesson or "",
        themes=unique(arguments.themes),
        session_id=arguments.session_id or "",
        pinned=arguments.pinned,
        key=arguments.key if arguments.key is not None else request_key or None,
    )


TOOL = Tool(
    name="store",
    description=(
        "Store one scene in long-term memory; it can be recalled at once. Use it for what later conversations should "
        "know: an event, decision, preference, feeling or lesson. One scene per call. An earlier memory that says the "
        "same is reinforced instead; a different number, date, name or negation is stored separately."
    ),
    arguments=StoreArguments,
    answers=answer_schema("id status category importance", string="id status reinforced category", number="importance"),
    run=run,
)
