"""Feelings as labels and as axes are two views of one (spec P2, T7; ruling 21)."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from madeleine.memory.index import MemoryRankingFeatures
from madeleine.memory.model import Emotion, EmotionVector
from madeleine.memory.rules.feelings import (
    EMOTION_LABELS,
    mean_vector_of_emotions,
    mood_of_feelings,
    similarity_of_feelings,
)
from madeleine.memory.rules.ranking.blended import matching_emotion_shares
from tests.rows import for_each_row


def vector(label: Emotion) -> EmotionVector:
    found = mean_vector_of_emotions([label])
    assert found
    return found


def candidate(*emotions: Emotion, told: EmotionVector | None = None) -> MemoryRankingFeatures:
    return MemoryRankingFeatures("", 0, (), emotions, 0, 0, emotion=told)


def test_every_label_has_a_vector_of_its_own() -> None:
    vectors = [astuple(vector(label)) for label in EMOTION_LABELS]
    assert len(set(vectors)) == len(EMOTION_LABELS) == 27
    assert np.abs(vectors).max() <= 1


@for_each_row(
    ("axis", "more", "less"),
    [
        ("valence", "joy", "sadness"),
        ("valence", "love", "anger"),
        ("arousal", "excitement", "sadness"),
        ("dominance", "pride", "fear"),
        ("safety", "relief", "fear"),
        ("novelty", "surprise", "approval"),
        ("trust", "gratitude", "disappointment"),
    ],
)
def test_the_axes_tell_apart_what_they_are_for(axis: str, more: Emotion, less: Emotion) -> None:
    assert getattr(vector(more), axis) > getattr(vector(less), axis)


def test_several_labels_have_their_mean_and_none_has_none() -> None:
    both = mean_vector_of_emotions(["joy", "sadness"])
    assert both
    assert both.valence == pytest.approx((vector("joy").valence + vector("sadness").valence) / 2, abs=0.001)
    assert mean_vector_of_emotions([]) is None


def test_like_feelings_are_near_and_opposite_ones_not_at_all() -> None:
    assert similarity_of_feelings(vector("joy"), vector("joy")) == pytest.approx(1)
    assert similarity_of_feelings(vector("joy"), vector("love")) > similarity_of_feelings(vector("joy"), vector("fear"))
    assert similarity_of_feelings(vector("gratitude"), vector("disgust")) == 0
    assert similarity_of_feelings(vector("joy"), EmotionVector(0, 0, 0, 0, 0, 0)) == 0


def test_a_feeling_told_by_axes_alone_counts_by_its_nearness_and_labels_by_their_share() -> None:
    """ruling 9, 21"""
    features = [
        candidate("joy", told=vector("fear")),
        candidate("pride"),
        candidate(told=vector("joy")),
        candidate(told=vector("sadness")),
        candidate(),
    ]
    labelled, other, near, far, without = matching_emotion_shares(features, frozenset({"joy", "love"}))
    assert (labelled, other, without) == (0.5, 0, 0)
    assert near > 0.8
    assert far < 0.3
    assert not matching_emotion_shares(features, frozenset()).any()


def test_a_mood_has_the_most_frequent_labels_and_the_mean_of_all() -> None:
    told = EmotionVector(-1, 0, 0, 0, 0, 0)
    mood = mood_of_feelings(
        [(("joy",), None), (("love", "joy"), None), (("fear", "pride"), None), ((), told), ((), None)]
    )
    assert mood
    assert mood.emotions[0] == "joy"
    assert len(mood.emotions) == 3
    assert mood.vector.valence < vector("joy").valence
    assert mood_of_feelings([((), None)]) is None
