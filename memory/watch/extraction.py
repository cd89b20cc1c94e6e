"""What is drawn from a conversation (spec T3)."""

from __future__ import annotations

from dataclasses import dataclass

from memory.model import Emotion


@dataclass(frozen=True, slots=True)
class Extracted:
    """The four dimensions of spec 002: `essence` is what is embedded, `emotions` up to three of the taxonomy, `weight`
    from 0 (noise) to 1 (critical), `lesson` what to do from now on."""

    essence: str
    emotions: tuple[Emotion, ...]
    weight: float
    lesson: str = ""
