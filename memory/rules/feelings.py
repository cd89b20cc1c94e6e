"""Feelings as labels and as axes, two views of one (spec P2, T7, T8; ruling 21).

`feelings.toml` gives each label a vector: valence, arousal and dominance as people rated the words, safety, novelty and
trust as we chose them.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np

from madeleine.memory.model import Emotion, EmotionSummary, EmotionVector, Memory

EMOTION_LABELS: tuple[Emotion, ...] = get_args(Emotion)
EMOTION_AXES: tuple[str, ...] = tuple(field.name for field in fields(EmotionVector))
MAX_EMOTION_LABELS = 3
"""Labels of one memory (spec T3), and of a mood."""
MIN_EMOTION_ABBREVIATION_CHARS = 3
MIN_EMOTION_SPELLING_LIKENESS = 0.75
"""Of `difflib`: reads "angry" as anger and "exited" as excitement; "hunger", "envy" and "hope" are like no label."""


def closest_emotion_name(told: object, names: Sequence[str]) -> str | None:
    """The name that is meant: in whatever case, another form of the word, or misspelt a little; None for no name."""
    word = str(told).strip().casefold()
    if word in names:
        return word
    if len(word) < MIN_EMOTION_ABBREVIATION_CHARS:
        return None
    related = [name for name in names if name.startswith(word) or word.startswith(name)]
    if len(related) == 1:
        return related[0]
    return next(iter(get_close_matches(word, names, n=1, cutoff=MIN_EMOTION_SPELLING_LIKENESS)), None)


def emotion_axis_from_approximate_name(told: object) -> str | None:
    """By its name, as `closest_emotion_name` has it, or by its first letter."""
    letter = str(told).strip().casefold()
    return next((axis for axis in EMOTION_AXES if letter == axis[0]), closest_emotion_name(told, EMOTION_AXES))


@cache
def _vector_by_emotion_label() -> Mapping[str, EmotionVector]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return {
        label: EmotionVector(*_ratings_scaled_from_1_to_9(table["rated"][label]), *table["chosen"][label])
        for label in EMOTION_LABELS
    }


def _ratings_scaled_from_1_to_9(ratings: Sequence[float]) -> Iterable[float]:
    """Means on a scale from 1 to 9 to [-1, 1]."""
    return (round((rating - 5) / 4, 2) for rating in ratings)


def mean_vector_of_emotions(labels: Collection[str]) -> EmotionVector | None:
    """Their mean; None of none."""
    return _mean_emotion_vector([_vector_by_emotion_label()[label] for label in labels])


def _mean_emotion_vector(vectors: Sequence[EmotionVector]) -> EmotionVector | None:
    if not vectors:
        return None
    return EmotionVector(*(round(float(axis), 3) for axis in np.mean([astuple(one) for one in vectors], axis=0)))


def emotion_vector_of_memory(memory: Memory) -> EmotionVector | None:
    """As it was told, else that of its labels; None if no feeling is known."""
    return memory.emotion or mean_vector_of_emotions(memory.emotions)


def similarity_of_feelings(first: EmotionVector, second: EmotionVector) -> float:
    """In [0, 1]: the cosine of the two, 0 where they are opposed or one of them is without feeling."""
    a, b = np.array(astuple(first)), np.array(astuple(second))
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return max(0.0, float(a @ b) / size) if size else 0.0


def mood_of_feelings(feelings: Iterable[tuple[Sequence[Emotion], EmotionVector | None]]) -> EmotionSummary | None:
    """Of the labels and the told vector of each memory; None if none has a feeling."""
    labels: Counter[Emotion] = Counter()
    vectors = []
    for emotions, told in feelings:
        labels.update(emotions)
        if vector := told or mean_vector_of_emotions(emotions):
            vectors.append(vector)
    mean = _mean_emotion_vector(vectors)
    most = sorted(labels, key=lambda label: (-labels[label], EMOTION_LABELS.index(label)))
    return EmotionSummary(tuple(most[:MAX_EMOTION_LABELS]), mean) if mean else None
