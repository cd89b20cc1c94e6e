"""spec P6 ❸ and ruling 2. Numbers worked by hand: e^(-1) = 0.36788, ln 10 = 2.302585."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.model import MemoryStatus
from madeleine.memory.rules.dynamics.importance import (
    MAX_DYING_IMPORTANCE,
    effective_importance,
    patrols_until_status_is_dying,
    status_from_decayed_importance,
)
from tests.contracts.ledger.ledger_values import memory
from tests.rows import for_each_row


@for_each_row(
    ("importance", "cycles", "effective"),
    [
        (1.0, 0, 1.0),
        (0.5, 0, 0.5),
        (0.0, 0, 0.0),
        (1.0, 30, 0.367879),  # e^-1
        (1.0, 60, 0.135335),  # e^-2
        (0.8, 15, 0.485225),  # 0.8 × e^-0.5 = 0.8 × 0.606531
        (0.5, 69, 0.050129),  # 0.5 × e^-2.3 = 0.5 × 0.100259
        (0.5, 70, 0.048486),  # 0.5 × e^-2.33333 = 0.5 × 0.096972
    ],
)
def test_effective_importance_is_as_worked_by_hand(importance: float, cycles: int, effective: float) -> None:
    """spec P6 ❸: importance × exp(−session_count / 30)."""
    assert effective_importance(importance, cycles) == pytest.approx(effective, abs=1e-6)


@for_each_row(
    ("importance", "last_active", "first_dying"),
    [
        (0.5, 69, 70),  # 30 × ln 10 = 69.08
        (1.0, 89, 90),  # 30 × ln 20 = 89.87
        (0.3, 53, 54),  # 30 × ln 6 = 53.75
        (0.1, 20, 21),  # 30 × ln 2 = 20.79
    ],
)
def test_a_memory_is_dying_from_the_cycle_in_which_it_falls_to_the_floor(
    importance: float, last_active: int, first_dying: int
) -> None:
    """spec P6 ❸: at or below 0.05."""

    def status(cycles: int) -> MemoryStatus:
        return status_from_decayed_importance(memory(importance=importance, session_count=cycles))

    assert (status(last_active), status(first_dying)) == ("active", "dying")


def test_a_memory_exactly_at_the_floor_is_dying() -> None:
    """spec P6 ❸: "falls at or below 0.05"."""
    assert status_from_decayed_importance(memory(importance=MAX_DYING_IMPORTANCE)) == "dying"


@for_each_row(
    ("status", "importance", "cycles", "pinned", "after"),
    [
        ("active", 0.5, 69, False, "active"),
        ("active", 0.5, 70, False, "dying"),
        ("active", 0.5, 70, True, "active"),
        ("active", 0.0, 10_000, True, "active"),
        ("dying", 0.5, 70, False, "dying"),
        ("dying", 0.5, 0, False, "active"),
        ("dying", 0.5, 69, False, "active"),
        ("dying", 0.5, 500, True, "active"),
        ("dying", 0.01, 0, False, "dying"),
        ("dead", 1.0, 0, False, "dead"),
        ("dead", 1.0, 0, True, "dead"),
        ("dead", 0.0, 500, False, "dead"),
    ],
)
def test_the_status_after_a_patrol(
    status: MemoryStatus, importance: float, cycles: int, pinned: bool, after: MemoryStatus
) -> None:
    """spec P6 ❸: pinned ones are excluded; ruling 2: a dying memory above the floor is active again."""
    clocked = memory(status=status, importance=importance, session_count=cycles, pinned=pinned)
    assert status_from_decayed_importance(clocked) == after


@given(st.floats(0, 1), st.integers(0, 1000), st.integers(0, 1000))
def test_more_cycles_never_make_a_memory_more_important(importance: float, cycles: int, more: int) -> None:
    """spec P6 ❸"""
    assert effective_importance(importance, cycles + more) <= effective_importance(importance, cycles) <= importance


@given(st.floats(0.06, 1), st.integers(0, 60), st.integers(0, 400))
def test_a_kept_memory_is_dying_when_it_fades_first_after_its_decision(
    importance: float, session_count: int, kept: int
) -> None:
    """ruling 20, ADR 84: lived patrol by patrol; while the decision stands the clock starts again."""
    count, lived = session_count, 0
    while effective_importance(importance, count) > MAX_DYING_IMPORTANCE or lived < kept:
        if effective_importance(importance, count) <= MAX_DYING_IMPORTANCE:
            count = 0
        count, lived = count + 1, lived + 1
    assert patrols_until_status_is_dying(importance, session_count, patrols_kept=kept) == lived
