"""ruling 11: a patrol run can be undone, and what came after it is not lost by that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import ClauseElement

from madeleine.memory.errors import CannotUndo, StorageError
from madeleine.memory.model import ClusterId, RunId
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.patrol.deciding.answers import AgentDecision
from madeleine.storage.sql.database.engine import Transaction
from tests.doubles import ADA, BOB, Clock
from tests.household import Household, household, new_store, orphaned_vectors, rows
from tests.unit.storage.sql.patrols.tidying import counts, everything, lived, run_of, soup, tidying

# --- exactly ----------------------------------------------------------------------------------------------------


async def test_a_run_in_which_every_step_did_something_is_undone_to_the_letter(home: Household) -> None:
    """ruling 11: content, status, clusters, counts, notes, diary, points, summaries."""
    await lived(home)
    async with home.ledger.patrols.patrol_transaction(
        ADA
    ) as patrol:  # for ❼, which leaves what ❻ has made in the same night
        [top] = [one for one in await patrol.clusters() if one.is_root and one.name == "Private"]
        empty = replace(top, id=ClusterId("empty"), name="Nothing", is_root=False, parent_id=top.id, vector=None)
        await patrol.apply_changes(PatrolChanges(clusters=(empty,)), run=RunId("by hand"), step="merge")
    before, vectors = home.told(), orphaned_vectors(home.path)
    report = await everything(home)
    did = counts(report)
    assert did["assign"]["notes_read"] == did["assign"]["notes_failed"] == 1
    assert did["revive"]["revived"] == 1
    assert did["split"]["new_clusters"] == 1
    assert did["merge"]["removed"] == 1
    assert did["repair"]["notes_repaired"] == 1
    assert did["compress"]["summaries"] == 1
    assert did["diary"]["written"] == 1
    assert home.told() != before
    undone = await home.undo(report.run_id)
    assert home.told() == before
    assert undone.counts["clock"] == 1
    assert orphaned_vectors(home.path) == vectors
    assert rows(home.path, "SELECT * FROM patrol_changes WHERE run_id = ?", report.run_id) == []
    assert await run_of(home, report.run_id) == "undone"


async def test_all_runs_of_a_life_are_undone_one_after_the_other(home: Household) -> None:
    await lived(home)
    await everything(home)
    told = [home.told()]
    runs = [run.id for run in await home.patrol.runs(ADA)]
    for run in runs:
        await home.undo(run)
        told.append(home.told())
    assert told[-1]["clusters"] == told[-1]["diary"] == told[-1]["beings"] == []
    assert {(one.status, one.fresh, one.session_count) for one in await home.all()} == {("active", True, 0)}


async def test_a_consolidation_is_undone_with_the_timeline_that_it_wrote(home: Household) -> None:
    """spec P6 ❹, P4"""
    soups = await home.store(*(soup(n) for n in (1, 2, 3)))
    await home.run_patrol(steps=["assign"])
    before = home.told()
    report = await home.run_patrol(tidying(), steps=["consolidate"])
    survivor = await home.now(soups[0])
    assert len(survivor.scene.when) == 2
    assert (await home.now(soups[1])).absorbed_into == survivor.id
    await home.undo(report.run_id)
    assert home.told() == before
    assert orphaned_vectors(home.path) == set()


async def test_what_was_undone_can_be_done_again(home: Household) -> None:
    await lived(home)
    first = await everything(home)
    await home.undo(first.run_id)
    again = await everything(home)
    assert counts(again) == counts(first)


async def test_a_first_patrol_leaves_nothing_when_it_is_undone(home: Household) -> None:
    await home.store("Ann sang", "Ben slept")
    before = home.told()
    report = await home.run_patrol()
    await home.undo(report.run_id)
    assert home.told() == before
    assert before["clusters"] == before["beings"] == []


async def test_an_undo_of_many_memories_takes_as_many_statements_as_one_of_a_few(
    home: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for each row, and a turn of the event loop for each, were 7.7 s for 5,000 memories."""
    taken = 0
    run = Transaction.execute_many

    async def counted(self: Transaction, statement: ClauseElement, rows: Iterable[Mapping[str, Any]]) -> None:
        nonlocal taken
        taken += bool(rows := list(rows))
        await run(self, statement, rows)

    async def statements_for(memories: int) -> int:
        nonlocal taken
        await home.store(*(f"{soup(n)} {memories}" for n in range(memories)))
        report = await home.run_patrol(steps=["assign", "age"])
        taken = 0
        assert (await home.undo(report.run_id)).counts["memory"] >= memories
        return taken

    monkeypatch.setattr(Transaction, "execute_many", counted)
    assert await statements_for(60) == await statements_for(6)


