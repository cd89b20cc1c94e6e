"""Undoing a patrol run (ruling 11): its journal read backwards, in one transaction.

Each field is compared with what the run had left: where it is still that, it becomes what it was before. What was
changed since by a recall or by hand stays; recall counts keep what has been added since. The journal of the run is
deleted with what the run had made.

`undo_plan` says what every row becomes. A refusal raises `CannotUndo`, which says why and what can be done.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ClauseElement, bindparam, delete, func, select, union, update

from madeleine.memory.errors import CannotUndo
from madeleine.memory.model import Memory, MemoryId, RunId, Scope
from madeleine.memory.patrol_records import PatrolRunState, PatrolUndoResult
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.archive.restoring import restore_memories_archived_by_run
from madeleine.storage.sql.database import tables
from madeleine.storage.sql.database.dialect import (
    equals_any,
    in_bound_list_condition,
    json_list_bind_value,
    sql_contains_text,
    sql_greatest,
    without_index_use,
)
from madeleine.storage.sql.database.engine import Row, Transaction
from madeleine.storage.sql.database.mapping import (
    decode_json_list,
    first_column_of_row,
    row_of_being_binds,
    update_row_of_being_statement,
)
from madeleine.storage.sql.database.memory_rows import (
    read_patrol_cycle,
    set_patrol_cycle_number,
    update_merge_survivors,
)
from madeleine.storage.sql.erasing.scrub_marks import mark_erased_ids_for_scrubbing
from madeleine.storage.sql.memories.clusters import recompute_cluster_vectors
from madeleine.storage.sql.memories.index_source import delete_orphaned_vectors, mark_memories_for_index
from madeleine.storage.sql.memories.reading import memories_with_ids
from madeleine.storage.sql.memories.truth import delete_truth_acts_of_patrol_run
from madeleine.storage.sql.patrols.journal import JOURNALLED_TABLES_BY_KIND, PATROL_JOURNAL_ROW_MAPPER, PatrolJournalRow
from madeleine.storage.sql.patrols.undo_plan import TableUndoPlan, apply_undo_plan, plan_table_undo
from madeleine.storage.sql.tables.lifecycle import DeletedWithUndoneMemory, dependent_rows_removal_statements

_c, _j, _m, _r = tables.clusters_table.c, tables.patrol_changes_table.c, tables.memories_table.c, tables.patrol_runs.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_IS_JOURNAL_ROW_OF_RUN = (_j.run_id == bindparam("run"), _j.being_id == _BEING_ID_BIND)
_SELECT_JOURNAL_OF_RUN_NEWEST_FIRST = (
    select(*PATROL_JOURNAL_ROW_MAPPER.columns).where(*_IS_JOURNAL_ROW_OF_RUN).order_by(_j.seq.desc())
)
_DELETE_JOURNAL_OF_RUN = delete(tables.patrol_changes_table).where(*_IS_JOURNAL_ROW_OF_RUN)
_SET_RUN_STATE = update_row_of_being_statement(tables.patrol_runs, "state")
_SELECT_OWN_CLUSTERS = select(_c.id).where(_c.being_id == _BEING_ID_BIND)
_CLEAR_CLUSTER_ID_OF_DELETED_CLUSTERS = (
    update(tables.memories_table)
    .where(_m.being_id == _BEING_ID_BIND, _m.cluster_id.is_not(None), _m.cluster_id.not_in(_SELECT_OWN_CLUSTERS))
    .values(cluster_id=None)
)
_REMOVE_MEMORIES = dependent_rows_removal_statements(tables.metadata, DeletedWithUndoneMemory)
_SELECT_EXISTING_MEMORY_IDS = (
    select(_m.id)
    .where(in_bound_list_condition(_m.id, "ids"), without_index_use(_m.being_id) == _BEING_ID_BIND)
    .order_by(_m.seq)
)

_SELECT_RUN_STATE = select(_r.state).where(_r.id == bindparam("run"), _r.being_id == _BEING_ID_BIND)
_RUN_IS_NOT_UNDONE = equals_any(_r.state, "finished", "running", "pruned")
_SELECT_CHANGES_BY_LATER_RUNS = (
    select(_j.kind, _j.target, _j.before, _j.after, _j.run_id)
    .join(tables.patrol_runs, _r.id == _j.run_id)
    .where(
        _j.being_id == _BEING_ID_BIND,
        in_bound_list_condition(_j.target, "targets"),
        _j.seq > bindparam("last"),
        _RUN_IS_NOT_UNDONE,
    )
    .order_by(_j.seq)
)
_SELECT_REINFORCED_OR_CHANGED_MEMORIES = union(
    *(
        select(table.c.memory_id).where(in_bound_list_condition(table.c.memory_id, "ids"))
        for table in (tables.reinforcements_table, tables.revisions_table, tables.truth_changes_table)
    )
)
_SELECT_DELETED_CLUSTERS_IN_USE = (
    select(_m.cluster_id)
    .where(_m.being_id == _BEING_ID_BIND, in_bound_list_condition(_m.cluster_id, "clusters"))
    .union(select(_c.parent_id).where(_c.being_id == _BEING_ID_BIND, _c.parent_id.not_in(_SELECT_OWN_CLUSTERS)))
)
_SELECT_LATEST_RUN_NAMING_ID = (
    select(_j.run_id)
    .join(tables.patrol_runs, _r.id == _j.run_id)
    .where(
        _j.being_id == _BEING_ID_BIND,
        _j.run_id != bindparam("run"),
        _RUN_IS_NOT_UNDONE,
        sql_contains_text(_j.after, bindparam("id")),
    )
    .order_by(_j.seq.desc())
    .limit(1)
)
_SELECT_SOURCES_OF_DIARY_AND_THOUGHTS = (
    select(tables.diary_entries_table.c.sources)
    .where(tables.diary_entries_table.c.being_id == _BEING_ID_BIND)
    .union_all(select(tables.beings_table.c.think_sources).where(tables.beings_table.c.being_id == _BEING_ID_BIND))
)

# The clock (spec P2 `session_count`, ❷; ruling 2). A tick is taken back if it is the last of a run that stands. Later
# ones stand on it: by each of those a cycle has passed, and how many have since a memory was recalled cannot be told
# once one between them is gone.
_SELECT_CYCLE_INCREMENTS = (
    select(_j.seq)
    .join(tables.patrol_runs, _r.id == _j.run_id)
    .where(_j.being_id == _BEING_ID_BIND, _j.target == _BEING_ID_BIND, _j.kind == "clock", _RUN_IS_NOT_UNDONE)
)
_SELECT_LATER_CYCLE_INCREMENT = _SELECT_CYCLE_INCREMENTS.where(_j.seq > bindparam("last")).limit(1)
_REWIND_FADING_CLOCKS = (
    update(tables.memories_table)
    .where(_m.being_id == _BEING_ID_BIND, _m.status == "active", _m.since > bindparam("cycle"))
    .values(since=bindparam("cycle"))
)
_ticks_since_recall = (
    _SELECT_CYCLE_INCREMENTS.with_only_columns(func.count())
    .where(_r.started > _m.last_activated)
    .correlate(tables.memories_table)
    .scalar_subquery()
)
_cycle_of_recall = bindparam("cycle", type_=_m.since.type) - _ticks_since_recall
_REWIND_FADING_CLOCKS_OF_RECALLED = (
    update(tables.memories_table)
    .where(
        _m.being_id == _BEING_ID_BIND,
        in_bound_list_condition(_m.id, "ids"),
        _m.last_activated > select(_r.started).where(_r.id == bindparam("run")).scalar_subquery(),
    )
    .values(since=func.coalesce(_m.stopped_at, sql_greatest(_m.since, _cycle_of_recall)))
)


async def undo_patrol_run(
    transaction: Transaction, scope: Scope, run: RunId, *, at: datetime, state: PatrolRunState
) -> PatrolUndoResult:
    undo = _PatrolRunUndo(transaction, scope, run)
    if not await undo.require_undoable(state):
        return PatrolUndoResult(counts={})
    result = await undo.restore()
    await transaction.execute_many(_DELETE_JOURNAL_OF_RUN, [{"run": run, "being": scope.being_id}])
    await delete_truth_acts_of_patrol_run(transaction, scope, run)
    await transaction.execute_many(_SET_RUN_STATE, [row_of_being_binds(scope, run, state=state)])
    await record_audit_entry(transaction, scope, "patrol", at, tool=state, ids=[run])
    return result


@dataclass(frozen=True, slots=True)
class _PatrolRunUndo:
    """The undo of one run."""

    transaction: Transaction
    scope: Scope
    run: RunId

    async def require_undoable(self, to_be: PatrolRunState) -> bool:
        """False if the run is only to be rolled back, and was never begun or has come to its end."""
        states = await self._rows(_SELECT_RUN_STATE)
        state = states[0] if states else None
        if state is None and to_be != "rolled_back":
            raise CannotUndo(
                f"There is no patrol run {self.run!r}. Nothing was changed: use the run_id of an answer of run_patrol."
            )
        if state in ("undone", "rolled_back"):
            raise CannotUndo(f"The patrol run {self.run} was undone before. Nothing was changed.")
        if state == "pruned":
            raise CannotUndo(
                f"The patrol run {self.run} is too long ago: what undoing it needs is kept for the last runs only "
                "(MADELEINE_PATROL_UNDOABLE_RUNS). Nothing was changed."
            )
        if state == "unjournalled":
            raise CannotUndo(
                f"The patrol run {self.run} is from before there was a journal: what it changed was not written down. "
                "Nothing was changed."
            )
        if state == "running" and to_be != "rolled_back":
            raise CannotUndo(
                f"The patrol run {self.run} is still going on. Nothing was changed: wait until it has ended."
            )
        return state == "running" or to_be != "rolled_back"

    async def restore(self) -> PatrolUndoResult:
        """Some refusals can be told only afterwards: all is rolled back then."""
        transaction, scope = self.transaction, self.scope
        changes = await self._rows(_SELECT_JOURNAL_OF_RUN_NEWEST_FIRST, PATROL_JOURNAL_ROW_MAPPER.from_row)
        targets = [change.target for change in changes if change.kind == "memory"]
        unarchived = await restore_memories_archived_by_run(transaction, scope, self.run, targets)
        of_memories = [change for change in changes if change.kind == "memory"]
        made = [MemoryId(change.target) for change in of_memories if change.before is None]
        await self._refuse_if_changed_by_later_run(changes)
        await self._refuse_if_made_memory_was_changed(made)
        plans = {kind: await self._plan_undo_of_kind(kind, changes) for kind in JOURNALLED_TABLES_BY_KIND}
        for plan in plans.values():
            await apply_undo_plan(transaction, scope, plan)
        removed = await self._remove_memories(made)
        ticks = [change for change in changes if change.kind == "clock"]
        restored_ticks = await self._restore_patrol_cycle(ticks)
        await self._rewind_fading_clocks_of_recalled_memories(plans["memory"].memory_ids_whose_fading_clock_changes)
        made_clusters = plans["cluster"].made_clusters
        await self._refuse_if_made_cluster_is_used(made_clusters)
        await self._refuse_if_diary_or_thoughts_cite_memory(made)
        # The cluster may be gone: its other memories were forgotten since.
        await transaction.execute_many(_CLEAR_CLUSTER_ID_OF_DELETED_CLUSTERS, [{"being": scope.being_id}])
        await self._update_derived_data_of_memories([change for change in of_memories if change.before is not None])
        await recompute_cluster_vectors(transaction, scope, plans["cluster"].clusters_without_mean - made_clusters)
        counts = Counter({kind: len(plan.to_write) for kind, plan in plans.items()})
        kept = len(ticks) - restored_ticks + sum(len(plan.kept_fields) for plan in plans.values())
        counts.update(memory=len(removed), clock=restored_ticks, kept=kept, unarchived=unarchived)
        return PatrolUndoResult(counts=dict(+counts), removed=tuple(memory.id for memory in removed))

    async def _rows(
        self, statement: ClauseElement, make: Callable[[Row], Any] = first_column_of_row, **binds: Any
    ) -> list[Any]:
        return await self.transaction.rows(statement, make, being=self.scope.being_id, run=self.run, **binds)

    async def _plan_undo_of_kind(self, kind: str, changes: Iterable[PatrolJournalRow]) -> TableUndoPlan:
        of_kind = [change for change in changes if change.kind == kind]
        targets = [change.target for change in of_kind]
        now = await JOURNALLED_TABLES_BY_KIND[kind].rows_by_key(self.transaction, self.scope, targets)
        # For a large run this takes a while; the event loop has other work.
        return await asyncio.to_thread(plan_table_undo, kind, of_kind, now)

    async def _remove_memories(self, made: Sequence[MemoryId]) -> list[Memory]:
        removed = await memories_with_ids(self.transaction, self.scope, made)
        if removed:
            ids = [memory.id for memory in removed]
            for statement in _REMOVE_MEMORIES:
                await self.transaction.execute_many(statement, [{"ids": json_list_bind_value(ids)}])
            await delete_orphaned_vectors(self.transaction, [memory.content_hash for memory in removed])
            await mark_erased_ids_for_scrubbing(self.transaction, ids)
        return removed

    async def _restore_patrol_cycle(self, ticks: Sequence[PatrolJournalRow]) -> int:
        """Take the ticks back, unless a later one stands; return their number."""
        if not ticks or await self._rows(_SELECT_LATER_CYCLE_INCREMENT, last=max(tick.seq for tick in ticks)):
            return 0
        cycle = max(0, await read_patrol_cycle(self.transaction, self.scope) - len(ticks))
        await set_patrol_cycle_number(self.transaction, self.scope, cycle)
        # Memories activated since were so in a cycle that has not been.
        await self.transaction.execute_many(_REWIND_FADING_CLOCKS, [{"being": self.scope.being_id, "cycle": cycle}])
        return len(ticks)

    async def _rewind_fading_clocks_of_recalled_memories(self, ids: Sequence[str]) -> None:
        """Correct the clocks that the undo has set of living memories: a recall since the run began has rewound them
        (ruling 2), and each later tick has counted from there. The clock of one that was not active stood still."""
        cycle = await read_patrol_cycle(self.transaction, self.scope)
        binds = {"being": self.scope.being_id, "ids": json_list_bind_value(ids), "cycle": cycle, "run": self.run}
        await self.transaction.execute_many(_REWIND_FADING_CLOCKS_OF_RECALLED, [binds])

    async def _update_derived_data_of_memories(self, changes: Sequence[PatrolJournalRow]) -> None:
        """Update what is derived from the restored fields of memories, and mark the memories for the index."""
        retold = [MemoryId(change.target) for change in changes if change.before and "when_" in change.before]
        rewritten = await memories_with_ids(self.transaction, self.scope, retold)
        await update_merge_survivors(self.transaction, self.scope, rewritten)
        hashes = [hash_ for change in changes if (hash_ := (change.after or {}).get("content_hash"))]
        await delete_orphaned_vectors(self.transaction, hashes)
        targets = json_list_bind_value(dict.fromkeys(change.target for change in changes))
        await mark_memories_for_index(self.transaction, await self._rows(_SELECT_EXISTING_MEMORY_IDS, ids=targets))

    # --- refusals

    async def _refuse_if_changed_by_later_run(self, changes: Sequence[PatrolJournalRow]) -> None:
        """A later run that stands has not found what was before this one."""
        if not changes:
            return
        targets = json_list_bind_value({change.target for change in changes if change.kind != "clock"})
        later = await self._rows(
            _SELECT_CHANGES_BY_LATER_RUNS, tuple, targets=targets, last=max(change.seq for change in changes)
        )
        for kind, target, before, after, later_run in later:
            # A cluster's mean is computed anew, a later name is kept, and its place does not change.
            if kind != "clock" and not (kind == "cluster" and before is not None and after is not None):
                raise CannotUndo(
                    f"The later patrol run {later_run} has touched the same {kind} {target}. Nothing was changed: "
                    f"undo that run first."
                )

    async def _refuse_if_made_memory_was_changed(self, made: Sequence[MemoryId]) -> None:
        restated = (
            await self._rows(_SELECT_REINFORCED_OR_CHANGED_MEMORIES, ids=json_list_bind_value(made)) if made else []
        )
        if restated:
            raise CannotUndo(
                f"The memory {restated[0]}, which the run has made, was stored again or changed since. Nothing was "
                "undone: that would lose what was said."
            )

    async def _refuse_if_made_cluster_is_used(self, made_clusters: Collection[str]) -> None:
        in_use = await self._rows(_SELECT_DELETED_CLUSTERS_IN_USE, clusters=json_list_bind_value(made_clusters))
        if in_use:
            raise CannotUndo(
                f"{await self._describe_later_run(in_use[0])} added memories to the cluster {in_use[0]}, which this "
                "undo would delete. Nothing was undone: undo that run first."
            )

    async def _refuse_if_diary_or_thoughts_cite_memory(self, made: Collection[MemoryId]) -> None:
        """A diary that tells of a memory names it, so that it is forgotten with it."""
        written = await self._rows(_SELECT_SOURCES_OF_DIARY_AND_THOUGHTS) if made else []
        named = set(made).intersection(id_ for sources in written for id_ in decode_json_list(sources))
        if named:
            id_ = min(named)
            raise CannotUndo(
                f"{await self._describe_later_run(id_)} has written of the memory {id_}, which this run has made. "
                "Nothing was undone: undo that run first."
            )

    async def _describe_later_run(self, id_: str) -> str:
        """The last run that changed a cluster or a memory, in words."""
        runs = await self._rows(_SELECT_LATEST_RUN_NAMING_ID, id=id_)
        return f"The later patrol run {runs[0]}" if runs else "A later patrol run"
