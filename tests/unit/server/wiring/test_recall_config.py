"""What the settings of recall become."""

from __future__ import annotations

from pathlib import Path

from madeleine.memory.recall.recall import RecallConfig
from madeleine.memory.recall.reformulation import ReformulationConfig
from madeleine.memory.rules.ranking.matching import MatchThresholds
from madeleine.memory.rules.ranking.profiles import AssociativeWeights, LinearWeights, ProfileWeights
from madeleine.server.settings.settings import Settings, read_settings
from madeleine.server.wiring.recall_config import recall_config, reranker_of


def configured(tmp_path: Path, **given: str) -> RecallConfig:
    variables = {f"MADELEINE_{name.upper()}": value for name, value in given.items()}
    return recall_config(read_settings({"MADELEINE_DATA_DIR": str(tmp_path), **variables}))


def test_without_a_setting_it_is_the_measured_configuration(tmp_path: Path) -> None:
    assert configured(tmp_path) == RecallConfig()
    assert reranker_of(Settings(data_dir=tmp_path), tmp_path) is None


def test_every_weight_arrives_where_it_counts(tmp_path: Path) -> None:
    """ruling 9; spec O12"""
    found = configured(
        tmp_path, recall_threshold="0.4", ranking="Associative", linear_relevance="0.1", linear_recency="0.2",
        linear_personal_boost="0.3", linear_minimum="0.4", associative_similarity="0.5", associative_importance="0.6",
        associative_recency="0.7", associative_reinforcement="0.8", associative_emotion="0.9",
        recency_decay_per_hour="0.02", recall_min_importance="0.2", reranker_candidates="7",
    )  # fmt: skip
    assert found == RecallConfig(
        thresholds=MatchThresholds(cosine=0.4),
        ranking="associative",
        profiles=ProfileWeights(
            linear=LinearWeights(relevance=0.1, recency=0.2, personal_boost=0.3, minimum=0.4),
            associative=AssociativeWeights(similarity=0.5, importance=0.6, recency=0.7, reinforcement=0.8, emotion=0.9),
            decay_per_hour=0.02,
        ),
        min_importance=0.2,
        rerank=7,
    )


def test_a_filter_and_other_words_come_when_they_are_switched_on(tmp_path: Path) -> None:
    """spec O12"""
    rounds = configured(tmp_path, recall_reformulation_rounds="2", recall_reformulation_seconds="3")
    assert rounds.reformulation.rounds == 0
    found = configured(
        tmp_path, recall_non_inferable_only="true", recall_reformulation="on", recall_reformulation_rounds="2"
    )
    assert found.themes == ("non-inferable",)
    assert found.reformulation == ReformulationConfig(rounds=2, seconds=8.0)


def test_a_re_ranker_that_is_named_is_not_loaded_before_it_is_asked(tmp_path: Path) -> None:
    reranker = reranker_of(Settings(data_dir=tmp_path, reranker="nobody/knows-this"), tmp_path)
    assert reranker is not None
