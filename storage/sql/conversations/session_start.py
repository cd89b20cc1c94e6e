"""What the start of a session reads: what is pinned, due, important, or has changed (ruling 18)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, func, literal_column, or_, select

from madeleine.memory.context.ports import SessionStartMemories
from madeleine.memory.model import Memory, MemoryId, Scope, short_id_of_memory_number
from madeleine.storage.sql.database.dialect import (
    equals_any,
    in_bound_list_condition,
    json_list_bind_value,
    without_index_use,
)
from madeleine.storage.sql.database.engine import SqlRowReader
from madeleine.storage.sql.database.mapping import first_two_columns_of_row, microseconds_from_moment
from madeleine.storage.sql.database.memory_rows import MEMORY_COLUMNS, MEMORY_IS_IN_BOUND_PROJECT, memory_from_row
from madeleine.storage.sql.database.tables import memories_table, revisions_table

MIN_START_IMPORTANCE, MIN_START_TIMES_USED = 0.7, 5
"""Of a memory that a conversation begins with: one or the other. Told again and recalled lately count as use."""
_m, _r = memories_table.c, revisions_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_start_memories = (
    select(*MEMORY_COLUMNS)
    .where(
        equals_any(_m.status, literal_column("'active'"), literal_column("'dying'")),
        _m.truth == "current",
        _m.compressed.is_(False),
        _m.category != "procedural",
        MEMORY_IS_IN_BOUND_PROJECT,
        func.trim(_m.action) != "",
    )
    .limit(bindparam("limit"))
)
_IS_OF_BOUND_BEING = _m.being_id == _BEING_ID_BIND
# Few memories are pinned, corrected or due: SQLite is to find those, and not to read all in the order of time.
_IS_OF_BOUND_BEING_WITHOUT_INDEX, _created_at_of_few = (
    without_index_use(_m.being_id) == _BEING_ID_BIND,
    without_index_use(_m.created_at),
)
_SELECT_MEMORIES_CREATED_SINCE = _start_memories.where(
    _IS_OF_BOUND_BEING, _m.created_at >= bindparam("changed_since")
).order_by(_m.created_at.desc(), _m.seq.desc())
_SELECT_NEW_MEMORIES_REPLACING_OLDER = _start_memories.where(
    _IS_OF_BOUND_BEING,
    _m.created_at >= bindparam("changed_since"),
    or_(_m.valid_from.is_not(None), _m.may_supersede.is_not(None)),
).order_by(_m.created_at.desc(), _m.seq.desc())
_SELECT_PINNED_MEMORIES = _start_memories.where(_IS_OF_BOUND_BEING, _m.pinned.is_(True)).order_by(
    _created_at_of_few.desc(), _m.seq.desc()
)
_SELECT_MEMORIES_CORRECTED_SINCE = _start_memories.where(
    _IS_OF_BOUND_BEING_WITHOUT_INDEX,
    _m.id.in_(select(_r.memory_id).where(_r.being_id == _BEING_ID_BIND, _r.at >= bindparam("changed_since"))),
).order_by(_created_at_of_few.desc(), _m.seq.desc())
_spans = memories_table.alias("spans").c


def _is_due_condition(start: ColumnElement[Any], end: ColumnElement[Any]) -> ColumnElement[bool]:
    return and_(end >= bindparam("now"), start <= bindparam("due_until"))


_SELECT_MEMORIES_OF_COMING_EVENTS = _start_memories.where(
    _IS_OF_BOUND_BEING_WITHOUT_INDEX,
    # What was told before it happens; what is told of a day that has begun is news.
    or_(_m.span_start > _m.created_at, _is_due_condition(_m.announced_start, _m.announced_end)),
    _m.id.in_(
        select(_spans.id).where(
            _spans.being_id == _BEING_ID_BIND,
            or_(
                _is_due_condition(_spans.span_start, _spans.span_end),
                _is_due_condition(_spans.announced_start, _spans.announced_end),
            ),
        )
    ),
).order_by(func.coalesce(_m.announced_start, _m.span_start), _m.seq)
_SELECT_NUMBERS_OF_CURRENT_MEMORIES = select(_m.id, _m.number).where(
    _IS_OF_BOUND_BEING_WITHOUT_INDEX, in_bound_list_condition(_m.id, "ids"), _m.truth == "current", _m.status != "dead"
)
_times_used = _m.access_count + _m.reactivation_count
_SELECT_IMPORTANT_OR_OFTEN_USED_MEMORIES = _start_memories.where(
    _IS_OF_BOUND_BEING, or_(_m.importance >= MIN_START_IMPORTANCE, _times_used >= MIN_START_TIMES_USED)
).order_by(_m.importance.desc(), _times_used.desc(), _m.seq.desc())


async def read_memory_groups_for_session_start(
    reads: SqlRowReader, scope: Scope, *, now: datetime, due_until: datetime, changed_since: datetime, limit: int
) -> SessionStartMemories:
    times = {"now": now, "due_until": due_until, "changed_since": changed_since}
    binds = {name: microseconds_from_moment(at) for name, at in times.items()}

    async def select_memories(statement: Select[Any], *names: str) -> list[Memory]:
        own = {"being": scope.being_id, "project": scope.project} | {name: binds[name] for name in names}
        return await reads.rows(statement, memory_from_row, limit=limit, **own)

    stored, changing, corrected = [
        await select_memories(statement, "changed_since")
        for statement in (
            _SELECT_MEMORIES_CREATED_SINCE,
            _SELECT_NEW_MEMORIES_REPLACING_OLDER,
            _SELECT_MEMORIES_CORRECTED_SINCE,
        )
    ]
    changes = {memory.id: memory for memory in (*changing, *corrected)}
    latest = sorted(
        ({memory.id: memory for memory in stored} | changes).values(),
        key=lambda memory: (memory.id in changes, memory.corrected_at or memory.created_at),
        reverse=True,
    )
    start = SessionStartMemories(
        pinned=await select_memories(_SELECT_PINNED_MEMORIES),
        due=await select_memories(_SELECT_MEMORIES_OF_COMING_EVENTS, "now", "due_until"),
        important=await select_memories(_SELECT_IMPORTANT_OR_OFTEN_USED_MEMORIES),
        changed=latest[:limit],
    )
    shown = (*start.pinned, *start.due, *start.important, *start.changed)
    ids = {older for memory in shown if (older := memory.possibly_superseded_memory_id)}
    if not ids:
        return start
    numbers = await reads.rows(
        _SELECT_NUMBERS_OF_CURRENT_MEMORIES,
        first_two_columns_of_row,
        being=scope.being_id,
        ids=json_list_bind_value(ids),
    )
    short_ids = {MemoryId(id_): short_id_of_memory_number(number, scope.being_id) for id_, number in numbers}
    return replace(start, possibly_superseded=short_ids)
