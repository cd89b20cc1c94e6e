"""The patrol's transaction: it reads a being's whole state, then changes it (spec P6)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, insert, or_, select, update

from memory.audit import entry_of
from memory.model import Cluster, ContentHash, Memory, MemoryId, ModelName, RunId, Vector
from memory.ports import PatrolChanges, Subject
from memory.scope import Scope
from storage.sql import audit, clusters, embeddings, memories, notes
from storage.sql.engine import Row, Transaction
from storage.sql.query import unindexed
from storage.sql.tables import index_pending, patrol_runs
from storage.sql.tables import memories as table
from storage.sql.times import to_micros

_m = table.c
_SUBJECTS = (
    select(
        _m.id, _m.content_hash, _m.importance, _m.status, _m.fresh, _m.pinned, _m.cluster_id, _m.absorbed_into,
        _m.session_count, _m.reactivation_count,
    )
    # One walk through the table, 0.4 s for 100,000; by an index of the being and a sort it is 0.6 s.
    .where(unindexed(_m.being_id) == bindparam("being"))
    .order_by(_m.seq)
)  # fmt: skip
_TARGET = (_m.id == bindparam("target"), _m.being_id == bindparam("being"))
_MOVED = or_(_m.status != bindparam("new_status"), _m.cluster_id.is_distinct_from(bindparam("new_cluster_id")))
_MARK_MOVED = insert(index_pending).from_select(["memory_id"], select(_m.id).where(*_TARGET, _MOVED))
# Status and cluster are indexed, and an index is rewritten for each row whose UPDATE names its column, changed or
# not: so the counters, which change in every row of every night, have a statement without them.
_COUNT = (
    update(table)
    .where(*_TARGET)
    .values(
        importance=bindparam("new_importance"),
        fresh=bindparam("new_fresh"),
        absorbed_into=bindparam("new_absorbed_into"),
        session_count=bindparam("new_session_count"),
        reactivation_count=bindparam("new_reactivation_count"),
    )
)
_MOVE = (
    update(table).where(*_TARGET, _MOVED).values(status=bindparam("new_status"), cluster_id=bindparam("new_cluster_id"))
)
_RECORD = insert(patrol_runs)


class SqlPatrol:
    def __init__(self, transaction: Transaction, scope: Scope) -> None:
        self._transaction = transaction
        self._scope = scope
        self._read: dict[MemoryId, Subject] = {}

    async def subjects(self) -> list[Subject]:
        """Oldest first."""
        found = await self._transaction.rows(_SUBJECTS, _to_subject, being=self._scope.being_id)
        self._read = {one.id: one for one in found}
        return found

    async def clusters(self) -> list[Cluster]:
        return await clusters.all_of(self._transaction, self._scope)

    async def vectors(self, model: ModelName, hashes: Sequence[ContentHash]) -> dict[ContentHash, Vector]:
        return await embeddings.by_hashes(self._transaction, model, hashes)

    async def memories(self, ids: Sequence[MemoryId]) -> list[Memory]:
        return await memories.by_ids(self._transaction, self._scope, ids)

    async def apply(self, changes: PatrolChanges) -> None:
        await memories.store(self._transaction, self._scope, changes.new)
        await notes.update_read(self._transaction, self._scope, changes.notes)
        await clusters.upsert(self._transaction, self._scope, changes.clusters)
        await clusters.remove(self._transaction, self._scope, changes.removed_clusters)
        if changes.subjects:
            await self._transaction.run(_MARK_MOVED, self._moves(changes.subjects))
            await self._transaction.run(_COUNT, self._counts(changes.subjects))
            await self._transaction.run(_MOVE, self._moves(changes.subjects))
        self._read = {}

    # Generators: a hundred thousand rows are made as they are sent, a chunk at a time.

    def _moves(self, subjects: Sequence[Subject]) -> Iterator[dict[str, Any]]:
        being = self._scope.being_id
        return (
            {"target": one.id, "being": being, "new_status": one.status, "new_cluster_id": one.cluster_id}
            for one in subjects
            if self._may_move(one)
        )

    def _may_move(self, to_be: Subject) -> bool:
        """False for one that was read where it stays: nobody else writes meanwhile. The statement checks the rest."""
        was = self._read.get(to_be.id)
        return was is None or was.status != to_be.status or was.cluster_id != to_be.cluster_id

    def _counts(self, subjects: Sequence[Subject]) -> Iterator[dict[str, Any]]:
        being = self._scope.being_id
        return (
            {
                "target": one.id,
                "being": being,
                "new_importance": one.importance,
                "new_fresh": one.fresh,
                "new_absorbed_into": one.absorbed_into,
                "new_session_count": one.session_count,
                "new_reactivation_count": one.reactivation_count,
            }
            for one in subjects
        )

    async def record_run(self, run_id: RunId, started: datetime, finished: datetime, report: Mapping[str, Any]) -> None:
        row = {
            "id": run_id,
            "being_id": self._scope.being_id,
            "started": to_micros(started),
            "finished": to_micros(finished),
            "report": json.dumps(report, ensure_ascii=False),
        }
        await self._transaction.run(_RECORD, [row])
        await audit.append(
            self._transaction, [entry_of(self._scope, "patrol", finished, tool="run_patrol", ids=[run_id])]
        )


def _to_subject(row: Row) -> Subject:
    id_, content_hash, importance, status, fresh, pinned, cluster_id, absorbed_into, sessions, reactivations = row
    return Subject(
        id=id_,
        content_hash=content_hash,
        importance=importance,
        status=status,
        fresh=bool(fresh),
        pinned=bool(pinned),
        cluster_id=cluster_id,
        absorbed_into=absorbed_into,
        session_count=sessions,
        reactivation_count=reactivations,
    )
