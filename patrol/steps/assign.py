"""❶ Scene notes become memories; memories without a cluster get one; groups under a root become sub-clusters.

spec P6 ❶, rulings 1, 4 and 5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from madeleine.memory.model import Cluster, ClusterId, MemoryId, Vector
from madeleine.memory.patrol_records import MemoryState
from madeleine.memory.rules.dynamics.clustering import (
    MIN_GROUP_SIMILARITY,
    cluster_name,
    common_words,
    mutual_groups,
    nearest_root,
)
from madeleine.patrol.report import StepReport
from madeleine.patrol.unit_of_work import UnitOfWork

ASSIGNMENT_BATCH = 2_000
"""Memories that are given their clusters in one transaction; calls that store wait for it."""


async def assign(work: UnitOfWork) -> StepReport:
    await work.read_clusters()
    work.notes = work.prepared.notes
    unclustered = work.current(await work.transaction.unclustered(limit=ASSIGNMENT_BATCH))
    for memory in work.prepared.memories:
        work.add(memory)
    unclustered += await work.states([memory.id for memory in work.prepared.memories])
    vectors = await work.vectors(unclustered)
    ready = [state for state in unclustered if state.id in vectors] if work.prepared.prototypes else []
    work.roots()
    # Vectors of another model are compared with nothing, so without this such a cluster would never be touched again.
    outdated = [c.id for c in work.sub_clusters() if work.vector_of(c) is None and work.active_count(c.id)]
    await work.recompute(outdated)
    matched = await match_clusters(work, ready, vectors)
    under_root = await assign_to_roots(work, ready, vectors)
    new_clusters = [cluster for root in work.roots() for cluster in await group_under(work, root, under_root)]
    touched = {state.cluster_id for state in await work.states([state.id for state in ready])}
    touched |= {root.id for root in work.roots() if under_root} | {cluster.id for cluster in new_clusters}
    await work.recompute(touched)
    failed = sum(note.state == "parse_failed" for note in work.notes)
    return StepReport(
        "assign",
        {
            "notes_read": len(work.notes) - failed,
            "notes_failed": failed,
            "assigned": len(ready),
            "to_clusters": matched,
            "to_roots": len(ready) - matched,
            "new_clusters": len(new_clusters),
            "waiting_for_vectors": len(unclustered) - len(ready),
        },
    )


async def match_clusters(work: UnitOfWork, ready: Sequence[MemoryState], vectors: Mapping[MemoryId, Vector]) -> int:
    """Assign each memory to the sub-cluster nearest to it, if that is near enough; return how many were assigned."""
    targets = [(c.id, v) for c in work.sub_clusters() if (v := work.vector_of(c)) is not None]
    if not targets or not ready:
        return 0
    # Thousands of vectors against thousands: other calls go on meanwhile.
    nearest = await asyncio.to_thread(
        _nearest, [vectors[state.id] for state in ready], [vector for _, vector in targets]
    )
    for state, target in zip(ready, nearest, strict=True):
        if target is not None:
            work.put(replace(state, cluster_id=targets[target][0]))
    return len(nearest) - nearest.count(None)


def _nearest(vectors: Sequence[Vector], targets: Sequence[Vector]) -> list[int | None]:
    """For each vector the index of the target nearest to it, if that is near enough."""
    cosines = np.stack(vectors) @ np.stack(targets).T
    near = cosines.max(axis=1) >= MIN_GROUP_SIMILARITY
    return [int(target) if is_near else None for target, is_near in zip(cosines.argmax(axis=1), near, strict=True)]


async def assign_to_roots(
    work: UnitOfWork, ready: Sequence[MemoryState], vectors: Mapping[MemoryId, Vector]
) -> dict[ClusterId, list[MemoryId]]:
    """Assign the others to Business or Private, as a language model has chosen, else by the prototypes (spec P6 ❶,
    ruling 5); return those newly assigned, by root."""
    under_root: dict[ClusterId, list[MemoryId]] = {}
    for state in await work.states([state.id for state in ready]):
        if state.cluster_id is None:
            chosen = work.prepared.roots.get(state.id)
            root = work.root(chosen or nearest_root(vectors[state.id], work.prepared.prototypes))
            work.put(replace(state, cluster_id=root.id))
            under_root.setdefault(root.id, []).append(state.id)
    return under_root


async def group_under(
    work: UnitOfWork, root: Cluster, under_root: Mapping[ClusterId, Sequence[MemoryId]]
) -> list[Cluster]:
    """Make new sub-clusters of those memories directly under the root that belong together (ruling 4)."""
    arrived = under_root.get(root.id, ())
    if not arrived:
        return []
    living = [state for state in await work.members(root.id) if state.status != "dead"]
    vectors = await work.vectors(living)
    embedded = [state for state in living if state.id in vectors]
    rows = np.stack([vectors[state.id] for state in embedded])
    row_of = {state.id: row for row, state in enumerate(embedded)}
    new_clusters: list[Cluster] = []
    # Seconds for an imported history: other calls go on meanwhile, but the patrol's transaction holds the ledger's
    # writer, so those that write wait.
    groups = await asyncio.to_thread(mutual_groups, rows, [row_of[id_] for id_ in arrived])
    for group in groups:
        members = [embedded[row] for row in group]
        cluster = work.add_sub_cluster(await name_for(work, members), root.id)
        work.move(members, cluster.id)
        new_clusters.append(cluster)
    return new_clusters


async def name_for(work: UnitOfWork, members: Sequence[MemoryState]) -> str:
    memories = await work.memories(members)
    words = sorted(common_words(memories))
    idf = await work.words.idf(work.scope, words) if words else []
    return cluster_name(memories, dict(zip(words, idf, strict=True)))
