"""Searching conversations as they were observed (spec H1): who said what."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import ClauseElement, ColumnElement, bindparam, select

from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Provenance
from madeleine.storage.sql.database.dialect import among, contains_text
from madeleine.storage.sql.database.engine import Reads, Row
from madeleine.storage.sql.database.tables import messages
from madeleine.storage.sql.database.times import from_micros
from madeleine.storage.sql.search.asked import Shape, any_or_all, within

_s = messages.c
_HIT = (_s.id, _s.at, _s.text, _s.role, _s.speaker, _s.stored_at, _s.client, _s.session_id)
_BY_IDS = select(*_HIT).where(_s.being_id == bindparam("being"), among(_s.id, "ids"))


async def search(reads: Reads, shape: Shape, binds: dict[str, Any]) -> list[SearchHit]:
    return await reads.rows(_statement(shape.terms, shape.all_terms), _to_hit, **binds)


async def by_ids(reads: Reads, binds: dict[str, Any]) -> list[SearchHit]:
    return await reads.rows(_BY_IDS, _to_hit, **binds)


def filters() -> tuple[ColumnElement[bool], ...]:
    return (_s.being_id == bindparam("being"), within(_s.at, _s.id))


@lru_cache(maxsize=32)
def _statement(terms: int, all_terms: bool) -> ClauseElement:
    each = [contains_text(_s.folded, bindparam(f"term_{n}")) for n in range(terms)]
    return (
        select(*_HIT)
        .where(*filters(), *any_or_all(each, all_terms))
        .order_by(_s.at.desc(), _s.id)
        .limit(bindparam("limit"))
    )


def _to_hit(row: Row) -> SearchHit:
    id_, at, text, role, speaker, stored_at, client, session_id = row
    return SearchHit(
        source="chat",
        id=id_,
        timestamp=from_micros(at),
        text=text,
        stored_at=from_micros(stored_at),
        provenance=Provenance(tool="chat", client=client, session_id=session_id),
        actors=(speaker or role,),
        position=(at, id_),
    )
