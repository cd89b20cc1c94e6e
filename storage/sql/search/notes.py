"""Searching notes: what they say."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import ClauseElement, ColumnElement, bindparam, or_, select

from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Provenance
from madeleine.storage.sql.database.dialect import among, contains_text
from madeleine.storage.sql.database.engine import Reads, Row
from madeleine.storage.sql.database.tables import notes
from madeleine.storage.sql.database.times import from_micros
from madeleine.storage.sql.search.asked import Shape, any_or_all, within

_n = notes.c
_HIT = (_n.id, _n.created_at, _n.content)
_BY_IDS = select(*_HIT).where(_n.being_id == bindparam("being"), among(_n.id, "ids"))


async def search(reads: Reads, shape: Shape, binds: dict[str, Any]) -> list[SearchHit]:
    return await reads.rows(_statement(shape.terms, shape.all_terms), _to_hit, **binds)


async def by_ids(reads: Reads, binds: dict[str, Any]) -> list[SearchHit]:
    return await reads.rows(_BY_IDS, _to_hit, **binds)


def filters() -> tuple[ColumnElement[bool], ...]:
    return (
        _n.being_id == bindparam("being"),
        within(_n.created_at, _n.id),
        # A scene note that was taken in is found as the memory it became.
        or_(_n.type != "scene", _n.state != "done"),
    )


@lru_cache(maxsize=32)
def _statement(terms: int, all_terms: bool) -> ClauseElement:
    each = [contains_text(_n.folded, bindparam(f"term_{n}")) for n in range(terms)]
    return (
        select(*_HIT)
        .where(*filters(), *any_or_all(each, all_terms))
        .order_by(_n.created_at.desc(), _n.id)
        .limit(bindparam("limit"))
    )


def _to_hit(row: Row) -> SearchHit:
    id_, created_at, content = row
    return SearchHit(
        source="notes",
        id=id_,
        timestamp=from_micros(created_at),
        text=content,
        stored_at=from_micros(created_at),
        provenance=Provenance(tool="notes"),
        position=(created_at, id_),
    )
