"""The orders of the candidates besides `blended`: the profiles `rrf`, `linear`, `associative`.

    rrf          = 1 − place / n: the engine's order as it is
    linear       = (0.7 × min(similarity + 0.1, 1) + 0.3 × recency) / max(1, 0.7 + 0.3),
                   recency = exp(−0.01 × hours since it happened)                                             (spec O12)
    associative  = (0.45 × similarity + 0.20 × importance + 0.15 × recency + 0.10 × reinforcement
                   + 0.10 × share of the asked emotions) / max(1, 0.45 + 0.20 + 0.15 + 0.10 + 0.10),
                   recency = exp(−0.01 × hours since it was last stored, told again or recalled),
                   reinforcement = n / (n + 3), n the times that it was told again                 (spec T7, ruling 9)

All scores lie in [0, 1], and all but those of `rrf` are independent of the other candidates and of their order. The
numbers are defaults: the weights of spec T7, and those that the system of spec O12 has, whose text gives the formula.
Every memory is the being's own, so all have the boost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from madeleine.memory.index import CandidatePool, MemoryRankingState
from madeleine.memory.rules.ranking.score_parts import ScoredCandidates

RankingProfile = Literal["blended", "rrf", "linear", "associative"]

REINFORCEMENTS_FOR_HALF_SHARE = 3
"""Times told again that count half of what any number of times can."""
_HOUR = timedelta(hours=1)
ZeroToOneWeight = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearRankingWeights:
    """spec O12. `minimum`: candidates below it are left out; ruling 8 has decided what is a match, hence 0."""

    relevance: float = 0.7
    recency: float = 0.3
    personal_boost: float = 0.1
    minimum: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AssociativeRankingWeights:
    """ruling 9"""

    similarity: ZeroToOneWeight = 0.45
    importance: ZeroToOneWeight = 0.20
    recency: ZeroToOneWeight = 0.15
    reinforcement: ZeroToOneWeight = 0.10
    emotion: ZeroToOneWeight = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class AllRankingProfileWeights:
    linear: LinearRankingWeights = LinearRankingWeights()
    associative: AssociativeRankingWeights = AssociativeRankingWeights()
    decay_per_hour: float = 0.01
    """Decay of recency: half after 69 hours."""


def candidate_similarities(pool: CandidatePool, *, dense_trust: float) -> NDArray[np.float32]:
    """float32, (n,), in [0, 1]: the cosine, as far as the model can read the query; for the rest, and where there is no
    vector, the share of the query's words that the candidate holds."""
    cosine = np.clip(pool.cosine, 0, 1)
    trust = np.where(pool.cosine == 0, 0.0, dense_trust)
    return np.asarray(np.clip(trust * cosine + (1 - trust) * query_word_coverage_of_candidates(pool), 0, 1), np.float32)


def recency_score(age: timedelta, *, decay_per_hour: float) -> float:
    """`exp(−decay × hours)`, in [0, 1]; 1 for what is still to come."""
    return float(np.exp(-decay_per_hour * max(0.0, age / _HOUR)))


def saturating_reinforcement_share(times: int) -> float:
    """n / (n + 3), in [0, 1): each time counts less than the one before."""
    return times / (times + REINFORCEMENTS_FOR_HALF_SHARE)


def evenly_falling_scores(count: int) -> ScoredCandidates:
    """1 for the first, falling evenly, above 0 for the last."""
    return ScoredCandidates.from_score_parts({"place": 1 - np.arange(count) / max(1, count)})


def linear_ranking_scores(
    similarity: NDArray[np.float32],
    states: Sequence[MemoryRankingState],
    *,
    now: datetime,
    weights: AllRankingProfileWeights,
) -> ScoredCandidates:
    """In [0, 1], of candidates of that similarity."""
    w = weights.linear
    since = [recency_score(now - state.happened_at, decay_per_hour=weights.decay_per_hour) for state in states]
    parts = {
        "similarity": w.relevance * np.minimum(similarity + w.personal_boost, 1),
        "recency": w.recency * np.asarray(since),
    }
    return ScoredCandidates.from_score_parts(parts, greatest=max(1.0, w.relevance + w.recency))


def scores_by_associative_ranking_profile(
    similarity: NDArray[np.float32],
    states: Sequence[MemoryRankingState],
    shared_emotions: Sequence[float] | NDArray[np.float64],
    *,
    now: datetime,
    weights: AllRankingProfileWeights,
) -> ScoredCandidates:
    """In [0, 1]. `shared_emotions`: of each candidate the share of the asked labels that it has. Weights that add up
    to more than 1 are scaled; those of less are taken as they are."""
    w = weights.associative
    since = [recency_score(now - state.last_active, decay_per_hour=weights.decay_per_hour) for state in states]
    parts = {
        "similarity": w.similarity * np.asarray(similarity, np.float64),
        "importance": w.importance * np.asarray([state.importance for state in states]),
        "recency": w.recency * np.asarray(since),
        "reinforcement": w.reinforcement
        * np.asarray([saturating_reinforcement_share(state.access_count) for state in states]),
        "emotions": w.emotion * np.asarray(shared_emotions),
    }
    greatest = w.similarity + w.importance + w.recency + w.reinforcement + w.emotion
    return ScoredCandidates.from_score_parts(parts, greatest=max(1.0, greatest))


def query_word_coverage_of_candidates(pool: CandidatePool) -> NDArray[np.float32]:
    """float32, (n,): the share in [0, 1] of the query's IDF that each candidate holds; 0 for a query without terms."""
    total = float(pool.idf.sum())
    if total <= 0:
        return np.zeros(len(pool.ids), np.float32)
    return np.asarray(((pool.weights > 0) @ pool.idf) / total, np.float32)
