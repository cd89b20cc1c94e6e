"""How much of a text is new to a being (spec L1, step 4)."""

from __future__ import annotations

import numpy as np

from madeleine.memory.model import Vector


def novelty(vector: Vector, centroid: Vector | None, *, legible: float = 1.0) -> float:
    """In [0, 1]: 1 − legible × cosine to `centroid`, the unit mean of the being's memories; 1 while there is none.

    `legible` in [0, 1] is the share of the text that the model can read (`Embedder.coverage`): vectors of what it
    cannot read lie close together whatever they say, and a likeness among them tells nothing.
    """
    if centroid is None:
        return 1.0
    return min(1.0, max(0.0, 1.0 - legible * float(np.dot(vector, centroid))))
