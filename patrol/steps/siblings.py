"""Which sub-cluster is the most like another under the same parent, while they grow and go (spec P6 ❼)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import ClusterId, Vector
from madeleine.memory.rules.dynamics.grouping import SIMILARITY

_ROUNDING = 1e-5
"""A product of matrices rounds otherwise than one of two rows: those this near to the best are compared once more."""


class Siblings:
    """`vectors`: of each sub-cluster its parent and its mean, None for one that cannot be compared. The similarities of
    some are held at a time, float32 (some, all): one product, in which a cluster that grows changes its own alone."""

    def __init__(self, vectors: Mapping[ClusterId, tuple[ClusterId, Vector | None]]) -> None:
        known = {id_: (parent, vector) for id_, (parent, vector) in vectors.items() if vector is not None}
        self._ids = list(known)
        self._place = {id_: i for i, id_ in enumerate(self._ids)}
        parents = {parent: i for i, parent in enumerate(dict.fromkeys(parent for parent, _ in known.values()))}
        self._parents = np.asarray([parents[parent] for parent, _ in known.values()], np.intp)
        self._rows: NDArray[np.float32] = np.stack([v for _, v in known.values()]) if known else np.empty((0, 0), "f4")
        self._there = np.ones(len(known), np.bool_)
        self._sums: dict[ClusterId, NDArray[np.float64]] = {}
        self._compared: dict[ClusterId, int] = {}
        """Line of each that is compared now."""
        self._similar: NDArray[np.float32] = np.empty((0, len(known)), np.float32)

    async def compare(self, ids: Sequence[ClusterId]) -> None:
        """These are the ones that `nearest` is asked about until the next are compared."""
        known = [id_ for id_ in ids if id_ in self._place]
        self._compared = {id_: line for line, id_ in enumerate(known)}
        own = self._rows[[self._place[id_] for id_ in known]]
        self._similar = await asyncio.to_thread(np.matmul, own, self._rows.T)

    def nearest(self, id_: ClusterId) -> ClusterId | None:
        """The one of the highest similarity, if that is above 0.45; of several the one of the highest id."""
        if id_ not in self._place:
            return None
        own = self._place[id_]
        others = self._there & (self._parents == self._parents[own])
        others[own] = False
        similar = np.where(others, self._similar[self._compared[id_]], -np.inf)
        near = np.flatnonzero(similar >= max(float(similar.max()), SIMILARITY) - _ROUNDING)
        found = [(float(np.dot(self._rows[own], self._rows[i])), self._ids[i]) for i in near]
        best = max(found, default=None)
        return best[1] if best and best[0] > SIMILARITY else None

    def has_grown(self, id_: ClusterId) -> bool:
        return id_ in self._sums

    def grow(self, id_: ClusterId, vectors: Sequence[Vector]) -> None:
        """`vectors`: at first those of all its active memories, then of those that have come since."""
        self._sums[id_] = self._sums.get(id_, np.zeros(self._rows.shape[1])) + np.sum(vectors, axis=0, dtype=np.float64)
        norm = float(np.linalg.norm(self._sums[id_]))
        if norm == 0:
            return  # it keeps its last mean
        place = self._place[id_]
        self._rows[place] = self._sums[id_] / norm
        self._similar[:, place] = self._rows[[self._place[one] for one in self._compared]] @ self._rows[place]
        if id_ in self._compared:
            self._similar[self._compared[id_]] = self._rows @ self._rows[place]

    def remove(self, id_: ClusterId) -> None:
        if id_ in self._place:
            self._there[self._place[id_]] = False
