"""spec L1, step 5: a procedural memory is kept in the key-value table too, in step with the memory."""

from __future__ import annotations

from tests.doubles import ADA, BOB
from tests.household import Household, rows

TEA = "I prefer green tea."


def profile(home: Household) -> list[tuple[object, ...]]:
    return rows(home.path, "SELECT being_id, kind, name, value, enabled, memory_id FROM profile ORDER BY value")


async def test_only_a_procedural_memory_is_a_preference(home: Household) -> None:
    [tea] = await home.store(TEA, category="procedural")
    await home.store("We had tea.")
    assert profile(home) == [("ada", "preferences", tea.id, TEA, 1, tea.id)]


async def test_a_preference_told_again_is_there_once(home: Household) -> None:
    await home.store(TEA, category="procedural")
    await home.store(TEA, category="procedural")
    assert len(profile(home)) == 1


async def test_it_follows_the_memory_s_text(home: Household) -> None:
    [tea] = await home.store(TEA, category="procedural")
    [theirs] = await home.store(TEA, category="procedural", scope=BOB)
    await home.correct(tea.id, text="I prefer black tea.")
    await home.correct(tea.id, importance=0.9)
    assert [row[3] for row in profile(home)] == ["I prefer black tea.", TEA]
    assert profile(home)[1][5] == theirs.id


async def test_it_goes_with_the_memory(home: Household) -> None:
    [tea] = await home.store(TEA, category="procedural")
    await home.store(TEA, category="procedural", scope=BOB)
    await home.ledger.erasure.forget(ADA, [tea.id], at=home.clock())
    assert [row[0] for row in profile(home)] == ["bob"]


async def test_one_that_a_patrol_has_made_of_a_note_goes_when_that_is_undone(home: Household) -> None:
    await home.note({"action": TEA, "category": "procedural"})
    report = await home.run_patrol(steps=["assign"])
    assert [row[3] for row in profile(home)] == [TEA]
    await home.undo(report.run_id)
    assert profile(home) == []
