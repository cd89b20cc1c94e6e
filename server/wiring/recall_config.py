"""From settings to the configuration of recall."""

from __future__ import annotations

from pathlib import Path

from madeleine.inference.reranking import FastembedReranker
from madeleine.memory.recall.ranking import NON_INFERABLE_THEME
from madeleine.memory.recall.recall import RecallConfig
from madeleine.memory.recall.reformulation import ReformulationConfig
from madeleine.memory.rules.ranking.matching import MatchThresholds
from madeleine.memory.rules.ranking.profiles import ProfileWeights
from madeleine.server.settings.settings import Settings


def recall_config(settings: Settings) -> RecallConfig:
    return RecallConfig(
        thresholds=MatchThresholds(cosine=settings.recall_threshold),
        ranking=settings.ranking,
        profiles=ProfileWeights(associative=settings.associative_weights),
        themes=(NON_INFERABLE_THEME,) if settings.recall_non_inferable_only else (),
        min_importance=settings.recall_min_importance,
        reformulation=ReformulationConfig(
            rounds=1 if settings.recall_reformulation else 0,
            seconds=settings.recall_reformulation_seconds,
        ),
    )


def reranker_of(settings: Settings, models_dir: Path) -> FastembedReranker | None:
    """Loads nothing before its first use."""
    if not settings.reranker:
        return None
    return FastembedReranker(settings.reranker, models_dir, patience=settings.reranker_seconds)
