"""`ingest`: pour a text in (spec L1)."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.ingest.ingest import Chunk, Ingested, IngestText
from madeleine.memory.model import Category
from madeleine.tools.arguments import Arguments, LongText, Short
from madeleine.tools.replies import present
from madeleine.tools.tool import COUNT, OBJECTS, Call, Tool, answer_schema

BEGINNING = 60
"""Characters of a chunk that the answer shows."""
DIGITS = 4


FORGOTTEN = (
    "This key was used before, and of what was poured in then something has been forgotten since. Nothing was stored "
    "now. If this is another text, or is to be remembered again, use another key."
)


class IngestArguments(Arguments):
    text: LongText
    session_id: Short | None = None
    category: Annotated[Category | None, Field(description="Of all of it; else told by what each part says.")] = None
    key: Annotated[Short | None, Field(description="Idempotency key for repeated calls.")] = None
    when: Annotated[Short | None, Field(description="Date of it all (YYYY-MM-DD or ISO time).")] = None
    actors: Annotated[list[Short], Field(max_length=50, description="Whose words these are.")] = []


async def run(call: Call, arguments: IngestArguments) -> dict[str, Any]:
    given = IngestText(
        text=arguments.text,
        session_id=arguments.session_id or "",
        category=arguments.category,
        key=arguments.key if arguments.key is not None else call.request_key() or None,
        when=arguments.when or "",
        actors=tuple(dict.fromkeys(arguments.actors)),
    )
    poured = await call.use.ingest(call.scope, given)
    counts = Counter(chunk.status for chunk in poured.chunks)
    found: dict[str, Any] = {name: counts[name] for name in ("stored", "reinforced", "dropped")}
    found["chunks"] = [shown(chunk, poured) for chunk in poured.chunks]
    found |= present(
        {
            "repeated": True if poured.repeated and arguments.key is not None else None,
            "redacted": dict(poured.redacted) or None,
        }
    )
    if counts["forgotten"]:
        found |= {"forgotten": counts["forgotten"], "notice": FORGOTTEN}
    if poured.unembedded:
        found["notice"] = f"Stored; found by its words only until it can be embedded. {poured.unembedded}"
    return found


def shown(chunk: Chunk, poured: Ingested) -> dict[str, Any]:
    if chunk.status == "forgotten":
        return {"status": chunk.status}
    text = poured.text[chunk.start : chunk.start + chunk.length]
    begins = " ".join(text[: 2 * BEGINNING].split())[:BEGINNING]
    scores = {name: round(getattr(chunk, name), DIGITS) for name in ("importance", "novelty", "salience")}
    about = {"id": chunk.id, "category": chunk.category, "resembles": chunk.resembles, "begins": begins}
    return {"status": chunk.status} | present(about | {"chars": chunk.length or None}) | scores


TOOL = Tool(
    name="ingest",
    description=(
        "Pour a long text into memory: a document, a transcript, notes. It is cut where its meaning ends, and each "
        "part is scored; parts that tell nothing new or telling are dropped, and the answer says so of each. For one "
        "scene that you have put into words yourself use store."
    ),
    arguments=IngestArguments,
    answers=answer_schema(
        ("stored", "reinforced", "dropped", "chunks"), stored=COUNT, reinforced=COUNT, dropped=COUNT, chunks=OBJECTS
    ),
    run=run,
    read_only=False,
    destructive=False,
    idempotent=False,
    shows=False,
    listed=False,
)
