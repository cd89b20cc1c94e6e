"""What a person who looks over a being's memory reads of it, past any recall: outlines of all memories, what patrols
changed, costs, the audit of one memory. Nothing here counts as a recall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, or_, select

from madeleine.memory.audit import AuditEntry
from madeleine.memory.chat import ConversationMessage
from madeleine.memory.model import ClusterId, Memory, MemoryId, MemoryStatus, RunId, Scope, TruthStatus, Vector
from madeleine.memory.patrol_records import PatrolRun
from madeleine.storage.sql.database import dialect
from madeleine.storage.sql.database.dialect import MAX_INT
from madeleine.storage.sql.database.engine import DatabaseRepository, Row
from madeleine.storage.sql.database.filters import period_binds, sql_is_in_bound_period
from madeleine.storage.sql.database.mapping import (
    RowMapper,
    first_column_of_row,
    first_two_columns_of_row,
    microseconds_from_moment,
    vector_from_bytes,
)
from madeleine.storage.sql.database.memory_rows import (
    CYCLES_SINCE_REACTIVATION_SQL_EXPRESSION,
    MEMORY_COLUMNS,
    memory_from_row,
)
from madeleine.storage.sql.database.tables import (
    audit_entries_table,
    cost_records_table,
    embeddings_table,
    memories_table,
    patrol_changes_table,
    patrol_runs,
)
from madeleine.storage.sql.tables.conversations import message_memories_table, messages_table

MAX_OUTLINE_TEXT_CHARS = 120
MAX_PATROL_CHANGES_SHOWN = 2_000
MAX_AUDIT_ENTRIES_SHOWN_PER_MEMORY = 500
MAX_ABSORBED_MEMORIES_SHOWN = 50
"""Of those that were absorbed into one, or compressed into it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOutline:
    """A memory as a point of a map or a timeline. `text`: the beginning of its action."""

    seq: int
    number: int
    text: str
    happened_at: datetime
    created_at: datetime
    importance: float
    session_count: int
    status: MemoryStatus
    truth: TruthStatus
    category: str
    cluster_id: ClusterId | None
    pinned: bool
    valid_from: datetime | None
    valid_until: datetime | None
    kept_until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolChangedRow:
    """A row that a patrol changed. `before` is None for one that it made, `after` for one that it removed."""

    step: str
    kind: str
    target: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyCostByPurposeAndModel:
    """`day`: ISO, in UTC. `usd`: of the calls whose price is known; None if none is."""

    day: str
    purpose: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


