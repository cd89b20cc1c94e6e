"""Searching by tags (spec H1, H2): one pass over each source says which of the tags each text holds.

A tag's anchor is looked for first, for little; only where it stands, the forms are held against the text as words.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import ClauseElement, ColumnElement, Text, and_, bindparam, case, exists, func, literal, or_, select

from madeleine.memory.keyword_search import Position, SearchSource, Tag, TagMatches, TagQuery
from madeleine.memory.model import Scope
from madeleine.memory.rules.searching.tags import WORD_SIGNS
from madeleine.storage.sql.database.dialect import (
    ANY_TEXT,
    as_list,
    contains_text,
    json_items,
    matches_pattern,
    word_pattern,
)
from madeleine.storage.sql.database.engine import Reads, Row
from madeleine.storage.sql.database.folding import SEPARATOR, delimited_theme
from madeleine.storage.sql.database.tables import memories as memories_table
from madeleine.storage.sql.database.values import decode_texts_cached
from madeleine.storage.sql.search import chat, diary, memories, notes
from madeleine.storage.sql.search.asked import Shape, binds, shape

_m = memories_table.c
_SOURCES = {"memories": memories.SOURCE, "chat": chat.SOURCE, "notes": notes.SOURCE}


async def matches(reads: Reads, scope: Scope, query: TagQuery, source: SearchSource) -> TagMatches:
    if source == "diary":
        return await diary.matches(reads, scope, query)
    bound = binds(scope, query.filters) | _tag_binds(query.tags)
    bound["looked_through"] = query.newest
    bound |= {f"related_{n}": delimited_theme(theme) for n, theme in enumerate(query.related)}
    statement = _statement(source, shape(query.filters), len(query.tags), len(query.related))
    rows = await reads.rows(statement, _row, **bound)
    return TagMatches(
        source,
        found=tuple((position, mask) for position, mask, _ in rows),
        numbers={mask: number for _, mask, number in rows},
    )


async def cooccurring_themes(reads: Reads, scope: Scope, tags: Sequence[Tag], recent: int) -> list[tuple[str, ...]]:
    bound = {"being": scope.being_id, "recent": recent} | _tag_binds(tags)
    return await reads.rows(_beside(len(tags)), _themes, **bound)


def _themes(row: Row) -> tuple[str, ...]:
    return decode_texts_cached(row[0])


def _row(row: Row) -> tuple[Position, int, int]:
    at, id_, mask, number = row
    return (at, id_), mask, number


def _tag_binds(tags: Sequence[Tag]) -> dict[str, Any]:
    bound: dict[str, Any] = {"edge": SEPARATOR} | {f"anchor_{n}": tag.anchor for n, tag in enumerate(tags)}
    return bound | {f"patterns_{n}": as_list(_patterns(tag)) for n, tag in enumerate(tags)}


def _patterns(tag: Tag) -> list[str]:
    """For a text with a separator before and behind."""
    if tag.kind == "part":
        return [ANY_TEXT]
    return [word_pattern(form, WORD_SIGNS, whole=tag.kind == "words") for form in tag.forms]


def _holds(text: ColumnElement[str], n: int) -> ColumnElement[bool]:
    pattern = json_items(bindparam(f"patterns_{n}"))
    edge = bindparam("edge", type_=Text)
    return and_(
        contains_text(text, bindparam(f"anchor_{n}")),
        exists().select_from(pattern).where(matches_pattern(edge + text + edge, pattern.c.value)),
    )


@lru_cache(maxsize=64)
def _statement(source: SearchSource, asked: Shape, tags: int, related: int) -> ClauseElement:
    """The newest `limit` of each mask, with how many there are of it."""
    of = _SOURCES[source]
    at, id_, text, themes = of.time, of.id, of.folded, of.themes
    bits = [or_(_holds(text, n), _holds(themes, n)) if themes is not None else _holds(text, n) for n in range(tags)]
    if themes is not None and related:
        bits.append(or_(*(contains_text(themes, bindparam(f"related_{n}")) for n in range(related))))
    mask: ColumnElement[int] = sum((case((bit, 1 << n), else_=0) for n, bit in enumerate(bits)), literal(0))
    marks = select(at.label("at"), id_.label("id"), mask.label("mask")).where(*of.filters(asked))
    marks = marks.order_by(at.desc(), id_).limit(bindparam("looked_through"))
    # Materialized: else SQLite looks for the tags once to compare the mask, and once more to show it.
    marked = marks.cte("marked").prefix_with("MATERIALIZED")
    by, newest = marked.c.mask, (marked.c.at.desc(), marked.c.id)
    ranked = (
        select(
            marked.c.at,
            marked.c.id,
            marked.c.mask,
            func.count().over(partition_by=by).label("number"),
            func.row_number().over(partition_by=by, order_by=newest).label("place"),
        )
        .where(marked.c.mask > 0)
        .subquery()
    )
    return select(ranked.c.at, ranked.c.id, ranked.c.mask, ranked.c.number).where(ranked.c.place <= bindparam("limit"))


@lru_cache(maxsize=16)
def _beside(tags: int) -> ClauseElement:
    newest = (
        select(_m.themes, _m.folded_themes)
        .where(_m.being_id == bindparam("being"))
        .order_by(_m.happened_at.desc(), _m.id)
        .limit(bindparam("recent"))
        .subquery()
    )
    return select(newest.c.themes).where(or_(*(_holds(newest.c.folded_themes, n) for n in range(tags))))
