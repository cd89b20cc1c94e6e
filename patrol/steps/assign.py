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
from madeleine.memory.rules.dynamics.grouping import SIMILARITY, mutual_groups
from madeleine.memory.rules.dynamics.naming import cluster_name, common_words
from madeleine.memory.rules.dynamics.roots import nearest_root
from madeleine.patrol.night import Night, state_of
from madeleine.patrol.report import StepReport

AT_ONCE = 2_000
"""Memories that are given their clusters in one transaction; those that store wait for it."""


async def assign(night: Night) -> StepReport:
    await night.read()
    take_in_notes(night)
    homeless = [*await night.unclustered(limit=AT_ONCE), *(state_of(memory) for memory in night.new)]
    vectors = await night.vectors(homeless)
    ready = [subject for subject in homeless if subject.id in vectors]
    if not night.evening.prototypes:
        ready = []
    night.roots()
    # Vectors of another model are compared with nothing, so without this such a cluster would never be touched again.
    stale = [c.id for c in night.sub_clusters() if night.vector_of(c) is None and night.active_count(c.id)]
    await night.recompute(stale)
    matched = await match_clusters(night, ready, vectors)
    rooted = await fall_back_to_roots(night, ready, vectors)
    grouped = [made for root in night.roots() for made in await group_under(night, root, rooted)]
    touched = {one.cluster_id for one in await night.states([s.id for s in ready]) if one.cluster_id is not None}
    touched |= {root.id for root in night.roots() if rooted} | {cluster.id for cluster in grouped}
    await night.recompute(touched)
    failed = sum(note.state == "parse_failed" for note in night.notes)
    return StepReport(
        "assign",
        {
            "notes_read": len(night.notes) - failed,
            "notes_failed": failed,
            "assigned": len(ready),
            "to_clusters": matched,
            "to_roots": len(ready) - matched,
            "new_clusters": len(grouped),
            "waiting_for_vectors": len(homeless) - len(ready),
        },
    )


def take_in_notes(night: Night) -> None:
    night.new, night.notes = night.evening.memories, night.evening.notes
    for memory in night.new:
        night.put(state_of(memory))


async def match_clusters(night: Night, ready: Sequence[MemoryState], vectors: Mapping[MemoryId, Vector]) -> int:
    """Each memory goes to the sub-cluster nearest to it, if that is near enough. How many did."""
    targets = [(c.id, v) for c in night.sub_clusters() if (v := night.vector_of(c)) is not None]
    if not targets or not ready:
        return 0
    # Thousands of vectors against thousands: other calls go on meanwhile.
    nearest = await asyncio.to_thread(
        _nearest, [vectors[subject.id] for subject in ready], [vector for _, vector in targets]
    )
    matched = 0
    for subject, best in zip(ready, nearest, strict=True):
        if best is not None:
            night.put(replace(subject, cluster_id=targets[best][0]))
            matched += 1
    return matched


def _nearest(vectors: Sequence[Vector], targets: Sequence[Vector]) -> list[int | None]:
    """For each vector the number of the target nearest to it, if that is near enough."""
    cosines = np.stack(vectors) @ np.stack(targets).T
    near = cosines.max(axis=1) >= SIMILARITY
    return [int(best) if found else None for best, found in zip(cosines.argmax(axis=1), near, strict=True)]


async def fall_back_to_roots(
    night: Night, ready: Sequence[MemoryState], vectors: Mapping[MemoryId, Vector]
) -> dict[ClusterId, list[MemoryId]]:
    """The others go under Business or Private, as a language model has chosen, else by the prototypes (spec P6 ❶,
    ruling 5). Those newly there, by root."""
    rooted: dict[ClusterId, list[MemoryId]] = {}
    for subject in await night.states([one.id for one in ready]):
        if subject.cluster_id is None:
            chosen = night.evening.chosen.get(subject.id)
            root = night.root(chosen or nearest_root(vectors[subject.id], night.evening.prototypes))
            night.put(replace(subject, cluster_id=root.id))
            rooted.setdefault(root.id, []).append(subject.id)
    return rooted


async def group_under(night: Night, root: Cluster, rooted: Mapping[ClusterId, Sequence[MemoryId]]) -> list[Cluster]:
    """New sub-clusters of those memories directly under the root that belong together (ruling 4)."""
    arrived = rooted.get(root.id, ())
    if not arrived:
        return []
    living = [subject for subject in await night.members(root.id) if subject.status != "dead"]
    vectors = await night.vectors(living)
    there = [subject for subject in living if subject.id in vectors]
    rows = np.stack([vectors[subject.id] for subject in there])
    place = {subject.id: i for i, subject in enumerate(there)}
    made: list[Cluster] = []
    # Seconds for an imported history: other calls go on meanwhile, but the patrol's transaction holds the ledger's
    # writer, so those that write wait.
    groups = await asyncio.to_thread(mutual_groups, rows, [place[id_] for id_ in arrived])
    for group in groups:
        members = [there[i] for i in group]
        cluster = night.add_sub_cluster(await name_for(night, members), root.id)
        night.move(members, cluster.id)
        made.append(cluster)
    return made


async def name_for(night: Night, members: Sequence[MemoryState]) -> str:
    memories = await night.whole(members)
    words = sorted(common_words(memories))
    idf = await night.words.idf(night.scope, words) if words else []
    return cluster_name(memories, dict(zip(words, idf, strict=True)))
