"""Patrol runs with their costs, decision requests and undo (spec P6, O10; rulings 10 and 11)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    type_coerce,
    union,
    union_all,
)

from madeleine.memory.ingest.notes import SCENE_NOTE_TYPE
from madeleine.memory.language_model import ModelCallCost
from madeleine.memory.model import ORGANISATION_BEING_ID, ContentHash, EmbeddingModelName, Note, RunId, Scope, Vector
from madeleine.memory.patrol_records import (
    ActivitySinceLastPatrol,
    PatrolRun,
    PatrolRunState,
    PatrolUndoResult,
    StoredDecisionRequest,
)
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.conversations.context import read_notes
from madeleine.storage.sql.database.dialect import (
    UtcMicrosColumnType,
    equals_any,
    in_bound_list_condition,
    json_list_bind_value,
    json_list_item_rows,
    sql_json_field,
)
from madeleine.storage.sql.database.mapping import (
    RowMapper,
    first_column_of_row,
    microseconds_from_moment,
    row_of_being_binds,
    update_row_of_being_statement,
)
from madeleine.storage.sql.database.memory_rows import sql_patrol_cycle
from madeleine.storage.sql.database.tables import (
    cost_records_table,
    decision_requests_table,
    memories_table,
    notes_table,
    patrol_changes_table,
    patrol_runs,
)
from madeleine.storage.sql.memories.index_source import cache_vectors_and_mark_for_indexing
from madeleine.storage.sql.memories.reading import MemoryReadRepository
from madeleine.storage.sql.patrols.patrol import DECISION_REQUEST_ROW_MAPPER, PatrolReader
from madeleine.storage.sql.patrols.patrol_writer import PatrolWriter
from madeleine.storage.sql.patrols.undo import undo_patrol_run

PATROL_MEMORY_PROVENANCE_TOOLS = ("notes", "run_patrol")
"""Tools: a note that was taken in, a summary."""
MAX_OPEN_DECISION_REQUEST_AGE = timedelta(days=14)

_c, _m, _n, _o = cost_records_table.c, memories_table.c, notes_table.c, decision_requests_table.c
_j, _r = patrol_changes_table.c, patrol_runs.c
_PATROL_RUN_ROW_MAPPER = RowMapper(PatrolRun, patrol_runs)
_SELECT_LATEST_RUNS = (
    select(*_PATROL_RUN_ROW_MAPPER.columns)
    .where(_r.being_id == bindparam("being"))
    .order_by(_r.started.desc(), _r.id)
    .limit(bindparam("limit"))
)
_SELECT_UNFINISHED_RUNS = (
    select(*_PATROL_RUN_ROW_MAPPER.columns).where(_r.state == "running").order_by(_r.started.desc())
)
_INSERT_RUN = insert(patrol_runs)
_FINISH_RUN = update_row_of_being_statement(patrol_runs, "finished", "state", "report")
MAX_PATROL_RUNS_PRUNED_AT_ONCE = 20
_own_finished_runs = select(_r.started, _r.id).where(_r.being_id == bindparam("being"), _r.state == "finished")
_first_undoable = (
    _own_finished_runs.with_only_columns(_r.started).order_by(_r.started.desc()).limit(1).offset(bindparam("offset"))
)
_SELECT_RUNS_TO_PRUNE = (
    _own_finished_runs.with_only_columns(_r.id)
    .where(_r.started < _first_undoable.scalar_subquery())
    .order_by(_r.started)
    .limit(MAX_PATROL_RUNS_PRUNED_AT_ONCE)
)
# The ticks of the clock are needed for undoing later runs; what was written before is the only copy of a text.
_DELETE_PRUNABLE_JOURNAL_ROWS = delete(patrol_changes_table).where(
    in_bound_list_condition(_j.run_id, "ids"),
    _j.being_id == bindparam("being"),
    _j.kind != "clock",
    or_(~equals_any(_j.kind, "diary", "thoughts"), _j.before.is_(None)),
)
_MARK_RUN_PRUNED = update_row_of_being_statement(patrol_runs, "state")
_MODEL_CALL_COST_ROW_MAPPER = RowMapper(ModelCallCost, cost_records_table)
_INSERT_MODEL_CALL_COST = insert(cost_records_table)
_SUM_TOKENS_SINCE = select(func.coalesce(func.sum(_c.input_tokens + _c.output_tokens), 0)).where(
    _c.purpose == bindparam("purpose"), _c.at >= bindparam("since")
)
_INSERT_DECISION_REQUESTS = insert(decision_requests_table)
_DELETE_EXPIRED_DECISION_REQUESTS = delete(decision_requests_table).where(
    _o.being_id == bindparam("being"), _o.settled_by.is_(None), _o.made_at < bindparam("before")
)

# --- new memories, recalls and notes of each being since its last patrol (spec P12) ---------------------------------

# Beings are found by skipping from one to the next in an index, and of their memories only those are read whose clock
# says that they were active in this cycle or the one before (`memory_rows`): few, whatever the number of all.


def _select_distinct_being_ids_in(table: Table) -> Select[Any]:
    """Each being once."""
    first = select(func.min(table.c.being_id).label("being")).cte(f"{table.name}_beings", recursive=True)
    following = select(func.min(table.c.being_id)).where(table.c.being_id > first.c.being).scalar_subquery()
    # The last row is NULL.
    beings = first.union_all(select(following).where(first.c.being.is_not(None)))
    return select(beings.c.being).where(beings.c.being.is_not(None))


def _sql_last_patrol_run_start(being: Any) -> ColumnElement[int]:
    """The start of the being's last run that did a step; -1 before the first."""
    started = (
        select(_r.started)
        .where(
            _r.being_id == being,
            equals_any(_r.state, "finished", "undone", "pruned", "unjournalled"),
            select(json_list_item_rows(sql_json_field(_r.report, "steps")).c.key).exists(),
        )
        .order_by(_r.started.desc())
        .limit(1)
        .scalar_subquery()
    )
    return func.coalesce(started, -1)


