"""spec O12, T7, ruling 9. Worked by hand: e^-0.01 = 0.990050, e^-0.24 = 0.786628, e^-1 = 0.367879."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from madeleine.memory.index import CandidatePool, MemoryRankingState
from madeleine.memory.rules.ranking.profiles import (
    AllRankingProfileWeights,
    AssociativeRankingWeights,
    LinearRankingWeights,
    candidate_similarities,
    evenly_falling_scores,
    linear_ranking_scores,
    recency_score,
    saturating_reinforcement_share,
    scores_by_associative_ranking_profile,
)
from tests.doubles import NOW
from tests.rows import for_each_row
from tests.unit.memory.rules.ranking.test_blended import pool

WEIGHTS = AllRankingProfileWeights()
HOUR = timedelta(hours=1)


def state(*, importance: float = 0.5, hours: float = 0, told: int = 0, idle: float | None = None) -> MemoryRankingState:
    """Happened `hours` ago, last active `idle` hours ago (as long by default)."""
    return MemoryRankingState(
        importance=importance,
        happened_at=NOW - hours * HOUR,
        last_active=NOW - (hours if idle is None else idle) * HOUR,
        access_count=told,
    )


def near(*values: float) -> NDArray[np.float32]:
    return np.asarray(values, np.float32)


def linear_of(cosine: float, one: MemoryRankingState, weights: AllRankingProfileWeights = WEIGHTS) -> float:
    return float(linear_ranking_scores(near(cosine), [one], now=NOW, weights=weights).scores[0])


def associative_of(
    cosine: float, one: MemoryRankingState, shared: float = 0.0, weights: AllRankingProfileWeights = WEIGHTS
) -> float:
    return float(
        scores_by_associative_ranking_profile(near(cosine), [one], [shared], now=NOW, weights=weights).scores[0]
    )


# --- factors


@for_each_row(("hours", "value"), [(0, 1.0), (1, 0.990050), (24, 0.786628), (100, 0.367879), (-5, 1.0), (10**6, 0.0)])
def test_recency_is_as_worked_by_hand(hours: float, value: float) -> None:
    """spec O12: exp(−decay_rate × age_hours); what is still to come is as recent as now."""
    assert recency_score(hours * HOUR, decay_per_hour=0.01) == pytest.approx(value, abs=1e-6)


@for_each_row(("times", "value"), [(0, 0.0), (1, 0.25), (3, 0.5), (9, 0.75), (10**9, 1.0)])
def test_reinforcement_is_as_worked_by_hand(times: int, value: float) -> None:
    """ruling 9: n / (n + 3)."""
    assert saturating_reinforcement_share(times) == pytest.approx(value, abs=1e-6)


@for_each_row(
    ("cosine", "bm25", "trust", "value"),
    [
        (0.6, 0.0, 1.0, 0.6),
        (0.6, 2.0, 1.0, 0.6),
        (0.6, 2.0, 0.0, 1.0),  # a script that the model cannot read: the words alone, and it has the only one
        (0.6, 0.0, 0.0, 0.0),
        (0.6, 2.0, 0.5, 0.8),  # 0.5 × 0.6 + 0.5 × 1
        (-0.2, 0.0, 1.0, 0.0),
        (0.0, 2.0, 1.0, 1.0),  # without a vector
    ],
)
def test_similarity_is_the_cosine_as_far_as_it_can_be_trusted(
    cosine: float, bm25: float, trust: float, value: float
) -> None:
    assert candidate_similarities(pool([cosine], [bm25]), dense_trust=trust).tolist() == pytest.approx(
        [value], abs=1e-6
    )


# --- rrf


def test_the_engines_order_is_kept_with_scores_that_fall_evenly() -> None:
    assert evenly_falling_scores(4).scores.tolist() == [1.0, 0.75, 0.5, 0.25]
    assert evenly_falling_scores(1).scores.tolist() == [1.0]
    assert evenly_falling_scores(0).scores.tolist() == []


# --- linear


@for_each_row(
    ("cosine", "hours", "value"),
    [
        (0.5, 0, 0.72),  # 0.7 × (0.5 + 0.1) + 0.3 × 1
        (0.5, 100, 0.530364),  # 0.42 + 0.3 × 0.367879
        (0.95, 0, 1.0),  # 0.7 × min(1.05, 1) + 0.3
        (0.0, 10**6, 0.07),  # 0.7 × 0.1
    ],
)
def test_linear_is_as_worked_by_hand(cosine: float, hours: float, value: float) -> None:
    """spec O12"""
    assert linear_of(cosine, state(hours=hours)) == pytest.approx(value, abs=1e-6)


def test_linear_counts_from_when_it_happened_and_not_from_the_last_recall() -> None:
    assert linear_of(0.5, state(hours=100, idle=0)) == pytest.approx(0.530364, abs=1e-6)


def test_weights_that_add_up_to_more_than_one_are_scaled_and_others_are_not() -> None:
    """0.5 × 1 + 1 × 1 = 1.5, of 1.5; 0.2 × 0.5 + 0.3 × 1 = 0.4 as it is."""
    heavy = AllRankingProfileWeights(linear=LinearRankingWeights(relevance=0.5, recency=1.0, personal_boost=0.0))
    assert linear_of(1.0, state(), heavy) == pytest.approx(1.0)
    light = AllRankingProfileWeights(linear=LinearRankingWeights(relevance=0.2, recency=0.3, personal_boost=0.0))
    assert linear_of(0.5, state(), light) == pytest.approx(0.4)


# --- associative


@for_each_row(
    ("cosine", "one", "shared", "value"),
    [
        (0.8, state(importance=0.5, told=3), 0.0, 0.66),  # 0.36 + 0.10 + 0.15 + 0.05
        (0.8, state(importance=0.5, told=3), 1.0, 0.76),
        (0.8, state(importance=0.5, told=3), 0.5, 0.71),
        (0.4, state(importance=1.0, hours=100), 0.0, 0.435182),  # 0.18 + 0.20 + 0.15 × 0.367879
        (1.0, state(importance=1.0, told=10**9), 1.0, 1.0),
        (0.0, state(importance=0.0, hours=10**6), 0.0, 0.0),
    ],
)
def test_associative_is_as_worked_by_hand(cosine: float, one: MemoryRankingState, shared: float, value: float) -> None:
    """spec T7, ruling 9"""
    assert associative_of(cosine, one, shared) == pytest.approx(value, abs=1e-6)


def test_associative_counts_from_the_last_activity() -> None:
    """What was recalled an hour ago is recent, however old it is."""
    assert associative_of(0.8, state(hours=10**6, idle=0)) == associative_of(0.8, state())


def test_each_of_the_five_weights_is_a_setting() -> None:
    """ruling 9"""
    one = state(importance=1.0, told=10**9)
    nothing = AssociativeRankingWeights(similarity=0, importance=0, recency=0, reinforcement=0, emotion=0)
    for name in ("similarity", "importance", "recency", "reinforcement", "emotion"):
        weights = AllRankingProfileWeights(associative=replace(nothing, **{name: 0.3}))
        assert associative_of(1.0, one, 1.0, weights) == pytest.approx(0.3, abs=1e-6)


# --- properties

SHARES = st.floats(0, 1)
VITALS = st.builds(
    state, importance=SHARES, hours=st.floats(-10, 10_000), told=st.integers(0, 50), idle=st.floats(0, 10_000)
)
CANDIDATES = st.lists(st.tuples(SHARES, VITALS, SHARES), min_size=1, max_size=8)
ANY_WEIGHTS = st.builds(
    AllRankingProfileWeights,
    linear=st.builds(LinearRankingWeights, relevance=SHARES, recency=SHARES, personal_boost=SHARES),
    associative=st.builds(AssociativeRankingWeights, similarity=SHARES, importance=SHARES, recency=SHARES,
                          reinforcement=SHARES, emotion=SHARES),
    decay_per_hour=st.floats(0, 10),
)  # fmt: skip


def both(
    candidates: Sequence[tuple[float, MemoryRankingState, float]], weights: AllRankingProfileWeights
) -> list[NDArray[np.float32]]:
    cosines, given, shared = zip(*candidates, strict=True)
    return [
        linear_ranking_scores(near(*cosines), given, now=NOW, weights=weights).scores,
        scores_by_associative_ranking_profile(near(*cosines), given, shared, now=NOW, weights=weights).scores,
    ]


@given(CANDIDATES, ANY_WEIGHTS, st.randoms())
def test_a_score_is_a_share_and_does_not_depend_on_the_order_of_the_candidates(
    candidates: list[tuple[float, MemoryRankingState, float]], weights: AllRankingProfileWeights, random: object
) -> None:
    order = list(range(len(candidates)))
    random.shuffle(order)  # type: ignore[attr-defined]
    for scores, again in zip(both(candidates, weights), both([candidates[i] for i in order], weights), strict=True):
        assert ((scores >= 0) & (scores <= 1)).all()
        assert again.tolist() == scores[order].tolist()


@given(SHARES, SHARES, VITALS, SHARES, ANY_WEIGHTS)
def test_more_of_anything_never_makes_a_score_less(
    less: float, more: float, one: MemoryRankingState, shared: float, weights: AllRankingProfileWeights
) -> None:
    less, more = sorted((less, more))
    later = replace(one, happened_at=one.happened_at + HOUR, last_active=one.last_active + HOUR)
    assert linear_of(less, one, weights) <= linear_of(more, one, weights)
    assert linear_of(less, one, weights) <= linear_of(less, later, weights)

    def score(cosine: float = 0.5, of: MemoryRankingState = one, share: float = shared) -> float:
        return associative_of(cosine, of, share, weights)

    assert score(less) <= score(more)
    assert score(share=less) <= score(share=more)
    assert score() <= score(of=later)
    assert score(of=replace(one, importance=less)) <= score(of=replace(one, importance=more))
    assert score() <= score(of=replace(one, access_count=one.access_count + 1))


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 5)), min_size=1, max_size=8), SHARES)
def test_a_similarity_is_a_share(rows: list[tuple[float, float]], trust: float) -> None:
    found: CandidatePool = pool([cosine for cosine, _ in rows], [bm25 for _, bm25 in rows])
    values = candidate_similarities(found, dense_trust=trust)
    assert ((values >= 0) & (values <= 1)).all()
