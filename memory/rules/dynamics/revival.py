"""Coming back: a dead memory that was recalled since it died may live again (spec P6 ❺, ruling 3)."""

from __future__ import annotations

from madeleine.memory.rules.dynamics.decay import FLOOR, effective_importance


def revived_session_count(*, importance: float, session_count: int, reactivation_count: int) -> int | None:
    """The session count it comes back with, or None if it stays dead.

    It comes back if it was reactivated at all and `importance × exp(−(session_count / (1 + reactivations)) / 30)`
    is above the floor. The caller leaves out memories whose survivor lives.
    """
    if reactivation_count <= 0:
        return None
    if effective_importance(importance, session_count / (1 + reactivation_count)) <= FLOOR:
        return None
    return session_count // (1 + reactivation_count)
