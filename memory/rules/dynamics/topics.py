"""Topics among memories, without a model: groups in the graph of each memory's nearest neighbours (rulings 4, 16, 17).

A threshold alone cannot tell topics apart: what is alike within one life differs from life to life. Whose nearest
neighbours are each other's can: communities of that graph are found by modularity (Blondel et al. 2008, "Fast unfolding
of communities in large networks"), and the threshold only keeps strangers out.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from madeleine.memory.vector_space import VectorRows, VectorSpace, normalize_vector_rows

MIN_NEW_CLUSTER_MEMORIES = 3
MIN_TOPIC_GRAPH_LINK_COSINE = 0.35
"""Cosine of two memories, without what all share, from which they may be of one topic: of unrelated ones, with a date
and a feeling in common, hardly a pair has it."""
TOPIC_GRAPH_NEIGHBOURS_PER_MEMORY = 12
MODULARITY_RESOLUTION = 1.5
"""How fine the communities are; 1 is modularity as defined."""
MAX_MEMORIES_AT_MODULARITY_RESOLUTION_ONE = 2 * TOPIC_GRAPH_NEIGHBOURS_PER_MEMORY
"""Up to so many are divided as modularity is defined: three that are alike stay together."""
MIN_COSINE_OF_SAME_TOPIC_GROUP_MEANS = 0.8
"""Of the means of two groups."""
LANGUAGE_MEAN_WEIGHT_MEMORIES = 15
"""The mean of a language weighs as much as so many memories in the mean of what is clustered."""
MIN_LINKED_GROUPS_COSINE = 0.3
"""In the mean, of two groups of one or two that are one topic."""
MAX_SMALL_GROUPS_COMPARED = 300
"""Groups of one or two that are compared with each other."""
MIN_MODULARITY_GAIN = 1e-9
COSINE_BLOCK_ROWS = 512
"""Rows compared with all others at a time."""

WeightedNeighboursByRow = list[dict[int, float]]
"""Of each row, the rows that it is near to, with their cosine; symmetric."""


def vectors_without_shared_centre(vectors: VectorRows, space: VectorSpace) -> VectorRows:
    """float32, (n, dim), unit rows, each without what it shares with the others of its language, be it the language, a
    date or a register: their mean, drawn towards that of the language, which counts as `LANGUAGE_MEAN_WEIGHT_MEMORIES`
    memories."""
    languages = space.row_numbers_of_nearest_language_means(vectors)
    centred = vectors.copy()
    for language in np.unique(languages):
        rows = languages == language
        total = vectors[rows].sum(axis=0)
        if len(space.means):
            total += LANGUAGE_MEAN_WEIGHT_MEMORIES * space.means[language]
        centred[rows] -= total / (int(rows.sum()) + LANGUAGE_MEAN_WEIGHT_MEMORIES)
    return normalize_vector_rows(centred)


def vectors_without_shared_direction(
    vectors: VectorRows, means: VectorRows, space: VectorSpace
) -> tuple[VectorRows, VectorRows]:
    """Vectors of memories and of clusters without the direction that those of a language share, unit rows. Not their
    centre: the length of a cluster's mean is unknown. In an undivided space they stay as they are."""
    if not len(space.means):
        return vectors, means
    every = np.concatenate([vectors, means])
    languages = space.row_numbers_of_nearest_language_means(every)
    for language in np.unique(languages):
        rows = languages == language
        direction = every[rows].sum(axis=0) + LANGUAGE_MEAN_WEIGHT_MEMORIES * space.means[language]
        direction /= max(float(np.linalg.norm(direction)), 1e-9)
        every[rows] -= np.outer(every[rows] @ direction, direction)
    every = normalize_vector_rows(every)
    return every[: len(vectors)], every[len(vectors) :]


@dataclass(frozen=True, slots=True)
class TopicAssignments:
    """`joined`: the cluster that each of these rows joins. `founded`: groups of 3 or more rows that make a new one, the
    largest first."""

    joined: Mapping[int, int]
    founded: Sequence[Sequence[int]]


