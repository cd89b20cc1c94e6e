"""Undoing a patrol run (ruling 11): its journal read backwards, in one transaction.

Each field is compared with what the run had left: where it is still that, it becomes what it was before. What was
changed since by a recall or by hand stays; recall counts keep what has been added since. The journal of the run is
deleted with what the run had made.

`undo_plan` says what every row becomes, `undo_refusals` when a run cannot be undone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete, func, insert, or_, select, update

from madeleine.memory.model import Memory, MemoryId, RunId, Scope
from madeleine.memory.patrol_records import RunState, UndoResult
from madeleine.storage.sql.administration import record_audit
from madeleine.storage.sql.database.dialect import among, as_list, greatest, unindexed
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.lifecycle import DeleteWithMemory, removal_statements
from madeleine.storage.sql.database.mapping import own_row_binds, scalar, update_own_row
from madeleine.storage.sql.database.memory_rows import patrol_cycle, set_patrol_cycle, update_timelines
from madeleine.storage.sql.database.tables import clusters, forgotten, memories, metadata, patrol_changes, patrol_runs
from madeleine.storage.sql.memories.clusters import recompute_clusters
from madeleine.storage.sql.memories.index_source import delete_orphaned_vectors, mark_for_index
from madeleine.storage.sql.memories.reading import memories_by_ids
from madeleine.storage.sql.patrols import undo_refusals
from madeleine.storage.sql.patrols.journal import JOURNALLED_TABLES, Change, to_change
from madeleine.storage.sql.patrols.undo_plan import UndoPlan, plan_undo, write_plan

_c, _j, _m, _r = clusters.c, patrol_changes.c, memories.c, patrol_runs.c
_BEING = bindparam("being", type_=_m.being_id.type)
_OF_RUN = (_j.run_id == bindparam("run"), _j.being_id == _BEING)
_CHANGES_NEWEST_FIRST = select(_j.seq, _j.kind, _j.target, _j.before, _j.after).where(*_OF_RUN).order_by(_j.seq.desc())
_DELETE_CHANGES = delete(patrol_changes).where(*_OF_RUN)
_SET_RUN_STATE = update_own_row(patrol_runs, "state")
_LEAVE_DELETED_CLUSTERS = (
    update(memories)
    .where(
        _m.being_id == _BEING,
        _m.cluster_id.is_not(None),
        _m.cluster_id.not_in(select(_c.id).where(_c.being_id == _BEING)),
    )
    .values(cluster_id=None)
)
_REMOVE_MEMORIES = removal_statements(metadata, DeleteWithMemory)
_EXISTING_MEMORIES = select(_m.id).where(among(_m.id, "ids"), unindexed(_m.being_id) == _BEING).order_by(_m.seq)
_MARK_FOR_SCRUB = insert(forgotten)
# The clock (spec P2 `session_count`, ❷; ruling 2). A tick is taken back if it is the last of a run that stands. Later
# ones stand on it: by each of those a cycle has passed, and how many have since a memory was recalled cannot be told
# once one between them is gone.
_TICKS = (
    select(_j.seq)
    .join(patrol_runs, _r.id == _j.run_id)
    .where(_j.being_id == _BEING, _j.target == _BEING, _j.kind == "clock")
    .where(or_(_r.state == "finished", _r.state == "running"))
)
_LATER_TICK = _TICKS.where(_j.seq > bindparam("last")).limit(1)
_REWIND_CLOCKS = (
    update(memories)
    .where(_m.being_id == _BEING, _m.status == "active", _m.since > bindparam("cycle"))
    .values(since=bindparam("cycle"))
)
_ticks_since_recall = (
    _TICKS.with_only_columns(func.count()).where(_r.started > _m.last_activated).correlate(memories).scalar_subquery()
)
_cycle_of_recall = bindparam("cycle", type_=_m.since.type) - _ticks_since_recall
_REWIND_RECALLED = (
    update(memories)
    .where(
        _m.being_id == _BEING,
        among(_m.id, "ids"),
        _m.last_activated > select(_r.started).where(_r.id == bindparam("run")).scalar_subquery(),
    )
    .values(since=func.coalesce(_m.stopped_at, greatest(_m.since, _cycle_of_recall)))
)


async def undo_run(transaction: Transaction, scope: Scope, run: RunId, *, at: datetime, state: RunState) -> UndoResult:
    if not await undo_refusals.require_undoable_run(transaction, scope, run, state):
        return UndoResult(counts={})
    changes = await transaction.rows(_CHANGES_NEWEST_FIRST, to_change, run=run, being=scope.being_id)
    result = await _restore(transaction, scope, run, changes)
    await transaction.run(_DELETE_CHANGES, [{"run": run, "being": scope.being_id}])
    await transaction.run(_SET_RUN_STATE, [own_row_binds(scope, run, state=state)])
    await record_audit(transaction, scope, "patrol", at, tool=state, ids=[run])
    return result


async def _restore(transaction: Transaction, scope: Scope, run: RunId, changes: Sequence[Change]) -> UndoResult:
    """`changes`: the newest first. Some refusals can be told only afterwards: all is rolled back then."""
    of_memories = [change for change in changes if change.kind == "memory"]
    made = [MemoryId(change.target) for change in of_memories if change.before is None]
    await undo_refusals.refuse_if_changed_later(transaction, scope, changes)
    await undo_refusals.refuse_if_restated(transaction, made)
    plans = {kind: await _plan(transaction, scope, kind, changes) for kind in JOURNALLED_TABLES}
    for plan in plans.values():
        await write_plan(transaction, scope, plan)
    removed = await _remove_memories(transaction, scope, made)
    ticks = [change for change in changes if change.kind == "clock"]
    restored_ticks = await _restore_clock(transaction, scope, ticks)
    await _rewind_recalled(transaction, scope, run, plans["memory"].changed_clocks)
    cluster_plan = plans["cluster"]
    await undo_refusals.refuse_if_cluster_used(transaction, scope, run, cluster_plan.made_clusters)
    await undo_refusals.refuse_if_written_from(transaction, scope, run, made)
    # The cluster may be gone: its other memories were forgotten since.
    await transaction.run(_LEAVE_DELETED_CLUSTERS, [{"being": scope.being_id}])
    await _update_derived(transaction, scope, [change for change in of_memories if change.before is not None])
    await recompute_clusters(transaction, scope, cluster_plan.clusters_without_mean - cluster_plan.made_clusters)
    counts = Counter({kind: len(plan.changed) for kind, plan in plans.items()})
    kept = len(ticks) - restored_ticks + sum(len(plan.kept) for plan in plans.values())
    counts.update(memory=len(removed), clock=restored_ticks, kept=kept)
    return UndoResult(
        counts={name: count for name, count in counts.items() if count}, removed=tuple(memory.id for memory in removed)
    )


async def _plan(transaction: Transaction, scope: Scope, kind: str, changes: Iterable[Change]) -> UndoPlan:
    of_kind = [change for change in changes if change.kind == kind]
    now = await JOURNALLED_TABLES[kind].rows(transaction, scope, [change.target for change in of_kind])
    # For a large run this takes a while; the event loop has other work.
    return await asyncio.to_thread(plan_undo, kind, of_kind, now)


async def _remove_memories(transaction: Transaction, scope: Scope, made: Sequence[MemoryId]) -> list[Memory]:
    removed = await memories_by_ids(transaction, scope, made)
    if removed:
        ids = [memory.id for memory in removed]
        for statement in _REMOVE_MEMORIES:
            await transaction.run(statement, [{"ids": as_list(ids)}])
        await delete_orphaned_vectors(transaction, [memory.content_hash for memory in removed])
        await transaction.run(_MARK_FOR_SCRUB, [{"memory_id": id_} for id_ in ids])
    return removed


async def _restore_clock(transaction: Transaction, scope: Scope, ticks: Sequence[Change]) -> int:
    """Take the ticks back, unless a later one stands; return their number."""
    being = scope.being_id
    if not ticks or await transaction.rows(_LATER_TICK, scalar, being=being, last=max(tick.seq for tick in ticks)):
        return 0
    cycle = max(0, await patrol_cycle(transaction, being) - len(ticks))
    await set_patrol_cycle(transaction, being, cycle)
    # Memories activated since were so in a cycle that has not been.
    await transaction.run(_REWIND_CLOCKS, [{"being": being, "cycle": cycle}])
    return len(ticks)


async def _rewind_recalled(transaction: Transaction, scope: Scope, run: RunId, ids: Sequence[str]) -> None:
    """Correct the clocks that the undo has set of living memories: a recall since the run began has rewound them
    (ruling 2), and each later tick has counted from there. The clock of one that was not active stood still."""
    cycle = await patrol_cycle(transaction, scope.being_id)
    binds = {"being": scope.being_id, "ids": as_list(ids), "cycle": cycle, "run": run}
    await transaction.run(_REWIND_RECALLED, [binds])


async def _update_derived(transaction: Transaction, scope: Scope, changes: Sequence[Change]) -> None:
    """Update what is derived from the restored fields of memories, and mark the memories for the index."""
    retold = [MemoryId(change.target) for change in changes if change.before and "when_" in change.before]
    await update_timelines(transaction, scope, await memories_by_ids(transaction, scope, retold))
    hashes = [hash_ for change in changes if (hash_ := (change.after or {}).get("content_hash"))]
    await delete_orphaned_vectors(transaction, hashes)
    ids = as_list(dict.fromkeys(change.target for change in changes))
    await mark_for_index(transaction, await transaction.rows(_EXISTING_MEMORIES, scalar, ids=ids, being=scope.being_id))
