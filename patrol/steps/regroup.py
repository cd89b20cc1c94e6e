"""The end of ❶: topics among the memories that are loose, young or in too broad a sub-cluster, and their names.

spec P6 ❶, rulings 4 and 17.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from madeleine.memory.model import Cluster, ClusterId, Memory
from madeleine.memory.patrol_records import MemoryFieldsForPatrol
from madeleine.memory.rules.dynamics import naming, topics
from madeleine.memory.vector_space import VectorRows, VectorSpace
from madeleine.patrol.unit_of_work import UnitOfWork

MAX_MEMORIES_SEARCHED_FOR_TOPICS = 5_000
"""Memories among which topics are looked for: under the roots, and, if there are no more in all, in sub-clusters."""
MAX_YOUNG_CLUSTER_MEMORIES = 24
"""Up to so many a sub-cluster without a given name is young: its memories may still go elsewhere."""
MIN_BROAD_CLUSTER_MEMORIES, MAX_CLUSTER_SHARE = 24, 0.15
"""A sub-cluster with more memories, and with more of all that are in sub-clusters, is divided."""
MAX_NAMING_MEMORIES = 200
"""First and last ones of a cluster by which it is named anew."""


@dataclass(frozen=True, slots=True)
class RegroupedTopics:
    """`young`: sub-clusters that may consist of other memories than before. `changed`: all clusters that do, the roots
    too."""

    founded_count: int = 0
    young: frozenset[ClusterId] = frozenset()
    changed: frozenset[ClusterId | None] = frozenset()


async def regroup_loose_memories(work: UnitOfWork) -> RegroupedTopics:
    """Memories directly under a root and those of young sub-clusters are grouped together: they join a settled
    sub-cluster, stay a young one, whose most of them are then the group, or found one, under the root that most of them
    lie under (rulings 4 and 17)."""
    roots = [root.id for root in work.root_clusters()]
    loose = [state for root in roots for state in await work.states_of_cluster_members(root) if state.status != "dead"]
    clusters = work.non_root_clusters()
    if (
        len(loose) + sum(work.active_member_count(cluster.id) for cluster in clusters)
        > MAX_MEMORIES_SEARCHED_FOR_TOPICS
    ):
        clusters, loose = [], loose[-MAX_MEMORIES_SEARCHED_FOR_TOPICS:]
    await work.preload_cluster_members([cluster.id for cluster in clusters])
    clustered = [
        state
        for cluster in clusters
        for state in await work.states_of_cluster_members(cluster.id)
        if state.counts_in_cluster_mean
    ]
    vectors = await work.load_memory_vectors([*loose, *clustered])
    states = [state for state in (*loose, *clustered) if state.id in vectors]
    if not states:
        return RegroupedTopics()
    young = await find_young_clusters(work, clusters)
    settled = [cluster.id for cluster in clusters if cluster.id not in young]
    number = {id_: number for number, id_ in enumerate(settled)}
    homes = [number.get(state.cluster_id) if state.cluster_id else None for state in states]
    # Seconds for an imported history: other calls go on meanwhile, but the patrol's transaction holds the ledger's
    # writer, so those that write wait.
    found = await asyncio.to_thread(
        assign_vectors_to_topics, np.stack([vectors[s.id] for s in states]), homes, work.space
    )
    groups = [[states[row] for row in group] for group in found.founded]
    heirs = clusters_continued_by_groups(groups, young)
    changed = move_states(work, ((states[row], settled[home]) for row, home in found.joined.items()))
    for group, heir in zip(groups, heirs, strict=True):
        if heir is None:
            parents = Counter(work.clusters[state.cluster_id].parent_id for state in group if state.cluster_id)
            changed |= {state.cluster_id for state in group}
            changed.add((await add_topic_cluster(work, group, parents.most_common(1)[0][0])).id)
        else:
            changed |= move_states(work, ((state, heir) for state in group))
    return RegroupedTopics(heirs.count(None), frozenset(young & changed), frozenset(changed))


async def find_young_clusters(work: UnitOfWork, clusters: Sequence[Cluster]) -> set[ClusterId]:
    """Sub-clusters of few memories, made and named by the patrol: what their first memories had in common need not be
    what they are about once there are more."""
    few = [cluster for cluster in clusters if work.active_member_count(cluster.id) <= MAX_YOUNG_CLUSTER_MEMORIES]
    states = {
        cluster.id: [state for state in await work.states_of_cluster_members(cluster.id) if state.status != "dead"]
        for cluster in few
    }
    memories = {m.id: m for m in await work.load_memories([state for some in states.values() for state in some])}
    return {
        cluster.id
        for cluster in few
        if naming.is_cluster_name_from_memories(cluster.name, [memories[state.id] for state in states[cluster.id]])
    }


def clusters_continued_by_groups(
    groups: Sequence[Sequence[MemoryFieldsForPatrol]], young: Collection[ClusterId]
) -> list[ClusterId | None]:
    """Of each group the young cluster that goes on as it, the one with which it shares the most memories; each at most
    once; None for a group that is new."""
    shared = Counter(
        (number, state.cluster_id)
        for number, group in enumerate(groups)
        for state in group
        if state.cluster_id is not None and state.cluster_id in young
    )
    heirs: dict[int, ClusterId] = {}
    for (number, id_), _ in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
        if number not in heirs and id_ not in heirs.values():
            heirs[number] = id_
    return [heirs.get(number) for number in range(len(groups))]


def move_states(work: UnitOfWork, moves: Iterable[tuple[MemoryFieldsForPatrol, ClusterId]]) -> set[ClusterId | None]:
    """The clusters that have changed."""
    changed: set[ClusterId | None] = set()
    for state, home in moves:
        if state.cluster_id != home:
            changed |= {state.cluster_id, home}
            work.put_memory_state(replace(state, cluster_id=home))
    return changed


def assign_vectors_to_topics(
    vectors: VectorRows, homes: Sequence[int | None], space: VectorSpace
) -> topics.TopicAssignments:
    return topics.assign_unclustered_vectors_to_topics(topics.without_shared_centre(vectors, space), homes)


async def add_topic_cluster(work: UnitOfWork, members: Sequence[MemoryFieldsForPatrol], parent: ClusterId) -> Cluster:
    name = await choose_cluster_name(work, await work.load_memories(members))
    cluster = work.create_empty_sub_cluster(name, parent)
    work.move_memory_states_to_cluster(members, cluster.id)
    return cluster


async def divide_broad_clusters(work: UnitOfWork, grown: Iterable[ClusterId | None]) -> set[ClusterId]:
    """A sub-cluster that has grown and holds too much of the memory is divided into its topics; the largest keeps it
    (ruling 17). Returns the clusters that have changed."""
    counts = {cluster.id: work.active_member_count(cluster.id) for cluster in work.non_root_clusters()}
    fewest = max(MIN_BROAD_CLUSTER_MEMORIES, MAX_CLUSTER_SHARE * sum(counts.values()))
    changed: set[ClusterId] = set()
    for id_ in sorted(id_ for id_ in grown if id_ is not None and counts.get(id_, 0) > fewest):
        states = [state for state in await work.states_of_cluster_members(id_) if state.status != "dead"]
        vectors = await work.load_memory_vectors(states)
        states = [state for state in states if state.id in vectors]
        rows = np.stack([vectors[state.id] for state in states])
        found = await asyncio.to_thread(assign_vectors_to_topics, rows, [None] * len(rows), work.space)
        for group in found.founded[1:]:
            cluster = await add_topic_cluster(work, [states[row] for row in group], work.clusters[id_].parent_id)
            changed |= {id_, cluster.id}
    return changed


async def rename_changed_clusters(
    work: UnitOfWork, counts_before: Mapping[ClusterId, int], young: Collection[ClusterId]
) -> None:
    """A cluster was named by its first few memories: young ones that have changed, and others each time that they have
    grown across a power of two, are named anew (ruling 17), unless somebody has given them their name."""
    for id_, before in counts_before.items():
        fewest = max(before, topics.MIN_NEW_CLUSTER_MEMORIES)
        if id_ not in young and work.active_member_count(id_).bit_length() <= fewest.bit_length():
            continue
        living = [state for state in await work.states_of_cluster_members(id_) if state.status != "dead"]
        states = {state.id: state for state in (*living[:MAX_NAMING_MEMORIES], *living[-MAX_NAMING_MEMORIES:])}
        memories = await work.load_memories(list(states.values()))
        if memories and (id_ in young or naming.is_cluster_name_from_memories(work.clusters[id_].name, memories)):
            name = await choose_cluster_name(work, memories, renamed=id_)
            work.clusters[id_] = replace(work.clusters[id_], name=name)


async def choose_cluster_name(work: UnitOfWork, memories: Sequence[Memory], *, renamed: ClusterId | None = None) -> str:
    words = sorted(naming.counts_of_naming_words(memories))
    idf = await work.word_idf.idf(work.scope, words) if words else []
    taken = {cluster.name for cluster in work.clusters.values() if cluster.id != renamed}
    return naming.cluster_name_from_memories(memories, dict(zip(words, idf, strict=True)), taken)
