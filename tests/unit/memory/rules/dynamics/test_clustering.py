"""spec P3, ruling 4."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from madeleine.memory.rules.dynamics.clustering import unit_mean_vector
from tests.doubles import unit


def rows(seed: int, count: int, dim: int = 3) -> NDArray[np.float32]:
    found = np.random.default_rng(seed).normal(0.35, 1, (count, dim))
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


MANY = st.builds(rows, st.integers(0, 10_000), st.integers(0, 24), st.integers(2, 5))


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
