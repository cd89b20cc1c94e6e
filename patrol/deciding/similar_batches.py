"""Similar memories in batches of a bounded size, for consolidation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import Memory, MemoryId, Vector
from madeleine.memory.rules.dynamics.clustering import MIN_GROUP_SIMILARITY
from madeleine.memory.rules.ranking.budget import within_budget
from madeleine.patrol.deciding.requests import MAX_OFFERED, MAX_OFFERED_CHARACTERS, offered_memory

UNCONSOLIDATED_MEMORIES, UNCONSOLIDATED_CHARACTERS = 40, 16_000
"""Of a request with partners, what fresh and dying memories may fill."""


def similar_batches(
    memories: Sequence[Memory], vectors: Mapping[MemoryId, Vector], *, room_for_partners: bool
) -> list[list[Memory]]:
    """Each group of similar memories goes, whole, into the first batch where it fits."""
    max_memories, max_characters = MAX_OFFERED, MAX_OFFERED_CHARACTERS
    if room_for_partners:
        max_memories, max_characters = UNCONSOLIDATED_MEMORIES, UNCONSOLIDATED_CHARACTERS
    sizes = {memory.id: offered_memory(memory, "consolidate").size for memory in memories}
    batches: list[list[Memory]] = []
    used: list[int] = []
    for group in _similar_groups(memories, vectors, sizes, max_memories, max_characters):
        needed = sum(sizes[memory.id] for memory in group)
        for i, batch in enumerate(batches):
            if len(batch) + len(group) <= max_memories and used[i] + needed <= max_characters:
                batch.extend(group)
                used[i] += needed
                break
        else:
            batches.append(list(group))
            used.append(needed)
    return batches


def _similar_groups(
    memories: Sequence[Memory],
    vectors: Mapping[MemoryId, Vector],
    sizes: Mapping[MemoryId, int],
    max_memories: int,
    max_characters: int,
) -> Iterator[list[Memory]]:
    """Disjoint groups within the limits: the first that remains, and the nearest of those similar to it."""
    rows = _vector_rows(memories, vectors)
    remaining = np.arange(len(memories))
    while len(remaining):
        cosines = (rows @ rows[remaining[0]])[remaining]
        cosines[0] = np.inf
        order = np.argsort(-cosines, kind="stable")
        similar = remaining[order[cosines[order] >= MIN_GROUP_SIMILARITY]]
        fitting = within_budget([sizes[memories[i].id] for i in similar], limit=max_memories, budget=max_characters)
        yield [memories[i] for i in similar[fitting]]
        remaining = remaining[~np.isin(remaining, similar[fitting])]


def most_similar(
    memories: Sequence[Memory], others: Sequence[Memory], vectors: Mapping[MemoryId, Vector]
) -> list[Memory]:
    """Those most similar to the nearest of the others, at most as many as a request holds."""
    cosines = _vector_rows(memories, vectors) @ _vector_rows(others, vectors).T
    order = np.argsort(-cosines.max(axis=1), kind="stable") if len(memories) else ()
    return [memories[i] for i in order][:MAX_OFFERED]


def _vector_rows(memories: Sequence[Memory], vectors: Mapping[MemoryId, Vector]) -> NDArray[np.float32]:
    """float32, (n, dim); zeros for a memory without a vector."""
    dim = next((len(vector) for vector in vectors.values()), 1)
    rows = np.zeros((len(memories), dim), np.float32)
    for row, memory in zip(rows, memories, strict=True):
        if memory.id in vectors:
            row[:] = vectors[memory.id]
    return rows
