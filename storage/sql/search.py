"""Keyword search (spec P11): what was written, letter case aside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import ClauseElement, ColumnElement, and_, bindparam, func, or_, select

from memory.model import Provenance, Scene, scene_to_text
from memory.ports import Hit, KeywordQuery
from memory.rules.folding import fold
from memory.scope import Scope
from storage.sql.engine import Reads, Row
from storage.sql.folding import whole
from storage.sql.query import among, as_list
from storage.sql.rows import texts, to_when
from storage.sql.tables import memories, notes
from storage.sql.times import from_micros, to_micros

_m, _n = memories.c, notes.c
_FIRST, _LAST = -(2**63), 2**63 - 1
"""Beyond every moment."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """What of a query decides its SQL; a shape is compiled once."""

    terms: int
    all_terms: bool
    themes: int
    some_categories: bool
    dead: bool
    compressed: bool


async def search(reads: Reads, scope: Scope, query: KeywordQuery) -> list[Hit]:
    hits: list[Hit] = []
    binds = _binds(scope, query)
    if "memories" in query.sources:
        hits += await reads.rows(_memories(_shape(query)), _memory_hit, **binds)
    if "notes" in query.sources and not query.themes and not query.categories:
        hits += await reads.rows(_notes(len(query.terms), query.mode == "and"), _note_hit, **binds)
    return sorted(hits, key=lambda hit: (-hit.position[0], hit.position[1]))[: query.limit]


def _shape(query: KeywordQuery) -> _Shape:
    return _Shape(
        terms=len(query.terms),
        all_terms=query.mode == "and",
        themes=len(query.themes),
        some_categories=bool(query.categories),
        dead=query.include_dead,
        compressed=query.include_compressed,
    )


def _binds(scope: Scope, query: KeywordQuery) -> dict[str, Any]:
    until = to_micros(query.until) if query.until else _LAST
    after_at, after_id = query.after or (_LAST, "")
    after_at = max(_FIRST, min(after_at, _LAST))  # a cursor comes from outside, and may hold any number
    binds: dict[str, Any] = {
        "being": scope.being_id,
        "since": to_micros(query.since) if query.since else _FIRST,
        "newest": min(until, after_at),
        "after_at": after_at,
        "after_id": after_id,
        "limit": query.limit,
        "categories": as_list(query.categories),
    }
    binds |= {f"term_{n}": fold(term) for n, term in enumerate(query.terms)}
    binds |= {f"whole_{n}": whole(term) for n, term in enumerate(query.terms)}
    return binds | {f"theme_{n}": whole(theme) for n, theme in enumerate(query.themes)}


def _has(text: ColumnElement[str], bind: str) -> ColumnElement[bool]:
    # Not LIKE: nothing in a term needs escaping, and its length is not bounded.
    return func.instr(text, bindparam(bind)) > 0


def _within(moment: ColumnElement[int], id_: ColumnElement[str]) -> ColumnElement[bool]:
    """In the window of time, and after the page before."""
    return and_(
        moment >= bindparam("since"),
        moment <= bindparam("newest"),
        or_(moment < bindparam("after_at"), id_ > bindparam("after_id")),
    )


@lru_cache(maxsize=128)
def _memories(shape: _Shape) -> ClauseElement:
    each = [or_(_has(_m.folded, f"term_{n}"), _has(_m.folded_themes, f"whole_{n}")) for n in range(shape.terms)]
    statement = select(
        _m.id, _m.happened_at, _m.action, _m.when_, _m.setting, _m.dialogue, _m.feeling, _m.themes, _m.status,
        _m.actors, _m.created_at, _m.tool, _m.client, _m.session_id,
    ).where(_m.being_id == bindparam("being"), _within(_m.happened_at, _m.id))  # fmt: skip
    if each:
        statement = statement.where(and_(*each) if shape.all_terms else or_(*each))
    statement = statement.where(*(_has(_m.folded_themes, f"theme_{n}") for n in range(shape.themes)))
    if shape.some_categories:
        statement = statement.where(among(_m.category, "categories"))
    if not shape.dead:
        statement = statement.where(_m.status != "dead")
    if not shape.compressed:
        statement = statement.where(_m.compressed.is_(False))
    return statement.order_by(_m.happened_at.desc(), _m.id).limit(bindparam("limit"))


@lru_cache(maxsize=32)
def _notes(terms: int, all_terms: bool) -> ClauseElement:
    each = [_has(_n.folded, f"term_{n}") for n in range(terms)]
    statement = select(_n.id, _n.created_at, _n.content).where(
        _n.being_id == bindparam("being"),
        _within(_n.created_at, _n.id),
        # A scene note that was taken in is found as the memory it became.
        or_(_n.type != "scene", _n.state != "done"),
    )
    if each:
        statement = statement.where(and_(*each) if all_terms else or_(*each))
    return statement.order_by(_n.created_at.desc(), _n.id).limit(bindparam("limit"))


def _memory_hit(row: Row) -> Hit:
    (
        id_, happened_at, action, when, setting, dialogue, feeling, themes, status,
        actors, created_at, tool, client, session_id,
    ) = row  # fmt: skip
    scene = Scene(action=action, when=to_when(when), setting=setting, dialogue=texts(dialogue))
    return Hit(
        source="memories",
        id=id_,
        timestamp=from_micros(happened_at),
        text=scene_to_text(scene, feeling),
        stored_at=from_micros(created_at),
        provenance=Provenance(tool=tool, client=client, session_id=session_id),
        actors=texts(actors),
        tags=texts(themes),
        status=status,
        position=(happened_at, id_),
    )


def _note_hit(row: Row) -> Hit:
    id_, created_at, content = row
    return Hit(
        source="notes",
        id=id_,
        timestamp=from_micros(created_at),
        text=content,
        stored_at=from_micros(created_at),
        provenance=Provenance(tool="notes"),
        position=(created_at, id_),
    )
