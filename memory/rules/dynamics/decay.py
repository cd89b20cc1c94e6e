"""Forgetting: importance fades with the patrol cycles since the last activation (spec P6 ❸)."""

from __future__ import annotations

import math

from madeleine.memory.model import Status

CYCLES = 30.0
"""Patrol cycles in which importance falls to 1/e."""
FLOOR = 0.05
"""At or below this effective importance a memory is dying."""


def effective_importance(importance: float, session_count: float) -> float:
    """`importance × exp(−session_count / 30)`, in [0, 1]."""
    return importance * math.exp(-session_count / CYCLES)


def flagged(status: Status, *, importance: float, session_count: int, pinned: bool) -> Status:
    """The status after ❸: active memories that have faded are dying, dying ones that were recalled are active
    again (ruling 2). A pinned memory never fades; a dead one is not touched."""
    if status == "dead":
        return status
    faded = not pinned and effective_importance(importance, session_count) <= FLOOR
    return "dying" if faded else "active"
