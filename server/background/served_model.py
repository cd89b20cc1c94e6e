"""The embedding model that serves, with the index of its vectors. A switch replaces both at once; a call that has begun
with one pair ends with it, so that no vector of one model meets an index of another (ruling 6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.index import AwaitQueryVector, CandidatePool, CandidateQuery, Index, IndexPoint
from madeleine.memory.model import EmbeddingModelName, MemoryId, MemoryStatus, Scope, Vector
from madeleine.memory.vector_space import CosineCalibration, VectorSpace
from madeleine.server.background.index_upkeep import LazyEmbedder

MAX_WAIT_FOR_CALLS_OF_OLD_MODEL_SECONDS = 1_800.0
"""How long a call may still use the pair that it has begun with."""


@dataclass(frozen=True, eq=False)
class ServedEmbedderAndIndex:
    """`calibration`: None for the default model, whose thresholds need none."""

    embedder: LazyEmbedder
    index: Index
    calibration: CosineCalibration | None = None


_PAIR_PINNED_TO_TASK: ContextVar[ServedEmbedderAndIndex | None] = ContextVar("served pair", default=None)

PickServedPair = Callable[[], ServedEmbedderAndIndex]


class SwitchableEmbedderAndIndex:
    """`embedder` and `index` are for calls: both those of the pair that the call is pinned to. `current_embedder` and
    `current_index` are for the upkeep of what serves now."""

    def __init__(self, pair: ServedEmbedderAndIndex) -> None:
        self.current = pair
        self._open = {pair}
        self._tasks: WeakKeyDictionary[asyncio.Task[object], ServedEmbedderAndIndex] = WeakKeyDictionary()
        self.embedder, self.index = (
            SwitchableEmbedder(self._pinned_or_current_pair),
            SwitchableIndex(self._pinned_or_current_pair, self),
        )
        self.current_embedder = SwitchableEmbedder(lambda: self.current)
        self.current_index = SwitchableIndex(lambda: self.current, self)

    def pin_task_to_current_pair(self) -> None:
        """From here on the running task, and those that it starts, use what serves now, until it asks again."""
        if task := asyncio.current_task():
            _PAIR_PINNED_TO_TASK.set(self.current)
            self._tasks[task] = self.current

    def _pinned_or_current_pair(self) -> ServedEmbedderAndIndex:
        pair = _PAIR_PINNED_TO_TASK.get()
        return pair if pair is not None and pair in self._open else self.current

    def switch_to(self, pair: ServedEmbedderAndIndex) -> None:
        """Without a pause: the next call has the new pair."""
        self._open.add(pair)
        self.current = pair

    async def close_when_unused(self, pair: ServedEmbedderAndIndex) -> None:
        """Wait for the calls that have begun with the pair, then close its index and its model."""
        until = asyncio.get_running_loop().time() + MAX_WAIT_FOR_CALLS_OF_OLD_MODEL_SECONDS
        while asyncio.get_running_loop().time() < until:
            users = [task for task, used in list(self._tasks.items()) if used is pair and not task.done()]
            if not users:
                break
            await asyncio.wait(users, timeout=1)
        self._open.discard(pair)
        await pair.index.close()
        await pair.embedder.close()

    async def close(self) -> None:
        for pair in self._open:
            await pair.index.close()
            await pair.embedder.close()


class SwitchableEmbedder:
    """`LazyEmbedder`: that of the pair. Closed with it."""

    def __init__(self, pick: PickServedPair) -> None:
        self._pick = pick

    @property
    def model_name(self) -> EmbeddingModelName:
        return self._pick().embedder.model_name

    @property
    def vector_space(self) -> VectorSpace:
        pair = self._pick()
        return (
            replace(pair.embedder.vector_space, calibration=pair.calibration)
            if pair.calibration
            else pair.embedder.vector_space
        )

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return await self._pick().embedder.embed(texts)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return await self._pick().embedder.count_tokens(texts)

    async def dimension(self) -> int:
        return await self._pick().embedder.dimension()

    async def warm_up(self) -> None:
        await self._pick().embedder.warm_up()

    async def close(self) -> None:
        """Nothing: `SwitchableEmbedderAndIndex` closes it."""


class SwitchableIndex:
    """`memory.index.Index`: that of the pair."""

    def __init__(self, pick: PickServedPair, served: SwitchableEmbedderAndIndex) -> None:
        self._pick = pick
        self._served = served

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        pair = self._pick()
        await pair.index.upsert(points)
        if pair is not self._served.current:
            # Switched meanwhile: recalled by words at once, by meaning when the mark in the ledger is worked off.
            await self._served.current.index.upsert([replace(point, vector=None) for point in points])

    async def delete(self, ids: Sequence[MemoryId]) -> None:
        await self._pick().index.delete(ids)

    async def nearest(
        self, scope: Scope, vector: Vector, *, limit: int, statuses: Sequence[MemoryStatus]
    ) -> list[tuple[MemoryId, float]]:
        return await self._pick().index.nearest(scope, vector, limit=limit, statuses=statuses)

    async def living_ids_sharing_most_words(
        self, scope: Scope, words: str, *, limit: int, statuses: Sequence[MemoryStatus]
    ) -> list[MemoryId]:
        return await self._pick().index.living_ids_sharing_most_words(scope, words, limit=limit, statuses=statuses)

    async def candidates(self, scope: Scope, query: CandidateQuery, vector: AwaitQueryVector) -> CandidatePool:
        return await self._pick().index.candidates(scope, query, vector)

    async def cosines(self, ids: Sequence[MemoryId], vector: Vector) -> NDArray[np.float32]:
        return await self._pick().index.cosines(ids, vector)

    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]:
        return await self._pick().index.idf(scope, words)

    async def count(self) -> int:
        return await self._pick().index.count()

    async def scrub_deleted_bytes(self) -> None:
        await self._pick().index.scrub_deleted_bytes()

    async def flush(self) -> None:
        await self._pick().index.flush()

    async def optimize_if_worthwhile(self) -> bool:
        return await self._pick().index.optimize_if_worthwhile()

    async def close(self) -> None:
        """Nothing: `SwitchableEmbedderAndIndex` closes it."""