_a, _c, _e, _j, _l = (
    audit_entries_table.c,
    cost_records_table.c,
    embeddings_table.c,
    patrol_changes_table.c,
    message_memories_table.c,
)
_m, _r, _t = memories_table.c, patrol_runs.c, messages_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_MEMORY_OUTLINE_ROW_MAPPER = RowMapper(
    MemoryOutline,
    memories_table,
    text=dialect.sql_text_start(_m.action, MAX_OUTLINE_TEXT_CHARS),
    session_count=CYCLES_SINCE_REACTIVATION_SQL_EXPRESSION,
)
_SELECT_OUTLINES = select(*_MEMORY_OUTLINE_ROW_MAPPER.columns).where(_m.being_id == _BEING_ID_BIND).order_by(_m.seq)
_COUNT_BY_STATUS_TRUTH_AND_PIN = (
    select(_m.status, _m.truth, _m.pinned, func.count())
    .where(_m.being_id == _BEING_ID_BIND)
    .group_by(_m.status, _m.truth, _m.pinned)
)
_HAS_VECTOR = (_m.being_id == _BEING_ID_BIND, _e.content_hash == _m.content_hash, _e.model == bindparam("model"))
_SELECT_IDS_OF_MEMORIES_HAVING_VECTOR = select(_m.seq, _m.id).where(*_HAS_VECTOR).order_by(_m.seq)
_SELECT_VECTORS_OF_MEMORIES = select(_m.seq, _e.vector).where(
    *_HAS_VECTOR, dialect.in_bound_list_condition(_m.id, "ids")
)
_PATROL_CHANGE_ROW_MAPPER = RowMapper(PatrolChangedRow, patrol_changes_table)
_SELECT_CHANGES_OF_PATROL_RUN = (
    select(*_PATROL_CHANGE_ROW_MAPPER.columns)
    # Every memory grows older by a tick of the clock, which is one row and nothing to look at.
    .where(_j.run_id == bindparam("run"), dialect.without_index_use(_j.being_id) == _BEING_ID_BIND, _j.kind != "clock")
    .order_by(_j.seq)
    .limit(MAX_PATROL_CHANGES_SHOWN)
)
_PATROL_RUN_ROW_MAPPER = RowMapper(PatrolRun, patrol_runs)
_SELECT_PATROL_RUN = select(*_PATROL_RUN_ROW_MAPPER.columns).where(
    _r.id == bindparam("run"), _r.being_id == _BEING_ID_BIND
)
_COST_UTC_DAY = dialect.sql_utc_day(_c.at)
_DAILY_COST_ROW_MAPPER = RowMapper(
    DailyCostByPurposeAndModel,
    cost_records_table,
    day=_COST_UTC_DAY,
    calls=func.count(),
    input_tokens=func.sum(_c.input_tokens),
    output_tokens=func.sum(_c.output_tokens),
    usd=func.sum(_c.usd),
)
_SELECT_DAILY_COSTS = (
    select(*_DAILY_COST_ROW_MAPPER.columns)
    .where(_c.being_id == _BEING_ID_BIND, sql_is_in_bound_period(_c.at))
    .group_by(_COST_UTC_DAY, _c.purpose, _c.model)
    .order_by(_COST_UTC_DAY, _c.purpose, _c.model)
)
_AUDIT_ENTRY_ROW_MAPPER = RowMapper(AuditEntry, audit_entries_table)
_SELECT_AUDIT_OF_MEMORY = (
    select(*_AUDIT_ENTRY_ROW_MAPPER.columns)
    .where(_a.being_id == _BEING_ID_BIND, _a.ids.contains(bindparam("quoted_id"), autoescape=False))
    .order_by(_a.seq.desc())
    .limit(MAX_AUDIT_ENTRIES_SHOWN_PER_MEMORY)
)
_SELECT_AUDIT_PAGE = (
    select(*_AUDIT_ENTRY_ROW_MAPPER.columns)
    .where(
        _a.being_id == _BEING_ID_BIND,
        _a.seq < bindparam("before"),
        _a.seq > bindparam("after"),
        _a.at <= bindparam("until"),
        or_(bindparam("events") == "[]", dialect.in_bound_list_condition(_a.event, "events")),
        _a.client != bindparam("not_client"),
    )
    .order_by(_a.seq.desc())
    .limit(bindparam("limit"))
)
_SELECT_LAST_AUDIT_NUMBER = select(func.coalesce(func.max(_a.seq), 0))
_SELECT_MEMORIES_ABSORBED_BY = (
    select(*MEMORY_COLUMNS)
    .where(
        _m.being_id == _BEING_ID_BIND, or_(_m.absorbed_into == bindparam("id"), _m.compressed_into == bindparam("id"))
    )
    .order_by(_m.seq)
    .limit(MAX_ABSORBED_MEMORIES_SHOWN)
)
_CONVERSATION_MESSAGE_ROW_MAPPER = RowMapper(ConversationMessage, messages_table)
_SELECT_SOURCE_MESSAGES = (
    select(*_CONVERSATION_MESSAGE_ROW_MAPPER.columns)
    .join(message_memories_table, _l.message_id == _t.id)
    .where(_l.memory_id == bindparam("id"), _t.being_id == _BEING_ID_BIND)
    .order_by(_t.at, _t.position)
)


