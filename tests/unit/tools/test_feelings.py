"""Feelings as callers tell them (ruling 21): what is meant is read, what is unknown is named, nothing else is lost."""

from __future__ import annotations

from typing import Any

from madeleine.tools.arguments import validate_tool_arguments
from madeleine.tools.writing import StoreArguments
from tests.rows import for_each_row


def told(**feelings: Any) -> tuple[StoreArguments, str]:
    notices: list[str] = []
    given = {"text": "We shared ramen.", **feelings}
    return validate_tool_arguments(StoreArguments, given, max_text_chars=100, notices=notices), " ".join(notices)


@for_each_row(
    ("labels", "read"),
    [
        (["Joy", " RELIEF "], ["joy", "relief"]),
        (["joyful", "sad", "angry"], ["joy", "sadness", "anger"]),
        (["surprize", "excitment"], ["surprise", "excitement"]),
        ("pride", ["pride"]),
        (["joy", "Joy"], ["joy"]),
    ],
)
def test_an_odd_spelling_of_a_label_is_forgiven(labels: Any, read: list[str]) -> None:
    arguments, notice = told(emotions=labels)
    assert (arguments.emotions, notice) == (read, "")


def test_unknown_and_supernumerary_labels_are_named_and_the_others_kept() -> None:
    arguments, notice = told(emotions=["envy", "hunger", "joy", 7, "fear", "love", "pride"])
    assert arguments.emotions == ["joy", "fear", "love"]
    assert "no known emotions: envy, hunger, 7. Known are admiration, amusement" in notice
    assert "at most 3: pride" in notice


def test_axes_are_read_by_name_or_letter_and_unknown_ones_are_named() -> None:
    arguments, notice = told(emotion_vector={"Valence": 0.8, "a": -1, "trust": 3, "mood": 0.1})
    assert arguments.emotion_vector is not None
    assert arguments.emotion_vector.model_dump() == {
        "valence": 0.8, "arousal": -1.0, "dominance": 0.0, "safety": 0.0, "novelty": 0.0, "trust": 0.0
    }  # fmt: skip
    assert notice.startswith("Left out of emotion_vector: trust, mood. Axes are valence,")
