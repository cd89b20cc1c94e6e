"""`search_memory`: by the words as they were written (spec P11, H1 to H4)."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.keyword_search import KeywordQuery, SearchHit, SearchSource
from madeleine.memory.model import Category, parse_moment
from madeleine.memory.recall.search import Page, terms_of
from madeleine.tools.arguments import Arguments, LongText, Short
from madeleine.tools.replies import moment, present, provenance
from madeleine.tools.tool import OBJECTS, TEXT, Call, Tool, answer_schema

MOST_TERMS = 32


class SearchArguments(Arguments):
    query: Annotated[LongText, Field(description='Words, "a phrase", or for tags a message.')]
    mode: Annotated[
        Literal["or", "and", "tags"],
        Field(description="Any word, all, or what the message is about."),
    ] = "or"
    themes: Annotated[list[Short], Field(max_length=20, description="Only what has all.")] = []
    categories: Annotated[list[Category], Field(max_length=5)] = []
    since: Annotated[Short | None, Field(description="ISO date or time.")] = None
    until: Annotated[Short | None, Field(description="Inclusive.")] = None
    sources: Annotated[list[SearchSource], Field(min_length=1, max_length=4)] = ["memories", "diary", "chat", "notes"]
    include_dead: Annotated[bool, Field(description="Faded ones too; finding helps them back.")] = True
    include_compressed: bool = False
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    cursor: Annotated[Short | None, Field(description="next_cursor of the last page.")] = None


async def run(call: Call, arguments: SearchArguments) -> dict[str, Any]:
    page = await _page(call, arguments)
    return {"hits": [hit(found) for found in page.hits]} | present({"next_cursor": page.next_cursor})


async def _page(call: Call, arguments: SearchArguments) -> Page:
    query = KeywordQuery(
        terms=(),
        themes=tuple(unicodedata.normalize("NFKC", theme).casefold() for theme in arguments.themes),
        categories=tuple(arguments.categories),
        since=_since(arguments.since),
        until=_until(arguments.until),
        sources=tuple(dict.fromkeys(arguments.sources)),
        include_dead=arguments.include_dead,
        include_compressed=arguments.include_compressed,
        limit=arguments.limit,
    )
    if arguments.mode == "tags":
        if arguments.cursor:
            raise InvalidInput("cursor: mode tags has one page. Raise limit for more, or leave the cursor out.")
        return await call.use.search.about(call.scope, arguments.query, query)
    terms = terms_of(arguments.query)
    if len(terms) > MOST_TERMS:
        raise InvalidInput(
            f"query: has {len(terms)} words, at most {MOST_TERMS} are looked for. Keep the telling ones."
        )
    return await call.use.search(
        call.scope, replace(query, terms=terms, mode=arguments.mode), cursor=arguments.cursor or ""
    )


def hit(found: SearchHit) -> dict[str, Any]:
    """spec H3."""
    shown = {
        "source": found.source,
        "id": found.id,
        "timestamp": moment(found.timestamp),
        "snippet": found.snippet,
        "tags": list(found.tags),
        "provenance": provenance(found.provenance, found.stored_at),
    }
    return shown | present({"actors": list(found.actors), "status": found.status})


def _since(text: str | None) -> datetime | None:
    return _moment("since", text) if text is not None else None


def _until(text: str | None) -> datetime | None:
    """A date alone means to its end."""
    if text is None:
        return None
    found = _moment("until", text)
    return found + timedelta(days=1, microseconds=-1) if len(text) == len("2026-01-31") else found


def _moment(name: str, text: str) -> datetime:
    found = parse_moment(text)
    if found is None:
        raise InvalidInput(f"{name}: {text[:40]!r} is not a date; write it like 2026-03-01 or 2026-03-01T18:30.")
    return found


TOOL = Tool(
    name="search_memory",
    description=(
        "Search memories, diary, chat and notes by the words as written, newest first, page by page: names, dates, "
        "phrases. To look something up, for a span of time, or for what has faded (status dead). For what is similar "
        "in meaning use recall."
    ),
    arguments=SearchArguments,
    answers=answer_schema(("hits",), hits=OBJECTS, next_cursor=TEXT),
    run=run,
    read_only=False,
    destructive=False,
    idempotent=False,
    only_counts=True,
)
