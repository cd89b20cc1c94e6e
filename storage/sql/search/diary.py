"""Searching the diary (spec H1, P8). There is an entry a day, so it is read and compared here, newest first.

An entry's time is the beginning of its day, as for a memory whose day alone is known. Its tags are the themes of the
memories that it was written from.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import bindparam, select, true

from madeleine.memory.keyword_search import HitTimeAndId, KeywordQuery, SearchHit, TagMatchesInOneSource, TagSearchQuery
from madeleine.memory.model import Provenance, Scope, parse_iso_moment_or_none
from madeleine.memory.rules.searching import folded_text_has_terms, text_has_message_tag
from madeleine.memory.text.normalization import FOLDED_FIELD_SEPARATOR, fold_text
from madeleine.storage.sql.database.dialect import in_bound_list_condition, json_list_bind_value, json_list_item_rows
from madeleine.storage.sql.database.engine import Row, SqlRowReader
from madeleine.storage.sql.database.mapping import (
    decode_json_list_cached,
    first_two_columns_of_row,
    microseconds_from_moment,
    moment_from_microseconds,
)
from madeleine.storage.sql.database.tables import diary_entries_table, memories_table

MAX_THEMES_PER_DIARY_HIT = 10
MAX_DIARY_DAYS_COMPARED_BY_THEME = 366
"""The latest entries whose themes are compared with a message's tags too, at the cost of reading their memories; of
older entries the text alone is compared."""
_DIARY_ENTRIES_PER_READ = 400
_AFTER_ALL_DATES = "\U0010ffff"
_d, _m = diary_entries_table.c, memories_table.c
_SELECT_DIARY_ENTRIES = select(_d.date, _d.text, _d.written_at).where(_d.being_id == bindparam("being"))
_SELECT_DIARY_ENTRY_PAGE = (
    _SELECT_DIARY_ENTRIES.where(_d.date < bindparam("before")).order_by(_d.date.desc()).limit(_DIARY_ENTRIES_PER_READ)
)
_SELECT_DIARY_ENTRIES_BY_DATE = _SELECT_DIARY_ENTRIES.where(in_bound_list_condition(_d.date, "ids"))
_source = json_list_item_rows(_d.sources)
_SELECT_THEMES_OF_DIARY_DAYS = (
    select(_d.date, _m.themes)
    .select_from(diary_entries_table)
    .join(_source, true())
    .join(memories_table, _m.id == _source.c.value)
    .where(
        _d.being_id == bindparam("being"),
        in_bound_list_condition(_d.date, "days"),
        _m.being_id == _d.being_id,
        _m.themes != "[]",
    )
    .order_by(_d.date, _m.seq)
)


async def search_diary(reads: SqlRowReader, scope: Scope, query: KeywordQuery) -> list[SearchHit]:
    """At most `query.limit`, newest first."""
    terms = [fold_text(term) for term in query.terms]
    themes = {fold_text(theme) for theme in query.themes}
    results: list[SearchHit] = []
    async for entries in _diary_entry_pages(reads, scope):
        hits = [_to_diary_hit(entry) for entry in entries if _contains_terms(entry[1], terms, query)]
        hits = [hit for hit in hits if _is_in_time_window_after_cursor(hit, query)]
        if themes:
            themes_by_day = await _themes_by_day(reads, scope, [hit.id for hit in hits])
            hits = [hit for hit in hits if themes <= {*map(fold_text, themes_by_day.get(hit.id, ()))}]
        results += hits
        if len(results) >= query.limit:
            break
    return await _with_themes(reads, scope, results[: query.limit])


def _contains_terms(text: str, terms: Sequence[str], query: KeywordQuery) -> bool:
    return folded_text_has_terms(fold_text(text), terms, query.mode, within_words=query.within_words)


async def diary_matches_for_search_tags(
    reads: SqlRowReader, scope: Scope, query: TagSearchQuery
) -> TagMatchesInOneSource:
    newest: list[tuple[HitTimeAndId, int]] = []
    counts: Counter[int] = Counter()
    required = {fold_text(theme) for theme in query.filters.themes}
    searched = 0
    async for page in _diary_entry_pages(reads, scope):
        entries = page[: max(0, query.max_texts - searched)]
        themed = [
            date
            for date, _, _ in (entries if required else entries[: max(0, MAX_DIARY_DAYS_COMPARED_BY_THEME - searched)])
        ]
        themes_by_day = await _themes_by_day(reads, scope, themed)
        searched += len(entries)
        for entry in entries:
            themes = {*map(fold_text, themes_by_day.get(entry[0], ()))}
            folded = FOLDED_FIELD_SEPARATOR.join((fold_text(entry[1]), *themes))
            mask = sum(1 << n for n, tag in enumerate(query.tags) if text_has_message_tag(folded, tag))
            mask |= (not themes.isdisjoint(query.related)) << len(query.tags)
            if (
                mask
                and required <= themes
                and _is_in_time_window_after_cursor(hit := _to_diary_hit(entry), query.filters)
            ):
                counts[mask] += 1
                if counts[mask] <= query.filters.limit:
                    newest.append((hit.position, mask))
    return TagMatchesInOneSource("diary", tuple(newest), counts)


async def recent_diary_texts(reads: SqlRowReader, scope: Scope, *, most: int) -> list[str]:
    texts: list[str] = []
    async for entries in _diary_entry_pages(reads, scope):
        texts += [fold_text(text) for _, text, _ in entries]
        if len(texts) >= most:
            break
    return texts[:most]


async def diary_hits_of_days(reads: SqlRowReader, scope: Scope, days: Iterable[str]) -> list[SearchHit]:
    hits = await reads.rows(
        _SELECT_DIARY_ENTRIES_BY_DATE, _to_diary_hit, being=scope.being_id, ids=json_list_bind_value(days)
    )
    return await _with_themes(reads, scope, hits)


async def _diary_entry_pages(reads: SqlRowReader, scope: Scope) -> AsyncIterator[list[Row]]:
    """Yield (date, text, written_at), the latest day first, in pages: the event loop has its turn between them."""
    before = _AFTER_ALL_DATES
    while rows := await reads.rows(_SELECT_DIARY_ENTRY_PAGE, tuple, being=scope.being_id, before=before):
        yield rows
        before = rows[-1][0]


def _is_in_time_window_after_cursor(hit: SearchHit, query: KeywordQuery) -> bool:
    """Whether it is in the window of time and after the previous page of hits."""
    if (query.since and hit.timestamp < query.since) or (query.until and hit.timestamp > query.until):
        return False
    if query.after is None:
        return True
    at, id_ = query.after
    return hit.position[0] < at or (hit.position[0] == at and hit.id > id_)


async def _with_themes(reads: SqlRowReader, scope: Scope, hits: list[SearchHit]) -> list[SearchHit]:
    themes_by_day = await _themes_by_day(reads, scope, [hit.id for hit in hits])
    return [replace(hit, themes=tuple(themes_by_day.get(hit.id, ()))[:MAX_THEMES_PER_DIARY_HIT]) for hit in hits]


async def _themes_by_day(reads: SqlRowReader, scope: Scope, days: Sequence[str]) -> Mapping[str, list[str]]:
    """The themes of each day's memories, the commonest first."""
    if not days:
        return {}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for day, themes in await reads.rows(
        _SELECT_THEMES_OF_DIARY_DAYS, first_two_columns_of_row, being=scope.being_id, days=json_list_bind_value(days)
    ):
        counts[day].update(decode_json_list_cached(themes))
    return {day: [theme for theme, _ in count.most_common()] for day, count in counts.items()}


def _to_diary_hit(row: Row) -> SearchHit:
    date, text, written_at = row
    at = parse_iso_moment_or_none(date) or moment_from_microseconds(written_at)
    return SearchHit(
        source="diary",
        id=date,
        when=date,
        timestamp=at,
        text=text,
        stored_at=moment_from_microseconds(written_at),
        provenance=Provenance(tool="diary"),
        position=(microseconds_from_moment(at), date),
    )
