"""The end of ❶: topics among the memories that are loose, young or in too broad a sub-cluster, and their names.

spec P6 ❶, rulings 4 and 17.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from madeleine.memory.model import Cluster, ClusterId, Memory
from madeleine.memory.patrol_records import MemoryFieldsForPatrol
from madeleine.memory.rules.dynamics import naming, topics
from madeleine.memory.vector_space import VectorRows, VectorSpace
from madeleine.patrol.unit_of_work import UnitOfWork

MAX_MEMORIES_SEARCHED_FOR_TOPICS = 5_000
"""Memories among which topics are looked for: under the roots, and, if there are no more in all, in sub-clusters."""
MAX_REGROUPABLE_CLUSTER_MEMORIES = 24
"""Up to so many a sub-cluster that no decision has made or left is young: its memories may still go elsewhere."""
MIN_BROAD_CLUSTER_MEMORIES, MAX_CLUSTER_SHARE = 24, 0.15
"""A sub-cluster with more memories, and with more of all that are in sub-clusters, is divided."""
MAX_NAMING_MEMORIES_FROM_EACH_END = 200
"""First and last ones of a cluster by which it is named anew."""


@dataclass(frozen=True, slots=True)
class RegroupedTopics:
    """`young`: sub-clusters that may consist of other memories than before. `changed`: all clusters that do, the roots
    too."""

    founded_count: int = 0
    young: frozenset[ClusterId] = frozenset()
    changed: frozenset[ClusterId | None] = frozenset()


async def regroup_loose_memories(work: UnitOfWork, decided: Set[ClusterId]) -> RegroupedTopics:
    """Memories directly under a root and those of young sub-clusters are grouped together. Each group joins a settled
    sub-cluster, goes on as the young one that it shares most with, or becomes a new one, under the root that most of
    its memories lie under (rulings 4 and 17). `decided`: sub-clusters that a decision has made or left."""
    roots = [root.id for root in work.root_clusters()]
    loose = [state for root in roots for state in await work.states_of_cluster_members(root) if state.status != "dead"]
    clusters = work.non_root_clusters()
    if (
        len(loose) + sum(work.active_status_member_count(cluster.id) for cluster in clusters)
        > MAX_MEMORIES_SEARCHED_FOR_TOPICS
    ):
        clusters, loose = [], loose[-MAX_MEMORIES_SEARCHED_FOR_TOPICS:]
    await work.preload_cluster_members([cluster.id for cluster in clusters])
    clustered = [
        state
        for cluster in clusters
        for state in await work.states_of_cluster_members(cluster.id)
        if state.is_part_of_cluster_mean
    ]
    vectors = await work.load_memory_vectors([*loose, *clustered])
    # By their content: the ids of clusters, by which they are read, are chance.
    states = sorted(
        (state for state in (*loose, *clustered) if state.id in vectors), key=lambda s: (s.content_hash, s.id)
    )
    if not states:
        return RegroupedTopics()
    young = await ids_of_regroupable_clusters(work, clusters, decided)
    settled = [cluster.id for cluster in clusters if cluster.id not in young]
    numbers = {id_: number for number, id_ in enumerate(settled)}
    homes = [numbers.get(state.cluster_id) if state.cluster_id else None for state in states]
    before = [state.cluster_id if state.cluster_id in young else None for state in states]
    # Seconds for an imported history: other calls go on meanwhile, but the patrol's transaction holds the ledger's
    # writer, so those that write wait.
    found = await asyncio.to_thread(
        assign_vectors_to_topics, np.stack([vectors[s.id] for s in states]), homes, work.space, before
    )
    groups = [[states[row] for row in group] for group in found.founded]
    heirs = ids_of_clusters_continued_by_groups(groups, young)
    moves = [(states[row], settled[number]) for row, number in found.joined.items()]
    for group, heir in zip(groups, heirs, strict=True):
        home = heir or (await add_topic_cluster(work, group, most_common_parent_cluster_id(work, group))).id
        moves += [(state, home) for state in group]
    changed = await move_memories_and_followers_to_clusters(work, moves, young)
    return RegroupedTopics(heirs.count(None), frozenset(young & changed), frozenset(changed))


def most_common_parent_cluster_id(work: UnitOfWork, group: Sequence[MemoryFieldsForPatrol]) -> ClusterId:
    parents = Counter(work.clusters[state.cluster_id].parent_id for state in group if state.cluster_id)
    return parents.most_common(1)[0][0]


async def ids_of_regroupable_clusters(
    work: UnitOfWork, clusters: Sequence[Cluster], decided: Set[ClusterId]
) -> set[ClusterId]:
    """Sub-clusters of few memories, dying and dead ones counted: one that fades is not young again."""
    undecided = [cluster.id for cluster in clusters if cluster.id not in decided]
    counts = {id_: len(await work.states_of_cluster_members(id_)) for id_ in undecided}
    return {id_ for id_, count in counts.items() if count <= MAX_REGROUPABLE_CLUSTER_MEMORIES}


def ids_of_clusters_continued_by_groups(
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


async def move_memories_and_followers_to_clusters(
    work: UnitOfWork, moves: Sequence[tuple[MemoryFieldsForPatrol, ClusterId]], young: Set[ClusterId]
) -> set[ClusterId | None]:
    """The clusters that have changed. Where all active memories of a young one go, the others go with most of them."""
    destinations: dict[ClusterId | None, Counter[ClusterId]] = defaultdict(Counter)
    changed: set[ClusterId | None] = set()
    for state, home in moves:
        destinations[state.cluster_id][home] += 1
        if state.cluster_id != home:
            changed |= {state.cluster_id, home}
            work.put_memory_state(replace(state, cluster_id=home))
    for id_ in sorted(young & changed):
        left = await work.states_of_cluster_members(id_)
        if left and not work.active_status_member_count(id_):
            work.move_memory_states_to_cluster(left, destinations[id_].most_common(1)[0][0])
    return changed


def assign_vectors_to_topics(
    vectors: VectorRows, homes: Sequence[int | None], space: VectorSpace, before: Sequence[ClusterId | None] = ()
) -> topics.TopicAssignments:
    return topics.assign_unclustered_vectors_to_topics(
        topics.vectors_without_shared_centre(vectors, space), homes, before
    )


async def add_topic_cluster(work: UnitOfWork, members: Sequence[MemoryFieldsForPatrol], parent: ClusterId) -> Cluster:
    name = await choose_cluster_name(work, await work.load_memories(members))
    cluster = work.create_empty_sub_cluster(name, parent)
    work.move_memory_states_to_cluster(members, cluster.id)
    return cluster


async def divide_broad_clusters(work: UnitOfWork, grown: Iterable[ClusterId | None]) -> set[ClusterId]:
    """A sub-cluster that has grown and holds too much of the memory is divided into its topics; the largest keeps it
    (ruling 17). Returns the clusters that have changed."""
    counts = {cluster.id: work.active_status_member_count(cluster.id) for cluster in work.non_root_clusters()}
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
    work: UnitOfWork, counts_before: Mapping[ClusterId, int], young: Set[ClusterId], decided: Set[ClusterId]
) -> None:
    """A cluster was named by its first few memories: young ones that have changed, and others each time that they have
    grown across a power of two, are named anew (ruling 17). Not those `decided`: a decision has made or left them."""
    for id_, before in counts_before.items():
        count, fewest = work.active_status_member_count(id_), max(before, topics.MIN_NEW_CLUSTER_MEMORIES)
        if id_ in decided or not count or (id_ not in young and count.bit_length() <= fewest.bit_length()):
            continue
        living = [state for state in await work.states_of_cluster_members(id_) if state.status != "dead"]
        states = {
            state.id: state
            for state in (*living[:MAX_NAMING_MEMORIES_FROM_EACH_END], *living[-MAX_NAMING_MEMORIES_FROM_EACH_END:])
        }
        name = await choose_cluster_name(work, await work.load_memories(list(states.values())), renamed=id_)
        work.clusters[id_] = replace(work.clusters[id_], name=name)


async def choose_cluster_name(work: UnitOfWork, memories: Sequence[Memory], *, renamed: ClusterId | None = None) -> str:
    words = sorted(naming.memory_counts_of_cluster_name_words(memories))
    idf = await work.word_idf.idf(work.scope, words) if words else []
    taken = {cluster.name for cluster in work.clusters.values() if cluster.id != renamed}
    return naming.cluster_name_from_memories(memories, dict(zip(words, idf, strict=True)), taken)
