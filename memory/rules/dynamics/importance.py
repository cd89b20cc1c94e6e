"""What a text is worth keeping (spec L1, step 4)."""

from __future__ import annotations

NOVELTY, SALIENCE = 0.6, 0.4
THRESHOLD = 0.3
"""Importance from which a text is kept."""


def importance(*, novelty: float, salience: float) -> float:
    """0.6 novelty + 0.4 salience; in [0, 1] as both are."""
    return NOVELTY * novelty + SALIENCE * salience
