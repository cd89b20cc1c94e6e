"""Patrol runs with their costs, decision requests and undo (spec P6, O10; rulings 10 and 11)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select

from madeleine.memory.language_model import CallCost
from madeleine.memory.model import ContentHash, ModelName, Note, RunId, Scope, Vector
from madeleine.memory.patrol_records import PatrolRun, RunState, StoredDecisionRequest, UndoResult
from madeleine.storage.sql.administration import record_audit
from madeleine.storage.sql.conversations.context import unread_notes
from madeleine.storage.sql.database.mapping import Mapped, own_row_binds, scalar, to_micros, update_own_row
from madeleine.storage.sql.database.tables import cost_records, patrol_offers, patrol_runs
from madeleine.storage.sql.memories.index_source import cache_vectors_and_mark
from madeleine.storage.sql.memories.reading import MemoryReads
from madeleine.storage.sql.patrols.patrol import DECISION_REQUEST, PatrolReader, PatrolWriter
from madeleine.storage.sql.patrols.undo import undo_run

UNDECIDED_REQUESTS_KEPT_FOR = timedelta(days=14)

_c, _o, _r = cost_records.c, patrol_offers.c, patrol_runs.c
_PATROL_RUN = Mapped(PatrolRun, patrol_runs)
_SELECT_LATEST_RUNS = (
    select(*_PATROL_RUN.columns)
    .where(_r.being_id == bindparam("being"))
    .order_by(_r.started.desc(), _r.id)
    .limit(bindparam("limit"))
)
_SELECT_UNFINISHED_RUNS = select(*_PATROL_RUN.columns).where(_r.state == "running").order_by(_r.started.desc())
_INSERT_RUN = insert(patrol_runs)
_FINISH_RUN = update_own_row(patrol_runs, "finished", "state", "report")
_COST = Mapped(CallCost, cost_records)
_INSERT_COST = insert(cost_records)
_SUM_TOKENS_SINCE = select(func.coalesce(func.sum(_c.input_tokens + _c.output_tokens), 0)).where(
    _c.purpose == bindparam("purpose"), _c.at >= bindparam("since")
)
_INSERT_REQUESTS = insert(patrol_offers)
_DELETE_EXPIRED_REQUESTS = delete(patrol_offers).where(
    _o.being_id == bindparam("being"), _o.settled_by.is_(None), _o.made_at < bindparam("before")
)


class PatrolRepository(MemoryReads):
    """`PatrolLedger` and `CostLedger`."""

    async def unread_notes(self, scope: Scope, *, type: str) -> list[Note]:
        return await unread_notes(self._database, scope, type)

    async def add_vectors(self, model: ModelName, vectors: Mapping[ContentHash, Vector]) -> None:
        await cache_vectors_and_mark(self._database, model, vectors)

    @asynccontextmanager
    async def patrol(self, scope: Scope) -> AsyncIterator[PatrolWriter]:
        async with self._database.transaction(grows=True) as transaction:
            yield PatrolWriter(transaction, scope)

    def patrol_reads(self, scope: Scope) -> PatrolReader:
        return PatrolReader(self._database, scope)

    async def store_requests(
        self, scope: Scope, requests: Sequence[StoredDecisionRequest], *, at: datetime, read_at_erasure: int
    ) -> bool:
        made = {"being_id": scope.being_id, "made_at": to_micros(at), "settled_by": None}
        expired = {"being": scope.being_id, "before": to_micros(at - UNDECIDED_REQUESTS_KEPT_FOR)}
        async with self._database.transaction() as transaction:
            if await PatrolReader(transaction, scope).last_erasure() != read_at_erasure:
                return False
            await transaction.run(_DELETE_EXPIRED_REQUESTS, [expired])
            await transaction.run(_INSERT_REQUESTS, [DECISION_REQUEST.to_row(request, **made) for request in requests])
        return True

    async def begin_run(self, scope: Scope, run: RunId, started: datetime) -> None:
        begun = PatrolRun(
            id=run, being_id=scope.being_id, started=started, finished=started, state="running", report={}
        )
        async with self._database.transaction(grows=True) as transaction:
            await transaction.run(_INSERT_RUN, [_PATROL_RUN.to_row(begun)])

    async def finish_run(self, scope: Scope, run: RunId, finished: datetime, report: Mapping[str, Any]) -> None:
        row = own_row_binds(scope, run, finished=finished, state="finished", report=report)
        async with self._database.transaction() as transaction:
            await transaction.run(_FINISH_RUN, [row])
            await record_audit(transaction, scope, "patrol", finished, tool="run_patrol", ids=[run])

    async def runs(self, scope: Scope, *, limit: int) -> list[PatrolRun]:
        return await self._database.rows(_SELECT_LATEST_RUNS, _PATROL_RUN.from_row, being=scope.being_id, limit=limit)

    async def unfinished_runs(self) -> list[PatrolRun]:
        return await self._database.rows(_SELECT_UNFINISHED_RUNS, _PATROL_RUN.from_row)

    async def undo(self, scope: Scope, run: RunId, *, at: datetime, state: RunState = "undone") -> UndoResult:
        async with self._database.transaction() as transaction:
            return await undo_run(transaction, scope, run, at=at, state=state)

    async def record_cost(self, scope: Scope, run: RunId, spent: CallCost, *, at: datetime) -> None:
        row = _COST.to_row(spent, being_id=scope.being_id, run_id=run, at=to_micros(at))
        async with self._database.transaction() as transaction:
            await transaction.run(_INSERT_COST, [row])

    async def tokens_since(self, purpose: str, since: datetime) -> int:
        [tokens] = await self._database.rows(_SUM_TOKENS_SINCE, scalar, purpose=purpose, since=to_micros(since))
        return int(tokens)
