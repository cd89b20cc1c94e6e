"""Steps without a model: memories age (❷), fade (❸) and come back (❺), small sub-clusters join others (❼).

spec P6, rulings 2 and 3.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import Cluster, ClusterId, Vector
from madeleine.memory.patrol_records import MemoryFieldsForPatrol
from madeleine.memory.rules.dynamics.clustering import MIN_CLUSTERING_COSINE
from madeleine.memory.rules.dynamics.importance import (
    is_still_kept,
    session_count_if_revived,
    status_from_decayed_importance,
)
from madeleine.memory.rules.dynamics.windows import is_still_to_come
from madeleine.patrol.unit_of_work import UnitOfWork

MAX_SMALL_CLUSTER_MEMORIES = 2
"""Living memories, active or dying, up to which a sub-cluster is small (ruling 17)."""
CLUSTERS_PER_COMPARISON_BATCH = 64
"""Small clusters that are read and compared together; the event loop has its turn in between."""
_COSINE_ROUNDING_ERROR = 1e-5
"""A product of matrices rounds otherwise than one of two rows: those this near to the best are compared once more."""


async def merge_small_clusters_into_siblings(work: UnitOfWork) -> dict[str, int]:
    await work.load_clusters()
    counts = Counter(removed=0, into_sibling=0, into_root=0)
    clusters = work.non_root_clusters()
    children = Counter(cluster.parent_id for cluster in clusters)
    siblings = MostSimilarSiblingClusterFinder(
        {cluster.id: (cluster.parent_id, work.cluster_vector_of_current_model(cluster)) for cluster in clusters}
    )
    joined: dict[ClusterId, None] = {}
    # None becomes small by it: a cluster that was not loses nothing.
    small = [cluster for cluster in clusters if is_cluster_possibly_small(work, cluster)]
    small.sort(key=lambda cluster: (work.active_status_member_count(cluster.id), cluster.name, cluster.id))
    for start in range(0, len(small), CLUSTERS_PER_COMPARISON_BATCH):
        block = small[start : start + CLUSTERS_PER_COMPARISON_BATCH]
        ids = [cluster.id for cluster in block]
        await work.load_active_member_vectors_by_cluster_id(ids)
        await siblings.precompute_sibling_cosines(ids)
        for cluster in block:
            members = await work.states_of_cluster_members(cluster.id)
            if sum(state.status != "dead" for state in members) > MAX_SMALL_CLUSTER_MEMORIES:
                continue
            if members:
                sibling = siblings.nearest_sibling_cluster_id(cluster.id)
                await move_all_members_to_sibling_or_parent(work, siblings, cluster, sibling)
                joined[sibling or cluster.parent_id] = None
                counts["into_sibling" if sibling else "into_root"] += 1
            if not children[cluster.id]:
                del work.clusters[cluster.id]
                siblings.remove_cluster(cluster.id)
                children[cluster.parent_id] -= 1
                counts["removed"] += 1
    # Their means are compared with nothing until now, but for those that `siblings` keeps.
    await work.recompute_cluster_vectors(joined)
    return dict(counts)


def is_cluster_possibly_small(work: UnitOfWork, cluster: Cluster) -> bool:
    """By what is known of it before its memories are read: dying ones count, too."""
    return (
        work.active_status_member_count(cluster.id) <= MAX_SMALL_CLUSTER_MEMORIES
        and cluster.id not in work.excluded_from_merge
    )


async def move_all_members_to_sibling_or_parent(
    work: UnitOfWork, siblings: MostSimilarSiblingClusterFinder, cluster: Cluster, sibling: ClusterId | None
) -> None:
    """All its memories move. One that stays, because it has children, keeps the mean that it had last."""
    await work.recompute_cluster_vectors([cluster.id] if siblings.has_added_vectors_of_cluster(cluster.id) else [])
    moved = await work.load_active_member_vectors_by_cluster_id([cluster.id])
    work.move_memory_states_to_cluster(await work.states_of_cluster_members(cluster.id), sibling or cluster.parent_id)
    if sibling and siblings.has_added_vectors_of_cluster(sibling):
        siblings.add_memory_vectors_to_cluster(sibling, moved[cluster.id])
    elif sibling:
        siblings.add_memory_vectors_to_cluster(
            sibling, (await work.load_active_member_vectors_by_cluster_id([sibling]))[sibling]
        )


class MostSimilarSiblingClusterFinder:
    """The most similar sub-cluster under the same parent, while sub-clusters grow and are removed. `vectors`: of each
    sub-cluster its parent and its mean, None for one that cannot be compared. The cosines of some to all are held at a
    time, float32 (some, all): one product, in which a cluster that grows changes its own row and column alone."""

    def __init__(self, vectors: Mapping[ClusterId, tuple[ClusterId, Vector | None]]) -> None:
        known = {id_: (parent, vector) for id_, (parent, vector) in vectors.items() if vector is not None}
        self._ids = list(known)
        self._index = {id_: i for i, id_ in enumerate(self._ids)}
        parents = {parent: i for i, parent in enumerate(dict.fromkeys(parent for parent, _ in known.values()))}
        self._parents = np.asarray([parents[parent] for parent, _ in known.values()], np.intp)
        self._means: NDArray[np.float32] = np.stack([v for _, v in known.values()]) if known else np.empty((0, 0), "f4")
        self._existing = np.ones(len(known), np.bool_)
        self._sums: dict[ClusterId, NDArray[np.float64]] = {}
        self._lines: dict[ClusterId, int] = {}
        """Line of `_cosines` of each that is compared now."""
        self._cosines: NDArray[np.float32] = np.empty((0, len(known)), np.float32)

    async def precompute_sibling_cosines(self, ids: Sequence[ClusterId]) -> None:
        """`nearest_sibling_cluster_id` answers for these until the next are compared."""
        known = [id_ for id_ in ids if id_ in self._index]
        self._lines = {id_: line for line, id_ in enumerate(known)}
        own = self._means[[self._index[id_] for id_ in known]]
        self._cosines = await asyncio.to_thread(np.matmul, own, self._means.T)

    def nearest_sibling_cluster_id(self, id_: ClusterId) -> ClusterId | None:
        """The one of the highest similarity, if that is above 0.45; of several the one of the highest id."""
        if id_ not in self._index:
            return None
        own = self._index[id_]
        others = self._existing & (self._parents == self._parents[own])
        others[own] = False
        cosines = np.where(others, self._cosines[self._lines[id_]], -np.inf)
        near = np.flatnonzero(cosines >= max(float(cosines.max()), MIN_CLUSTERING_COSINE) - _COSINE_ROUNDING_ERROR)
        exact = [(float(np.dot(self._means[own], self._means[i])), self._ids[i]) for i in near]
        best = max(exact, default=None)
        return best[1] if best and best[0] > MIN_CLUSTERING_COSINE else None

    def has_added_vectors_of_cluster(self, id_: ClusterId) -> bool:
        return id_ in self._sums

    def add_memory_vectors_to_cluster(self, id_: ClusterId, vectors: Sequence[Vector]) -> None:
        """`vectors`: at first those of all its active memories, then of those that have come since."""
        self._sums[id_] = self._sums.get(id_, np.zeros(self._means.shape[1])) + np.sum(
            vectors, axis=0, dtype=np.float64
        )
        norm = float(np.linalg.norm(self._sums[id_]))
        if norm == 0:
            return  # it keeps its last mean
        index = self._index[id_]
        self._means[index] = self._sums[id_] / norm
        self._cosines[:, index] = self._means[[self._index[line_id] for line_id in self._lines]] @ self._means[index]
        if id_ in self._lines:
            self._cosines[self._lines[id_]] = self._means @ self._means[index]

    def remove_cluster(self, id_: ClusterId) -> None:
        if id_ in self._index:
            self._existing[self._index[id_]] = False


async def increment_active_memory_ages(work: UnitOfWork) -> dict[str, int]:
    """❷ One more cycle has passed for every active memory."""
    return {"aged": await work.transaction.age_active_memories(work.run)}


async def set_active_or_dying_status(work: UnitOfWork) -> dict[str, int]:
    """❸ A memory that has faded is dying; a dying one that was recalled is active again. The clock of one that was kept
    starts again while that decision stands (ruling 20, ADR 84), and that of an event or plan until its day has come
    (ADR 100)."""
    counts = {"dying": 0, "active_again": 0, "still_kept": 0}
    touched: set[ClusterId | None] = set()
    states = work.states_as_changed_in_unit(await work.transaction.memory_states_with_outdated_status())
    statuses = {state.id: status_from_decayed_importance(state) for state in states}
    faded = await work.load_memories([state for state in states if statuses[state.id] == "dying"])
    to_come = {memory.id for memory in faded if is_still_to_come(memory, work.now)}
    for state in states:
        status = statuses[state.id]
        if status == "dying" and (is_still_kept(state, work.now) or state.id in to_come):
            work.put_memory_state(replace(state, status="active", session_count=0))
            counts["still_kept"] += 1
            continue
        work.put_memory_state(replace(state, status=status))
        counts["dying" if status == "dying" else "active_again"] += 1
        touched.add(state.cluster_id)
    await work.recompute_cluster_vectors(touched)
    return counts


async def revive_recalled_memories(work: UnitOfWork) -> dict[str, int]:
    """❺ Dead memories that were recalled since they died come back. Survivors first, so that one that comes back in
    this very step keeps those that it absorbed dead."""
    dead = work.states_as_changed_in_unit(await work.transaction.recalled_dead_memory_states())
    depths = {state.id: len(await load_chain_of_absorbing_memories(work, state)) for state in dead}
    touched: set[ClusterId | None] = set()
    revived: list[MemoryFieldsForPatrol] = []
    for state in sorted(dead, key=lambda state: depths[state.id]):
        if any(survivor.status != "dead" for survivor in await load_chain_of_absorbing_memories(work, state)):
            continue
        session_count = session_count_if_revived(
            importance=state.importance, session_count=state.session_count, reactivation_count=state.reactivation_count
        )
        if session_count is not None:
            work.put_memory_state(replace(state, status="active", session_count=session_count, absorbed_into=None))
            revived.append(state)
            touched.add(state.cluster_id)
    # They were asked for themselves, whatever passage holds their words.
    work.compressed |= {memory.id: None for memory in await work.load_memories(revived) if memory.compressed}
    await work.recompute_cluster_vectors(touched)
    return {"revived": len(revived)}


async def load_chain_of_absorbing_memories(
    work: UnitOfWork, state: MemoryFieldsForPatrol
) -> list[MemoryFieldsForPatrol]:
    """The memory that absorbed it, the one that absorbed that, and so on."""
    chain: list[MemoryFieldsForPatrol] = []
    while (
        state.absorbed_into
        and (survivor := await work.load_memory_states([state.absorbed_into]))
        and survivor[0] not in chain
    ):
        chain += survivor
        state = survivor[0]
    return chain


MECHANICAL_STEP_FUNCTIONS: Mapping[str, Callable[[UnitOfWork], Awaitable[dict[str, int]]]] = {
    "age": increment_active_memory_ages,
    "flag": set_active_or_dying_status,
    "revive": revive_recalled_memories,
    "merge": merge_small_clusters_into_siblings,
}
"""By name."""
