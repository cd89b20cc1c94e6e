"""Searching the diary (spec H1, P8). There is an entry a day, so it is read and compared here, newest first.

An entry stands at the beginning of its day, like a memory that tells its day alone. Its tags are the themes of the
memories that it was written from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlalchemy import bindparam, func, select, true

from memory.model import Provenance, parse_moment
from memory.ports import Hit, KeywordQuery
from memory.scope import Scope
from storage.sql.engine import Reads, Row
from storage.sql.folding import fold
from storage.sql.query import among, as_list
from storage.sql.rows import pair, shared_texts
from storage.sql.tables import diary, memories
from storage.sql.times import from_micros, to_micros

MOST_TAGS = 10
_BATCH = 200
_AFTER_ALL = "\U0010ffff"
_d, _m = diary.c, memories.c
_ENTRY = select(_d.date, _d.text, _d.written_at).where(_d.being_id == bindparam("being"))
_BEFORE = _ENTRY.where(_d.date < bindparam("before")).order_by(_d.date.desc()).limit(_BATCH)
_BY_IDS = _ENTRY.where(among(_d.date, "ids"))
_source = func.json_each(_d.sources).table_valued("value")
_THEMES = (
    select(_d.date, _m.themes)
    .select_from(diary)
    .join(_source, true())
    .join(memories, _m.id == _source.c.value)
    .where(_d.being_id == bindparam("being"), among(_d.date, "days"), _m.being_id == _d.being_id, _m.themes != "[]")
    .order_by(_d.date, _m.seq)
)


@dataclass(frozen=True, slots=True)
class Entry:
    hit: Hit
    folded: str
    themes: frozenset[str]
    """Folded, all of them; empty where they were not asked for."""


async def search(reads: Reads, scope: Scope, query: KeywordQuery) -> list[Hit]:
    """At most `query.limit`, newest first."""
    terms = [fold(term) for term in query.terms]
    themes = {fold(theme) for theme in query.themes}
    all_or_any = all if query.mode == "and" else any
    found: list[Entry] = []
    async for entry in entries(reads, scope, query, with_themes=bool(themes)):
        if (not terms or all_or_any(term in entry.folded for term in terms)) and entry.themes >= themes:
            found.append(entry)
            if len(found) == query.limit:
                break
    return await _with_tags(reads, scope, [entry.hit for entry in found])


async def by_ids(reads: Reads, scope: Scope, days: Iterable[str]) -> list[Hit]:
    rows = await reads.rows(_BY_IDS, _to_hit, being=scope.being_id, ids=as_list(days))
    return await _with_tags(reads, scope, rows)


async def entries(reads: Reads, scope: Scope, query: KeywordQuery, *, with_themes: bool) -> AsyncIterator[Entry]:
    """Those in the window of time and after the page before, newest first."""
    before = _AFTER_ALL
    while batch := await reads.rows(_BEFORE, _to_hit, being=scope.being_id, before=before):
        before = batch[-1].id
        in_time = [hit for hit in batch if _within(hit, query)]
        themes = await _themes(reads, scope, in_time) if with_themes else {}
        for hit in in_time:
            yield Entry(hit, _folded(hit.text), frozenset(map(fold, themes.get(hit.id, ()))))


def _within(hit: Hit, query: KeywordQuery) -> bool:
    if (query.since and hit.timestamp < query.since) or (query.until and hit.timestamp > query.until):
        return False
    if query.after is None:
        return True
    at, id_ = query.after
    return hit.position[0] < at or (hit.position[0] == at and hit.id > id_)


@lru_cache(maxsize=400)
def _folded(text: str) -> str:
    """A year is read again and again."""
    return fold(text)


async def _with_tags(reads: Reads, scope: Scope, hits: list[Hit]) -> list[Hit]:
    themes = await _themes(reads, scope, hits) if hits else {}
    return [replace(hit, tags=tuple(themes.get(hit.id, ()))[:MOST_TAGS]) for hit in hits]


async def _themes(reads: Reads, scope: Scope, hits: Iterable[Hit]) -> Mapping[str, list[str]]:
    """By day, the commonest first."""
    days = as_list(hit.id for hit in hits)
    numbers: dict[str, Counter[str]] = {}
    for day, themes in await reads.rows(_THEMES, pair, being=scope.being_id, days=days):
        numbers.setdefault(day, Counter()).update(shared_texts(themes))
    return {day: [theme for theme, _ in number.most_common()] for day, number in numbers.items()}


def _to_hit(row: Row) -> Hit:
    date, text, written_at = row
    at = parse_moment(date) or from_micros(written_at)
    return Hit(
        source="diary",
        id=date,
        timestamp=at,
        text=text,
        stored_at=from_micros(written_at),
        provenance=Provenance(tool="diary"),
        position=(to_micros(at), date),
    )
