"""When a run cannot be undone: each raises `CannotUndo`, which says why and what can be done (ruling 11)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import BindParameter, bindparam, select

from madeleine.memory.errors import CannotUndo
from madeleine.memory.model import MemoryId, RunId, Scope
from madeleine.memory.patrol_records import RunState
from madeleine.storage.sql.database.dialect import among, as_list, contains_text, either
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import decode_texts, scalar
from madeleine.storage.sql.database.tables import (
    beings,
    clusters,
    diary,
    memories,
    patrol_changes,
    patrol_runs,
    reinforcements,
    revisions,
)
from madeleine.storage.sql.patrols.journal import Change

_c, _j, _m, _r = clusters.c, patrol_changes.c, memories.c, patrol_runs.c
_BEING: BindParameter[str] = bindparam("being")
_RUN_STANDS = either(_r.state, "finished", "running")
_RUN_STATE = select(_r.state).where(_r.id == bindparam("run"), _r.being_id == _BEING)
_LATER_CHANGES = (
    select(_j.kind, _j.target, _j.before, _j.after, _j.run_id)
    .join(patrol_runs, _r.id == _j.run_id)
    .where(_j.being_id == _BEING, among(_j.target, "targets"), _j.seq > bindparam("last"), _RUN_STANDS)
    .order_by(_j.seq)
)
_RESTATED = (
    select(reinforcements.c.memory_id)
    .where(among(reinforcements.c.memory_id, "ids"))
    .union(select(revisions.c.memory_id).where(among(revisions.c.memory_id, "ids")))
)
_CLUSTERS = select(_c.id).where(_c.being_id == _BEING)
_DELETED_CLUSTERS_IN_USE = (
    select(_m.cluster_id)
    .where(_m.being_id == _BEING, among(_m.cluster_id, "clusters"))
    .union(select(_c.parent_id).where(_c.being_id == _BEING, _c.parent_id.not_in(_CLUSTERS)))
)
"""Clusters that are gone, and that something is in."""
_LATEST_RUN_NAMING = (
    select(_j.run_id)
    .join(patrol_runs, _r.id == _j.run_id)
    .where(_j.being_id == _BEING, _j.run_id != bindparam("run"), _RUN_STANDS, contains_text(_j.after, bindparam("id")))
    .order_by(_j.seq.desc())
    .limit(1)
)
_SOURCES_OF_WRITTEN = (
    select(diary.c.sources)
    .where(diary.c.being_id == _BEING)
    .union_all(select(beings.c.think_sources).where(beings.c.being_id == _BEING))
)


async def require_undoable_run(transaction: Transaction, scope: Scope, run: RunId, to_be: RunState) -> bool:
    """False if the run is only to be rolled back, and was never begun or has come to its end."""
    states = await transaction.rows(_RUN_STATE, scalar, being=scope.being_id, run=run)
    state = states[0] if states else None
    if state is None and to_be != "rolled_back":
        raise CannotUndo(f"There is no patrol run {run!r}. Nothing was changed: `madeleine patrol runs` lists them.")
    if state in ("undone", "rolled_back"):
        raise CannotUndo(f"The patrol run {run} was undone before. Nothing was changed.")
    if state == "unjournalled":
        raise CannotUndo(
            f"The patrol run {run} is from before there was a journal: what it changed was not written down. Nothing "
            "was changed."
        )
    if state == "running" and to_be != "rolled_back":
        raise CannotUndo(f"The patrol run {run} is still going on. Nothing was changed: wait until it has ended.")
    return state == "running" or to_be != "rolled_back"


async def refuse_if_changed_later(transaction: Transaction, scope: Scope, changes: Sequence[Change]) -> None:
    """By a later run that stands: what was before this one is not what it found."""
    if not changes:
        return
    targets = {one.target for one in changes if one.kind != "clock"}
    later = await transaction.rows(
        _LATER_CHANGES, tuple, being=scope.being_id, targets=as_list(targets), last=max(one.seq for one in changes)
    )
    for kind, target, before, after, other in later:
        # A cluster's mean is computed anew; what it is called and where it stands is not.
        if kind == "cluster" and before is not None and after is not None:
            continue
        if kind != "clock":
            raise CannotUndo(
                f"The later patrol run {other} has touched the same {kind} {target}. Nothing was changed: "
                f"undo that run first."
            )


async def refuse_if_restated(transaction: Transaction, made: Sequence[MemoryId]) -> None:
    told = await transaction.rows(_RESTATED, scalar, ids=as_list(made)) if made else []
    if told:
        raise CannotUndo(
            f"The memory {told[0]}, which the run has made, was stored again or changed since. Nothing was undone: "
            "that would lose what was said."
        )


async def refuse_if_cluster_used(transaction: Transaction, scope: Scope, run: RunId, gone: Collection[str]) -> None:
    in_use = await transaction.rows(_DELETED_CLUSTERS_IN_USE, scalar, being=scope.being_id, clusters=as_list(gone))
    if in_use:
        later_run = await _describe_later_run(transaction, scope, run, in_use[0])
        raise CannotUndo(
            f"{later_run} added memories to the cluster {in_use[0]}, "
            "which this undo would delete. Nothing was undone: undo that run first."
        )


async def refuse_if_written_from(
    transaction: Transaction, scope: Scope, run: RunId, made: Collection[MemoryId]
) -> None:
    """A diary that tells of a memory names it, so that it is forgotten with it."""
    if not made:
        return
    found = await transaction.rows(_SOURCES_OF_WRITTEN, scalar, being=scope.being_id)
    named = set(made).intersection(id_ for sources in found for id_ in decode_texts(sources))
    if named:
        id_ = min(named)
        later_run = await _describe_later_run(transaction, scope, run, id_)
        raise CannotUndo(
            f"{later_run} has written of the memory {id_}, which this run has made. Nothing was undone: undo that run "
            "first."
        )


async def _describe_later_run(transaction: Transaction, scope: Scope, run: RunId, id_: str) -> str:
    """The last run that has to do with a cluster or a memory."""
    found = await transaction.rows(_LATEST_RUN_NAMING, scalar, being=scope.being_id, run=run, id=id_)
    return f"The later patrol run {found[0]}" if found else "A later patrol run"
