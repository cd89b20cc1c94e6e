"""spec P6 ❹, P4; rulings 3 and 11: what a consolidation makes of memories. Worked by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from madeleine.memory.model import DatedAction, Memory, MemoryId, TextOrDatedAction
from madeleine.memory.rules.dynamics.importance import status_from_decayed_importance
from madeleine.patrol.deciding.answers import CurrentOfferedMemories
from madeleine.patrol.deciding.consolidate import ConsolidationAnswer, MemoryMerge, memories_changed_by_consolidation
from madeleine.patrol.deciding.merged import merged_timeline, survivor_after_merge
from tests.doubles import NOW, a_memory
from tests.rows import for_each_row
from tests.unit.patrol.deciding.request_fixtures import HOME, request_of

TODAY = NOW.date().isoformat()


def memory(name: str, when: tuple[TextOrDatedAction, ...] = (), **fields: Any) -> Memory:
    return a_memory(f"scene {name}", id=MemoryId(name), when=when, **{"cluster_id": HOME, **fields})


def after(answer: ConsolidationAnswer, *memories: Memory) -> dict[str, Memory]:
    by_id = {one.id: one for one in memories}
    return {
        request.id: request
        for request in memories_changed_by_consolidation(
            answer, CurrentOfferedMemories(request_of("consolidate", memories), by_id), NOW
        )
    }


A, B, C = MemoryId("A"), MemoryId("B"), MemoryId("C")


def test_the_survivor_grows_and_the_absorbed_die() -> None:
    """spec P6 ❹, ruling 3: the absorbed pass their reactivations on and start again at 0."""
    result = after(
        ConsolidationAnswer((MemoryMerge(A, (B, C)),)),
        memory("A", importance=0.5, session_count=9, reactivation_count=1, lesson="Ask first."),
        memory("B", importance=0.9, session_count=4, reactivation_count=2, category="procedural", lesson="Knock."),
        memory("C", importance=0.1, session_count=20, reactivation_count=5, status="dying", fresh=False),
    )
    survivor, b, c = result["A"], result["B"], result["C"]
    assert survivor.importance == pytest.approx(0.95)
    assert (survivor.session_count, survivor.reactivation_count, survivor.status) == (4, 8, "active")
    assert (survivor.fresh, survivor.absorbed_into) == (False, None)
    assert (survivor.category, survivor.lesson) == ("procedural", "Ask first. / Knock.")  # ruling 20
    for one in (b, c):
        assert (one.status, one.absorbed_into, one.reactivation_count, one.fresh) == ("dead", A, 0, False)
    assert (b.importance, b.session_count, b.cluster_id, b.scene) == (0.9, 4, HOME, memory("B").scene)


@for_each_row(("importance", "then"), [(0.5, 0.55), (0.97, 1.0), (1.0, 1.0), (0.0, 0.55)])
def test_importance_grows_by_a_twentieth_a_merge_and_never_above_one(importance: float, then: float) -> None:
    """spec P6 ❹: "increases by 0.05 (capped at 1.0)"."""
    absorbed = [memory("B"), memory("C")]
    assert survivor_after_merge(memory("A", importance=importance), absorbed).importance == pytest.approx(then)


@for_each_row(
    ("counts", "importance", "status"),
    [
        ((70, 0), 0.5, "active"),  # as lately activated as the other
        ((70, 80), 0.5, "active"),  # 0.55 × exp(−70 / 30) = 0.0533
        ((73, 80), 0.5, "dying"),  # 0.55 × exp(−73 / 30) = 0.0483
    ],
)
def test_a_dying_survivor_lives_if_what_it_became_has_not_faded(
    counts: tuple[int, int], importance: float, status: str
) -> None:
    """spec P6 ❸ ❹"""
    dying = memory("A", importance=importance, session_count=counts[0], status="dying")
    assert survivor_after_merge(dying, [memory("B", session_count=counts[1])]).status == status


def test_a_memory_made_dead_starts_its_reactivations_again() -> None:
    """spec P6 ❹, ruling 3"""
    result = after(ConsolidationAnswer((), (A,)), memory("A", status="dying", session_count=70, reactivation_count=3))
    assert (result["A"].status, result["A"].reactivation_count, result["A"].absorbed_into) == ("dead", 0, None)
    assert (result["A"].fresh, result["A"].session_count) == (False, 70)


def test_a_kept_memory_begins_again() -> None:
    """ruling 20: however little it weighs, it is not asked about again for a month."""
    result = after(ConsolidationAnswer(keep=(A,)), memory("A", status="dying", session_count=70, importance=0.01))
    kept = result["A"]
    assert (kept.status, kept.session_count) == ("active", 0)
    assert status_from_decayed_importance(replace(kept, session_count=30)) == "active"


@for_each_row(
    ("age", "kept_for"), [(timedelta(days=33), timedelta(days=198)), (timedelta(days=1_000), timedelta(days=365))]
)
def test_nobody_is_asked_about_a_kept_memory_for_six_times_its_age(age: timedelta, kept_for: timedelta) -> None:
    """ruling 20"""
    old = memory("A", status="dying", session_count=70)
    kept = after(ConsolidationAnswer(keep=(A,)), replace(old, created_at=NOW - age))["A"]
    assert kept.kept_until == NOW + kept_for


def test_other_offered_fresh_memories_are_fresh_no_longer() -> None:
    """spec P6 ❹: "Fresh nodes that are not merged have their `fresh` flag reset"."""
    a, b, c = memory("A"), memory("B", fresh=False), memory("C")
    elsewhere = replace(c, cluster_id=None)
    by_id = {A: a, B: b, C: elsewhere}
    current = CurrentOfferedMemories(request_of("consolidate", [a, b, c]), by_id)
    assert memories_changed_by_consolidation(ConsolidationAnswer(), current, NOW) == [replace(a, fresh=False)]


# --- the timeline -----------------------------------------------------------------------------------------------


@for_each_row(
    ("own", "others", "then"),
    [
        # the other's action, on its date
        (("2026-02-01",), [("B", ("2026-01-15",))], ("2026-02-01", DatedAction("2026-01-15", "scene B"))),
        # its time of day is not kept
        (("2026-02-01",), [("B", ("2026-01-15T20:00",))], ("2026-02-01", DatedAction("2026-01-15", "scene B"))),
        # without a date: the day it happened
        (("2026-02-01",), [("B", ())], ("2026-02-01", DatedAction(TODAY, "scene B"))),
        # own entries stay first and as they are; the others by date
        (
            ("2026-02-01T10:00", DatedAction("2025-12-24", "tree")),
            [("B", ("2026-01-15",)), ("C", ("2025-11-02",))],
            (
                "2026-02-01T10:00", DatedAction("2025-12-24", "tree"),
                DatedAction("2025-11-02", "scene C"), DatedAction("2026-01-15", "scene B"),
            ),
        ),
        # what the other took over before is carried too
        (
            ("2026-02-01",),
            [("B", ("2026-01-15", DatedAction("2025-01-01", "older")))],
            ("2026-02-01", DatedAction("2025-01-01", "older"), DatedAction("2026-01-15", "scene B")),
        ),
        # nothing twice
        (
            ("2026-02-01", DatedAction("2025-01-01", "older")),
            [("B", ("2026-01-15", DatedAction("2025-01-01", "older"))), ("B", ("2026-01-15",))],
            ("2026-02-01", DatedAction("2025-01-01", "older"), DatedAction("2026-01-15", "scene B")),
        ),
        # what the survivor says itself of that day adds nothing, and then nothing changes
        (("2026-02-01",), [("A", ("2026-02-01",))], ("2026-02-01",)),
        ((), [("A", ())], ()),
        # what is not a date comes last
        (
            ("2026-02-01",),
            [("B", ("Day7",)), ("C", ("2026-03-01",))],
            ("2026-02-01", DatedAction("2026-03-01", "scene C"), DatedAction("Day7", "scene B")),
        ),
        # the first entry is read as the memory's date, so its own day is written down
        ((), [("B", ("2026-01-15",))], (TODAY, DatedAction("2026-01-15", "scene B"))),
    ],
)  # fmt: skip
def test_the_timeline_takes_over_the_histories_of_the_absorbed(
    own: tuple[TextOrDatedAction, ...],
    others: list[tuple[str, tuple[TextOrDatedAction, ...]]],
    then: tuple[TextOrDatedAction, ...],
) -> None:
    """spec P4: "so that the history of absorbed nodes is preserved rather than discarded"."""
    absorbed = [memory(name, when) for name, when in others]
    assert merged_timeline(memory("A", own), absorbed) == then


def test_a_long_action_is_cut_in_the_timeline() -> None:
    long = a_memory("x" * 3_000, when=("2026-01-15",))
    (_, item) = merged_timeline(memory("A", ("2026-02-01",)), [long])
    assert isinstance(item, DatedAction)
    assert len(item.action) == 2_000


def test_a_survivor_happened_when_it_happened() -> None:
    survivor = memory("A", ("2026-02-01",))
    assert survivor_after_merge(survivor, [memory("B", ("2020-01-01",))]).happened_at == survivor.happened_at
