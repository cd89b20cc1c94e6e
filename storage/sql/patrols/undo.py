"""Putting back what a patrol changed (ruling 11): its journal read backwards, in one transaction.

Each field is compared with what the run had left: where it is still that, it becomes what it was before. What was
changed since by a recall or by hand stays; counts of what came to mind keep what has been added since. The journal of
the run goes with it: nothing that it made is kept.

`undo_fields` says what every row becomes, `undo_clock` what the time is, `undo_refusals` when it cannot be done.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import BindParameter, bindparam, delete, insert, select, update

from madeleine.memory.model import ClusterId, Memory, MemoryId, RunId, Scope
from madeleine.memory.patrol_records import RunState, UndoResult
from madeleine.storage.sql.administration import record_audit
from madeleine.storage.sql.database.dialect import among, as_list, unindexed
from madeleine.storage.sql.database.engine import Database, Transaction
from madeleine.storage.sql.database.lifecycle import ClearReference, DeleteWithMemory, tables_declaring
from madeleine.storage.sql.database.mapping import own_row_binds, scalar, update_own_row
from madeleine.storage.sql.database.memory_rows import REWRITTEN, from_memory, rewritten_fields
from madeleine.storage.sql.database.patrol_tables import patrol_changes
from madeleine.storage.sql.database.tables import clusters as clusters_table
from madeleine.storage.sql.database.tables import forgotten, metadata
from madeleine.storage.sql.database.tables import memories as table
from madeleine.storage.sql.memories.clusters import clusters_by_ids, upsert_clusters, with_recomputed_vectors
from madeleine.storage.sql.memories.index_source import delete_orphaned_vectors, mark_for_index
from madeleine.storage.sql.memories.reading import memories_by_ids
from madeleine.storage.sql.patrols import runs, undo_clock, undo_refusals
from madeleine.storage.sql.patrols.journal import KINDS, row_of, state
from madeleine.storage.sql.patrols.undo_fields import Change, Plan, plan_undo, write_plan

_c, _j, _m = clusters_table.c, patrol_changes.c, table.c
_BEING: BindParameter[str] = bindparam("being")
_OF_RUN = (
    select(_j.seq, _j.kind, _j.target, _j.before, _j.after)
    .where(_j.run_id == bindparam("run"), _j.being_id == _BEING)
    .order_by(_j.seq.desc())
)
_CLUSTERS = select(_c.id).where(_c.being_id == _BEING)
_LEAVE = (
    update(table)
    .where(_m.being_id == _BEING, _m.cluster_id.is_not(None), _m.cluster_id.not_in(_CLUSTERS))
    .values(cluster_id=None)
)
_FORGET_RUN = delete(patrol_changes).where(_j.run_id == bindparam("run"), _j.being_id == _BEING)
_REMOVE = (
    *(
        update(part).where(among(part.c[one.column], "ids")).values({one.column: None})
        for part, one in tables_declaring(metadata, ClearReference)
    ),
    *(
        delete(part).where(among(part.c[one.column], "ids"))
        for part, one in tables_declaring(metadata, DeleteWithMemory)
    ),
)
_THERE = select(_m.id).where(among(_m.id, "ids"), unindexed(_m.being_id) == _BEING).order_by(_m.seq)
_READ_AGAIN = update_own_row(table, *REWRITTEN)
_MARK_GONE = insert(forgotten)


async def undo(database: Database, scope: Scope, run: RunId, *, at: datetime, state: RunState) -> UndoResult:
    async with database.transaction() as transaction:
        found = await undo_refusals.require_undoable_run(transaction, scope, run, state)
        if found is None:
            return UndoResult(counts={})
        changes = [Change(*one) for one in await transaction.rows(_OF_RUN, row_of, run=run, being=scope.being_id)]
        undone = await _put_back(transaction, scope, run, changes)
        await transaction.run(_FORGET_RUN, [{"run": run, "being": scope.being_id}])
        await runs.set_state(transaction, scope, run, state)
        await record_audit(transaction, scope, "patrol", at, tool=state, ids=[run])
        return undone


async def _put_back(transaction: Transaction, scope: Scope, run: RunId, changes: Sequence[Change]) -> UndoResult:
    """`changes`: the newest first. Some refusals can be told from what is left alone: all is rolled back then."""
    of_memories = [one for one in changes if one.kind == "memory"]
    made = [MemoryId(one.target) for one in of_memories if one.before is None]
    await undo_refusals.refuse_if_changed_later(transaction, scope, changes)
    await undo_refusals.refuse_if_told_since(transaction, made)
    plans = {kind: await _plan(transaction, scope, kind, changes) for kind in KINDS}
    for plan in plans.values():
        await write_plan(transaction, scope, plan)
    gone = await _remove(transaction, scope, made)
    taken_back, kept = await undo_clock.restore_clock(
        transaction, scope, [one for one in changes if one.kind == "clock"]
    )
    await undo_clock.count_later_recalls(transaction, scope, plans["memory"].clocks, since_run=run)
    of_clusters = plans["cluster"]
    await undo_refusals.refuse_if_cluster_used(transaction, scope, run, of_clusters.made)
    await undo_refusals.refuse_if_written_from(transaction, scope, run, made)
    # Where it was is gone: somebody has forgotten the others that were there.
    await transaction.run(_LEAVE, [{"being": scope.being_id}])
    await _read_again(transaction, scope, [one for one in of_memories if one.before is not None])
    await _recompute(transaction, scope, of_clusters.mean_anew - of_clusters.made)
    counts = Counter({kind: len(plan.changed) for kind, plan in plans.items()})
    counts.update(memory=len(gone), clock=taken_back, kept=kept + sum(len(plan.kept) for plan in plans.values()))
    return UndoResult(
        counts={name: count for name, count in counts.items() if count}, removed=tuple(one.id for one in gone)
    )


async def _plan(transaction: Transaction, scope: Scope, kind: str, changes: Iterable[Change]) -> Plan:
    of_kind = [one for one in changes if one.kind == kind]
    was = await state(transaction, scope, kind, [one.target for one in of_kind])
    # Of a large run this takes a while; the event loop has other work.
    return await asyncio.to_thread(plan_undo, kind, of_kind, was)


async def _remove(transaction: Transaction, scope: Scope, made: Sequence[MemoryId]) -> list[Memory]:
    gone = await memories_by_ids(transaction, scope, made)
    if gone:
        ids = [memory.id for memory in gone]
        for statement in _REMOVE:
            await transaction.run(statement, [{"ids": as_list(ids), "being": scope.being_id}])
        await delete_orphaned_vectors(transaction, [memory.content_hash for memory in gone])
        await transaction.run(_MARK_GONE, [{"memory_id": id_} for id_ in ids])
    return gone


async def _read_again(transaction: Transaction, scope: Scope, changes: Sequence[Change]) -> None:
    """What is derived from a memory's fields, and the index."""
    retold = [MemoryId(one.target) for one in changes if one.before and "when_" in one.before]
    rows = map(from_memory, await memories_by_ids(transaction, scope, retold))
    await transaction.run(_READ_AGAIN, [own_row_binds(scope, row["id"], **rewritten_fields(row)) for row in rows])
    made = [hash_ for one in changes if (hash_ := (one.after or {}).get("content_hash"))]
    await delete_orphaned_vectors(transaction, made)
    ids = as_list(dict.fromkeys(one.target for one in changes))
    there = await transaction.rows(_THERE, scalar, ids=ids, being=scope.being_id)
    await mark_for_index(transaction, there)


async def _recompute(transaction: Transaction, scope: Scope, ids: Iterable[str]) -> None:
    found = await clusters_by_ids(transaction, scope, [ClusterId(id_) for id_ in ids])
    await upsert_clusters(transaction, scope, await with_recomputed_vectors(transaction, scope, found))
