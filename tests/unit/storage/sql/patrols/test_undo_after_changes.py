"""Undoing a patrol after recalls, corrections, stores and other patrols (ruling 11)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from madeleine.memory.language_model import Prompt
from tests.doubles import ADA, BOB
from tests.household import Household, ScriptedModel, rows
from tests.unit.storage.sql.patrols.tidying import everything, lived, numbers, soup, tidying

# --- what came between ------------------------------------------------------------------------------------------


async def test_recalls_since_the_run_are_counted_and_keep_the_clock_at_0(home: Household) -> None:
    """ruling 2"""
    memories = await lived(home)
    before = {one.id: one for one in await home.all()}
    report = await everything(home)
    await home.recall(*before, times=3)
    await home.undo(report.run_id)
    for one in await home.all():
        was = before[one.id]
        assert (one.status, one.cluster_id) == (was.status, was.cluster_id)
        assert one.reactivation_count == was.reactivation_count + 3
        assert one.session_count == (was.session_count if was.status == "dead" else 0)
    assert memories["dead"].id in before


async def test_a_dead_memory_that_came_back_was_recalled_and_is_dead_again_has_the_clock_it_had(
    home: Household,
) -> None:
    """ruling 3. Its clock stood at where it was rewound to, after the moment at which it had stopped: −3 cycles."""
    [one] = await home.store("Old Tom whistled", importance=0.0501)
    await home.run_patrol(tidying(), steps=["assign", "age", "flag", "consolidate"])
    dead = await home.now(one)
    assert (dead.status, dead.session_count) == ("dead", 1)
    for _ in range(3):
        await home.run_patrol(steps=["age"])
    await home.recall(one.id, times=20)
    report = await home.run_patrol(steps=["revive"])
    assert (await home.now(one)).status == "active"
    await home.recall(one.id)
    await home.undo(report.run_id)
    now = await home.now(one)
    assert (now.status, now.session_count, now.reactivation_count) == ("dead", 1, 21)


async def test_a_dying_survivor_that_was_recalled_since_has_its_clock_at_0(home: Household) -> None:
    soups = await home.store(*(soup(n) for n in (1, 2, 3)), importance=0.0501)
    await home.run_patrol(steps=["assign", "age", "flag"])
    assert {one.status for one in await home.all()} == {"dying"}
    await home.run_patrol(steps=["age"])
    report = await home.run_patrol(tidying(), steps=["consolidate"])
    assert (await home.now(soups[0])).status == "active"
    await home.recall(soups[0].id)
    await home.undo(report.run_id)
    assert ((await home.now(soups[0])).status, (await home.now(soups[0])).session_count) == ("dying", 0)


async def test_a_tick_that_later_ones_stand_on_is_kept_and_counted_as_kept(home: Household) -> None:
    """It was taken back, and what had been recalled since was a cycle off: by how many, nobody could tell."""
    recalled, other = await home.store("Ann sang", "Ben slept")
    older = await home.run_patrol(steps=["age"])
    await home.recall(recalled.id)
    later = await home.run_patrol(steps=["age"])
    undone = await home.undo(older.run_id)
    assert undone.counts == {"kept": 1}
    assert [(await home.now(one)).session_count for one in (recalled, other)] == [1, 2]
    undone = await home.undo(later.run_id)
    assert undone.counts == {"clock": 1}
    assert [(await home.now(one)).session_count for one in (recalled, other)] == [0, 1]


async def test_a_tick_is_taken_back_when_the_later_ones_were_undone_before(home: Household) -> None:
    await home.store("Ann sang")
    older, later = await home.run_patrol(steps=["age"]), await home.run_patrol(steps=["age"])
    await home.undo(later.run_id)
    assert (await home.undo(older.run_id)).counts == {"clock": 1}
    assert {one.session_count for one in await home.all()} == {0}


async def test_another_beings_tick_is_nothing_that_one_stands_on(home: Household) -> None:
    """spec P1"""
    await home.store("Ann sang")
    await home.store("Ben sang", scope=BOB)
    ours = await home.run_patrol(steps=["age"])
    await home.run_patrol(steps=["age"], scope=BOB)
    assert (await home.undo(ours.run_id)).counts == {"clock": 1}


async def test_clocks_go_on_for_what_was_recalled_after_a_run_that_is_undone_ten_cycles_later(home: Household) -> None:
    """The undo rewound them once more, as if they had come to mind just now: 0, not 10."""
    recalled, *others = await home.store(*(soup(n) for n in (1, 2, 3)))
    run = await home.run_patrol(steps=["assign", "age"])
    await home.recall(recalled.id)
    for _ in range(10):
        await home.run_patrol(steps=["age"])
    await home.undo(run.run_id)
    assert [(await home.now(one)).session_count for one in (recalled, *others)] == [10, 11, 11]
    assert {one.cluster_id for one in await home.all()} == {None}


async def test_what_was_dead_when_it_was_recalled_has_aged_since_then_when_it_lives_again(home: Household) -> None:
    """ruling 2: a recall leaves the clock of a dead memory alone; alive, it would have been rewound, and gone on."""
    soups = await home.store(*(soup(n) for n in (1, 2, 3)))
    await home.run_patrol(steps=["assign", "age"])
    run = await home.run_patrol(tidying(), steps=["consolidate"])
    [absorbed] = [one for one in await home.all() if one.status == "dead"]
    for _ in range(2):
        await home.run_patrol(steps=["age"])
    await home.recall(absorbed.id)
    for _ in range(3):
        await home.run_patrol(steps=["age"])
    await home.undo(run.run_id)
    counts = {one.id: (one.status, one.session_count) for one in await home.all()}
    assert counts.pop(absorbed.id) == ("active", 3)
    assert set(counts.values()) == {("active", 6)}
    assert len(counts) == len(soups) - 1


async def test_what_was_stored_since_stays_and_what_was_reinforced_stays_so(home: Household) -> None:
    memories = await lived(home)
    report = await everything(home)
    [new] = await home.store("Dora planted seven pear trees")
    [again] = await home.stored(soup(1), importance=0.9, themes=("soups",), pinned=True)
    assert again.memory.id == memories["soup"].id
    await home.undo(report.run_id)
    now = await home.now(memories["soup"])
    assert (now.importance, now.themes, now.pinned, now.access_count) == (0.9, ("soups",), True, 1)
    assert (await home.now(new)).cluster_id is None


async def test_what_was_changed_by_hand_since_stays_changed(home: Household) -> None:
    memories = await lived(home)
    report = await everything(home)
    await home.correct(memories["other"].id, text="Ann burnt the soup", importance=0.123)
    await home.undo(report.run_id)
    now = await home.now(memories["other"])
    assert (now.scene.action, now.importance, now.fresh, now.cluster_id) == ("Ann burnt the soup", 0.123, True, None)
    assert len(await home.ledger.recall.revision_history(ADA, [now.id])) == 1


async def test_a_survivor_that_was_changed_by_hand_keeps_its_new_words_and_loses_its_timeline(home: Household) -> None:
    soups = await home.store(*(soup(n) for n in (1, 2, 3)))
    await home.run_patrol(steps=["assign"])
    report = await home.run_patrol(tidying(), steps=["consolidate"])
    await home.correct(soups[0].id, text="Ann cooked soup")
    await home.undo(report.run_id)
    now = await home.now(soups[0])
    assert (now.scene.action, now.scene.when) == ("Ann cooked soup", soups[0].scene.when)
    [(kept,)] = rows(home.path, "SELECT content_hash FROM memories WHERE id = ?", now.id)
    assert kept == now.content_hash


async def test_a_value_set_by_hand_that_the_run_had_passed_through_stays(home: Household) -> None:
    """The journal was read backwards field by field, and what was set by hand was taken for the run's."""
    soups = await home.store(*(soup(n) for n in (1, 2, 3, 4)))
    await home.run_patrol(steps=["assign"])
    answers = iter([[1, 2], [1, 3]])

    def merge(prompt: Prompt) -> Any:
        first, second = (numbers(prompt, soup(n))[0] for n in next(answers))
        return {"merges": [{"survivor": first, "absorbed": [second]}], "make_dead": [], "keep": []}

    report = await home.run_patrol(ScriptedModel(consolidate=merge), steps=["consolidate"])
    assert (await home.now(soups[0])).importance == pytest.approx(0.55)
    await home.correct(soups[0].id, importance=0.5)
    await home.undo(report.run_id)
    assert (await home.now(soups[0])).importance == 0.5


