"""Importance of a memory: from novelty and salience when it is stored (spec L1, step 4), fading with the patrol cycles
since the last activation, and enough for a dead memory to come back (spec P6 ❸ ❺)."""

from __future__ import annotations

import math

import numpy as np

from madeleine.memory.model import Status, Vector

DECAY_CYCLES = 30.0
"""Patrol cycles in which importance falls to 1/e."""
MIN_LIVING_IMPORTANCE = 0.05
"""At or below this effective importance a memory is dying."""


def effective_importance(importance: float, session_count: float) -> float:
    """`importance × exp(−session_count / 30)`, in [0, 1]."""
    return importance * math.exp(-session_count / DECAY_CYCLES)


def flagged(status: Status, *, importance: float, session_count: int, pinned: bool) -> Status:
    """The status after ❸: active memories that have faded are dying, dying ones that were recalled are active
    again (ruling 2). A pinned memory never fades; a dead one stays dead."""
    if status == "dead":
        return status
    faded = not pinned and effective_importance(importance, session_count) <= MIN_LIVING_IMPORTANCE
    return "dying" if faded else "active"


def revived_session_count(*, importance: float, session_count: int, reactivation_count: int) -> int | None:
    """The session count with which a dead memory comes back in ❺, or None if it stays dead (ruling 3).

    It comes back if it was reactivated at all and `importance × exp(−(session_count / (1 + reactivations)) / 30)`
    is above the floor. The caller leaves out memories whose survivor lives.
    """
    if reactivation_count <= 0:
        return None
    if effective_importance(importance, session_count / (1 + reactivation_count)) <= MIN_LIVING_IMPORTANCE:
        return None
    return session_count // (1 + reactivation_count)


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
