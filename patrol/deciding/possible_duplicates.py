"""Which memories of a cluster may say the same, and batches of them that fit into a request (spec P6 ❹)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import Memory, MemoryId, Vector
from madeleine.memory.rules.dynamics.clustering import MIN_CLUSTERING_COSINE
from madeleine.memory.rules.ranking.budget import positions_within_token_budget
from madeleine.memory.rules.storing.likeness import describe_difference_in_facts
from madeleine.patrol.deciding.requests import (
    DECISION_REQUEST_LIMITS_FOR_MODEL,
    MAX_MEMORIES_PER_DECISION_REQUEST,
    DecisionRequestLimits,
    offered_memory_from_memory,
)

MIN_POSSIBLE_DUPLICATE_COSINE = 0.8
"""Cosine of two memories, without what their language shares, from which they are asked about although no store has
linked them: scene notes are not linked. A store links 97 % of all paraphrases (`benchmarks/duplicates`)."""
MIN_POSSIBLE_DUPLICATE_COSINE_IF_LINKED = 0.6
"""The same of two that a store has linked: 95 % of sentences told again in other forms have it, half of paraphrases
(`benchmarks/duplicates/sentences`), and few of the turns of a talk that are linked."""
COSINE_BLOCK_ROWS = 512
"""Rows compared with all others at a time."""
CONSOLIDATION_REQUEST_LIMITS = DECISION_REQUEST_LIMITS_FOR_MODEL["consolidate"]
"""Of a request with partners, fresh and dying memories may fill two thirds."""


def ids_of_possible_duplicates(
    memories: Sequence[Memory], others: Sequence[Memory], vectors: Mapping[MemoryId, Vector]
) -> set[MemoryId]:
    """Ids of the memories that may say the same as one of the others: the store has linked them, or they are near, and
    they differ in no fact. Two that do are never merged, whatever is decided."""
    own, by_id = ({memory.id: memory for memory in group} for group in (memories, others))
    links = [(memory.id, memory.resembles) for memory in (*memories, *others) if memory.resembles]
    pairs = (pair for link in links for pair in (link, link[::-1]))
    linked = {
        one
        for one, other in pairs
        if one in own
        and other in by_id
        and _cosine_or_one_if_unknown(vectors, one, other) >= MIN_POSSIBLE_DUPLICATE_COSINE_IF_LINKED
        and _may_be_duplicates(own[one], by_id[other])
    }
    rows, other_rows = _vector_rows(memories, vectors), _vector_rows(others, vectors)
    position = {memory.id: at for at, memory in enumerate(others)}
    for start in range(0, len(memories) if others else 0, COSINE_BLOCK_ROWS):
        block = memories[start : start + COSINE_BLOCK_ROWS]
        cosines = rows[start : start + COSINE_BLOCK_ROWS] @ other_rows.T
        for memory, row in zip(block, cosines, strict=True):
            if memory.id in position:
                row[position[memory.id]] = 0
            near = (others[int(at)] for at in np.flatnonzero(row >= MIN_POSSIBLE_DUPLICATE_COSINE))
            if memory.id not in linked and any(_may_be_duplicates(memory, other) for other in near):
                linked.add(memory.id)
    return linked


def _cosine_or_one_if_unknown(vectors: Mapping[MemoryId, Vector], one: MemoryId, other: MemoryId) -> float:
    """1 where it is not known."""
    return float(vectors[one] @ vectors[other]) if one in vectors and other in vectors else 1.0


def _may_be_duplicates(memory: Memory, other: Memory) -> bool:
    """Not of a pair that another decision is about: whether the newer one has superseded the older one."""
    awaits_supersession_decision = memory.may_supersede == other.id or other.may_supersede == memory.id
    return not awaits_supersession_decision and _have_same_facts(memory.scene.action, other.scene.action)


@lru_cache(maxsize=2_000)
def _have_same_facts(text: str, other: str) -> bool:
    """A night compares the same two once for each answer, and again the next night while they are not decided."""
    return not describe_difference_in_facts(text, other)


def batches_of_similar_memories(
    memories: Sequence[Memory],
    vectors: Mapping[MemoryId, Vector],
    limits: DecisionRequestLimits = CONSOLIDATION_REQUEST_LIMITS,
    *,
    room_for_partners: bool,
) -> list[list[Memory]]:
    """Each group of similar memories goes, whole, into the first batch where it fits."""
    max_memories, max_characters = limits.memories, limits.size
    if room_for_partners:
        max_memories, max_characters = max_memories * 2 // 3, max_characters * 2 // 3
    sizes = {memory.id: offered_memory_from_memory(memory, "consolidate", limits).size_bytes for memory in memories}
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
        similar = remaining[order[cosines[order] >= MIN_CLUSTERING_COSINE]]
        fitting = positions_within_token_budget(
            [sizes[memories[i].id] for i in similar], limit=max_memories, budget=max_characters
        )
        yield [memories[i] for i in similar[fitting]]
        remaining = remaining[~np.isin(remaining, similar[fitting])]


def memories_closest_to_another_group(
    memories: Sequence[Memory], others: Sequence[Memory], vectors: Mapping[MemoryId, Vector]
) -> list[Memory]:
    """Those most similar to the nearest of the others, at most as many as a request holds."""
    cosines = _vector_rows(memories, vectors) @ _vector_rows(others, vectors).T
    order = np.argsort(-cosines.max(axis=1), kind="stable") if len(memories) else ()
    return [memories[i] for i in order][:MAX_MEMORIES_PER_DECISION_REQUEST]


def _vector_rows(memories: Sequence[Memory], vectors: Mapping[MemoryId, Vector]) -> NDArray[np.float32]:
    """float32, (n, dim); zeros for a memory without a vector."""
    dim = next((len(vector) for vector in vectors.values()), 1)
    rows = np.zeros((len(memories), dim), np.float32)
    for row, memory in zip(rows, memories, strict=True):
        if memory.id in vectors:
            row[:] = vectors[memory.id]
    return rows
