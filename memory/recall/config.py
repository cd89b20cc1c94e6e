"""What of a recall can be configured (spec L2, O12)."""

from __future__ import annotations

from dataclasses import dataclass

from madeleine.memory.recall.reformulation import QueryReformulationConfig
from madeleine.memory.rules.ranking.blended import BlendedRankingWeights
from madeleine.memory.rules.ranking.matching import MatchThresholds
from madeleine.memory.rules.ranking.profiles import AllRankingProfileWeights, RankingProfile


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """The frozen configuration of recall; the defaults are the measured ones."""

    sparse_limit: int = 100
    dense_limit: int = 100
    """Candidates from each of the two channels. With 50 by meaning LoCoMo loses 0.35 points of nDCG@10 and 0.5 of R@10,
    BEAM 0.1 and 0.4 (ADR 110)."""
    thresholds: MatchThresholds = MatchThresholds()
    weights: BlendedRankingWeights = BlendedRankingWeights()
    ranking: RankingProfile = "blended"
    profiles: AllRankingProfileWeights = AllRankingProfileWeights()
    themes: tuple[str, ...] = ()
    """Recall is restricted to memories with all of these (spec O12, the non-inferable filter)."""
    min_importance: float = 0.0
    """Less important memories are left out (spec L2); what was stored is recallable by ruling 1, hence 0."""
    rerank: int = 20
    """Best candidates that a re-ranker scores, where there is one."""
    reformulation: QueryReformulationConfig = QueryReformulationConfig()
    newer_among_near_equals: bool = True
    """ruling 24; `benchmarks/truth`."""
