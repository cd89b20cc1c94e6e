"""The map, block by block: some hundred landmarks first, then all other memories, placed by them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from madeleine.memory.model import Scope
from madeleine.server.ui.projection import MapLandmarks, Matrix, lay_out_landmarks, sample_landmark_memory_numbers

if TYPE_CHECKING:  # a server imports it with the memory, behind its first answers
    from madeleine.server.wiring.open_memory import OpenedMemoryStore

MEMORIES_PER_SEMANTIC_MAP_BLOCK = 4_096
MAX_CACHED_SEMANTIC_MAPS = 8


@dataclass
class SemanticMapCache:
    """The landmarks of the latest maps, by being and model. A map is laid out once at a time."""

    _kept: OrderedDict[tuple[str, str], MapLandmarks] = field(default_factory=OrderedDict)
    _laying_out: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def stream_map_blocks(self, memory: OpenedMemoryStore, scope: Scope) -> AsyncIterator[dict[str, Any]]:
        """The number of memories on the map; then blocks of them, as columns: `seq`, `x` and `y` in [-1, 1]."""
        overview, model = memory.ledger.overview, memory.embedder.model_name
        ids = dict(await overview.sequence_numbers_and_ids_of_embedded_memories(scope, model))
        numbers = list(ids)
        yield {"total": len(numbers)}
        if not numbers:
            return

        async def vectors(some: Sequence[int]) -> dict[int, Matrix]:
            return dict(await overview.sequence_numbers_and_vectors(scope, model, [ids[number] for number in some]))

        async with self._laying_out:
            key = (scope.being_id, model)
            landmarks = self._kept.get(key)
            if landmarks is None or not landmarks.still_fits_memories(numbers):
                chosen = await vectors(sample_landmark_memory_numbers(numbers))
                matrix = np.array(list(chosen.values()), np.float32)
                landmarks = await asyncio.to_thread(lay_out_landmarks, list(chosen), matrix, len(numbers))
            self._cache_landmarks(key, landmarks)
        known = await vectors([number for number in numbers if number in landmarks.places])
        yield _memory_positions_as_json(
            list(known), np.array([landmarks.places[number] for number in known], np.float32)
        )
        others = [number for number in numbers if number not in landmarks.places]
        for begin in range(0, len(others), MEMORIES_PER_SEMANTIC_MAP_BLOCK):
            some = await vectors(others[begin : begin + MEMORIES_PER_SEMANTIC_MAP_BLOCK])
            matrix = np.array(list(some.values()), np.float32)
            if some and known:
                yield _memory_positions_as_json(
                    list(some), await asyncio.to_thread(landmarks.place_memories, list(some), matrix, known)
                )

    def _cache_landmarks(self, key: tuple[str, str], landmarks: MapLandmarks) -> None:
        self._kept[key] = landmarks
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_CACHED_SEMANTIC_MAPS:
            self._kept.popitem(last=False)


def _memory_positions_as_json(numbers: Sequence[int], plane: Matrix) -> dict[str, Any]:
    """Rounded: a screen has some thousand places across."""
    rounded = plane.astype(float).round(4)
    return {"seq": list(numbers), "x": rounded[:, 0].tolist(), "y": rounded[:, 1].tolist()}