# Not what all beings share, which nobody may change but by an act of its own (spec O4).
_known_being_ids = union(_select_distinct_being_ids_in(memories_table), _select_distinct_being_ids_in(notes_table)).cte(
    "known_beings"
)
_since_last_run = (
    select(
        _known_being_ids.c.being,
        sql_patrol_cycle(_known_being_ids.c.being).label("cycle"),
        _sql_last_patrol_run_start(_known_being_ids.c.being).label("until"),
    )
    .where(_known_being_ids.c.being != literal_column(f"'{ORGANISATION_BEING_ID}'"))
    .cte("since_last_run")
)
_is_stored = (_m.created_at > _since_last_run.c.until) & ~equals_any(_m.tool, *PATROL_MEMORY_PROVENANCE_TOOLS)
_is_recalled = _m.last_activated > _since_last_run.c.until
_memory_activity = (
    select(
        _since_last_run.c.being,
        case((_is_stored, 1), else_=0).label("stored"),
        case((_is_stored, _m.created_at), else_=_m.last_activated).label("first"),
        case((_is_recalled, _m.last_activated), else_=_m.created_at).label("latest"),
    )
    .select_from(_since_last_run)
    .join(memories_table, _m.being_id == _since_last_run.c.being)
    .where(
        equals_any(_m.status, "active", "dying"),
        equals_any(_m.pinned, False, True),
        # A memory stored after that run began, but before its step ❷, belongs to the cycle before.
        _m.since >= _since_last_run.c.cycle - 1,
        or_(_is_stored, _is_recalled),
    )
)
_unread_scene_notes_since_last_patrol = (
    select(_since_last_run.c.being, literal(1), _n.created_at, _n.created_at)
    .select_from(_since_last_run)
    .join(notes_table, _n.being_id == _since_last_run.c.being)
    .where(_n.state == "unread", _n.type == SCENE_NOTE_TYPE, _n.created_at > _since_last_run.c.until)
)
_activity = union_all(_memory_activity, _unread_scene_notes_since_last_patrol).subquery("activity")
_ACTIVITY_ROW_MAPPER = RowMapper(
    ActivitySinceLastPatrol,
    being_id=_activity.c.being,
    stored=func.sum(_activity.c.stored),
    first=type_coerce(func.min(_activity.c.first), UtcMicrosColumnType()),
    latest=type_coerce(func.max(_activity.c.latest), UtcMicrosColumnType()),
)
_SELECT_ACTIVITY_SINCE_LAST_PATROL = (
    select(*_ACTIVITY_ROW_MAPPER.columns).group_by(_activity.c.being).order_by(_activity.c.being)
)


