"""Feelings as callers tell them: labels and axes, odd spelling forgiven, unknown ones named and nothing else lost (spec
P2, T8; ruling 21)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema

from madeleine.memory.model import Emotion
from madeleine.memory.rules.feelings import (
    EMOTION_AXES,
    EMOTION_LABELS,
    MAX_EMOTION_LABELS,
    closest_emotion_name,
    emotion_axis_from_approximate_name,
)
from madeleine.tools.arguments import ToolArguments, add_notice_to_validation_context, excerpt_for_error


def _keep_known_emotion_labels(told: Any, info: ValidationInfo) -> Any:
    if not isinstance(told, (list, str)):
        return told
    listed = [told] if isinstance(told, str) else told
    labels = {position: closest_emotion_name(label, EMOTION_LABELS) for position, label in enumerate(listed)}
    if unknown := [
        excerpt_for_error(str(listed[position]))[:40] for position, label in labels.items() if label is None
    ]:
        known = ", ".join(EMOTION_LABELS)
        add_notice_to_validation_context(
            info, f"Left out, as no known emotions: {', '.join(unknown[:5])}. Known are {known}."
        )
    kept = list(dict.fromkeys(filter(None, labels.values())))
    if len(kept) > MAX_EMOTION_LABELS:
        add_notice_to_validation_context(
            info, f"Left out, as a memory has at most {MAX_EMOTION_LABELS}: {', '.join(kept[MAX_EMOTION_LABELS:])}."
        )
    return kept[:MAX_EMOTION_LABELS]


EmotionLabelsArgument = Annotated[
    list[Emotion], Field(max_length=MAX_EMOTION_LABELS), BeforeValidator(_keep_known_emotion_labels)
]

BRIEF_EMOTION_LABELS_SCHEMA = WithJsonSchema(
    {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": MAX_EMOTION_LABELS}
)
"""For a second tool: the list of labels is long, and part of every prompt once."""


class EmotionAxes(ToolArguments):
    valence: Annotated[float, Field(ge=-1, le=1)] = 0.0
    arousal: Annotated[float, Field(ge=-1, le=1)] = 0.0
    dominance: Annotated[float, Field(ge=-1, le=1)] = 0.0
    safety: Annotated[float, Field(ge=-1, le=1)] = 0.0
    novelty: Annotated[float, Field(ge=-1, le=1)] = 0.0
    trust: Annotated[float, Field(ge=-1, le=1)] = 0.0


def _keep_known_emotion_axes(told: Any, info: ValidationInfo) -> Any:
    if not isinstance(told, dict):
        return told
    axes: dict[str, float] = {}
    unknown: list[str] = []
    for name, value in told.items():
        axis = emotion_axis_from_approximate_name(name)
        usable = isinstance(value, (int, float)) and not isinstance(value, bool) and -1 <= value <= 1
        if axis is None or not usable:
            unknown.append(excerpt_for_error(str(name))[:40])
        else:
            axes[axis] = float(value)
    if unknown:
        known = ", ".join(EMOTION_AXES)
        add_notice_to_validation_context(
            info, f"Left out of emotion_vector: {', '.join(unknown[:6])}. Axes are {known}, each from -1 to 1."
        )
    return axes


_EMOTION_AXES_SCHEMA = {"type": "object", "additionalProperties": {"type": "number", "minimum": -1, "maximum": 1}}
"""The axes are named by the description, which is shorter than six properties."""
EmotionVectorArgument = Annotated[
    EmotionAxes, BeforeValidator(_keep_known_emotion_axes), WithJsonSchema(_EMOTION_AXES_SCHEMA)
]
