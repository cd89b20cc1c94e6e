"""Changing a memory, and what it was before (append-only)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from madeleine.memory.model import ContentHash, Memory, MemoryChanges, MemoryId, ModelName, Revision, Scope, Vector
from madeleine.memory.rules.dynamics.revision import changed, effective, revision
from madeleine.storage.sql.database.dialect import among, as_list, unindexed
from madeleine.storage.sql.database.engine import Reads, Row, Transaction
from madeleine.storage.sql.database.mapping import Mapped, from_micros, own_row_binds, to_micros, update_own_row
from madeleine.storage.sql.database.memory_rows import from_memory
from madeleine.storage.sql.database.tables import memories as table
from madeleine.storage.sql.database.tables import revisions
from madeleine.storage.sql.memories.clusters import all_clusters, upsert_clusters, with_recomputed_vectors
from madeleine.storage.sql.memories.index_source import cache_vectors, delete_orphaned_vectors, mark_for_index
from madeleine.storage.sql.memories.memories import MemoryReads, memories_by_ids
from madeleine.storage.sql.memories.preferences import update_preference
from madeleine.storage.sql.operations.audit import record_audit

_r = revisions.c
_BEFORE = Mapped(MemoryChanges, revisions)
_OF = (
    select(_r.memory_id, _r.at, _r.client, *_BEFORE.columns)
    .where(among(_r.memory_id, "ids"), unindexed(_r.being_id) == bindparam("being"))
    .order_by(_r.seq)
)
_WRITTEN = (
    "action", "importance", "themes", "pinned", "fresh", "cluster_id", "content_hash", "folded", "folded_themes",
    "resembles",
)  # fmt: skip
_CHANGE = update_own_row(table, *_WRITTEN)
_UNLIKE = (
    update(table)
    .where(table.c.resembles == bindparam("target"), table.c.being_id == bindparam("being"))
    .values(resembles=None)
)
_INSERT = insert(revisions)


async def revisions_of(reads: Reads, scope: Scope, ids: Sequence[MemoryId]) -> list[Revision]:
    """Oldest first."""
    return await reads.rows(_OF, _to_revision, ids=as_list(ids), being=scope.being_id)


def _to_revision(row: Row) -> Revision:
    memory_id, at, client, *before = row
    return Revision(memory_id=memory_id, at=from_micros(at), client=client, before=_BEFORE.from_row(tuple(before)))


async def _leave_cluster(transaction: Transaction, scope: Scope, old: Memory) -> None:
    left = [one for one in await all_clusters(transaction, scope) if one.id == old.cluster_id]
    await upsert_clusters(transaction, scope, await with_recomputed_vectors(transaction, scope, left))


def _row_of(scope: Scope, one: Revision) -> dict[str, Any]:
    return _BEFORE.to_row(
        one.before, memory_id=one.memory_id, being_id=scope.being_id, at=to_micros(one.at), client=one.client
    )


class RevisionRepository(MemoryReads):
    """`UpdateLedger`."""

    async def change(
        self,
        scope: Scope,
        memory_id: MemoryId,
        changes: MemoryChanges,
        *,
        at: datetime,
        model: ModelName,
        vectors: Mapping[ContentHash, Vector],
    ) -> tuple[Memory, MemoryChanges] | None:
        async with self._database.transaction() as transaction:
            found = await memories_by_ids(transaction, scope, [memory_id])
            if not found:
                return None
            [old] = found
            done = effective(old, changes)
            if done == MemoryChanges():
                return old, done
            new = changed(old, done)
            await cache_vectors(transaction, model, {h: v for h, v in vectors.items() if h == new.content_hash})
            row = from_memory(new)
            await transaction.run(_CHANGE, [own_row_binds(scope, new.id, **{name: row[name] for name in _WRITTEN})])
            await transaction.run(_INSERT, [_row_of(scope, revision(old, done, at=at, client=scope.client))])
            if new.content_hash != old.content_hash:
                await delete_orphaned_vectors(transaction, [old.content_hash])
                await _leave_cluster(transaction, scope, old)
                await transaction.run(_UNLIKE, [{"target": new.id, "being": scope.being_id}])
                await update_preference(transaction, new, at=at)
            await mark_for_index(transaction, [new.id])
            await record_audit(transaction, scope, "update", at, tool="update_memory", ids=[new.id])
            return new, done
