"""Clusters, and the memories in them (spec P3, P10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, case, delete, func, or_, select
from sqlalchemy.dialects import sqlite

from madeleine.memory.model import Cluster, ClusterId, Memory, Status, Vector
from madeleine.memory.recall.ports import ClusterSummary
from madeleine.memory.rules.dynamics.grouping import mean_vector
from madeleine.memory.scope import Scope
from madeleine.storage.sql.database.engine import Reads, Row, Transaction
from madeleine.storage.sql.database.query import among, as_list, unindexed
from madeleine.storage.sql.database.rows import MEMORY, scalar, to_bytes, to_memory, to_vector
from madeleine.storage.sql.database.tables import clusters, embeddings, memories

_c, _m = clusters.c, memories.c
_parents = clusters.alias("parents")
_BEING: BindParameter[str] = bindparam("being")


def _number(status: Status) -> ColumnElement[int]:
    return func.count(case((_m.status == status, 1)))


_ALL = (
    select(_c.id, _c.being_id, _c.name, _c.parent_id, _c.is_root, _c.vector, _c.model)
    .where(_c.being_id == _BEING)
    .order_by(_c.id)
)
_BY_IDS = (
    select(_c.id, _c.being_id, _c.name, _c.parent_id, _c.is_root, _c.vector, _c.model)
    .where(among(_c.id, "ids"), unindexed(_c.being_id) == _BEING)
    .order_by(_c.id)
)
_EXISTS = select(_c.id).where(_c.id == bindparam("cluster"), _c.being_id == _BEING)
_SUMMARIES = (
    select(
        _c.id,
        _c.name,
        func.coalesce(_parents.c.name, ""),
        _c.is_root,
        _number("active"),
        _number("dying"),
        _number("dead"),
    )
    .select_from(clusters)
    .outerjoin(_parents, and_(_parents.c.id == _c.parent_id, _parents.c.being_id == _c.being_id))
    .outerjoin(memories, and_(_m.being_id == _c.being_id, _m.cluster_id == _c.id))
    .where(_c.being_id == _BEING)
    .group_by(_c.id)
    .order_by(_c.is_root.desc(), _number("active").desc(), _c.name, _c.id)
)
_MEMBERS = (
    select(*MEMORY)
    .where(_m.being_id == _BEING, _m.cluster_id == bindparam("cluster"))
    .order_by(_m.happened_at.desc(), _m.id)
    .limit(bindparam("limit"))
)
_last = memories.alias("last")
_last_at = (
    select(_last.c.happened_at).where(_last.c.id == bindparam("after"), _last.c.being_id == _BEING).scalar_subquery()
)
_MEMBERS_AFTER = _MEMBERS.where(
    or_(_m.happened_at < _last_at, and_(_m.happened_at == _last_at, _m.id > bindparam("after")))
)
_insert = sqlite.insert(clusters)
_UPSERT = _insert.on_conflict_do_update(
    index_elements=[_c.id],
    set_={name: _insert.excluded[name] for name in ("name", "parent_id", "is_root", "vector", "model")},
    where=_c.being_id == _insert.excluded.being_id,
)
_MEMBER_VECTORS = (
    select(_m.status, embeddings.c.vector)
    .join(embeddings, and_(embeddings.c.content_hash == _m.content_hash, embeddings.c.model == bindparam("model")))
    .where(_m.being_id == _BEING, _m.cluster_id == bindparam("cluster"))
    .order_by(_m.seq)
)
_DELETE = delete(clusters).where(_c.id == bindparam("old_id"), _c.being_id == _BEING)


async def all_of(reads: Reads, scope: Scope) -> list[Cluster]:
    return await reads.rows(_ALL, _to_cluster, being=scope.being_id)


async def by_ids(reads: Reads, scope: Scope, ids: Sequence[ClusterId]) -> list[Cluster]:
    if not ids:
        return []
    return await reads.rows(_BY_IDS, _to_cluster, being=scope.being_id, ids=as_list(ids))


def _to_cluster(row: Row) -> Cluster:
    id_, being_id, name, parent_id, is_root, vector, model = row
    return Cluster(
        id=id_,
        being_id=being_id,
        name=name,
        parent_id=parent_id,
        is_root=bool(is_root),
        vector=None if vector is None else to_vector(vector),
        model=model,
    )


async def summaries(reads: Reads, scope: Scope) -> list[ClusterSummary]:
    return await reads.rows(_SUMMARIES, _to_summary, being=scope.being_id)


def _to_summary(row: Row) -> ClusterSummary:
    id_, name, parent, is_root, active, dying, dead = row
    return ClusterSummary(
        id=id_, name=name, parent=parent, is_root=bool(is_root), active=active, dying=dying, dead=dead
    )


async def members(
    reads: Reads, scope: Scope, cluster_id: ClusterId, limit: int, after: str | None
) -> list[Memory] | None:
    if after is None:
        found = await reads.rows(_MEMBERS, to_memory, being=scope.being_id, cluster=cluster_id, limit=limit)
    else:
        # After a memory that is not the being's comes nothing: a page is never shown twice.
        found = await reads.rows(
            _MEMBERS_AFTER, to_memory, being=scope.being_id, cluster=cluster_id, limit=limit, after=after
        )
    if found or await reads.rows(_EXISTS, scalar, being=scope.being_id, cluster=cluster_id):
        return found
    return None


async def upsert(transaction: Transaction, scope: Scope, changed: Sequence[Cluster]) -> None:
    rows = [
        {
            "id": cluster.id,
            "being_id": scope.being_id,
            "name": cluster.name,
            "parent_id": cluster.parent_id,
            "is_root": cluster.is_root,
            "vector": None if cluster.vector is None else to_bytes(cluster.vector),
            "model": cluster.model,
        }
        for cluster in changed
    ]
    await transaction.run(_UPSERT, rows)


async def recompute(transaction: Transaction, scope: Scope, found: Iterable[Cluster]) -> list[Cluster]:
    """As they are to be after members have gone: the vector is the mean of the active members (spec P3), of the others
    where all are asleep, and none where there are none; nothing of those that have gone is left in it."""
    return [replace(cluster, vector=await _mean(transaction, scope, cluster)) for cluster in found if cluster.model]


async def _mean(transaction: Transaction, scope: Scope, cluster: Cluster) -> Vector | None:
    binds = {"being": scope.being_id, "cluster": cluster.id, "model": cluster.model}
    members = await transaction.rows(_MEMBER_VECTORS, _to_status_and_vector, **binds)
    active = [vector for status, vector in members if status == "active"]
    rows = active or [vector for _, vector in members]
    return mean_vector(np.stack(rows)) if rows else None


def _to_status_and_vector(row: Row) -> tuple[Status, Vector]:
    return row[0], to_vector(row[1])


async def remove(transaction: Transaction, scope: Scope, ids: Sequence[ClusterId]) -> None:
    await transaction.run(_DELETE, [{"old_id": id_, "being": scope.being_id} for id_ in ids])
