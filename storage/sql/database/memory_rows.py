"""A memory as a row, and the clock that it is counted by (spec P2 `session_count`, ❷): a being's clock counts patrol
cycles, a memory's row says in which cycle it was last activated."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, bindparam, case, cast, func, literal, or_, select, type_coerce

from madeleine.memory.model import (
    MAX_SUPERSEDED_TEXT_CHARS,
    DatedAction,
    EmotionVector,
    Memory,
    Provenance,
    Scene,
    Scope,
    TextOrDatedAction,
    time_span_of_memory,
)
from madeleine.memory.rules.dynamics.future_dates import announced_time_span
from madeleine.memory.rules.dynamics.truth import dated_start_of_superseded_text
from madeleine.memory.searched_texts import keyword_searchable_texts_of_memory, timeline_as_search_text
from madeleine.memory.text.normalization import FOLDED_FIELD_SEPARATOR, fold_text
from madeleine.storage.sql.database.dialect import (
    UtcMicrosColumnType,
    bind_that_fixes_join_order,
    sql_text_start,
    upsert_statement,
)
from madeleine.storage.sql.database.engine import Row, SqlRowReader, Transaction
from madeleine.storage.sql.database.filters import sql_is_in_bound_or_no_project
from madeleine.storage.sql.database.mapping import (
    RowMapper,
    decode_json_list_cached,
    first_column_of_row,
    microseconds_from_moment,
    moment_from_microseconds,
    row_of_being_binds,
    update_row_of_being_statement,
)
from madeleine.storage.sql.database.tables import beings_table, memories_table, revisions_table

_m, _r = memories_table.c, revisions_table.c


def sql_patrol_cycle(being: Any) -> ColumnElement[int]:
    """The being's cycle; 0 before its first patrol."""
    return func.coalesce(select(beings_table.c.cycle).where(beings_table.c.being_id == being).scalar_subquery(), 0)


_last_counted_cycle = func.coalesce(_m.stopped_at, sql_patrol_cycle(_m.being_id))
CYCLES_SINCE_REACTIVATION_SQL_EXPRESSION: ColumnElement[int] = _last_counted_cycle - _m.since
_LAST_CORRECTION_TIME_EXPRESSION = type_coerce(
    select(func.max(_r.at)).where(_r.memory_id == _m.id, _r.text.is_not(None)).scalar_subquery(), UtcMicrosColumnType()
)
SINCE_COLUMN_VALUE_AFTER_RECALL = case((_m.status == "dead", _m.since), else_=_last_counted_cycle)
"""`since` after a recall: a living memory's clock is rewound (ruling 2)."""
_SELECT_PATROL_CYCLE = select(sql_patrol_cycle(bindparam("being")))
_UPSERT_PATROL_CYCLE = upsert_statement(beings_table, "cycle")


MEMORY_IS_IN_BOUND_PROJECT = sql_is_in_bound_or_no_project(_m.project)
AS_OF_BIND = bindparam("as_of", type_=_m.valid_until.type)
_told_at = case((_m.happened_at < _m.created_at, _m.happened_at), else_=_m.created_at)
_begins = func.coalesce(_m.valid_from, _told_at)
MEMORY_WAS_TRUE_AS_OF = and_(
    _m.truth != "retracted",
    or_(_begins <= AS_OF_BIND, _begins > _m.valid_until),
    or_(_m.valid_until.is_(None), _m.valid_until > AS_OF_BIND),
)
"""`rules.dynamics.truth.was_true_at`, of the moment `as_of`."""


async def read_patrol_cycle(reads: SqlRowReader, scope: Scope) -> int:
    return int((await reads.rows(_SELECT_PATROL_CYCLE, first_column_of_row, being=scope.being_id))[0])


async def set_patrol_cycle_number(transaction: Transaction, scope: Scope, cycle: int) -> None:
    row = {"being_id": scope.being_id, "cycle": cycle, "think": "[]", "think_sources": "[]"}
    await transaction.execute_many(_UPSERT_PATROL_CYCLE, [row])


@lru_cache(maxsize=1024)
def decode_timeline(stored: str) -> tuple[TextOrDatedAction, ...]:
    return tuple(item if isinstance(item, str) else DatedAction(**item) for item in json.loads(stored))


_emotion_axes = attrgetter(*(field.name for field in fields(EmotionVector)))


@lru_cache(maxsize=1024)
def decode_emotion_vector(stored: str) -> EmotionVector:
    return EmotionVector(*json.loads(stored))


_superseded, _absorbed = memories_table.alias("superseded"), memories_table.alias("absorbed").c
_joint: ColumnElement[str] = literal(FOLDED_FIELD_SEPARATOR, Text)
_SELECT_START_OF_SUPERSEDED_TEXT = select(
    _superseded.c.when_
    + _joint
    + cast(_superseded.c.happened_at, Text)
    + _joint
    + sql_text_start(_superseded.c.action, MAX_SUPERSEDED_TEXT_CHARS)
)
_SUPERSEDED_TEXT_EXPRESSION = func.coalesce(
    _SELECT_START_OF_SUPERSEDED_TEXT.where(_superseded.c.being_id == _m.being_id, _superseded.c.superseded_by == _m.id)
    .order_by(_superseded.c.valid_until.desc())
    .limit(1)
    .correlate(memories_table)
    .scalar_subquery(),
    _SELECT_START_OF_SUPERSEDED_TEXT.where(
        _absorbed.absorbed_into == _m.id,
        _superseded.c.being_id == bind_that_fixes_join_order(_absorbed.absorbed_into, _m.being_id),
        _superseded.c.superseded_by == _absorbed.id,
    )
    .limit(1)
    .correlate(memories_table)
    .scalar_subquery(),
)
"""Looked up only for a memory that has superseded another, itself or by one that it has absorbed."""


