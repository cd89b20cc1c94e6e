"""spec L1, step 4: novelty, and what a text is worth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.rules.dynamics.importance import MIN_IMPORTANCE, importance, novelty
from tests.doubles import at_cosine, unit

MEAN = unit([1, 0, 0, 0])


def test_everything_is_new_to_a_being_without_memories() -> None:
    assert novelty(at_cosine(0.9), None) == 1.0


@pytest.mark.parametrize(("cosine", "expected"), [(1.0, 0.0), (0.75, 0.25), (0.0, 1.0), (-0.5, 1.0)])
def test_novelty_is_the_cosine_distance_to_the_mean_and_never_above_one(cosine: float, expected: float) -> None:
    assert novelty(at_cosine(cosine), MEAN) == pytest.approx(expected)


def test_a_likeness_counts_as_far_as_the_model_can_read_the_text() -> None:
    """1 − 0.25 × 0.8 = 0.8; and nothing that it cannot read is known to it."""
    assert novelty(at_cosine(0.8), MEAN, legible=0.25) == pytest.approx(0.8)
    assert novelty(at_cosine(0.8), MEAN, legible=0.0) == 1.0


@pytest.mark.parametrize(
    ("new", "salient", "expected"), [(1.0, 0.0, 0.6), (0.0, 1.0, 0.4), (0.5, 0.3, 0.42), (0.25, 0.4, 0.31), (0, 0, 0)]
)
def test_importance_is_six_tenths_novelty_and_four_tenths_salience(new: float, salient: float, expected: float) -> None:
    assert importance(novelty=new, salience=salient) == pytest.approx(expected)


def test_half_new_and_nothing_else_is_just_worth_keeping() -> None:
    assert importance(novelty=0.5, salience=0.0) >= MIN_IMPORTANCE
    assert importance(novelty=0.49, salience=0.0) < MIN_IMPORTANCE


@given(st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4).filter(lambda v: np.linalg.norm(v) > 0.01))
def test_novelty_stays_between_zero_and_one(values: list[float]) -> None:
    assert 0 <= novelty(unit(values), unit([1, 2, 3, 4])) <= 1
