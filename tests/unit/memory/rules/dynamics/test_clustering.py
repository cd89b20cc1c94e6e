"""spec P3, ruling 4."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from madeleine.memory.rules.dynamics.clustering import (
    MAX_NEIGHBOURS,
    MIN_CLUSTERING_COSINE,
    mutually_similar_groups,
    unit_mean_vector,
)
from tests.doubles import at_cosine, unit


def rows(seed: int, count: int, dim: int = 3) -> NDArray[np.float32]:
    """Random unit rows that lean to one side, so that some are alike."""
    found = np.random.default_rng(seed).normal(0.35, 1, (count, dim))
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


def leaning(count: int, cosine: float, dim: int = 64) -> NDArray[np.float32]:
    """Random unit rows at that cosine to each other in the mean: each at its root to the first axis."""
    rest = np.random.default_rng(7).normal(size=(count, dim - 1))
    rest *= np.sqrt(1 - cosine) / np.linalg.norm(rest, axis=1, keepdims=True)
    return np.asarray(np.concatenate([np.full((count, 1), np.sqrt(cosine)), rest], axis=1), np.float32)


MANY = st.builds(rows, st.integers(0, 10_000), st.integers(0, 24), st.integers(2, 5))


def seeds_of(vectors: NDArray[np.float32], every: int) -> list[int]:
    return list(range(0, len(vectors), every))


@given(MANY, st.integers(1, 4))
def test_groups_are_disjoint_and_at_least_three(vectors: NDArray[np.float32], every: int) -> None:
    """ruling 4: groups of 3 or more."""
    groups = mutually_similar_groups(vectors, seeds_of(vectors, every))
    taken = [row for group in groups for row in group]
    assert len(taken) == len(set(taken))
    assert all(len(group) >= 3 for group in groups)


@given(MANY, st.integers(1, 4))
def test_every_two_of_a_group_are_alike(vectors: NDArray[np.float32], every: int) -> None:
    """ruling 4: mutual similarity ≥ 0.45."""
    for group in mutually_similar_groups(vectors, seeds_of(vectors, every)):
        assert all(float(vectors[a] @ vectors[b]) >= MIN_CLUSTERING_COSINE - 1e-6 for a, b in combinations(group, 2))


@given(MANY, st.integers(1, 4))
def test_every_group_holds_one_that_has_just_arrived(vectors: NDArray[np.float32], every: int) -> None:
    """ruling 4: those that were there before have been compared before."""
    seeds = seeds_of(vectors, every)
    assert all(set(group) & set(seeds) for group in mutually_similar_groups(vectors, seeds))


@given(MANY, st.integers(1, 4))
def test_the_same_memories_give_the_same_groups(vectors: NDArray[np.float32], every: int) -> None:
    """ruling 4: mechanical."""
    seeds = seeds_of(vectors, every)
    assert mutually_similar_groups(vectors, seeds) == mutually_similar_groups(vectors.copy(), list(seeds))


@given(MANY)
def test_a_group_of_three_around_the_one_that_arrived_is_never_missed(vectors: NDArray[np.float32]) -> None:
    """ruling 4: those that hold together "become a new sub-cluster", not only the ones that are found by luck."""
    alike = vectors @ vectors.T >= MIN_CLUSTERING_COSINE + 1e-6
    others = range(1, len(vectors))
    there_is_one = any(alike[0, a] and alike[0, b] and alike[a, b] for a, b in combinations(others, 2))
    assert bool(mutually_similar_groups(vectors, [0] if len(vectors) else [])) or not there_is_one


def test_three_that_are_alike_make_a_group_and_the_stranger_stays_out() -> None:
    """ruling 4"""
    vectors = np.stack([at_cosine(1.0), at_cosine(0.9), at_cosine(0.9, axis=2), at_cosine(0.0, axis=3)])
    assert mutually_similar_groups(vectors, [0, 1, 2, 3]) == [[0, 1, 2]]


def test_two_that_are_alike_make_no_group() -> None:
    """ruling 4: 3 or more."""
    assert mutually_similar_groups(np.stack([at_cosine(1.0), at_cosine(0.9)]), [0, 1]) == []


def test_three_in_a_chain_make_no_group() -> None:
    """ruling 4: similarity is mutual. 40° apart each is 0.77 for neighbours, but 80° is 0.17 for the ends."""
    angles = np.deg2rad([0, 40, 80])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert mutually_similar_groups(vectors, [0, 1, 2]) == []


def test_a_group_of_which_none_has_just_arrived_is_not_looked_for() -> None:
    """ruling 4"""
    vectors = np.stack([at_cosine(1.0), at_cosine(0.9), at_cosine(0.9, axis=2), at_cosine(0.0, axis=3)])
    assert mutually_similar_groups(vectors, [3]) == []


def test_no_memories_make_no_groups() -> None:
    """ruling 4"""
    assert mutually_similar_groups(np.zeros((0, 4), np.float32), []) == []


def test_many_that_are_alike_make_one_group_and_strangers_stay_out() -> None:
    """ruling 4, for an imported history: also those that are not among the nearest of the first one belong to it."""
    alike = leaning(1_500, cosine=0.7)
    strangers = np.eye(64, dtype=np.float32)[1:31]
    vectors = np.concatenate([strangers[:15], alike, strangers[15:]])
    assert mutually_similar_groups(vectors, range(len(vectors))) == [list(range(15, 1_515))]


def test_two_large_groups_are_told_apart() -> None:
    """ruling 4"""
    vectors = np.concatenate([leaning(600, cosine=0.8), np.roll(leaning(600, cosine=0.8), 32, axis=1)])
    assert mutually_similar_groups(vectors, range(len(vectors))) == [list(range(600)), list(range(600, 1_200))]


def test_every_two_of_a_large_group_are_alike() -> None:
    """ruling 4, where one pair in a thousand is not: a group that grows beyond its nearest rows stays mutual."""
    vectors = leaning(1_500, cosine=0.6)
    groups = mutually_similar_groups(vectors, range(len(vectors)))
    assert len(groups) > 1
    assert max(len(group) for group in groups) > MAX_NEIGHBOURS + 1
    assert all((vectors[group] @ vectors[group].T >= MIN_CLUSTERING_COSINE - 1e-6).all() for group in groups)
    assert groups == mutually_similar_groups(vectors, range(len(vectors)))


def test_the_mean_vector_is_the_direction_between_its_rows() -> None:
    """spec P3: (1, 0) and (0, 1) → (√½, √½)."""
    mean = unit_mean_vector(np.eye(2, dtype=np.float32))
    assert mean is not None
    assert mean.tolist() == pytest.approx([0.70710678, 0.70710678])
    assert mean.dtype == np.float32


def test_nothing_and_what_cancels_out_have_no_mean() -> None:
    """spec P3: None while it has none."""
    assert unit_mean_vector(np.zeros((0, 2), np.float32)) is None
    assert unit_mean_vector(np.stack([unit([1, 0]), unit([-1, 0])])) is None


@given(MANY)
def test_a_mean_vector_is_of_unit_length(vectors: NDArray[np.float32]) -> None:
    """spec P3"""
    mean = unit_mean_vector(vectors)
    assert mean is None or float(np.linalg.norm(mean)) == pytest.approx(1, abs=1e-5)