def _decode_superseded_text(stored: str) -> str:
    """Of what `_SELECT_START_OF_SUPERSEDED_TEXT` has joined; "" for nothing."""
    if not stored:
        return ""
    when, happened_at, text = stored.split(FOLDED_FIELD_SEPARATOR, 2)
    return dated_start_of_superseded_text(decode_timeline(when), moment_from_microseconds(int(happened_at)), text)


_SCENE_ROW_MAPPER = RowMapper(
    Scene,
    memories_table,
    when=memories_table.c.when_,
    decoders={"actors": decode_json_list_cached, "when": decode_timeline},
)
_PROVENANCE_ROW_MAPPER = RowMapper(Provenance, memories_table)
_MEMORY_ROW_MAPPER = RowMapper(
    Memory,
    memories_table,
    session_count=CYCLES_SINCE_REACTIVATION_SQL_EXPRESSION,
    corrected_at=_LAST_CORRECTION_TIME_EXPRESSION,
    before=func.coalesce(case((_m.valid_from.is_not(None), _SUPERSEDED_TEXT_EXPRESSION)), ""),
    decoders={
        "themes": decode_json_list_cached,
        "emotions": decode_json_list_cached,
        "emotion": decode_emotion_vector,
        "retold": decode_timeline,
        "before": _decode_superseded_text,
    },
)
MEMORY_COLUMNS = (*_SCENE_ROW_MAPPER.columns, *_PROVENANCE_ROW_MAPPER.columns, *_MEMORY_ROW_MAPPER.columns)
"""The columns that `memory_from_row` takes, in its order."""
_FIRST_PROVENANCE_COLUMN_POSITION = len(_SCENE_ROW_MAPPER.columns)
_FIRST_MEMORY_COLUMN_POSITION = _FIRST_PROVENANCE_COLUMN_POSITION + len(_PROVENANCE_ROW_MAPPER.columns)
_COLUMNS_CHANGED_BY_MERGE = (
    *("when_", "folded", "content_hash", "span_start", "span_end", "announced_start", "announced_end"),
    *("feeling", "emotions", "emotion", "lesson", "category", "valid_from"),
)
_UPDATE_MERGE_SURVIVOR = update_row_of_being_statement(memories_table, *_COLUMNS_CHANGED_BY_MERGE)


def memory_from_row(row: Row) -> Memory:
    scene = _SCENE_ROW_MAPPER.from_row(row[:_FIRST_PROVENANCE_COLUMN_POSITION])
    provenance = _PROVENANCE_ROW_MAPPER.from_row(row[_FIRST_PROVENANCE_COLUMN_POSITION:_FIRST_MEMORY_COLUMN_POSITION])
    return _MEMORY_ROW_MAPPER.from_row(row[_FIRST_MEMORY_COLUMN_POSITION:], scene=scene, provenance=provenance)


def row_from_memory(memory: Memory) -> dict[str, Any]:
    """Values by column; `session_count` is kept as two columns."""
    scene = memory.scene
    first, last = time_span_of_memory(memory)
    announced_start, announced_end = announced_time_span(memory) or (None, None)
    when, retold = map(timeline_as_search_text, (scene.when, memory.retold))
    emotion = json.dumps(_emotion_axes(memory.emotion)) if memory.emotion else None
    return {
        **_SCENE_ROW_MAPPER.to_row(scene),
        **_PROVENANCE_ROW_MAPPER.to_row(memory.provenance),
        **_MEMORY_ROW_MAPPER.to_row(memory, emotion=emotion, retold=retold, session_count=memory.session_count),
        "when_": when,
        "span_start": microseconds_from_moment(first),
        "span_end": microseconds_from_moment(last),
        "announced_start": announced_start and microseconds_from_moment(announced_start),
        "announced_end": announced_end and microseconds_from_moment(announced_end),
        "content_hash": memory.content_hash,
        "folded": FOLDED_FIELD_SEPARATOR.join(map(fold_text, keyword_searchable_texts_of_memory(memory))),
        "folded_themes": fold_and_delimit_themes(memory.themes),
    }


async def update_merge_survivors(transaction: Transaction, scope: Scope, rewritten: Iterable[Memory]) -> None:
    """Store what these memories have taken over from those that they absorbed, and what is derived from it."""
    rows = map(row_from_memory, rewritten)
    fields = ((row["id"], {name: row[name] for name in _COLUMNS_CHANGED_BY_MERGE}) for row in rows)
    await transaction.execute_many(
        _UPDATE_MERGE_SURVIVOR, (row_of_being_binds(scope, id_, **changed) for id_, changed in fields)
    )


def fold_and_delimit_theme(theme: str) -> str:
    """A theme with its bounds, to be found in `fold_and_delimit_themes` as a whole only."""
    return f"{FOLDED_FIELD_SEPARATOR}{fold_text(theme)}{FOLDED_FIELD_SEPARATOR}"


def fold_and_delimit_themes(themes: Iterable[str]) -> str:
    return "".join(fold_and_delimit_theme(theme) for theme in themes)
