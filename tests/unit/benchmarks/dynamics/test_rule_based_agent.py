from __future__ import annotations

from benchmarks.dynamics.rule_based_agent import decide, same
from tests.doubles import a_memory
from tests.unit.patrol.deciding.request_fixtures import request_of


def test_repeated_memories_are_merged_into_the_newest() -> None:
    old, new = a_memory("The backup ran.", when=("2026-01-01",)), a_memory("The backup ran.", when=("2026-01-05",))
    other = a_memory("The backup failed.", when=("2026-01-03",))
    [decision] = decide([request_of("consolidate", [new, other, old])])
    assert decision.merges == [[new.id, old.id]]
    assert decision.make_dead == []


def test_a_changed_fact_is_not_merged() -> None:
    assert not same("The meeting of Ada is on Monday at nine.", "The meeting of Ada is on Friday at nine.")
    assert not same("Ada may spend 4,200 euros.", "Ada may spend 7,900 euros.")
    assert same("Ada sings in the choir of the town.", "Ada sings in the town choir.")


def test_only_dying_memories_without_a_double_are_made_dead() -> None:
    gone = a_memory("Ada yawned.", status="dying")
    alive = a_memory("Bob laughed.")
    pinned = a_memory("Chloe sang.", status="dying", pinned=True)
    pair = [a_memory("It rained.", status="dying"), a_memory("It rained.")]
    [decision] = decide([request_of("consolidate", [gone, alive, pinned, *pair])])
    assert decision.make_dead == [gone.id]
    assert [set(group) for group in decision.merges] == [{memory.id for memory in pair}]


def test_a_diary_has_three_lines_even_for_one_memory() -> None:
    [decision] = decide([request_of("diary", [a_memory("Ada yawned.")], date="2026-01-01")])
    assert len(decision.diary.splitlines()) == len(decision.think_md) == 3


def test_a_split_is_left_undecided() -> None:
    assert decide([request_of("split", [a_memory(str(n)) for n in range(12)])]) == []
