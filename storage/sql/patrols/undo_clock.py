"""What the time is after an undo (spec P2 `session_count`, ❷; ruling 2).

A tick is taken back if it is the last that stands. Later ones stand on it: by each of those a cycle has passed, and how
many have since a memory came to mind cannot be told once one in their midst is gone.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BindParameter, bindparam, func, or_, select, update

from madeleine.memory.model import RunId, Scope
from madeleine.storage.sql.database.dialect import among, as_list, greatest
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import scalar
from madeleine.storage.sql.database.patrol_tables import patrol_changes, patrol_runs
from madeleine.storage.sql.database.tables import memories as table
from madeleine.storage.sql.memories.clock import patrol_cycle, set_patrol_cycle
from madeleine.storage.sql.patrols.undo_fields import Change

_j, _m, _r = patrol_changes.c, table.c, patrol_runs.c
_BEING: BindParameter[str] = bindparam("being")
_TICKS = (
    select(_j.seq)
    .join(patrol_runs, _r.id == _j.run_id)
    .where(_j.being_id == _BEING, _j.target == _BEING, _j.kind == "clock")
    .where(or_(_r.state == "finished", _r.state == "running"))
)
"""Of runs that stand."""
_LATER_TICK = _TICKS.where(_j.seq > bindparam("last")).limit(1)
_REWIND = (
    update(table)
    .where(_m.being_id == _BEING, _m.status == "active", _m.since > bindparam("cycle"))
    .values(since=bindparam("cycle"))
)
_since_recalled = (
    _TICKS.with_only_columns(func.count()).where(_r.started > _m.last_activated).correlate(table).scalar_subquery()
)
_RECALLED_AT = bindparam("cycle", type_=_m.since.type) - _since_recalled
_HEED_RECALLS = (
    update(table)
    .where(
        _m.being_id == _BEING,
        among(_m.id, "ids"),
        _m.last_activated > select(_r.started).where(_r.id == bindparam("run")).scalar_subquery(),
    )
    .values(since=func.coalesce(_m.stopped_at, greatest(_m.since, _RECALLED_AT)))
)


async def restore_clock(transaction: Transaction, scope: Scope, ticks: Sequence[Change]) -> tuple[int, int]:
    """How many ticks are taken back, and how many kept."""
    being = scope.being_id
    if not ticks:
        return 0, 0
    if await transaction.rows(_LATER_TICK, scalar, being=being, last=max(one.seq for one in ticks)):
        return 0, len(ticks)
    cycle = max(0, await patrol_cycle(transaction, being) - len(ticks))
    await set_patrol_cycle(transaction, being, cycle)
    # Activated since: in a cycle that has not been.
    await transaction.run(_REWIND, [{"being": being, "cycle": cycle}])
    return len(ticks), 0


async def count_later_recalls(transaction: Transaction, scope: Scope, ids: Sequence[str], *, since_run: RunId) -> None:
    """Of living memories whose clocks the undo has set: a recall since the run began has rewound them (ruling 2), and
    each later tick has counted from there. Of one that slept the clock stood still."""
    cycle = await patrol_cycle(transaction, scope.being_id)
    binds = {"being": scope.being_id, "ids": as_list(ids), "cycle": cycle, "run": since_run}
    await transaction.run(_HEED_RECALLS, [binds])