class WebUiOverviewRepository(DatabaseRepository):
    """Reads for the page."""

    async def memory_outlines(self, scope: Scope) -> list[MemoryOutline]:
        """All memories, in the order in which they were stored."""
        return await self._database.rows(_SELECT_OUTLINES, _MEMORY_OUTLINE_ROW_MAPPER.from_row, being=scope.being_id)

    async def count_memories_by_status_truth_and_pin(
        self, scope: Scope
    ) -> list[tuple[MemoryStatus, TruthStatus, bool, int]]:
        """Memories by status, truth and whether they are pinned."""
        return await self._database.rows(
            _COUNT_BY_STATUS_TRUTH_AND_PIN, _to_status_truth_pin_and_count, being=scope.being_id
        )

    async def sequence_numbers_and_ids_of_embedded_memories(
        self, scope: Scope, model: str
    ) -> list[tuple[int, MemoryId]]:
        """(seq, id) of the memories that have a vector by this model, in order."""
        return await self._database.rows(
            _SELECT_IDS_OF_MEMORIES_HAVING_VECTOR, first_two_columns_of_row, being=scope.being_id, model=model
        )

    async def sequence_numbers_and_vectors(
        self, scope: Scope, model: str, ids: Sequence[MemoryId]
    ) -> list[tuple[int, Vector]]:
        """(seq, vector) of those of these memories that have one by this model, in no order."""
        binds = {"being": scope.being_id, "model": model, "ids": dialect.json_list_bind_value(ids)}
        return await self._database.rows(_SELECT_VECTORS_OF_MEMORIES, _to_sequence_number_and_vector, **binds)

    async def patrol_run(self, scope: Scope, run: RunId) -> PatrolRun | None:
        return next(
            iter(
                await self._database.rows(
                    _SELECT_PATROL_RUN, _PATROL_RUN_ROW_MAPPER.from_row, being=scope.being_id, run=run
                )
            ),
            None,
        )

    async def changes_of_patrol_run(self, scope: Scope, run: RunId) -> list[PatrolChangedRow]:
        """In their order, at most `MAX_PATROL_CHANGES_SHOWN`; none once the journal was pruned or the run was
        undone."""
        return await self._database.rows(
            _SELECT_CHANGES_OF_PATROL_RUN, _PATROL_CHANGE_ROW_MAPPER.from_row, being=scope.being_id, run=run
        )

    async def costs_between(self, scope: Scope, since: datetime, until: datetime) -> list[DailyCostByPurposeAndModel]:
        binds = period_binds(since, until)
        return await self._database.rows(
            _SELECT_DAILY_COSTS, _DAILY_COST_ROW_MAPPER.from_row, being=scope.being_id, **binds
        )

    async def audit_of_memory(self, scope: Scope, id_: MemoryId) -> list[AuditEntry]:
        """The latest first."""
        binds = {"being": scope.being_id, "quoted_id": f'"{id_}"'}
        return await self._database.rows(_SELECT_AUDIT_OF_MEMORY, _AUDIT_ENTRY_ROW_MAPPER.from_row, **binds)

    async def audit_page(
        self,
        scope: Scope,
        *,
        limit: int,
        before: int = MAX_INT,
        after: int = 0,
        events: Sequence[str] = (),
        not_client: str = "",
        until: datetime | None = None,
    ) -> list[AuditEntry]:
        """The latest first, of numbers between `after` and `before`. `events`: only these kinds, all if empty.
        `not_client`: whose entries are left out. `until`: the time of the last one."""
        return await self._database.rows(
            _SELECT_AUDIT_PAGE,
            _AUDIT_ENTRY_ROW_MAPPER.from_row,
            being=scope.being_id,
            limit=limit,
            before=before,
            after=after,
            events=dialect.json_list_bind_value(events),
            not_client=not_client or "\x1f",
            until=MAX_INT if until is None else microseconds_from_moment(until),
        )

    async def last_audit_number(self) -> int:
        return int((await self._database.rows(_SELECT_LAST_AUDIT_NUMBER, first_column_of_row))[0])

    async def memories_absorbed_by(self, scope: Scope, id_: MemoryId) -> list[Memory]:
        """Memories that live on in this one: merged into it, or told by it as a summary."""
        return await self._database.rows(_SELECT_MEMORIES_ABSORBED_BY, memory_from_row, being=scope.being_id, id=id_)

    async def messages_of_memory(self, scope: Scope, id_: MemoryId) -> list[ConversationMessage]:
        """The messages that it was drawn from."""
        return await self._database.rows(
            _SELECT_SOURCE_MESSAGES, _CONVERSATION_MESSAGE_ROW_MAPPER.from_row, being=scope.being_id, id=id_
        )


def _to_status_truth_pin_and_count(row: Row) -> tuple[MemoryStatus, TruthStatus, bool, int]:
    status, truth, pinned, count = row
    return status, truth, bool(pinned), count


def _to_sequence_number_and_vector(row: Row) -> tuple[int, Vector]:
    return row[0], vector_from_bytes(row[1])
