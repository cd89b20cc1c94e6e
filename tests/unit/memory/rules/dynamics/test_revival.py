"""spec P6 ❺, ruling 3."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.rules.dynamics.importance import (
    MAX_DYING_IMPORTANCE,
    effective_importance,
    session_count_if_revived,
)
from tests.rows import for_each_row


@pytest.mark.parametrize("importance", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("cycles", [0, 1, 90])
def test_a_dead_memory_that_nobody_recalled_stays_dead(importance: float, cycles: int) -> None:
    """ruling 3: only if reactivation_count > 0, or ❺ would undo ❹ in the same patrol."""
    assert session_count_if_revived(importance=importance, session_count=cycles, reactivation_count=0) is None


@for_each_row(
    ("importance", "cycles", "reactivations", "comes_back_with"),
    [
        (0.5, 70, 1, 35),  # 0.5 × e^(-35/30) = 0.1557
        (0.5, 70, 2, 23),  # 70 / 3 = 23.3; 0.5 × e^(-0.7778) = 0.2297
        (0.5, 138, 1, 69),  # 0.5 × e^-2.3 = 0.0501
        (0.5, 139, 1, None),  # 69.5 / 30 = 2.3167; 0.5 × 0.0986 = 0.0493
        (0.5, 140, 1, None),  # 0.5 × e^-2.3333 = 0.0485
        (0.5, 140, 2, 46),  # 46.7 / 30 = 1.5556; 0.5 × 0.2111 = 0.1055
        (0.1, 41, 1, 20),  # 20.5 / 30 = 0.6833; 0.1 × 0.5049 = 0.0505
        (0.1, 42, 1, None),  # 21 / 30 = 0.7; 0.1 × 0.4966 = 0.0497
        (0.05, 0, 9, None),  # exactly at the floor, which is not above it
        (0.04, 0, 100, None),
        (1.0, 0, 1, 0),
    ],
)
def test_a_recalled_dead_memory_comes_back_as_worked_by_hand(
    importance: float, cycles: int, reactivations: int, comes_back_with: int | None
) -> None:
    """ruling 3: importance × exp(−(session_count / (1 + reactivations)) / 30) > 0.05, then session_count // (1 + r)."""
    session_count = session_count_if_revived(
        importance=importance, session_count=cycles, reactivation_count=reactivations
    )
    assert session_count == comes_back_with


@given(st.floats(0, 1), st.integers(0, 500), st.integers(1, 20))
def test_a_memory_that_came_back_is_not_dying_in_the_same_cycle(
    importance: float, cycles: int, reactivations: int
) -> None:
    """ruling 3: what it comes back with is at least as young as what it was judged by."""
    session_count = session_count_if_revived(
        importance=importance, session_count=cycles, reactivation_count=reactivations
    )
    assert session_count is None or effective_importance(importance, session_count) > MAX_DYING_IMPORTANCE


@given(st.floats(0, 1), st.integers(0, 500), st.integers(1, 20))
def test_one_more_recall_never_keeps_a_memory_dead(importance: float, cycles: int, reactivations: int) -> None:
    """spec P6 ❺: "can be satisfied after `reactivation_count` is incremented"."""
    once = session_count_if_revived(importance=importance, session_count=cycles, reactivation_count=reactivations)
    more = session_count_if_revived(importance=importance, session_count=cycles, reactivation_count=reactivations + 1)
    assert once is None or (more is not None and more <= once)
