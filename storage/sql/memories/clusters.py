"""Clusters, and the vectors of their members (spec P3, P10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sqlalchemy import BindParameter, and_, bindparam, delete, select

from madeleine.memory.model import Cluster, ClusterId, Scope, Vector
from madeleine.memory.rules.dynamics.clustering import unit_mean_vector
from madeleine.storage.sql.database.dialect import (
    columns_of_row_proposed_for_insertion,
    in_bound_list_condition,
    json_list_bind_value,
    upsert_statement,
    without_index_use,
)
from madeleine.storage.sql.database.engine import Row, SqlRowReader, Transaction
from madeleine.storage.sql.database.mapping import RowMapper, vector_from_bytes
from madeleine.storage.sql.database.tables import clusters_table, embeddings_table, memories_table

_c, _m = clusters_table.c, memories_table.c
_BEING_ID_BIND: BindParameter[str] = bindparam("being")
_CLUSTER_ROW_MAPPER = RowMapper(Cluster, clusters_table)
_SELECT_ALL_CLUSTERS = select(*_CLUSTER_ROW_MAPPER.columns).where(_c.being_id == _BEING_ID_BIND).order_by(_c.id)
_SELECT_CLUSTERS_EXCEPT_VECTOR_COLUMN = (
    select(_c.id, _c.name, _c.parent_id, _c.is_root).where(_c.being_id == _BEING_ID_BIND).order_by(_c.id)
)
_SELECT_CLUSTERS_BY_IDS = (
    select(*_CLUSTER_ROW_MAPPER.columns)
    .where(in_bound_list_condition(_c.id, "ids"), without_index_use(_c.being_id) == _BEING_ID_BIND)
    .order_by(_c.id)
)
_UPSERT_CLUSTER = upsert_statement(
    clusters_table,
    "name",
    "parent_id",
    "is_root",
    "vector",
    "model",
    where=_c.being_id == columns_of_row_proposed_for_insertion(clusters_table).being_id,
)
_SELECT_CLUSTER_MEMBER_VECTORS = (
    select((_m.status == "active") & (_m.truth == "current"), embeddings_table.c.vector)
    .join(
        embeddings_table,
        and_(embeddings_table.c.content_hash == _m.content_hash, embeddings_table.c.model == bindparam("model")),
    )
    .where(_m.being_id == _BEING_ID_BIND, _m.cluster_id == bindparam("cluster"))
    .order_by(_m.seq)
)
_DELETE_CLUSTER = delete(clusters_table).where(_c.id == bindparam("old_id"), _c.being_id == _BEING_ID_BIND)


class ClusterFieldsExceptVector(NamedTuple):
    """Its name and its place in the tree. The vector is most of what a cluster takes to read."""

    id: ClusterId
    name: str
    parent_id: ClusterId
    is_root: bool


async def read_all_clusters_omitting_vectors(reads: SqlRowReader, scope: Scope) -> list[ClusterFieldsExceptVector]:
    """Of all of the being's clusters, in order of id."""
    return await reads.rows(
        _SELECT_CLUSTERS_EXCEPT_VECTOR_COLUMN, ClusterFieldsExceptVector._make, being=scope.being_id
    )


async def read_clusters(reads: SqlRowReader, scope: Scope, ids: Iterable[str] | None = None) -> list[Cluster]:
    """The being's clusters with these ids, or all, in order of id."""
    if ids is None:
        return await reads.rows(_SELECT_ALL_CLUSTERS, _CLUSTER_ROW_MAPPER.from_row, being=scope.being_id)
    return await reads.rows(
        _SELECT_CLUSTERS_BY_IDS, _CLUSTER_ROW_MAPPER.from_row, being=scope.being_id, ids=json_list_bind_value(ids)
    )


async def upsert_clusters(transaction: Transaction, scope: Scope, changed: Sequence[Cluster]) -> None:
    await transaction.execute_many(
        _UPSERT_CLUSTER, [_CLUSTER_ROW_MAPPER.to_row(cluster, being_id=scope.being_id) for cluster in changed]
    )


async def recompute_cluster_vectors(transaction: Transaction, scope: Scope, ids: Iterable[str]) -> None:
    outdated = await read_clusters(transaction, scope, ids)
    await upsert_clusters(transaction, scope, await clusters_with_recomputed_vectors(transaction, scope, outdated))


async def clusters_with_recomputed_vectors(
    transaction: Transaction, scope: Scope, clusters: Iterable[Cluster]
) -> list[Cluster]:
    """The clusters as they are after members have left: the vector is the mean of the active, current members
    (spec P3, ruling 14), of the others if there is none such, None if there are none. Nothing of the members that left
    remains in it."""
    return [
        replace(cluster, vector=await _mean_vector_of_members(transaction, scope, cluster))
        for cluster in clusters
        if cluster.model
    ]


async def _mean_vector_of_members(transaction: Transaction, scope: Scope, cluster: Cluster) -> Vector | None:
    binds = {"being": scope.being_id, "cluster": cluster.id, "model": cluster.model}
    members = await transaction.rows(_SELECT_CLUSTER_MEMBER_VECTORS, _to_active_current_flag_and_vector, **binds)
    active = [vector for counts, vector in members if counts]
    rows = active or [vector for _, vector in members]
    return unit_mean_vector(np.stack(rows)) if rows else None


def _to_active_current_flag_and_vector(row: Row) -> tuple[bool, Vector]:
    return bool(row[0]), vector_from_bytes(row[1])


async def delete_clusters(transaction: Transaction, scope: Scope, ids: Sequence[ClusterId]) -> None:
    await transaction.execute_many(_DELETE_CLUSTER, [{"old_id": id_, "being": scope.being_id} for id_ in ids])
