"""What the settings of recall become."""

from __future__ import annotations

from pathlib import Path

from madeleine.memory.recall.config import RecallConfig
from madeleine.memory.recall.reformulation import QueryReformulationConfig
from madeleine.memory.rules.ranking.matching import MatchThresholds
from madeleine.memory.rules.ranking.profiles import AllRankingProfileWeights, AssociativeRankingWeights
from madeleine.server.settings.settings import Settings, read_settings
from madeleine.server.wiring.open_memory import recall_config_from_settings, reranker_from_settings


def configured(tmp_path: Path, **given: str) -> RecallConfig:
    variables = {f"MADELEINE_{name.upper()}": value for name, value in given.items()}
    return recall_config_from_settings(read_settings({"MADELEINE_DATA_DIR": str(tmp_path), **variables}))


def test_without_a_setting_it_is_the_measured_configuration(tmp_path: Path) -> None:
    assert configured(tmp_path) == RecallConfig()
    assert reranker_from_settings(Settings(data_dir=tmp_path), tmp_path) is None


def test_every_setting_of_recall_arrives_where_it_counts(tmp_path: Path) -> None:
    """ruling 9"""
    weights = '{"similarity": 0.5, "importance": 0.6, "recency": 0.7, "emotion": 0.9}'
    config = configured(
        tmp_path,
        recall_threshold="0.4",
        ranking="Associative",
        associative_weights=weights,
        recall_min_importance="0.2",
    )
    associative = AssociativeRankingWeights(
        similarity=0.5, importance=0.6, recency=0.7, reinforcement=0.10, emotion=0.9
    )
    assert config == RecallConfig(
        thresholds=MatchThresholds(likeness=0.4),
        ranking="associative",
        profiles=AllRankingProfileWeights(associative=associative),
        min_importance=0.2,
    )


def test_a_filter_and_reformulation_run_when_they_are_switched_on(tmp_path: Path) -> None:
    """spec O12"""
    assert configured(tmp_path, recall_reformulation_seconds="3").reformulation.max_rounds == 0
    config = configured(tmp_path, recall_non_inferable_only="true", recall_reformulation="on")
    assert config.themes == ("non-inferable",)
    assert config.reformulation == QueryReformulationConfig(max_rounds=1, seconds=8.0)


def test_a_re_ranker_that_is_named_is_not_loaded_before_it_is_asked(tmp_path: Path) -> None:
    reranker = reranker_from_settings(Settings(data_dir=tmp_path, reranker="nobody/knows-this"), tmp_path)
    assert reranker is not None
