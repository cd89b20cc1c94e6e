"""Searching the diary (spec H1, P8). There is an entry a day, so it is read and compared here, newest first.

An entry stands at the beginning of its day, like a memory that tells its day alone. Its tags are the themes of the
memories that it was written from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace

from sqlalchemy import bindparam, select, true

from madeleine.memory.keyword_search import KeywordQuery, Position, SearchHit, Tag, TagMatches, TagQuery
from madeleine.memory.model import Provenance, Scope, parse_moment
from madeleine.memory.rules.searching.tags import holds
from madeleine.storage.sql.database.dialect import among, as_list, json_items
from madeleine.storage.sql.database.engine import Reads, Row
from madeleine.storage.sql.database.folding import SEPARATOR, fold
from madeleine.storage.sql.database.patrol_tables import diary
from madeleine.storage.sql.database.rows import pair
from madeleine.storage.sql.database.tables import memories
from madeleine.storage.sql.database.times import from_micros, to_micros
from madeleine.storage.sql.database.values import decode_texts_cached

MAX_TAGS = 10
THEMED_DAYS = 366
"""So many of the latest are held against a message's tags with their themes too, which costs a look at each of their
memories; older ones with what they say."""
_BATCH = 400
_AFTER_ALL = "\U0010ffff"
_d, _m = diary.c, memories.c
_ENTRY = select(_d.date, _d.text, _d.written_at).where(_d.being_id == bindparam("being"))
_BEFORE = _ENTRY.where(_d.date < bindparam("before")).order_by(_d.date.desc()).limit(_BATCH)
_BY_IDS = _ENTRY.where(among(_d.date, "ids"))
_source = json_items(_d.sources)
_THEMES = (
    select(_d.date, _m.themes)
    .select_from(diary)
    .join(_source, true())
    .join(memories, _m.id == _source.c.value)
    .where(_d.being_id == bindparam("being"), among(_d.date, "days"), _m.being_id == _d.being_id, _m.themes != "[]")
    .order_by(_d.date, _m.seq)
)


async def search(reads: Reads, scope: Scope, query: KeywordQuery) -> list[SearchHit]:
    """At most `query.limit`, newest first."""
    terms = [fold(term) for term in query.terms]
    wanted = {fold(theme) for theme in query.themes}
    meets: Callable[[Iterable[bool]], bool] = all if query.mode == "and" else any
    found: list[SearchHit] = []
    async for rows in _rows(reads, scope):
        texts = [fold(text) for _, text, _ in rows]
        hits = [
            _to_hit(row)
            for row, text in zip(rows, texts, strict=True)
            if not terms or meets(term in text for term in terms)
        ]
        hits = [hit for hit in hits if _within(hit, query)]
        if wanted:
            themes = await _themes(reads, scope, [hit.id for hit in hits])
            hits = [hit for hit in hits if wanted <= {*map(fold, themes.get(hit.id, ()))}]
        found += hits
        if len(found) >= query.limit:
            break
    return await _with_tags(reads, scope, found[: query.limit])


async def matches(reads: Reads, scope: Scope, query: TagQuery) -> TagMatches:
    found: list[tuple[Position, int]] = []
    numbers: Counter[int] = Counter()
    wanted = {fold(theme) for theme in query.filters.themes}
    seen = 0
    async for batch in _rows(reads, scope):
        rows = batch[: max(0, query.newest - seen)]
        themed = [date for date, _, _ in (rows if wanted else rows[: max(0, THEMED_DAYS - seen)])]
        themes = await _themes(reads, scope, themed) if themed else {}
        seen += len(rows)
        for row in rows:
            own = {*map(fold, themes.get(row[0], ()))}
            mask = _mask(SEPARATOR.join((fold(row[1]), *own)), query.tags)
            mask |= (not own.isdisjoint(query.related)) << len(query.tags)
            if mask and wanted <= own and _within(hit := _to_hit(row), query.filters):
                numbers[mask] += 1
                if numbers[mask] <= query.filters.limit:
                    found.append((hit.position, mask))
    return TagMatches("diary", tuple(found), numbers)


def _mask(folded: str, tags: Iterable[Tag]) -> int:
    return sum(1 << n for n, tag in enumerate(tags) if holds(folded, tag))


async def by_ids(reads: Reads, scope: Scope, days: Iterable[str]) -> list[SearchHit]:
    hits = await reads.rows(_BY_IDS, _to_hit, being=scope.being_id, ids=as_list(days))
    return await _with_tags(reads, scope, hits)


async def _rows(reads: Reads, scope: Scope) -> AsyncIterator[list[Row]]:
    """(date, text, written_at), the latest day first, some at a time: the event loop has its turn between them."""
    before = _AFTER_ALL
    while rows := await reads.rows(_BEFORE, tuple, being=scope.being_id, before=before):
        yield rows
        before = rows[-1][0]


def _within(hit: SearchHit, query: KeywordQuery) -> bool:
    """In the window of time, and after the page before."""
    if (query.since and hit.timestamp < query.since) or (query.until and hit.timestamp > query.until):
        return False
    if query.after is None:
        return True
    at, id_ = query.after
    return hit.position[0] < at or (hit.position[0] == at and hit.id > id_)


async def _with_tags(reads: Reads, scope: Scope, hits: list[SearchHit]) -> list[SearchHit]:
    themes = await _themes(reads, scope, [hit.id for hit in hits]) if hits else {}
    return [replace(hit, tags=tuple(themes.get(hit.id, ()))[:MAX_TAGS]) for hit in hits]


async def _themes(reads: Reads, scope: Scope, days: Iterable[str]) -> Mapping[str, list[str]]:
    """By day, the commonest first."""
    numbers: dict[str, Counter[str]] = {}
    for day, themes in await reads.rows(_THEMES, pair, being=scope.being_id, days=as_list(days)):
        numbers.setdefault(day, Counter()).update(decode_texts_cached(themes))
    return {day: [theme for theme, _ in number.most_common()] for day, number in numbers.items()}


def _to_hit(row: Row) -> SearchHit:
    date, text, written_at = row
    at = parse_moment(date) or from_micros(written_at)
    return SearchHit(
        source="diary",
        id=date,
        timestamp=at,
        text=text,
        stored_at=from_micros(written_at),
        provenance=Provenance(tool="diary"),
        position=(to_micros(at), date),
    )
