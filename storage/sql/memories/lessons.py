"""Lessons (spec O11): stored with their memory, in its transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import bindparam, case, select, update

from madeleine.memory.lessons.values import Lesson, LessonWithOutcomeCounts
from madeleine.memory.model import MemoryId, Scope
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.database import dialect
from madeleine.storage.sql.database.engine import Row, Transaction
from madeleine.storage.sql.database.mapping import RowMapper, first_column_of_row
from madeleine.storage.sql.database.memory_rows import MEMORY_COLUMNS, memory_from_row
from madeleine.storage.sql.database.tables import memories_table
from madeleine.storage.sql.memories.reading import MemoryReadRepository
from madeleine.storage.sql.tables.lessons import lessons_table

_l, _m = lessons_table.c, memories_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_LESSON_ROW_MAPPER = RowMapper(Lesson, lessons_table)
_SELECT_OWN_LESSONS = (
    select(*_LESSON_ROW_MAPPER.columns, _l.helped, _l.failed, *MEMORY_COLUMNS)
    .join_from(lessons_table, memories_table, _m.id == _l.memory_id)
    .where(_l.being_id == _BEING_ID_BIND)
)
_SELECT_CURRENT_LESSONS = (
    _SELECT_OWN_LESSONS.where(_m.truth == "current")
    .order_by(_m.created_at.desc(), _m.seq.desc())
    .limit(bindparam("limit"))
)
_SELECT_LESSONS_BY_ID = _SELECT_OWN_LESSONS.where(dialect.in_bound_list_condition(_l.memory_id, "ids"))
_INSERT_LESSON = dialect.insert_if_missing_statement(lessons_table)
_IS_BOUND_LESSON_OF_BEING = (_l.memory_id == bindparam("target"), _l.being_id == _BEING_ID_BIND)
_SELECT_OWN_LESSON_ID = select(_l.memory_id).where(*_IS_BOUND_LESSON_OF_BEING)
_ADD_TO_OUTCOME_COUNTS = (
    update(lessons_table)
    .where(*_IS_BOUND_LESSON_OF_BEING)
    .values(
        helped=_l.helped + case((bindparam("good") == 1, 1), else_=0),
        failed=_l.failed + case((bindparam("good") == 1, 0), else_=1),
    )
)
_LESSON_COLUMN_COUNT = len(_LESSON_ROW_MAPPER.columns)


def _lesson_with_outcome_counts_from_row(row: Row) -> LessonWithOutcomeCounts:
    helped, failed = row[_LESSON_COLUMN_COUNT : _LESSON_COLUMN_COUNT + 2]
    lesson, memory = (
        _LESSON_ROW_MAPPER.from_row(row[:_LESSON_COLUMN_COUNT]),
        memory_from_row(row[_LESSON_COLUMN_COUNT + 2 :]),
    )
    return LessonWithOutcomeCounts(memory=memory, lesson=lesson, helped=helped, failed=failed)


async def insert_lessons(transaction: Transaction, scope: Scope, learnt: Mapping[MemoryId, Lesson]) -> None:
    """A memory that has a lesson keeps it."""
    rows = [_LESSON_ROW_MAPPER.to_row(lesson, memory_id=id_, being_id=scope.being_id) for id_, lesson in learnt.items()]
    await transaction.execute_many(_INSERT_LESSON, rows)


class LessonRepository(MemoryReadRepository):
    """`LessonLedger`."""

    async def lessons(self, scope: Scope, *, limit: int) -> list[LessonWithOutcomeCounts]:
        return await self._database.rows(
            _SELECT_CURRENT_LESSONS, _lesson_with_outcome_counts_from_row, being=scope.being_id, limit=limit
        )

    async def lessons_with_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> list[LessonWithOutcomeCounts]:
        binds = {"being": scope.being_id, "ids": dialect.json_list_bind_value(ids)}
        return await self._database.rows(_SELECT_LESSONS_BY_ID, _lesson_with_outcome_counts_from_row, **binds)

    async def record_lesson_outcome(self, scope: Scope, memory_id: MemoryId, *, helped: bool, at: datetime) -> bool:
        binds = {"target": memory_id, "being": scope.being_id}
        async with self._database.transaction() as transaction:
            if not await transaction.rows(_SELECT_OWN_LESSON_ID, first_column_of_row, **binds):
                return False
            await transaction.execute_many(_ADD_TO_OUTCOME_COUNTS, [binds | {"good": int(helped)}])
            await record_audit_entry(transaction, scope, "update", at, tool="lessons", ids=[memory_id])
            return True
