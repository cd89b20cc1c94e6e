"""The mean of what a being remembers (spec L1, step 4), kept up in the process at the cost of what is new.

A sum of vectors is held for each being. At each question the ledger gives the memories that were stored since the last
one; where a memory was changed, forgotten, or tended by a patrol meanwhile, the sum is taken anew. So it is always that
of the being's living memories, whoever stored them, and right after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import BeingId, ModelName, Scope, Vector

PAGE_SIZE = 2_000
"""Vectors read at a time: 3 MB of 384 dimensions."""
MAX_CACHED_BEINGS = 256
"""Of whom sums are held; the longest unused is let go."""


class CentroidSource(Protocol):
    async def last_upset(self, scope: Scope, *, after: int) -> tuple[int, bool]:
        """Where the audit ends now, and whether since `after` any of the being's memories were changed, forgotten or
        tended."""
        ...

    async def stored_after(
        self, scope: Scope, model: ModelName, *, after: int, limit: int
    ) -> list[tuple[int, Vector | None]]:
        """(number, vector) of the being's living memories with greater numbers, in order; None for one that has not
        been embedded."""
        ...


@dataclass(frozen=True, slots=True)
class _Sum:
    """`read`: the number of the last memory in it. `seen`: where the audit ended."""

    total: NDArray[np.float64] | float = 0.0
    read: int = 0
    seen: int = 0


class Centroids:
    def __init__(self, source: CentroidSource, model: ModelName) -> None:
        self._source = source
        self._model = model
        self._sums: dict[BeingId, _Sum] = {}
        self._reading: WeakValueDictionary[BeingId, asyncio.Lock] = WeakValueDictionary()

    async def of(self, scope: Scope) -> Vector | None:
        """float32, unit length; None where there is no embedded memory."""
        # One at a time: who comes meanwhile goes on from what the one before has read.
        async with self._reading.setdefault(scope.being_id, asyncio.Lock()):
            return await self._read(scope)

    async def _read(self, scope: Scope) -> Vector | None:
        found = self._sums.get(scope.being_id, _Sum())
        seen, upset = await self._source.last_upset(scope, after=found.seen)
        if upset:
            found = _Sum()
        total, read = found.total, found.read
        waiting: list[Vector] = []
        complete = True
        after = read
        while page := await self._source.stored_after(scope, self._model, after=after, limit=PAGE_SIZE):
            after = page[-1][0]
            # Up to the first that has no vector yet: those behind it are read again, until it has.
            known = _until_none(page) if complete else 0
            complete = complete and known == len(page)
            if known:
                total = total + _sum([vector for _, vector in page[:known]])
                read = page[known - 1][0]
            waiting += [vector for _, vector in page[known:] if vector is not None]
        self._sums.pop(scope.being_id, None)
        self._sums[scope.being_id] = _Sum(total, read, seen)
        while len(self._sums) > MAX_CACHED_BEINGS:
            self._sums.pop(next(iter(self._sums)))
        return _unit(total + _sum(waiting))


def _until_none(page: Sequence[tuple[int, Vector | None]]) -> int:
    return next((at for at, (_, vector) in enumerate(page) if vector is None), len(page))


def _sum(vectors: Sequence[Vector | None]) -> NDArray[np.float64] | float:
    rows = [vector for vector in vectors if vector is not None]
    return np.sum(rows, axis=0, dtype=np.float64) if rows else 0.0


def _unit(total: NDArray[np.float64] | float) -> Vector | None:
    norm = float(np.linalg.norm(total))
    return np.asarray(total / norm, np.float32) if norm > 0 else None