def assign_unclustered_vectors_to_topics(
    vectors: VectorRows, clusters: Sequence[int | None], groups_before: Sequence[Hashable | None] = ()
) -> TopicAssignments:
    """Rows without a cluster join one or found one. `vectors`: float32, (n, dim), unit rows without what they share.
    `clusters`: of each row the number of its cluster, None without one. `groups_before`: of each row without a cluster
    the group that it was in, which it leaves only for a better one; None without one. The same input gives the same
    topics."""
    neighbours = symmetric_nearest_neighbour_graph(vectors)
    resolution = MODULARITY_RESOLUTION if len(vectors) > MAX_MEMORIES_AT_MODULARITY_RESOLUTION_ONE else 1.0
    joined: dict[int, int] = {}
    groups: list[list[int]] = []
    for group in find_communities(neighbours, clusters, resolution, groups_before):
        new = [row for row in group if clusters[row] is None]
        home = next((cluster for row in group if (cluster := clusters[row]) is not None), None)
        if home is not None:
            joined |= dict.fromkeys(new, home)
        else:
            groups.append(new)
    founded = join_similar_groups(vectors, groups)
    return TopicAssignments(joined, sorted(founded, key=lambda group: (-len(group), group)))


def symmetric_nearest_neighbour_graph(vectors: VectorRows) -> WeightedNeighboursByRow:
    """Each row with the `TOPIC_GRAPH_NEIGHBOURS_PER_MEMORY` nearest to it, from `MIN_TOPIC_GRAPH_LINK_COSINE`
    on, and those that it is one of."""
    neighbours: WeightedNeighboursByRow = [{} for _ in vectors]
    for start in range(0, len(vectors), COSINE_BLOCK_ROWS):
        cosines = vectors[start : start + COSINE_BLOCK_ROWS] @ vectors.T
        for row, near in enumerate(cosines, start):
            near[row] = -1.0
            some = np.argpartition(-near, min(TOPIC_GRAPH_NEIGHBOURS_PER_MEMORY, len(near) - 1))[
                :TOPIC_GRAPH_NEIGHBOURS_PER_MEMORY
            ]
            for other in some[near[some] >= MIN_TOPIC_GRAPH_LINK_COSINE]:
                neighbours[row][int(other)] = neighbours[int(other)][row] = float(near[other])
    return neighbours


