"""Putting back what a patrol changed (ruling 11): its journal read backwards, in one transaction.

Each field is compared with what the run had left: where it is still that, it becomes what it was before. What was
changed since by a recall or by hand stays; counts of what came to mind keep what has been added since. The journal of
the run goes with it: nothing that it made is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BindParameter, bindparam, delete, func, insert, or_, select, update

from memory.audit import entry_of
from memory.errors import CannotUndo
from memory.model import MemoryId, RunId
from memory.patrol_ports import Run, RunState, Undone
from memory.scope import Scope
from storage.sql import audit, clock, clusters, embeddings, memories, pending, runs
from storage.sql.engine import Database, Transaction
from storage.sql.journal import KINDS, Fields, row_of, state, to_column
from storage.sql.query import among, as_list
from storage.sql.rows import from_memory, scalar, texts
from storage.sql.tables import (
    beings,
    diary,
    forgotten,
    index_pending,
    patrol_changes,
    patrol_runs,
    reinforcements,
    revisions,
)
from storage.sql.tables import clusters as clusters_table
from storage.sql.tables import memories as table
from storage.sql.times import to_micros

_c, _j, _m = clusters_table.c, patrol_changes.c, table.c
_BEING: BindParameter[str] = bindparam("being")
_OF_RUN = (
    select(_j.seq, _j.kind, _j.target, _j.before, _j.after)
    .where(_j.run_id == bindparam("run"), _j.being_id == _BEING)
    .order_by(_j.seq.desc())
)
_LATER = (
    select(_j.kind, _j.target, _j.before, _j.after, _j.run_id)
    .join(patrol_runs, patrol_runs.c.id == _j.run_id)
    .where(
        _j.being_id == _BEING,
        among(_j.target, "targets"),
        _j.seq > bindparam("last"),
        or_(patrol_runs.c.state == "finished", patrol_runs.c.state == "running"),
    )
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
    .join(patrol_runs, patrol_runs.c.id == _j.run_id)
    .where(
        _j.being_id == _BEING,
        _j.run_id != bindparam("run"),
        or_(patrol_runs.c.state == "finished", patrol_runs.c.state == "running"),
        func.instr(_j.after, bindparam("id")) > 0,
    )
    .order_by(_j.seq.desc())
    .limit(1)
)
_WRITTEN_FROM = (
    select(diary.c.sources)
    .where(diary.c.being_id == _BEING)
    .union_all(select(beings.c.think_sources).where(beings.c.being_id == _BEING))
)
_LEAVE = (
    update(table)
    .where(_m.being_id == _BEING, _m.cluster_id.is_not(None), _m.cluster_id.not_in(_CLUSTERS))
    .values(cluster_id=None)
)
_FORGET_RUN = delete(patrol_changes).where(_j.run_id == bindparam("run"), _j.being_id == _BEING)
_REMOVE = (
    delete(index_pending).where(among(index_pending.c.memory_id, "ids")),
    delete(table).where(among(_m.id, "ids"), _m.being_id == _BEING),
)
_REWIND = (
    update(table)
    .where(_m.being_id == _BEING, _m.status == "active", _m.since > bindparam("cycle"))
    .values(since=bindparam("cycle"))
)
_REWIND_RECALLED = (
    update(table)
    .where(
        _m.being_id == _BEING,
        among(_m.id, "ids"),
        _m.status != "dead",
        _m.last_activated > bindparam("started"),
    )
    .values(since=func.coalesce(_m.stopped_at, bindparam("cycle")))
)
_READ_AGAIN = (
    update(table)
    .where(_m.id == bindparam("target"), _m.being_id == _BEING)
    .values(folded=bindparam("new_folded"), content_hash=bindparam("new_hash"))
)
_MARK_GONE = insert(forgotten)


@dataclass(frozen=True, slots=True)
class _Change:
    seq: int
    kind: str
    target: str
    before: Fields | None
    after: Fields | None


async def undo(database: Database, scope: Scope, run: RunId, *, at: datetime, state: RunState) -> Undone:
    async with database.transaction() as transaction:
        found = await _standing(transaction, scope, run, state)
        if found is None:
            return Undone(counts={})
        changes = [_Change(*one) for one in await transaction.rows(_OF_RUN, row_of, run=run, being=scope.being_id)]
        await _refuse_if_touched(transaction, scope, changes)
        undone = await _Undoing(transaction, scope, found).all(changes)
        await transaction.run(_FORGET_RUN, [{"run": run, "being": scope.being_id}])
        await runs.set_state(transaction, scope, run, state)
        await audit.append(transaction, [entry_of(scope, "patrol", at, tool=state, ids=[run])])
        return undone


async def _standing(transaction: Transaction, scope: Scope, run: RunId, to_be: RunState) -> Run | None:
    """None if it is only to be rolled back, and was never begun or has come to its end."""
    found = await runs.by_ids(transaction, scope, [run])
    if not found and to_be == "rolled_back":
        return None
    if not found:
        raise CannotUndo(f"There is no patrol run {run!r}. Nothing was changed: `madeleine patrol runs` lists them.")
    if found[0].state in ("undone", "rolled_back"):
        raise CannotUndo(f"The patrol run {run} was undone before. Nothing was changed.")
    if to_be == "rolled_back":
        return found[0] if found[0].state == "running" else None
    if found[0].state == "running":
        raise CannotUndo(f"The patrol run {run} is still going on. Nothing was changed: wait until it has ended.")
    return found[0]


async def _refuse_if_touched(transaction: Transaction, scope: Scope, changes: Sequence[_Change]) -> None:
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


class _Undoing:
    def __init__(self, transaction: Transaction, scope: Scope, run: Run) -> None:
        self._transaction = transaction
        self._scope = scope
        self._run = run
        self._counts: Counter[str] = Counter()
        self._kept: set[tuple[str, str]] = set()
        """Fields of memories that are not what the run had left."""
        self._mean_anew: set[str] = set()
        self._removed_clusters: set[str] = set()

    async def all(self, changes: Sequence[_Change]) -> Undone:
        """Newest first."""
        made = [MemoryId(one.target) for one in changes if one.kind == "memory" and one.before is None]
        await self._refuse_if_told_since(made)
        for kind in KINDS:
            await self._kind(kind, [one for one in changes if one.kind == kind])
        gone = await self._remove(made)
        await self._rewind([one for one in changes if one.kind == "clock"])
        await self._rewind_recalled([one.target for one in changes if one.kind == "memory"])
        await self._refuse_if_lived_in()
        await self._refuse_if_written_from(made)
        # Where it was is gone: somebody has forgotten the others that were there.
        await self._transaction.run(_LEAVE, [{"being": self._scope.being_id}])
        await self._read_again([one for one in changes if one.kind == "memory" and one.target not in made])
        await self._recompute()
        return Undone(counts=dict(self._counts), removed=tuple(gone))

    async def _refuse_if_told_since(self, made: Sequence[MemoryId]) -> None:
        told = await self._transaction.rows(_TOLD_SINCE, scalar, ids=as_list(made)) if made else []
        if told:
            raise CannotUndo(
                f"The memory {told[0]}, which the run has made, was stored again or changed since. Nothing was undone: "
                "that would lose what was said."
            )

    async def _kind(self, kind: str, changes: Sequence[_Change]) -> None:
        now: dict[str, Fields | None] = dict(
            await state(self._transaction, self._scope, kind, [one.target for one in changes])
        )
        was = dict(now)
        for change in changes:
            current = now.get(change.target)
            if kind == "memory" and (current is None or change.before is None):
                continue  # forgotten since; or made by the run, and removed as a whole
            now[change.target] = self._put_back(kind, change, current)
        for key in dict.fromkeys(change.target for change in changes):
            if now.get(key) != was.get(key):
                await self._write(kind, key, was.get(key), now.get(key))
                self._counts[kind] += 1

    def _put_back(self, kind: str, change: _Change, current: Fields | None) -> Fields | None:
        if kind == "cluster" and change.before and change.before["model"] and change.before["vector"] is None:
            self._mean_anew.add(change.target)  # it was the mean of one that is forgotten
        if change.before is None or change.after is None or current is None:
            if kind == "cluster" and change.before is None:
                self._removed_clusters.add(change.target)
            if kind == "note" and current is None:
                return None
            if kind == "thoughts" and change.before is None:
                return {"think": "[]", "think_sources": "[]"}  # the row is the being's, which has a clock too
            return change.before
        found = dict(current)
        for name, before in change.before.items():
            if current[name] == change.after[name] and (change.target, name) not in self._kept:
                found[name] = before
            elif name == "reactivation_count":
                found[name] = max(0, before + current[name] - change.after[name])
            elif kind == "cluster" and name in ("vector", "model"):
                self._mean_anew.add(change.target)
            else:
                self._kept.add((change.target, name))
                self._counts["kept"] += 1
        return _with_its_clock(found, change.before) if kind == "memory" else found

    async def _write(self, kind: str, key: str, was: Fields | None, fields: Fields | None) -> None:
        rows, key_name, names = KINDS[kind]
        where = (rows.c[key_name] == bindparam("target"), rows.c.being_id == _BEING)
        binds = {"target": key, "being": self._scope.being_id}
        if fields is None:
            await self._transaction.run(delete(rows).where(*where), [binds])
            return
        values = {name: to_column(kind, name, fields[name]) for name in names}
        if was is None:
            values |= {key_name: key, "being_id": self._scope.being_id}
            await self._transaction.run(insert(rows), [values])
            return
        statement = update(rows).where(*where).values({name: bindparam(f"new_{name}") for name in names})
        await self._transaction.run(statement, [binds | {f"new_{name}": value for name, value in values.items()}])

    async def _remove(self, made: Sequence[MemoryId]) -> list[MemoryId]:
        gone = await memories.by_ids(self._transaction, self._scope, made)
        if gone:
            ids = [memory.id for memory in gone]
            for statement in _REMOVE:
                await self._transaction.run(statement, [{"ids": as_list(ids), "being": self._scope.being_id}])
            await embeddings.remove_orphans(self._transaction, [memory.content_hash for memory in gone])
            await self._transaction.run(_MARK_GONE, [{"memory_id": id_} for id_ in ids])
            self._counts["memory"] += len(ids)
        return [memory.id for memory in gone]

    async def _rewind(self, ticks: Sequence[_Change]) -> None:
        if not ticks:
            return
        being = self._scope.being_id
        cycle = max(0, await clock.cycle(self._transaction, being) - len(ticks))
        await clock.set_cycle(self._transaction, being, cycle)
        # Activated since: in a cycle that has not been.
        await self._transaction.run(_REWIND, [{"being": being, "cycle": cycle}])
        self._counts["clock"] += len(ticks)

    async def _rewind_recalled(self, ids: Sequence[str]) -> None:
        """A recall since then has left the clocks of those alone that were dead at the time, and are not now (ruling
        2)."""
        cycle = await clock.cycle(self._transaction, self._scope.being_id)
        binds = {"being": self._scope.being_id, "ids": as_list(ids), "cycle": cycle}
        await self._transaction.run(_REWIND_RECALLED, [binds | {"started": to_micros(self._run.started)}])

    async def _read_again(self, changes: Sequence[_Change]) -> None:
        """What is derived from a memory's fields, and the index."""
        ids = [MemoryId(id_) for id_ in dict.fromkeys(one.target for one in changes)]
        found = await memories.by_ids(self._transaction, self._scope, ids)
        retold = {one.target for one in changes if one.before and "when_" in one.before}
        rows = [from_memory(memory) for memory in found if memory.id in retold]
        await self._transaction.run(
            _READ_AGAIN,
            [
                {
                    "target": row["id"],
                    "being": self._scope.being_id,
                    "new_folded": row["folded"],
                    "new_hash": row["content_hash"],
                }
                for row in rows
            ],
        )
        made = [hash_ for one in changes if (hash_ := (one.after or {}).get("content_hash"))]
        await embeddings.remove_orphans(self._transaction, made)
        await self._transaction.run(pending.INSERT, [{"memory_id": memory.id} for memory in found])

    async def _refuse_if_lived_in(self) -> None:
        removed = as_list(self._removed_clusters)
        lived_in = await self._transaction.rows(_LIVED_IN, scalar, being=self._scope.being_id, clusters=removed)
        if lived_in:
            raise CannotUndo(
                f"{await self._later(lived_in[0])} has put something into the cluster {lived_in[0]}, which would be "
                "gone. Nothing was undone: undo that run first."
            )

    async def _refuse_if_written_from(self, made: Sequence[MemoryId]) -> None:
        """A diary that tells of a memory names it, so that it is forgotten with it."""
        if not made:
            return
        found = await self._transaction.rows(_WRITTEN_FROM, scalar, being=self._scope.being_id)
        named = set(made).intersection(id_ for sources in found for id_ in texts(sources))
        if named:
            id_ = min(named)
            raise CannotUndo(
                f"{await self._later(id_)} has written of the memory {id_}, which this run has made. Nothing was "
                "undone: undo that run first."
            )

    async def _later(self, id_: str) -> str:
        """The last run that has to do with a cluster or a memory."""
        found = await self._transaction.rows(_TELLS_OF, scalar, being=self._scope.being_id, run=self._run.id, id=id_)
        return f"The later patrol run {found[0]}" if found else "A later patrol run"

    async def _recompute(self) -> None:
        left = self._mean_anew - self._removed_clusters
        found = [one for one in await clusters.all_of(self._transaction, self._scope) if one.id in left]
        await clusters.upsert(
            self._transaction, self._scope, await clusters.recompute(self._transaction, self._scope, found)
        )


def _with_its_clock(found: Fields, before: Fields) -> Fields:
    """A recall since then has rewound the clock of one that was awake, and now sleeps again: a dead memory's is not
    rewound (ruling 2), and no clock goes below 0."""
    if found["status"] == "dead":
        found["since"] = before.get("since", found["since"])
    if found["stopped_at"] is not None:
        found["since"] = min(found["since"], found["stopped_at"])
    return found