# --- refusals ---------------------------------------------------------------------------------------------------


async def refused(home: Household, run: RunId, *words: str) -> None:
    before = home.told()
    with pytest.raises(CannotUndo) as why:
        await home.undo(run)
    assert home.told() == before
    for word in words:
        assert word in str(why.value)


async def test_a_run_is_undone_once(home: Household) -> None:
    await home.store("Ann sang")
    report = await home.run_patrol()
    await home.undo(report.run_id)
    await refused(home, report.run_id, "undone before")


async def test_a_run_that_nobody_knows_or_that_is_anothers_is_not_undone(home: Household) -> None:
    """spec P1"""
    await home.store("Ben sang", scope=BOB)
    theirs = await home.run_patrol(scope=BOB)
    await refused(home, RunId("nobody"), "no patrol run 'nobody'")
    await refused(home, theirs.run_id, "no patrol run")


async def test_a_run_under_way_is_not_undone(home: Household) -> None:
    await home.ledger.patrols.begin_run(ADA, RunId("now"), home.clock())
    await refused(home, RunId("now"), "still going on")


async def test_an_older_run_is_undone_if_the_later_one_touched_nothing_of_it(home: Household) -> None:
    soups = await home.store(*(soup(n) for n in range(1, 4)))
    await home.run_patrol(steps=["assign"])
    older = await home.run_patrol(tidying(), steps=["consolidate", "age"])
    await home.run_patrol(steps=["age"])
    undone = await home.undo(older.run_id)
    assert undone.counts["memory"] == 3
    assert {one.status for one in await home.all()} == {"active"}
    assert (await home.now(soups[0])).scene.when == soups[0].scene.when


async def test_an_older_run_is_refused_with_the_name_of_the_one_that_touched_the_same(home: Household) -> None:
    await home.store(*(soup(n) for n in range(1, 4)))
    older = await home.run_patrol(steps=["assign"])
    later = await home.run_patrol(tidying(), steps=["consolidate"])
    await refused(home, older.run_id, later.run_id, "undo that run first")
    await home.undo(later.run_id)
    await home.undo(older.run_id)


async def test_a_run_whose_cluster_was_filled_since_is_refused_with_the_name_of_who_filled_it(home: Household) -> None:
    await home.store(*(soup(n) for n in range(1, 4)))
    older = await home.run_patrol(steps=["assign"])
    await home.store(soup(9))
    later = await home.run_patrol(steps=["assign"])
    await refused(home, older.run_id, later.run_id)


async def test_a_root_under_which_a_later_run_has_made_a_cluster_stays(home: Household) -> None:
    """The later run touched no memory of the older one; its cluster was left without a root."""
    await home.store("Ann slept late")
    older = await home.run_patrol(steps=["assign"])
    [first] = await home.all()
    await home.store(*(soup(n) for n in range(1, 4)))
    later = await home.run_patrol(steps=["assign"])
    assert (await home.now(first)).cluster_id is not None
    await refused(home, older.run_id, later.run_id)


@pytest.mark.parametrize("how", ["stored again", "changed"])
async def test_a_memory_that_the_run_made_and_that_was_told_since_is_not_taken_away(home: Household, how: str) -> None:
    """ruling 11: it would lose what was said."""
    await home.note({"action": "Ann sold the boat to Carl"})
    report = await home.run_patrol(steps=["assign"])
    [made] = await home.all()
    if how == "changed":
        await home.correct(made.id, text="Ann sold the boat to Dora")
    else:
        [again] = await home.stored("Ann sold the boat to Carl")
        assert (again.status, again.memory.id) == ("reinforced", made.id)
    await refused(home, report.run_id, made.id, "stored again or changed")


async def test_a_summary_that_was_told_again_is_not_taken_away(home: Household) -> None:
    """spec L3"""
    for session in ("one", "two"):
        await home.store(f"Ann sang in {session}", session_id=session)
    report = await home.run_patrol(tidying(), steps=["compress"])
    summary = next(one for one in await home.all() if one.compression_source)
    await home.correct(summary.id, importance=0.9)
    await refused(home, report.run_id, summary.id)


