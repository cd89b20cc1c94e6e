"""Where sub-clusters come from (ruling 4): groups that hold together, found without a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SIMILARITY = 0.45
"""Cosine from which a memory belongs to a cluster (spec P6 ❶) and two memories to one group (ruling 4)."""
SMALLEST_GROUP = 3


def mutual_groups(vectors: NDArray[np.float32], seeds: Sequence[int]) -> list[list[int]]:
    """Disjoint groups of 3 or more rows, every two of a group at cosine ≥ 0.45.

    `vectors`: float32, (n, dim), unit rows. Each group holds at least one of `seeds` (row numbers): rows that were
    here before and found no group need not be compared with each other again. Greedy, and the same input gives the
    same groups; a group of three around a seed is never missed.
    """
    free = np.ones(len(vectors), np.bool_)
    groups: list[list[int]] = []
    for seed in seeds:
        if not free[seed]:
            continue
        near = vectors @ vectors[seed]
        free[seed] = False
        around = np.flatnonzero(free & (near >= SIMILARITY))
        around = around[np.argsort(-near[around], kind="stable")]
        group = [seed, *(int(around[i]) for i in _largest_clique(vectors[around]))]
        if len(group) >= SMALLEST_GROUP:
            free[group] = False
            groups.append(sorted(group))
        else:
            free[seed] = True
    return groups


def _largest_clique(vectors: NDArray[np.float32]) -> list[int]:
    """Of those found by starting at each row in turn and taking, in order, whatever is near to all that were taken."""
    similar = vectors @ vectors.T >= SIMILARITY
    best: list[int] = []
    for first in range(len(vectors)):
        fitting = similar[first].copy()
        fitting[first] = False
        clique = [first]
        while len(found := np.flatnonzero(fitting)):
            clique.append(int(found[0]))
            fitting &= similar[found[0]]
            fitting[found[0]] = False
        if len(clique) > len(best):
            best = clique
    return best


def mean_vector(vectors: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """The unit vector of the mean of unit rows (spec P3); None for no rows or a mean of zero."""
    if len(vectors) == 0:
        return None
    mean = vectors.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    return np.asarray(mean / norm, np.float32) if norm > 0 else None
