"""`ingest`: import a long text (spec L1)."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.ingest.ingest import Chunk, Ingested, IngestText
from madeleine.memory.model import Category
from madeleine.tools.arguments import Arguments, LongText, Short, unique
from madeleine.tools.replies import not_embedded, present
from madeleine.tools.tool import Call, Tool, answer_schema

PREVIEW_CHARS = 60
"""Beginning of a chunk that the answer shows."""
SCORE_DIGITS = 4

FORGOTTEN = (
    "This key was used before, and part of that text has been forgotten since. Nothing was stored now. To store a "
    "different text, or this one again, use another key."
)


class IngestArguments(Arguments):
    text: LongText
    session_id: Short | None = None
    category: Annotated[Category | None, Field(description="For all parts; by default chosen for each part.")] = None
    key: Annotated[Short | None, Field(description="Idempotency key for repeated calls.")] = None
    when: Annotated[Short | None, Field(description="Date of the text (YYYY-MM-DD or ISO time).")] = None
    actors: Annotated[list[Short], Field(max_length=50, description="Authors or speakers.")] = []


async def run(call: Call, arguments: IngestArguments) -> dict[str, Any]:
    text = IngestText(
        text=arguments.text,
        session_id=arguments.session_id or "",
        category=arguments.category,
        key=arguments.key if arguments.key is not None else call.request_key() or None,
        when=arguments.when or "",
        actors=unique(arguments.actors),
    )
    ingested = await call.use.ingest(call.scope, text)
    counts = Counter(chunk.status for chunk in ingested.chunks)
    return {
        "stored": counts["stored"],
        "reinforced": counts["reinforced"],
        "dropped": counts["dropped"],
        "chunks": [chunk_as_json(chunk, ingested) for chunk in ingested.chunks],
    } | present(
        {
            "repeated": (ingested.repeated and arguments.key is not None) or None,
            "redacted": dict(ingested.redacted),
            "forgotten": counts["forgotten"] or None,
            "notice": not_embedded("Stored", ingested.unembedded) or (FORGOTTEN if counts["forgotten"] else ""),
        }
    )


def chunk_as_json(chunk: Chunk, ingested: Ingested) -> dict[str, Any]:
    if chunk.status == "forgotten":
        return {"status": chunk.status}
    text = ingested.text[chunk.start : chunk.start + chunk.length]
    begins = " ".join(text[: 2 * PREVIEW_CHARS].split())[:PREVIEW_CHARS]
    scores = {name: round(getattr(chunk, name), SCORE_DIGITS) for name in ("importance", "novelty", "salience")}
    details = {"id": chunk.id, "category": chunk.category, "resembles": chunk.resembles, "begins": begins}
    return {"status": chunk.status} | present(details | {"chars": chunk.length or None}) | scores


TOOL = Tool(
    name="ingest",
    description=(
        "Import a long text into memory: a document, a transcript, notes. It is split where its meaning changes, and "
        "each part is scored; parts without anything new or informative are dropped and reported. For one scene in "
        "your own words use store."
    ),
    arguments=IngestArguments,
    answers=answer_schema("stored reinforced dropped chunks", integer="stored reinforced dropped", array="chunks"),
    run=run,
    listed=False,
)
