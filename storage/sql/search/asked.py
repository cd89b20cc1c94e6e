"""What all sources of a search have in common: what decides its SQL, and what is bound into it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, and_, bindparam, or_

from madeleine.memory.keyword_search import KeywordQuery
from madeleine.memory.model import Scope
from madeleine.storage.sql.database.dialect import GREATEST, SMALLEST, as_list
from madeleine.storage.sql.database.folding import delimited_theme, fold
from madeleine.storage.sql.database.times import to_micros

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a query decides its SQL; a shape is compiled once."""

    terms: int
    all_terms: bool
    themes: int
    some_categories: bool
    dead: bool
    compressed: bool


def shape(query: KeywordQuery) -> Shape:
    return Shape(
        terms=len(query.terms),
        all_terms=query.mode == "and",
        themes=len(query.themes),
        some_categories=bool(query.categories),
        dead=query.include_dead,
        compressed=query.include_compressed,
    )


def binds(scope: Scope, query: KeywordQuery) -> dict[str, Any]:
    until = to_micros(query.until) if query.until else GREATEST
    after_at, after_id = query.after or (GREATEST, "")
    after_at = max(SMALLEST, min(after_at, GREATEST))  # a cursor comes from outside, and may hold any number
    bound: dict[str, Any] = {
        "being": scope.being_id,
        "since": to_micros(query.since) if query.since else SMALLEST,
        "newest": min(until, after_at),
        "after_at": after_at,
        "after_id": after_id,
        "limit": query.limit,
        "categories": as_list(query.categories),
    }
    bound |= {f"term_{n}": fold(term) for n, term in enumerate(query.terms)}
    bound |= {f"whole_{n}": delimited_theme(term) for n, term in enumerate(query.terms)}
    return bound | {f"theme_{n}": delimited_theme(theme) for n, theme in enumerate(query.themes)}


def within(moment: ColumnElement[int], id_: ColumnElement[str]) -> ColumnElement[bool]:
    """In the window of time, and after the page before."""
    return and_(
        moment >= bindparam("since"),
        moment <= bindparam("newest"),
        or_(moment < bindparam("after_at"), id_ > bindparam("after_id")),
    )


async def together(searches: Sequence[Awaitable[T]]) -> list[T]:
    """Side by side: each source is read on a connection of its own. All have ended when this returns or raises."""
    found = await asyncio.gather(*searches, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if not isinstance(one, BaseException)]
