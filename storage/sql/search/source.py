"""A table that keyword and tag search look through: what is read, how it is filtered, what a hit is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import ClauseElement, Column, ColumnElement, and_, bindparam, or_, select

from madeleine.memory.keyword_search import SearchHit
from madeleine.storage.sql.database.dialect import among, contains_text
from madeleine.storage.sql.database.engine import Reads, Row
from madeleine.storage.sql.search.asked import Shape, within


@dataclass(frozen=True, eq=False)
class Source:
    """`time` and `id` order hits; `folded` is searched, and `themes`, where there are any, each as a whole."""

    columns: tuple[Column[Any], ...]
    to_hit: Callable[[Row], SearchHit]
    being: Column[str]
    time: Column[int]
    id: Column[str]
    folded: Column[str]
    themes: Column[str] | None
    filter: Callable[[Shape], list[ColumnElement[bool]]]

    def filters(self, shape: Shape) -> list[ColumnElement[bool]]:
        """All of a query but its terms."""
        return [self.being == bindparam("being"), within(self.time, self.id), *self.filter(shape)]

    async def search(self, reads: Reads, shape: Shape, binds: dict[str, Any]) -> list[SearchHit]:
        return await reads.rows(statement(self, shape), self.to_hit, **binds)

    async def by_ids(self, reads: Reads, binds: dict[str, Any]) -> list[SearchHit]:
        return await reads.rows(by_ids_statement(self), self.to_hit, **binds)

    def term(self, n: int) -> ColumnElement[bool]:
        in_text = contains_text(self.folded, bindparam(f"term_{n}"))
        if self.themes is None:
            return in_text
        return or_(in_text, contains_text(self.themes, bindparam(f"whole_{n}")))


@lru_cache(maxsize=256)
def statement(source: Source, shape: Shape) -> ClauseElement:
    terms = [source.term(n) for n in range(shape.terms)]
    found = select(*source.columns).where(*source.filters(shape))
    if terms:
        found = found.where(and_(*terms) if shape.all_terms else or_(*terms))
    return found.order_by(source.time.desc(), source.id).limit(bindparam("limit"))


@lru_cache(maxsize=8)
def by_ids_statement(source: Source) -> ClauseElement:
    return select(*source.columns).where(source.being == bindparam("being"), among(source.id, "ids"))
