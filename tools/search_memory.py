"""`search_memory`: exact words (spec P11, H1 to H4)."""

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
from madeleine.tools.arguments import Arguments, LongText, Short, unique
from madeleine.tools.replies import moment, present, provenance
from madeleine.tools.tool import Call, Tool, answer_schema

MAX_TERMS = 32


class SearchArguments(Arguments):
    query: Annotated[LongText, Field(description='Words, "a phrase"; with mode tags a message.')]
    mode: Annotated[
        Literal["or", "and", "tags"], Field(description="Any word, all words, or the subject of a message.")
    ] = "or"
    themes: Annotated[list[Short], Field(max_length=20, description="All of these.")] = []
    categories: Annotated[list[Category], Field(max_length=5)] = []
    since: Annotated[Short | None, Field(description="ISO date or time.")] = None
    until: Annotated[Short | None, Field(description="Inclusive.")] = None
    sources: Annotated[list[SearchSource], Field(min_length=1, max_length=4)] = ["memories", "diary", "chat", "notes"]
    include_dead: Annotated[bool, Field(description="Faded ones too; being found helps revive them.")] = True
    include_compressed: bool = False
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    cursor: Annotated[Short | None, Field(description="next_cursor of the last page.")] = None


async def run(call: Call, arguments: SearchArguments) -> dict[str, Any]:
    page = await _search(call, arguments)
    return {"hits": [hit_as_json(hit) for hit in page.hits]} | present({"next_cursor": page.next_cursor})


async def _search(call: Call, arguments: SearchArguments) -> Page:
    query = KeywordQuery(
        terms=(),
        themes=tuple(unicodedata.normalize("NFKC", theme).casefold() for theme in arguments.themes),
        categories=tuple(arguments.categories),
        since=_parse_date("since", arguments.since),
        until=_parse_date("until", arguments.until),
        sources=unique(arguments.sources),
        include_dead=arguments.include_dead,
        include_compressed=arguments.include_compressed,
        limit=arguments.limit,
    )
    if arguments.mode == "tags":
        if arguments.cursor:
            raise InvalidInput("cursor: mode tags has one page. Raise limit for more, or leave the cursor out.")
        return await call.use.search.about(call.scope, arguments.query, query)
    terms = terms_of(arguments.query)
    if len(terms) > MAX_TERMS:
        raise InvalidInput(f"query: has {len(terms)} words, at most {MAX_TERMS} are searched. Keep the specific ones.")
    query = replace(query, terms=terms, mode=arguments.mode)
    return await call.use.search(call.scope, query, cursor=arguments.cursor or "")


def hit_as_json(hit: SearchHit) -> dict[str, Any]:
    """spec H3."""
    return {
        "source": hit.source,
        "id": hit.id,
        "timestamp": moment(hit.timestamp),
        "snippet": hit.snippet,
        "tags": list(hit.tags),
        "provenance": provenance(hit.provenance, hit.stored_at),
    } | present({"actors": list(hit.actors), "status": hit.status})


def _parse_date(argument: Literal["since", "until"], text: str | None) -> datetime | None:
    """A bare date as `until` includes the whole day."""
    if text is None:
        return None
    at = parse_moment(text)
    if at is None:
        raise InvalidInput(f"{argument}: {text[:40]!r} is not a date; write it like 2026-03-01 or 2026-03-01T18:30.")
    whole_day = argument == "until" and len(text) == len("2026-01-31")
    return at + timedelta(days=1, microseconds=-1) if whole_day else at


TOOL = Tool(
    name="search_memory",
    description=(
        "Search memories, diary, chat and notes for exact words, newest first: names, dates, phrases. Use it to look "
        "something up, for a time span, or for faded memories (status dead). For similar meaning use recall."
    ),
    arguments=SearchArguments,
    answers=answer_schema("hits", array="hits", string="next_cursor"),
    run=run,
    audited=True,
    counts_recalls=True,
)
