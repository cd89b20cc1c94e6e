"""Patrol runs (spec O10: tasks)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from madeleine.memory.audit import audit_entry
from madeleine.memory.model import RunId
from madeleine.memory.patrol_records import PatrolRun, RunState
from madeleine.memory.scope import Scope
from madeleine.storage.sql.database.dialect import among, as_list
from madeleine.storage.sql.database.engine import Reads, Row, Transaction
from madeleine.storage.sql.database.patrol_tables import patrol_runs
from madeleine.storage.sql.database.times import from_micros, to_micros
from madeleine.storage.sql.operations import audit
from madeleine.storage.sql.patrols.costs import CostRepository

_r = patrol_runs.c
_RUN = select(_r.id, _r.being_id, _r.started, _r.finished, _r.state, _r.report)
_LATEST = _RUN.where(_r.being_id == bindparam("being")).order_by(_r.started.desc(), _r.id).limit(bindparam("limit"))
_BY_IDS = _RUN.where(among(_r.id, "ids"), _r.being_id == bindparam("being"))
_UNFINISHED = _RUN.where(_r.state == "running").order_by(_r.started.desc())
_INSERT = insert(patrol_runs)
_END = (
    update(patrol_runs)
    .where(_r.id == bindparam("target"), _r.being_id == bindparam("being"))
    .values(finished=bindparam("new_finished"), state=bindparam("new_state"), report=bindparam("new_report"))
)
_STATE = (
    update(patrol_runs)
    .where(_r.id == bindparam("target"), _r.being_id == bindparam("being"))
    .values(state=bindparam("new_state"))
)


async def set_state(transaction: Transaction, scope: Scope, run: RunId, state: RunState) -> None:
    await transaction.run(_STATE, [{"target": run, "being": scope.being_id, "new_state": state}])


async def by_ids(reads: Reads, scope: Scope, ids: Sequence[RunId]) -> list[PatrolRun]:
    return await reads.rows(_BY_IDS, _to_run, being=scope.being_id, ids=as_list(ids))


def _to_run(row: Row) -> PatrolRun:
    id_, being_id, started, finished, state, report = row
    return PatrolRun(
        id=id_,
        being_id=being_id,
        started=from_micros(started),
        finished=from_micros(finished),
        state=state,
        report=json.loads(report),
    )


class RunRepository(CostRepository):
    """Runs as a patrol begins, ends and lists them."""

    async def begin_run(self, scope: Scope, run: RunId, started: datetime) -> None:
        row = {
            "id": run,
            "being_id": scope.being_id,
            "started": to_micros(started),
            "finished": to_micros(started),
            "report": "{}",
            "state": "running",
        }
        async with self._database.transaction(grows=True) as transaction:
            await transaction.run(_INSERT, [row])

    async def finish_run(self, scope: Scope, run: RunId, finished: datetime, report: Mapping[str, Any]) -> None:
        row = {
            "target": run,
            "being": scope.being_id,
            "new_finished": to_micros(finished),
            "new_state": "finished",
            "new_report": json.dumps(report, ensure_ascii=False),
        }
        async with self._database.transaction() as transaction:
            await transaction.run(_END, [row])
            await audit.append(transaction, [audit_entry(scope, "patrol", finished, tool="run_patrol", ids=[run])])

    async def runs(self, scope: Scope, *, limit: int) -> list[PatrolRun]:
        return await self._database.rows(_LATEST, _to_run, being=scope.being_id, limit=limit)

    async def unfinished_runs(self) -> list[PatrolRun]:
        return await self._database.rows(_UNFINISHED, _to_run)