async def test_what_was_forgotten_since_does_not_come_back(home: Household) -> None:
    """ruling 11"""
    memories = await lived(home)
    report = await everything(home)
    gone = [memories["soup"].id, memories["other"].id, memories["dead"].id]
    await home.ledger.erasure.forget(ADA, gone, at=home.clock())
    await home.undo(report.run_id)
    assert not set(gone) & {one.id for one in await home.all()}


async def test_a_note_that_came_since_is_still_unread(home: Household) -> None:
    report = await home.run_patrol()
    note = await home.note({"action": "Ann sang"})
    await home.undo(report.run_id)
    assert await home.ledger.patrols.unread_notes(ADA, type="scene") == [note]


async def test_a_memory_whose_cluster_is_gone_has_none_and_is_given_one_again(home: Household) -> None:
    """All that had stayed in it were forgotten, and its name with them."""
    await home.store(*(soup(n) for n in range(1, 14)))
    await home.run_patrol(steps=["assign"])
    report = await home.run_patrol(tidying(), steps=["split"])
    homes = Counter(one.cluster_id for one in await home.all())
    (left, _), (_, moved) = homes.most_common()
    assert moved == 2
    stayed = [one.id for one in await home.all() if one.cluster_id == left]
    await home.ledger.erasure.forget(ADA, stayed, at=home.clock())
    await home.undo(report.run_id)
    clusters = {id_ for (id_,) in rows(home.path, "SELECT id FROM clusters")}
    assert {one.cluster_id for one in await home.all()} <= {None, *clusters}
    await home.run_patrol(steps=["assign"])
    assert None not in {one.cluster_id for one in await home.all()}
