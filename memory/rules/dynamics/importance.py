"""What a text is worth keeping, and how much of it is new to a being (spec L1, step 4)."""

from __future__ import annotations

import numpy as np

from madeleine.memory.model import Vector

NOVELTY, SALIENCE = 0.6, 0.4
MIN_IMPORTANCE = 0.3
"""Importance from which a text is kept."""


def importance(*, novelty: float, salience: float) -> float:
    """0.6 novelty + 0.4 salience; in [0, 1] as both are."""
    return NOVELTY * novelty + SALIENCE * salience


def novelty(vector: Vector, centroid: Vector | None, *, legible: float = 1.0) -> float:
    """In [0, 1]: 1 − legible × cosine to `centroid`, the unit mean of the being's memories; 1 without one.

    `legible` in [0, 1] is the share of the text that the model can read (`Embedder.coverage`): vectors of texts that it
    cannot read lie close together whatever they say, so their similarity means nothing.
    """
    if centroid is None:
        return 1.0
    return min(1.0, max(0.0, 1.0 - legible * float(np.dot(vector, centroid))))
