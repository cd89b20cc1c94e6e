"""New sub-clusters (ruling 4): groups of similar memories, their names, and their root (ruling 5), without a model."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import Memory
from madeleine.memory.text.reading import Reading
from madeleine.memory.text.terms import STOP_WORDS, normalize_words

MIN_CLUSTERING_COSINE = 0.45
"""Cosine from which a memory belongs to a cluster (spec P6 ❶) and two memories to one group (ruling 4)."""
MIN_NEW_CLUSTER_MEMORIES = 3
MAX_NEIGHBOURS = 200
"""Number of the nearest rows to a seed that are searched for the largest group, starting from each of them;
the farther rows are only added to that group. Measured over 10,000 random unit rows of mean cosine 0.45 (dim 384,
one core): 1.9 s with 200 and groups as large as with 400, 5.3 s with 1,000 and groups a tenth larger."""
SEED_BATCH = 64
"""Seeds compared with all rows in one product. Measured over 10,000 rows without a group: 1.4 s, and 3.3 s one by one;
2.6 MB."""


def mutually_similar_groups(vectors: NDArray[np.float32], seeds: Sequence[int]) -> list[list[int]]:
    """Disjoint groups of 3 or more rows, every two of a group at cosine ≥ 0.45.

    `vectors`: float32, (n, dim), unit rows. Each group holds at least one of `seeds` (row numbers): rows that were
    here before and found no group need not be compared with each other again. Greedy, and the same input gives the
    same groups; a group of three around a seed, among the `MAX_NEIGHBOURS` rows alike to it, is never missed. Never
    holds more than `MAX_NEIGHBOURS` similarities a row.
    """
    free = np.ones(len(vectors), np.bool_)
    groups: list[list[int]] = []
    waiting = np.asarray(seeds, np.intp)
    while len(waiting := waiting[free[waiting]]):
        block, waiting = waiting[:SEED_BATCH], waiting[SEED_BATCH:]
        for seed, near in zip(block, vectors[block] @ vectors.T, strict=True):
            if not free[seed]:
                continue
            free[seed] = False
            around = np.flatnonzero(free & (near >= MIN_CLUSTERING_COSINE))
            around = around[np.argsort(-near[around], kind="stable")]
            group = [int(seed), *_group_among(vectors, around)]
            if len(group) >= MIN_NEW_CLUSTER_MEMORIES:
                free[group] = False
                groups.append(sorted(group))
            else:
                free[seed] = True
    return groups


def _group_among(vectors: NDArray[np.float32], around: NDArray[np.intp]) -> list[int]:
    """Rows of `around`, the nearest first, that are all alike: the largest clique of the `MAX_NEIGHBOURS`, then, block
    by block and in order, each of the others that is alike to all that were taken."""
    searched, farther = around[:MAX_NEIGHBOURS], around[MAX_NEIGHBOURS:]
    taken = searched[_largest_clique(_similar_row_bits(vectors[searched]))]
    group: list[int] = taken.tolist()
    while len(farther := farther[_alike_to_all(vectors, farther, taken)]):
        block, farther = farther[:MAX_NEIGHBOURS], farther[MAX_NEIGHBOURS:]
        taken = block[_greedy_clique(_similar_row_bits(vectors[block]), (1 << len(block)) - 1)]
        group += taken.tolist()
    return group


def _similar_row_bits(vectors: NDArray[np.float32]) -> list[int]:
    """For each row, the bits of the other rows that are alike to it."""
    similar = vectors @ vectors.T >= MIN_CLUSTERING_COSINE
    np.fill_diagonal(similar, False)
    return [int.from_bytes(bits.tobytes(), "little") for bits in np.packbits(similar, axis=1, bitorder="little")]


def _alike_to_all(vectors: NDArray[np.float32], rows: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.bool_]:
    return np.asarray((vectors[rows] @ vectors[others].T >= MIN_CLUSTERING_COSINE).all(axis=1))


def _largest_clique(alike: Sequence[int]) -> list[int]:
    """The largest of the cliques that start at each row in turn and grow greedily, in order."""
    best: list[int] = []
    for first, others in enumerate(alike):
        if others.bit_count() >= len(best):
            clique = [first, *_greedy_clique(alike, others)]
            best = max(best, clique, key=len)
    return best


def _greedy_clique(alike: Sequence[int], fitting: int) -> list[int]:
    """Rows with bits set in `fitting`: the first, then each next one that is similar to all rows taken so far."""
    taken: list[int] = []
    while fitting:
        row = (fitting & -fitting).bit_length() - 1
        taken.append(row)
        fitting &= alike[row]
    return taken


def unit_mean_vector(vectors: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """The unit vector of the mean of unit rows (spec P3); None for no rows or a mean of zero."""
    if len(vectors) == 0:
        return None
    mean = vectors.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    return np.asarray(mean / norm, np.float32) if norm > 0 else None


MIN_CLUSTER_NAME_WORD_CHARS = 3
MAX_CLUSTER_NAME_PARTS = 2
MAX_CLUSTER_NAME_CHARS = 60


def candidate_cluster_name_words(memory: Memory) -> set[str]:
    """The words of the action that could name a group, lower case; names of its actors are left out."""
    text = normalize_words(memory.scene.action).casefold()
    actors = {word for actor in memory.scene.actors for word in _long_words(actor.casefold())}
    return _long_words(text) - STOP_WORDS - actors


def _long_words(text: str) -> set[str]:
    return {word.low for word in Reading(text).words if len(word.low) >= MIN_CLUSTER_NAME_WORD_CHARS}


def count_shared_name_words(memories: Sequence[Memory]) -> Counter[str]:
    """Words that at least two of the memories hold, with how many do."""
    counts = Counter(word for memory in memories for word in candidate_cluster_name_words(memory))
    return Counter({word: count for word, count in counts.items() if count >= MAX_CLUSTER_NAME_PARTS})


def cluster_name_from_memories(memories: Sequence[Memory], idf: Mapping[str, float]) -> str:
    """Up to two themes that at least half of the memories share; else the two words with the greatest count × IDF;
    else the beginning of the first action. At most 60 characters."""
    themes = Counter(theme for memory in memories for theme in dict.fromkeys(memory.themes))
    common = [theme for theme, count in themes.most_common() if count * 2 >= len(memories)]
    if common:
        return " & ".join(common[:MAX_CLUSTER_NAME_PARTS])[:MAX_CLUSTER_NAME_CHARS]
    counts = count_shared_name_words(memories)
    telling = sorted(counts, key=lambda word: (-counts[word] * idf.get(word, 0.0), word))
    if telling:
        return " & ".join(telling[:MAX_CLUSTER_NAME_PARTS])[:MAX_CLUSTER_NAME_CHARS]
    return " ".join(memories[0].scene.action.split())[:MAX_CLUSTER_NAME_CHARS]


Root = Literal["Business", "Private"]
ROOT_CLUSTER_NAMES: tuple[Root, ...] = get_args(Root)
_PROTOTYPES = tomllib.loads((Path(__file__).parent / "root_prototypes.toml").read_text("utf-8"))
ROOT_PROTOTYPE_TEXTS: Mapping[Root, Sequence[str]] = {root: _PROTOTYPES[root] for root in ROOT_CLUSTER_NAMES}


def nearest_root_cluster(vector: NDArray[np.float32], prototypes: Mapping[Root, NDArray[np.float32]]) -> Root:
    """`prototypes`: float32, (k, dim), unit rows. The root with the nearest prototypes (mean of its three best)."""

    def nearness(root: Root) -> float:
        return float(np.sort(prototypes[root] @ vector)[-3:].mean())

    return max(ROOT_CLUSTER_NAMES, key=lambda root: (nearness(root), root))