async def test_a_memory_that_a_later_diary_tells_of_is_not_taken_away(home: Household) -> None:
    """ruling 11: the diary names its sources, so that it is forgotten with them; it would have named nothing."""
    await home.note({"action": "Ann sold the boat to Carl"})
    older = await home.run_patrol(steps=["assign"])
    later = await home.run_patrol(tidying(), steps=["diary"])
    await refused(home, older.run_id, later.run_id)
    await home.undo(later.run_id)
    await home.undo(older.run_id)
    assert home.told()["diary"] == []


# --- decisions --------------------------------------------------------------------------------------------------


async def test_what_an_agent_decided_is_undone_as_well(home: Household) -> None:
    """ruling 10"""
    soups = await home.store(*(soup(n) for n in (1, 2, 3)))
    report = await home.run_patrol()
    before = home.told()
    [offer] = [one for one in report.pending if one.kind == "consolidate"]
    decision = AgentDecision.model_validate({"offer": offer.id, "merges": [[soups[0].id, soups[1].id]]})
    done = await home.patrol.apply_decisions_and_offer_more(ADA, [decision])
    assert done.decided[0].counts["absorbed"] == 1
    await home.undo(done.run_id)
    assert home.told() == before
    again = await home.patrol.apply_decisions_and_offer_more(ADA, [decision])
    assert "decided before" in again.decided[0].refused


# --- runs that did not come to their end ------------------------------------------------------------------------


async def test_the_run_of_a_dead_process_is_rolled_back_at_the_start(tmp_path: Path, templates: Path) -> None:
    path = new_store(templates, tmp_path / "memory.db")
    clock = Clock()
    async with household(path, clock) as home:
        await lived(home)
    for transactions in count(1):
        async with household(path, clock) as home:
            before = home.told()
            home.mortal.left = transactions
            try:
                await home.run_patrol(tidying())
            except StorageError:
                assert home.told() != before
            else:
                break  # it took no more than these
        async with household(path, clock) as home:
            assert await run_of(home, (await home.patrol.runs(ADA))[0].id) == "running"
            assert await home.patrol.roll_back_unfinished_runs() == 1
            assert home.told() == before
            assert "running" not in {run.state for run in await home.patrol.runs(ADA)}
            assert await home.patrol.roll_back_unfinished_runs() == 0
    assert transactions > 9


@pytest.mark.parametrize("transactions", [0, 3, 7, 10])
async def test_a_run_whose_caller_has_gone_is_rolled_back(home: Household, transactions: int) -> None:
    await lived(home)
    before = home.told()
    home.mortal.left, home.mortal.raises = transactions, asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await home.run_patrol(tidying())
    assert home.told() == before
    assert (await home.patrol.runs(ADA))[0].state == "rolled_back"


async def test_a_run_that_cannot_be_rolled_back_counts_as_finished_as_far_as_it_went(home: Household) -> None:
    await home.note({"action": "Ann sold the boat to Carl"})
    home.mortal.left = 1
    with pytest.raises(StorageError):
        await home.run_patrol()
    home.mortal.dead = False
    [made] = await home.all()
    await home.stored("Ann sold the boat to Carl")
    await home.patrol.roll_back_unfinished_runs()
    assert (await home.now(made)).access_count == 1
    [run] = await home.patrol.runs(ADA)
    assert (run.state, run.report["interrupted"]) == ("finished", True)


async def test_a_step_that_fails_is_left_out_and_the_run_is_undone_like_another(home: Household) -> None:
    await lived(home)
    before = home.told()
    home.mortal.left, home.mortal.raises = 2, RuntimeError("the library broke")
    report = await home.run_patrol(tidying())
    assert [step.name for step in report.steps if step.failed] == ["flag"]
    await home.undo(report.run_id)
    assert home.told() == before


async def test_nothing_but_what_an_undo_puts_back_is_in_another_being(home: Household) -> None:
    """spec P1"""
    await home.store(*(soup(n) for n in range(1, 5)), scope=BOB)
    await home.run_patrol(tidying(), scope=BOB)
    theirs = [row for row in home.told()["memories"] if "bob" in row]
    await lived(home)
    report = await everything(home)
    await home.undo(report.run_id)
    assert [row for row in home.told()["memories"] if "bob" in row] == theirs
