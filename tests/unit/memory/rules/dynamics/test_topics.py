"""Rulings 4, 16 and 17."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from madeleine.memory.rules.dynamics.topics import (
    assign_unclustered_vectors_to_topics,
    vectors_without_shared_centre,
    vectors_without_shared_direction,
)
from madeleine.memory.vector_space import VectorSpace, normalize_vector_rows
from tests.rows import for_each_row

DIM = 64


def around(topics: int, each: int, *, spread: float = 0.8, shared: float = 0.0, seed: int = 7) -> NDArray[np.float32]:
    """Unit rows, `each` around each of some random directions; `shared` is added to all along one axis."""
    draw = np.random.default_rng(seed)
    centres = np.repeat(normalize_vector_rows(draw.normal(size=(topics, DIM)).astype(np.float32)), each, axis=0)
    noise = normalize_vector_rows(draw.normal(size=(topics * each, DIM)).astype(np.float32))
    found = centres + spread * noise
    found[:, 0] += shared
    return normalize_vector_rows(np.asarray(found, np.float32))


def founded(vectors: NDArray[np.float32]) -> list[list[int]]:
    free = vectors_without_shared_centre(vectors, VectorSpace.create_without_languages())
    return [list(group) for group in assign_unclustered_vectors_to_topics(free, [None] * len(vectors)).founded]


@for_each_row(("topics", "each", "shared"), [(1, 3, 0.0), (4, 3, 0.0), (12, 30, 0.0), (12, 30, 1.0)])
def test_topics_are_told_apart_whatever_all_have_in_common(topics: int, each: int, shared: float) -> None:
    """ruling 17: sharing a date makes no topic."""
    groups = founded(around(topics, each, shared=shared))
    assert sorted(groups) == [list(range(start, start + each)) for start in range(0, topics * each, each)]


def test_strangers_make_no_topic_though_they_share_a_date() -> None:
    """ruling 17: 30 unrelated scenes on one date made three clusters."""
    assert founded(around(30, 1, shared=1.0)) == []
    assert founded(around(30, 1)) == []


def test_two_that_are_alike_make_no_topic() -> None:
    """ruling 4: groups of 3 or more."""
    assert founded(around(5, 2)) == []


def test_a_memory_joins_the_cluster_of_its_neighbours_and_clusters_stay_apart() -> None:
    """rulings 4 and 17: what lies under a root is looked at again; what has a cluster stays."""
    vectors = vectors_without_shared_centre(around(3, 10), VectorSpace.create_without_languages())
    homes: list[int | None] = [*[0] * 9, None, *[1] * 5, *[2] * 4, None, *[None] * 10]
    found = assign_unclustered_vectors_to_topics(vectors, homes)
    assert found.joined[9] == 0
    assert found.joined[19] in (1, 2)
    assert [list(group) for group in found.founded] == [list(range(20, 30))]


@given(st.integers(0, 10_000), st.integers(0, 40), st.integers(1, 6))
def test_topics_are_disjoint_and_the_same_input_gives_the_same(seed: int, count: int, dim: int) -> None:
    draw = np.random.default_rng(seed)
    vectors = normalize_vector_rows(draw.normal(0.3, 1, (count, dim)).astype(np.float32))
    homes = [int(home) if home < 3 else None for home in draw.integers(0, 6, count)]
    found = assign_unclustered_vectors_to_topics(vectors, homes)
    taken = [*found.joined, *(row for group in found.founded for row in group)]
    assert len(taken) == len(set(taken))
    assert all(homes[row] is None for row in taken)
    assert all(len(group) >= 3 for group in found.founded)
    assert set(found.joined.values()) <= {home for home in homes if home is not None}
    assert assign_unclustered_vectors_to_topics(vectors.copy(), list(homes)) == found


def test_the_direction_that_a_language_shares_is_taken_off_memories_and_clusters_alike() -> None:
    """ruling 16"""
    means = np.eye(1, DIM, dtype=np.float32) * 0.7
    space = VectorSpace(means, np.ones(1, np.float32))
    vectors = around(2, 4, shared=2.0)
    memories, clusters = vectors_without_shared_direction(vectors[[0, 4]], vectors[[1, 5]], space)
    cosines = memories @ clusters.T
    assert cosines.diagonal().min() > 0.3 > cosines[[0, 1], [1, 0]].max()
    assert vectors_without_shared_direction(vectors, vectors[:1], VectorSpace.create_without_languages())[0] is vectors
