"""Keyword and tag search over memories, diary, conversations and notes (spec P11, H1 to H4): letter case is ignored.

What each filter does to each source: the window of time narrows all. `themes` narrows memories to those that have them
all, and the diary to days whose memories have them; messages and notes have none, and are left out. `categories`,
`include_dead` and `include_compressed` are the memories' own; categories leave the others out.

A tag search reads each source once and says which of the tags each text holds. A tag's anchor is looked for first,
which is cheap; the tag's forms are held against the words of those texts alone that contain it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, Text, and_, bindparam, case, exists, func, literal, or_, select

from madeleine.memory.keyword_search import (
    KeywordQuery,
    SearchHit,
    SearchSource,
    SearchTagFromMessage,
    TagMatchesInOneSource,
    TagSearchQuery,
)
from madeleine.memory.model import Memory, MemoryId, Scope
from madeleine.memory.rules.searching import SPACED_SCRIPT_CHAR_CLASS, sort_hits_newest_first
from madeleine.memory.text.normalization import FOLDED_FIELD_SEPARATOR
from madeleine.storage.sql.database import dialect
from madeleine.storage.sql.database.engine import DatabaseRepository
from madeleine.storage.sql.database.mapping import decode_json_list_cached, first_column_of_row
from madeleine.storage.sql.database.memory_rows import fold_and_delimit_theme
from madeleine.storage.sql.database.tables import memories_table
from madeleine.storage.sql.memories.versions import all_versions_by_memory_id, current_version_id_by_memory_id
from madeleine.storage.sql.search import diary
from madeleine.storage.sql.search.sources import (
    SEARCHED_TABLES,
    hits_by_ids_statement,
    keyword_hits_statement,
    keyword_query_binds,
    recent_texts_statement,
)

T = TypeVar("T")

_m = memories_table.c


class KeywordAndTagSearchRepository(DatabaseRepository):
    """`KeywordSearchLedger` and `MessageTagSearchLedger`."""

    async def newest_matching_texts(self, scope: Scope, query: KeywordQuery) -> list[SearchHit]:
        hits = await _gather_results(
            self._search_one_source(scope, query, source) for source in _sources_that_can_have_hits(query)
        )
        return sort_hits_newest_first(chain.from_iterable(hits))[: query.limit]

    async def _search_one_source(self, scope: Scope, query: KeywordQuery, source: SearchSource) -> list[SearchHit]:
        if source == "diary":
            return await diary.search_diary(self._database, scope, query)
        statement = keyword_hits_statement(source, query.mode, len(query.terms), len(query.themes))
        binds = keyword_query_binds(scope, query, self._database.dialect)
        return await self._database.rows(statement, SEARCHED_TABLES[source].to_hit, **binds)

    async def recent_texts(self, scope: Scope, sources: Sequence[SearchSource], *, most: int) -> list[str]:
        texts = await _gather_results(
            self._recent_texts_of_one_source(scope, source, most) for source in dict.fromkeys(sources)
        )
        return [*chain.from_iterable(texts)]

    async def _recent_texts_of_one_source(self, scope: Scope, source: SearchSource, most: int) -> list[str]:
        if source == "diary":
            return await diary.recent_diary_texts(self._database, scope, most=most)
        return await self._database.rows(
            recent_texts_statement(source), first_column_of_row, being=scope.being_id, most=most
        )

    async def hits_with_ids(self, scope: Scope, wanted: Sequence[tuple[SearchSource, str]]) -> list[SearchHit]:
        ids: dict[SearchSource, list[str]] = {}
        for source, id_ in wanted:
            ids.setdefault(source, []).append(id_)
        return [
            *chain.from_iterable(
                await _gather_results(self._hits_of_one_source(scope, *of_source) for of_source in ids.items())
            )
        ]

    async def _hits_of_one_source(self, scope: Scope, source: SearchSource, ids: Sequence[str]) -> list[SearchHit]:
        if source == "diary":
            return await diary.diary_hits_of_days(self._database, scope, ids)
        binds = {"being": scope.being_id, "ids": dialect.json_list_bind_value(ids)}
        return await self._database.rows(hits_by_ids_statement(source), SEARCHED_TABLES[source].to_hit, **binds)

    async def current_version_id_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, MemoryId]:
        return await current_version_id_by_memory_id(self._database, scope, ids)

    async def all_versions_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Memory]]:
        return await all_versions_by_memory_id(self._database, scope, ids)

    async def tag_matches_of_each_source(self, scope: Scope, query: TagSearchQuery) -> list[TagMatchesInOneSource]:
        return await _gather_results(
            self._tag_matches_of_one_source(scope, query, source)
            for source in _sources_that_can_have_hits(query.filters)
        )

    async def _tag_matches_of_one_source(
        self, scope: Scope, query: TagSearchQuery, source: SearchSource
    ) -> TagMatchesInOneSource:
        if source == "diary":
            return await diary.diary_matches_for_search_tags(self._database, scope, query)
        # Superseded memories too: their successors are shown for them.
        binds = keyword_query_binds(scope, query.filters, self._database.dialect)
        binds |= self._tag_binds(query.tags) | {"include_superseded": True}
        binds |= {f"related_{n}": fold_and_delimit_theme(theme) for n, theme in enumerate(query.related)}
        statement = texts_holding_search_tags_statement(
            source, len(query.filters.themes), len(query.tags), len(query.related)
        )
        rows = await self._database.rows(statement, tuple, max_texts=query.max_texts, **binds)
        newest = tuple(((at, id_), mask) for at, id_, mask, _ in rows)
        return TagMatchesInOneSource(source, newest, counts={mask: count for _, _, mask, count in rows})

    async def themes_of_each_recent_memory_with_tag(
        self, scope: Scope, tags: Sequence[SearchTagFromMessage], *, recent: int
    ) -> list[tuple[str, ...]]:
        binds = {"being": scope.being_id, "recent": recent} | self._tag_binds(tags)
        statement = cooccurring_themes_statement(len(tags))
        return await self._database.rows(statement, lambda row: decode_json_list_cached(row[0]), **binds)

    def _tag_binds(self, tags: Sequence[SearchTagFromMessage]) -> dict[str, Any]:
        binds: dict[str, Any] = {"edge": FOLDED_FIELD_SEPARATOR}
        for n, tag in enumerate(tags):
            patterns = _tag_patterns(tag, self._database.dialect)
            binds |= {f"anchor_{n}": tag.anchor, f"patterns_{n}": dialect.json_list_bind_value(patterns)}
        return binds


async def _gather_results(queries: Iterable[Awaitable[T]]) -> list[T]:
    """Run queries side by side, each on a connection of its own. All have ended when this returns or raises."""
    tasks = [asyncio.ensure_future(query) for query in queries]
    await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]


def _sources_that_can_have_hits(query: KeywordQuery) -> list[SearchSource]:
    """The sources that can have a hit."""
    return [
        source
        for source in dict.fromkeys(query.sources)
        if source == "memories" or (not query.categories and (source == "diary" or not query.themes))
    ]


def _tag_patterns(tag: SearchTagFromMessage, name: dialect.DialectName) -> list[str]:
    """For a text with a separator before and behind."""
    if tag.kind == "part":
        return [dialect.ANY_TEXT_PATTERN_BY_DIALECT[name]]
    is_whole = tag.kind == "words"
    return [
        dialect.glob_or_regex_matching_word(name, form, SPACED_SCRIPT_CHAR_CLASS, whole=is_whole) for form in tag.forms
    ]


def _contains_tag_condition(text: ColumnElement[str], n: int) -> ColumnElement[bool]:
    pattern = dialect.json_list_item_rows(bindparam(f"patterns_{n}"))
    edge = bindparam("edge", type_=Text)
    return and_(
        dialect.sql_contains_text(text, bindparam(f"anchor_{n}")),
        exists().select_from(pattern).where(dialect.sql_matches_pattern(edge + text + edge, pattern.c.value)),
    )


@lru_cache(maxsize=64)
def texts_holding_search_tags_statement(source: SearchSource, themes: int, tags: int, related: int) -> Select[Any]:
    """The newest `limit` texts of each mask, with the number of all texts of that mask."""
    searched = SEARCHED_TABLES[source]
    columns, time = searched.table.c, searched.time_column
    texts = [columns[name] for name in ("folded", "folded_themes") if name in columns]
    bits = [or_(*(_contains_tag_condition(text, n) for text in texts)) for n in range(tags)]
    if related and "folded_themes" in columns:
        bits.append(
            or_(*(dialect.sql_contains_text(columns.folded_themes, bindparam(f"related_{n}")) for n in range(related)))
        )
    mask: ColumnElement[int] = sum((case((bit, 1 << n), else_=0) for n, bit in enumerate(bits)), literal(0))
    masks = select(time.label("at"), columns.id.label("id"), mask.label("mask")).where(
        *searched.filter_conditions(themes)
    )
    masks = masks.order_by(time.desc(), columns.id).limit(bindparam("max_texts"))
    # Materialized: else SQLite looks for the tags once to compare the mask, and once more to show it.
    masked = masks.cte("masked").prefix_with("MATERIALIZED")
    same_mask, newest = masked.c.mask, (masked.c.at.desc(), masked.c.id)
    ranked = (
        select(
            *masked.c,
            func.count().over(partition_by=same_mask).label("texts"),
            func.row_number().over(partition_by=same_mask, order_by=newest).label("place"),
        )
        .where(same_mask > 0)
        .subquery()
    )
    return select(ranked.c.at, ranked.c.id, ranked.c.mask, ranked.c.texts).where(ranked.c.place <= bindparam("limit"))


@lru_cache(maxsize=16)
def cooccurring_themes_statement(tags: int) -> Select[Any]:
    newest = (
        select(_m.themes, _m.folded_themes)
        .where(_m.being_id == bindparam("being"))
        .order_by(_m.happened_at.desc(), _m.id)
        .limit(bindparam("recent"))
        .subquery()
    )
    return select(newest.c.themes).where(
        or_(*(_contains_tag_condition(newest.c.folded_themes, n) for n in range(tags)))
    )
