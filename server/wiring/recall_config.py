"""From settings to the configuration of recall."""

from __future__ import annotations

from pathlib import Path

from madeleine.inference.reranking import FastembedReranker
from madeleine.memory.recall.recall import RecallConfig
from madeleine.memory.recall.reformulation import ReformulationConfig
from madeleine.memory.rules.ranking.inferable import NON_INFERABLE
from madeleine.memory.rules.ranking.matching import MatchThresholds
from madeleine.memory.rules.ranking.profiles import AssociativeWeights, LinearWeights, ProfileWeights
from madeleine.server.settings.settings import Settings


def recall_config(settings: Settings) -> RecallConfig:
    linear = LinearWeights(
        relevance=settings.linear_relevance,
        recency=settings.linear_recency,
        personal_boost=settings.linear_personal_boost,
        minimum=settings.linear_minimum,
    )
    associative = AssociativeWeights(
        similarity=settings.associative_similarity,
        importance=settings.associative_importance,
        recency=settings.associative_recency,
        reinforcement=settings.associative_reinforcement,
        emotion=settings.associative_emotion,
    )
    return RecallConfig(
        thresholds=MatchThresholds(cosine=settings.recall_threshold),
        ranking=settings.ranking,
        profiles=ProfileWeights(linear=linear, associative=associative, decay_per_hour=settings.recency_decay_per_hour),
        themes=(NON_INFERABLE,) if settings.recall_non_inferable_only else (),
        min_importance=settings.recall_min_importance,
        rerank=settings.reranker_candidates,
        reformulation=ReformulationConfig(
            rounds=settings.recall_reformulation_rounds if settings.recall_reformulation else 0,
            seconds=settings.recall_reformulation_seconds,
        ),
    )


def reranker_of(settings: Settings, models_dir: Path) -> FastembedReranker | None:
    """Costs nothing until it is asked."""
    if not settings.reranker:
        return None
    return FastembedReranker(settings.reranker, models_dir, patience=settings.reranker_seconds)
