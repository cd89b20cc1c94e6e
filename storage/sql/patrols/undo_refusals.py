"""When a run cannot be undone: each raises `CannotUndo`, which says why and what can be done (ruling 11)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import BindParameter, bindparam, select

from madeleine.memory.errors import CannotUndo
from madeleine.memory.model import MemoryId, RunId, Scope
from madeleine.memory.patrol_records import PatrolRun, RunState
from madeleine.storage.sql.database.dialect import among, as_list, contains_text, either
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import decode_texts, scalar
from madeleine.storage.sql.database.patrol_tables import beings, diary, patrol_changes, patrol_runs
from madeleine.storage.sql.database.tables import clusters, memories, reinforcements, revisions
from madeleine.storage.sql.patrols import runs
from madeleine.storage.sql.patrols.undo_fields import Change

_c, _j, _m, _r = clusters.c, patrol_changes.c, memories.c, patrol_runs.c
_BEING: BindParameter[str] = bindparam("being")
_STANDS = either(_r.state, "finished", "running")
_LATER = (
    select(_j.kind, _j.target, _j.before, _j.after, _j.run_id)
    .join(patrol_runs, _r.id == _j.run_id)
    .where(_j.being_id == _BEING, among(_j.target, "targets"), _j.seq > bindparam("last"), _STANDS)
    .order_by(_j.seq)
)
_TOLD_SINCE = (
    select(reinforcements.c.memory_id)
    .where(among(reinforcements.c.memory_id, "ids"))
    .union(select(revisions.c.memory_id).where(among(revisions.c.memory_id, "ids")))
)
_CLUSTERS = select(_c.id).where(_c.being_id == _BEING)
_LIVED_IN = (
    select(_m.cluster_id)
    .where(_m.being_id == _BEING, among(_m.cluster_id, "clusters"))
    .union(select(_c.parent_id).where(_c.being_id == _BEING, _c.parent_id.not_in(_CLUSTERS)))
)
"""Clusters that are gone, and that something is in."""
_TELLS_OF = (
    select(_j.run_id)
    .join(patrol_runs, _r.id == _j.run_id)
    .where(_j.being_id == _BEING, _j.run_id != bindparam("run"), _STANDS, contains_text(_j.after, bindparam("id")))
    .order_by(_j.seq.desc())
    .limit(1)
)
_WRITTEN_FROM = (
    select(diary.c.sources)
    .where(diary.c.being_id == _BEING)
    .union_all(select(beings.c.think_sources).where(beings.c.being_id == _BEING))
)


async def require_undoable_run(transaction: Transaction, scope: Scope, run: RunId, to_be: RunState) -> PatrolRun | None:
    """The run; None if it is only to be rolled back, and was never begun or has come to its end."""
    found = await runs.by_ids(transaction, scope, [run])
    if not found and to_be == "rolled_back":
        return None
    if not found:
        raise CannotUndo(f"There is no patrol run {run!r}. Nothing was changed: `madeleine patrol runs` lists them.")
    if found[0].state in ("undone", "rolled_back"):
        raise CannotUndo(f"The patrol run {run} was undone before. Nothing was changed.")
    if found[0].state == "unjournalled":
        raise CannotUndo(
            f"The patrol run {run} is from before there was a journal: what it changed was not written down. Nothing "
            "was changed."
        )
    if to_be == "rolled_back":
        return found[0] if found[0].state == "running" else None
    if found[0].state == "running":
        raise CannotUndo(f"The patrol run {run} is still going on. Nothing was changed: wait until it has ended.")
    return found[0]


async def refuse_if_changed_later(transaction: Transaction, scope: Scope, changes: Sequence[Change]) -> None:
    """By a later run that stands: what was before this one is not what it found."""
    if not changes:
        return
    targets = {one.target for one in changes if one.kind != "clock"}
    later = await transaction.rows(
        _LATER, tuple, being=scope.being_id, targets=as_list(targets), last=max(one.seq for one in changes)
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


async def refuse_if_told_since(transaction: Transaction, made: Sequence[MemoryId]) -> None:
    told = await transaction.rows(_TOLD_SINCE, scalar, ids=as_list(made)) if made else []
    if told:
        raise CannotUndo(
            f"The memory {told[0]}, which the run has made, was stored again or changed since. Nothing was undone: "
            "that would lose what was said."
        )


async def refuse_if_cluster_used(transaction: Transaction, scope: Scope, run: RunId, gone: Collection[str]) -> None:
    lived_in = await transaction.rows(_LIVED_IN, scalar, being=scope.being_id, clusters=as_list(gone))
    if lived_in:
        raise CannotUndo(
            f"{await _later(transaction, scope, run, lived_in[0])} added memories to the cluster {lived_in[0]}, "
            "which this undo would delete. Nothing was undone: undo that run first."
        )


async def refuse_if_written_from(
    transaction: Transaction, scope: Scope, run: RunId, made: Collection[MemoryId]
) -> None:
    """A diary that tells of a memory names it, so that it is forgotten with it."""
    if not made:
        return
    found = await transaction.rows(_WRITTEN_FROM, scalar, being=scope.being_id)
    named = set(made).intersection(id_ for sources in found for id_ in decode_texts(sources))
    if named:
        id_ = min(named)
        raise CannotUndo(
            f"{await _later(transaction, scope, run, id_)} has written of the memory {id_}, which this run has made. "
            "Nothing was undone: undo that run first."
        )


async def _later(transaction: Transaction, scope: Scope, run: RunId, id_: str) -> str:
    """The last run that has to do with a cluster or a memory."""
    found = await transaction.rows(_TELLS_OF, scalar, being=scope.being_id, run=run, id=id_)
    return f"The later patrol run {found[0]}" if found else "A later patrol run"