class PatrolRepository(MemoryReadRepository):
    """`PatrolLedger`, `ActivitySinceLastPatrolReader` and `TokenSpendingLedger`."""

    def patrol_lock(self, scope: Scope, *, wait: bool = True) -> AbstractAsyncContextManager[bool]:
        return self._database.try_named_lock(f"patrol {scope.being_id}", wait=wait)

    async def unread_notes(self, scope: Scope, *, type: str) -> list[Note]:
        return await read_notes(self._database, scope, type, "unread")

    async def cache_vectors(self, model: EmbeddingModelName, vectors: Mapping[ContentHash, Vector]) -> None:
        await cache_vectors_and_mark_for_indexing(self._database, model, vectors)

    @asynccontextmanager
    async def patrol_transaction(self, scope: Scope) -> AsyncIterator[PatrolWriter]:
        async with self._database.transaction(needs_index_space=True) as transaction:
            yield PatrolWriter(transaction, scope)

    def memory_reader_for_patrol(self, scope: Scope) -> PatrolReader:
        return PatrolReader(self._database, scope)

    async def store_decision_requests_unless_erased(
        self, scope: Scope, requests: Sequence[StoredDecisionRequest], *, at: datetime, at_erasure_count: int
    ) -> bool:
        made = {"being_id": scope.being_id, "made_at": microseconds_from_moment(at), "settled_by": None}
        expired = {"being": scope.being_id, "before": microseconds_from_moment(at - MAX_OPEN_DECISION_REQUEST_AGE)}
        async with self._database.transaction() as transaction:
            if await PatrolReader(transaction, scope).last_erasure_number() != at_erasure_count:
                return False
            await transaction.execute_many(_DELETE_EXPIRED_DECISION_REQUESTS, [expired])
            await transaction.execute_many(
                _INSERT_DECISION_REQUESTS, [DECISION_REQUEST_ROW_MAPPER.to_row(request, **made) for request in requests]
            )
        return True

    async def begin_run(self, scope: Scope, run: RunId, started: datetime) -> None:
        begun = PatrolRun(
            id=run, being_id=scope.being_id, started=started, finished=started, state="running", report={}
        )
        async with self._database.transaction(needs_index_space=True) as transaction:
            await transaction.execute_many(_INSERT_RUN, [_PATROL_RUN_ROW_MAPPER.to_row(begun)])

    async def finish_run(self, scope: Scope, run: RunId, finished: datetime, report: Mapping[str, Any]) -> None:
        row = row_of_being_binds(scope, run, finished=finished, state="finished", report=report)
        async with self._database.transaction() as transaction:
            await transaction.execute_many(_FINISH_RUN, [row])
            await record_audit_entry(transaction, scope, "patrol", finished, tool="run_patrol", ids=[run])

    async def prune_journal(self, scope: Scope, *, undoable_runs: int) -> None:
        ids = await self._database.rows(
            _SELECT_RUNS_TO_PRUNE, first_column_of_row, being=scope.being_id, offset=undoable_runs - 1
        )
        if not ids:
            return
        async with self._database.transaction() as transaction:
            await transaction.execute_many(
                _DELETE_PRUNABLE_JOURNAL_ROWS, [{"being": scope.being_id, "ids": json_list_bind_value(ids)}]
            )
            await transaction.execute_many(
                _MARK_RUN_PRUNED, [row_of_being_binds(scope, id_, state="pruned") for id_ in ids]
            )

    async def runs(self, scope: Scope, *, limit: int) -> list[PatrolRun]:
        return await self._database.rows(
            _SELECT_LATEST_RUNS, _PATROL_RUN_ROW_MAPPER.from_row, being=scope.being_id, limit=limit
        )

    async def unfinished_runs(self) -> list[PatrolRun]:
        return await self._database.rows(_SELECT_UNFINISHED_RUNS, _PATROL_RUN_ROW_MAPPER.from_row)

    async def undo_run(
        self, scope: Scope, run: RunId, *, at: datetime, state: PatrolRunState = "undone"
    ) -> PatrolUndoResult:
        async with self._database.transaction() as transaction:
            return await undo_patrol_run(transaction, scope, run, at=at, state=state)

    async def record_cost(self, scope: Scope, run: RunId, spent: ModelCallCost, *, at: datetime) -> None:
        row = _MODEL_CALL_COST_ROW_MAPPER.to_row(
            spent, being_id=scope.being_id, run_id=run, at=microseconds_from_moment(at)
        )
        async with self._database.transaction() as transaction:
            await transaction.execute_many(_INSERT_MODEL_CALL_COST, [row])

    async def tokens_spent_since(self, purpose: str, since: datetime) -> int:
        [tokens] = await self._database.rows(
            _SUM_TOKENS_SINCE, first_column_of_row, purpose=purpose, since=microseconds_from_moment(since)
        )
        return int(tokens)

    async def activity_of_each_being_since_last_patrol(self) -> list[ActivitySinceLastPatrol]:
        return await self._database.rows(_SELECT_ACTIVITY_SINCE_LAST_PATROL, _ACTIVITY_ROW_MAPPER.from_row)
