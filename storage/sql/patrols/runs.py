"""Patrol runs (spec O10: tasks)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, insert, select

from madeleine.memory.model import RunId, Scope
from madeleine.memory.patrol_records import PatrolRun, RunState
from madeleine.storage.sql.administration import record_audit
from madeleine.storage.sql.database.dialect import among, as_list
from madeleine.storage.sql.database.engine import Reads, Transaction
from madeleine.storage.sql.database.mapping import Mapped, own_row_binds, update_own_row
from madeleine.storage.sql.database.patrol_tables import patrol_runs
from madeleine.storage.sql.patrols.costs import CostRepository

_r = patrol_runs.c
_MAPPED = Mapped(PatrolRun, patrol_runs)
_RUN = select(*_MAPPED.columns)
_LATEST = _RUN.where(_r.being_id == bindparam("being")).order_by(_r.started.desc(), _r.id).limit(bindparam("limit"))
_BY_IDS = _RUN.where(among(_r.id, "ids"), _r.being_id == bindparam("being"))
_UNFINISHED = _RUN.where(_r.state == "running").order_by(_r.started.desc())
_INSERT = insert(patrol_runs)
_END = update_own_row(patrol_runs, "finished", "state", "report")
_STATE = update_own_row(patrol_runs, "state")


async def set_state(transaction: Transaction, scope: Scope, run: RunId, state: RunState) -> None:
    await transaction.run(_STATE, [own_row_binds(scope, run, state=state)])


async def by_ids(reads: Reads, scope: Scope, ids: Sequence[RunId]) -> list[PatrolRun]:
    return await reads.rows(_BY_IDS, _MAPPED.from_row, being=scope.being_id, ids=as_list(ids))


class RunRepository(CostRepository):
    """Runs as a patrol begins, ends and lists them."""

    async def begin_run(self, scope: Scope, run: RunId, started: datetime) -> None:
        begun = PatrolRun(
            id=run, being_id=scope.being_id, started=started, finished=started, state="running", report={}
        )
        async with self._database.transaction(grows=True) as transaction:
            await transaction.run(_INSERT, [_MAPPED.to_row(begun)])

    async def finish_run(self, scope: Scope, run: RunId, finished: datetime, report: Mapping[str, Any]) -> None:
        row = own_row_binds(scope, run, finished=finished, state="finished", report=report)
        async with self._database.transaction() as transaction:
            await transaction.run(_END, [row])
            await record_audit(transaction, scope, "patrol", finished, tool="run_patrol", ids=[run])

    async def runs(self, scope: Scope, *, limit: int) -> list[PatrolRun]:
        return await self._database.rows(_LATEST, _MAPPED.from_row, being=scope.being_id, limit=limit)

    async def unfinished_runs(self) -> list[PatrolRun]:
        return await self._database.rows(_UNFINISHED, _MAPPED.from_row)