def join_similar_groups(vectors: VectorRows, groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Groups of 3 or more rows. Those whose means are at `MIN_COSINE_OF_SAME_TOPIC_GROUP_MEANS` are one, and take in
    what smaller groups hold at that cosine: where many are all alike, the graph knows only the nearest of each, and
    falls apart. What is left of smaller ones is joined where it is alike in the mean: modularity cuts four in two
    pairs."""
    joined = [list(group) for group in groups if len(group) >= MIN_NEW_CLUSTER_MEMORIES]
    small = [list(group) for group in groups if len(group) < MIN_NEW_CLUSTER_MEMORIES]
    while len(joined) > 1:
        means = _unit_mean_of_each_group(vectors, joined)
        cosines = np.triu(means @ means.T, 1)
        first, second = divmod(int(cosines.argmax()), len(joined))
        if cosines[first, second] < MIN_COSINE_OF_SAME_TOPIC_GROUP_MEANS:
            break
        joined[first] += joined.pop(second)
    if joined and small:
        nearness = _unit_mean_of_each_group(vectors, small) @ _unit_mean_of_each_group(vectors, joined).T
        taken = nearness.max(axis=1) >= MIN_COSINE_OF_SAME_TOPIC_GROUP_MEANS
        for group, home, is_near in zip(small, nearness.argmax(axis=1), taken, strict=True):
            if is_near:
                joined[home] += group
        small = [group for group, is_near in zip(small, taken, strict=True) if not is_near]
    joined += _groups_joined_by_mean_cosine(vectors, small) if len(small) <= MAX_SMALL_GROUPS_COMPARED else []
    return [sorted(group) for group in joined]


def _unit_mean_of_each_group(vectors: VectorRows, groups: Sequence[Sequence[int]]) -> VectorRows:
    return normalize_vector_rows(np.stack([vectors[list(group)].mean(axis=0) for group in groups]))


def _groups_joined_by_mean_cosine(vectors: VectorRows, groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """The groups joined, two and two, while those that are most alike have a mean cosine of `MIN_LINKED_GROUPS_COSINE`;
    those that grew to 3 or more."""
    linked = [list(group) for group in groups]
    if len(linked) < 2:
        return []
    sums = np.stack([vectors[group].sum(axis=0) for group in linked])
    sizes = np.array([len(group) for group in linked], np.float32)
    while len(linked) > 1:
        cosines = sums @ sums.T / np.outer(sizes, sizes)
        np.fill_diagonal(cosines, -1)
        first, second = sorted(divmod(int(cosines.argmax()), len(linked)))
        if cosines[first, second] < MIN_LINKED_GROUPS_COSINE:
            break
        linked[first] += linked.pop(second)
        sums[first] += sums[second]
        sizes[first] += sizes[second]
        sums, sizes = np.delete(sums, second, axis=0), np.delete(sizes, second)
    return [group for group in linked if len(group) >= MIN_NEW_CLUSTER_MEMORIES]


def find_communities(
    neighbours: WeightedNeighboursByRow,
    clusters: Sequence[int | None],
    resolution: float,
    groups_before: Sequence[Hashable | None] = (),
) -> list[list[int]]:
    """The rows by community, each sorted: rows, then communities of them, move to where modularity gains most, until
    none gains. Rows of a cluster stay together, and no two clusters are joined; those of a group before begin in it."""
    members: list[list[int]] = []
    nodes: list[int] = []
    node_of_cluster: dict[int, int] = {}
    for row, cluster in enumerate(clusters):
        node = len(members) if cluster is None else node_of_cluster.setdefault(cluster, len(members))
        if node == len(members):
            members.append([])
        members[node].append(row)
        nodes.append(node)
    fixed = [clusters[group[0]] is not None for group in members]
    graph = _graph_of_merged_nodes(neighbours, nodes)
    homes = list(range(len(graph)))
    first_of_group: dict[Hashable, int] = {}
    for row, group_before in enumerate(groups_before):
        if group_before is not None and clusters[row] is None:
            homes[nodes[row]] = first_of_group.setdefault(group_before, nodes[row])
    while True:
        homes = _community_of_each_node(graph, fixed, resolution, homes)
        names = {home: index for index, home in enumerate(dict.fromkeys(homes))}
        if len(names) == len(graph):
            return [sorted(group) for group in members]
        places = [names[home] for home in homes]
        graph = _graph_of_merged_nodes(graph, places)
        joined: list[list[int]] = [[] for _ in names]
        joined_fixed = [False] * len(names)
        for node, place in enumerate(places):
            joined[place] += members[node]
            joined_fixed[place] |= fixed[node]
        members, fixed = joined, joined_fixed
        homes = list(range(len(graph)))


def _graph_of_merged_nodes(graph: WeightedNeighboursByRow, places: Sequence[int]) -> WeightedNeighboursByRow:
    """The graph of the places of its nodes."""
    joined: WeightedNeighboursByRow = [{} for _ in range(max(places, default=-1) + 1)]
    for place, links in zip(places, graph, strict=True):
        for other, weight in links.items():
            joined[place][places[other]] = joined[place].get(places[other], 0.0) + weight
    return joined


def _community_of_each_node(
    graph: WeightedNeighboursByRow, fixed: Sequence[bool], resolution: float, homes: Sequence[int]
) -> list[int]:
    """The community of each node, named by one of the nodes; `homes`: where each begins. Fixed nodes stay where they
    are."""
    homes = list(homes)
    degrees = [sum(links.values()) for links in graph]
    totals = [0.0] * len(graph)
    sizes = [0] * len(graph)
    for node, home in enumerate(homes):
        totals[home] += degrees[node]
        sizes[home] += 1
    scale = resolution / max(sum(degrees), 1e-9)
    moved = True
    while moved:
        moved = False
        for node, links in enumerate(graph):
            if fixed[node]:
                continue
            home = homes[node]
            totals[home] -= degrees[node]
            sizes[home] -= 1
            weights = {home: 0.0} | ({node: 0.0} if not sizes[node] else {})
            for other, weight in links.items():
                if other != node:
                    weights[homes[other]] = weights.get(homes[other], 0.0) + weight
            gains = {to: weight - scale * degrees[node] * totals[to] for to, weight in weights.items()}
            best = max(gains, key=lambda to: (gains[to], to == home, -to))
            if gains[best] <= gains[home] + MIN_MODULARITY_GAIN:
                best = home
            totals[best] += degrees[node]
            sizes[best] += 1
            homes[node] = best
            moved = moved or best != home
    return homes
