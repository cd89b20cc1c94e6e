"""What a night leaves behind, for recalls, later nights and other agents (rulings 1, 10 and 11)."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any

import pytest

from madeleine.memory.errors import StorageFull
from madeleine.memory.language_model import Prompt
from madeleine.memory.model import MemoryId
from madeleine.memory.rules.dynamics.importance import CYCLES_DYING_MEMORY_AWAITS_DECISION
from madeleine.patrol.deciding.answers import AgentDecision
from madeleine.patrol.deciding.passages import MAX_DAYS_SINCE_RECALL
from madeleine.patrol.deciding.rendering import SHOWN_ABOVE
from madeleine.patrol.deciding.requests import DecisionRequest
from madeleine.patrol.report import PatrolReport
from tests.doubles import ADA
from tests.household import MOMENT, Household, ScriptedModel, rows, shown_memories
from tests.unit.storage.sql.patrols.tidying import soup

DIARY: dict[str, Any] = {"diary": "I sang.\nI slept.\nI rose.", "think_md": ["One.", "Two.", "Three."]}


def merging(prompt: Prompt) -> Any:
    """All that begin with the same words as the first into that one."""
    lines = shown_memories(prompt)
    same = [n for n, line in enumerate(lines, 1) if beginning(line) == beginning(lines[0])]
    return {"merges": [{"survivor": 1, "absorbed": same[1:]}] if same[1:] else [], "make_dead": [], "keep": []}


def beginning(line: str) -> str:
    return str(json.loads(line)["text"])[:12]


def the(report: PatrolReport, kind: str) -> DecisionRequest:
    [result] = [offer for offer in report.pending if offer.kind == kind]
    return result


# --- ❷ ----------------------------------------------------------------------------------------------------------


async def test_a_being_ages_once_a_day_however_often_a_patrol_runs(home: Household) -> None:
    """ruling 20"""
    [told] = await home.store("Ann sang")
    await home.run_patrol()
    report = await home.run_patrol()
    assert (await home.now(told)).session_count == 1
    assert report.steps[1].skipped == "memories have aged today"
    home.clock.advance(timedelta(days=1))
    await home.run_patrol()
    assert (await home.now(told)).session_count == 2


# --- ❹ ----------------------------------------------------------------------------------------------------------


async def test_a_merge_leaves_the_meaning_of_its_survivor_as_it_was(home: Household) -> None:
    """Nine retellings before it drowned what it says itself: no question in other words found it any more."""
    await home.store(*(soup(n) for n in range(1, 10)), session_id="s")
    await home.run_patrol(ScriptedModel(consolidate=merging), steps=["assign", "consolidate"])
    survivors = [
        memory for memory in await home.all() if len(memory.scene.when) > 1
    ]  # its day, and what it has absorbed
    assert survivors
    for survivor in survivors:
        assert survivor.embedded_text == f"{survivor.scene.when[0]} {survivor.scene.action}"
    assert await home.ledger.index_source.memories_not_embedded_by_model(home.embedder.model_name, limit=99) == []


# --- L3 ---------------------------------------------------------------------------------------------------------


async def test_a_session_is_summarised_with_all_that_its_memories_have_absorbed(home: Household) -> None:
    """spec L3: the summary hides them, and them alone it would tell of."""
    await home.store("Ann planned the garden behind the house", "Ann planned the garden: 900 euros", session_id="s")
    await home.store("The accountant sent the invoice", session_id="t")
    await home.run_patrol(ScriptedModel(consolidate=merging), steps=["assign", "consolidate"])
    mind = ScriptedModel(compress=lambda p: {"summary": "Ann planned a garden for 900 euros."})
    await home.run_patrol(mind, steps=["compress"])
    assert "900 euros" in mind.prompts[0].text


async def test_memories_behind_a_dead_summary_are_recalled_again(home: Household) -> None:
    """Else neither of them would ever be recalled, though the one is revived or has never died."""
    told = await home.store("Ann sailed to Elba", "Ann slept on the deck", session_id="s", importance=1.0)
    await home.store("The accountant sent the invoice", session_id="t", importance=1.0)
    await home.run_patrol(ScriptedModel(compress=lambda p: {"summary": "Ann sailed."}), steps=["assign", "compress"])
    summary, passage = sorted((one for one in await home.all() if one.compression_source), key=lambda one: one.number)
    assert passage.scene.action == "Ann sailed to Elba\nAnn slept on the deck"
    assert (await home.now(told[0])).compressed_into == passage.id
    assert ((await home.now(passage)).compressed, passage.compressed_into) == (False, summary.id)
    await home.run_patrol(steps=["assign"])
    for _ in range(91):
        await home.run_patrol(steps=["age"])
    await home.recall(told[0].id, told[1].id)

    def let_go(prompt: Prompt) -> Any:
        lines = shown_memories(prompt)
        return {"merges": [], "make_dead": [n for n, line in enumerate(lines, 1) if '"dying"' in line], "keep": []}

    report = await home.run_patrol(ScriptedModel(consolidate=let_go), steps=["flag", "consolidate"])
    assert [(await home.now(one)).status for one in (summary, passage)] == ["dead", "dead"]
    result = await home.now(told[0])
    assert (result.status, result.compressed, result.compressed_into) == ("active", False, None)
    await home.undo(report.run_id)
    assert (await home.now(told[0])).compressed_into == passage.id


async def test_what_is_let_go_of_is_found_in_a_passage_and_comes_back_when_it_is_asked_for(home: Household) -> None:
    """rulings 20 and 26: one session's small talk costs one memory, and a search and a patrol bring a scene of it."""
    ann, ben, kept = await home.store("Ann sang", "Ben rowed", "Carl is a pilot", session_id="s", importance=0.06)
    home.clock.advance(timedelta(days=1))
    [alone] = await home.store("Dora waved", session_id="s", importance=0.06)
    for _ in range(7):
        home.clock.advance(timedelta(days=1))
        await home.run_patrol()
    offer = the(await home.patrol.apply_decisions_and_offer_more(ADA, []), "consolidate")
    assert [memory.text for memory in offer.memories] == ["Ann sang", "Ben rowed", "Carl is a pilot", "Dora waved"]
    decided = await home.patrol.apply_decisions_and_offer_more(
        ADA, [AgentDecision(offer=offer.id, make_dead=[ann.id, ben.id, alone.id], keep=[kept.id])]
    )
    assert decided.decided[0].counts == {
        **{"merged": 0, "absorbed": 0, "made_dead": 3, "joined_to_passages": 2, "kept": 1}
    }
    [passage] = [memory for memory in await home.all() if memory.compression_source]
    assert (passage.scene.action, passage.status) == ("Ann sang\nBen rowed", "active")
    assert [(await home.now(one)).compressed_into for one in (ann, alone)] == [passage.id, None]
    await home.recall(ann.id)
    home.clock.advance(timedelta(days=1))
    revival = await home.run_patrol()
    assert ((await home.now(ann)).status, (await home.now(ann)).compressed) == ("active", False)
    await home.undo(revival.run_id)
    await home.undo(decided.run_id)
    assert [(await home.now(one)).status for one in (ann, ben, alone, kept)] == ["dying"] * 4


async def test_sessions_that_nobody_summarises_are_extracted(home: Household) -> None:
    """spec L3: a year without a mind left 365 sessions as they were; the threshold here is 1."""
    told = [await home.store(f"Ann paid {n} euros", f"Ben rowed {n} miles", session_id=f"s{n}") for n in range(4)]
    report = await home.run_patrol()
    assert {step.name: step.counts for step in report.steps}["compress"] == {"summaries": 3, "compressed": 6}
    summaries = [memory for memory in await home.all() if memory.compression_source]
    extracts = {frozenset(memory.scene.action.splitlines()) for memory in summaries}
    assert frozenset({"Ann paid 0 euros", "Ben rowed 0 miles"}) in extracts
    assert (await home.now(told[0][0])).compressed
    assert not (await home.now(told[3][0])).compressed
    await home.undo(report.run_id)
    assert not (await home.now(told[0][0])).compressed


async def test_what_was_recalled_within_a_fortnight_is_not_joined_with_its_overdue_session(home: Household) -> None:
    """spec L3, ruling 20: a patrol that revives what was asked for does not join it in the same night (decision 83)."""
    asked, *others = await home.store("Ann paid 0 euros", "Ben rowed 0 miles", "Carl ran 0 laps", session_id="s0")
    for n in range(1, 4):
        await home.store(f"Ann paid {n} euros", f"Ben rowed {n} miles", session_id=f"s{n}")
    await home.recall(asked.id)
    await home.run_patrol()
    assert [(await home.now(one)).compressed for one in (asked, *others)] == [False, True, True]
    await home.store("Ann paid 9 euros", session_id="s0")
    home.clock.advance(timedelta(days=MAX_DAYS_SINCE_RECALL))
    await home.run_patrol()
    assert (await home.now(asked)).compressed, "nobody has asked for it since"


async def test_what_has_faded_without_a_decision_is_joined_word_for_word(home: Household) -> None:
    """spec L3, ruling 26: nobody decides, and a year of talk would lie there for ever; a mind has a fortnight."""
    ann, ben = await home.store("Ann paid 9 euros", "Ben rowed 3 miles", session_id="s", importance=0.06)
    [lesson] = await home.store("Ann lost her keys", session_id="s", importance=0.06, lesson="Keep a spare key.")
    joined: dict[int, int] = {}
    for night in range(30):
        home.clock.advance(timedelta(days=1))
        report = await home.run_patrol()
        if summaries := {step.name: step.counts for step in report.steps}["compress"].get("summaries"):
            joined[night] = summaries
    assert list(joined.values()) == [1]
    assert min(joined) >= CYCLES_DYING_MEMORY_AWAITS_DECISION
    [passage] = [memory for memory in await home.all() if memory.compression_source]
    assert passage.scene.action == "Ann paid 9 euros\nBen rowed 3 miles"
    assert [(await home.now(one)).compressed for one in (ann, ben, lesson)] == [True, True, False]


async def test_a_day_whose_diary_was_declined_is_not_offered_again(home: Household) -> None:
    """ruling 20: the offer's id alone was refused, and the diary came back in each answer."""
    await home.store("Ann sang")
    offer = the(await home.run_patrol(), "diary")
    report = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=offer.id)])
    assert (report.decided[0].counts, report.decided[0].refused) == ({"declined": 1}, "")
    assert not [one for one in (await home.run_patrol()).pending if one.kind == "diary"]


async def test_how_to_decide_is_told_once_an_exchange(home: Household) -> None:
    """ruling 23"""
    for at in range(2):
        await home.store(f"Ann sang {at} songs in the hall")
    report = await home.run_patrol()
    offer = the(report, "diary")
    assert "diary" in report.as_json_without_empty_steps()["guidance"]
    home.clock.advance(MOMENT)
    await home.store("Ben proposed to Ann")
    home.clock.advance(MOMENT)
    after = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=offer.id, **DIARY)])
    assert the(after, "diary").memories
    assert "guidance" not in after.as_json_without_empty_steps()


# --- P8 ---------------------------------------------------------------------------------------------------------


async def test_what_is_told_while_the_diary_is_written_is_in_the_next_entry(home: Household) -> None:
    await home.store("Ann sang")
    offer = the(await home.run_patrol(), "diary")
    home.clock.advance(MOMENT)
    await home.store("Ben proposed to Ann")
    home.clock.advance(MOMENT)
    report = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=offer.id, **DIARY)])
    assert not report.decided[0].refused
    assert [memory.text for memory in the(report, "diary").memories] == ["Ben proposed to Ann"]


# --- ❻ and ❼ ----------------------------------------------------------------------------------------------------


async def test_a_pair_that_was_split_off_is_not_merged_back_in_the_same_patrol(home: Household) -> None:
    """spec P6 ❻: at least 2 in a part; ❼: at most 2 are small."""
    await home.store(*(soup(n) for n in range(12)))
    mind = ScriptedModel(split=lambda p: {"parts": [{"name": "The first two", "memories": [1, 2]}]})
    await home.run_patrol(mind, steps=["assign", "split", "merge"])
    assert ("The first two",) in rows(home.path, "SELECT name FROM clusters")


# --- offers -----------------------------------------------------------------------------------------------------


async def test_a_request_stays_open_while_others_are_offered(home: Household) -> None:
    """ruling 10, ADR 18: what nobody has decided is handed out again under the same id."""
    await home.store(*(soup(n) for n in range(3)))
    first = await home.run_patrol()
    again = await home.patrol.apply_decisions_and_offer_more(ADA, [])
    assert [offer.id for offer in again.pending] == [offer.id for offer in first.pending]
    one = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=the(first, "consolidate").id)])
    other = await home.patrol.apply_decisions_and_offer_more(
        ADA, [AgentDecision(offer=the(first, "diary").id, **DIARY)]
    )
    assert [report.decided[0].refused for report in (one, other)] == ["", ""]
    assert other.pending == ()


async def test_an_answer_shows_each_memory_once_and_after_decisions_only_what_is_new(home: Household) -> None:
    """ruling 23"""
    await home.store(*(soup(n) for n in range(3)))
    first = await home.run_patrol()
    shown = [memory for offer in first.as_json()["pending"] for memory in offer["memories"].items()]
    assert len(shown) == 6
    assert sorted(id_ for id_, told in shown if told != SHOWN_ABOVE) == ["m1", "m2", "m3"]
    diary = the(first, "diary")
    unknown = AgentDecision(offer=the(first, "consolidate").id, merges=[[MemoryId("m1"), MemoryId("m9")]])
    assert "'m9'" in (await home.patrol.apply_decisions_and_offer_more(ADA, [unknown])).decided[0].refused
    report = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=the(first, "consolidate").id)])
    assert (report.as_json()["pending"], report.as_json()["still_open"]) == ([], [diary.id[:8]])
    again = await home.patrol.apply_decisions_and_offer_more(ADA, [])
    assert [offer.id for offer in again.pending] == [diary.id]


async def test_an_agent_is_asked_about_one_session_a_day(home: Household) -> None:
    """Ruling 20: each kind of work has its share; of what waits beyond it nothing is lost. The threshold here is 1."""
    for n in range(6):
        told = await home.store(f"Ann paid {n} euros", f"Ben rowed {n} miles", session_id=f"s{n}")
        await home.recall(*(memory.id for memory in told))  # so that no patrol joins them
    summed_up: list[list[str]] = []
    for _ in range(3):
        report = await home.run_patrol()
        sessions: list[str] = []
        while offers := [offer for offer in report.pending if offer.kind == "compress"]:
            sessions += [offer.session_id for offer in offers]
            decisions = [AgentDecision(offer=offer.id, summary="Ann paid.") for offer in offers]
            report = await home.patrol.apply_decisions_and_offer_more(ADA, decisions)
        summed_up.append(sessions)
        home.clock.advance(timedelta(days=1))
    assert summed_up == [["s0"], ["s1"], ["s2"]]


async def test_a_session_that_was_offered_and_joined_since_keeps_no_other_from_being_offered(home: Household) -> None:
    """Its offer stays open for a fortnight, and nothing can be decided about it any more."""
    for n in range(3):
        await home.store(f"Ann paid {n} euros", f"Ben rowed {n} miles", session_id=f"s{n}")
    first = the(await home.run_patrol(steps=["flag"]), "compress")
    home.clock.advance(timedelta(days=1))
    told = [await home.now(memory) for memory in await home.all() if memory.provenance.session_id == first.session_id]
    for memory in told:
        await home.correct(memory.id, pinned=True)
    assert the(await home.run_patrol(steps=["flag"]), "compress").session_id == "s1"


async def test_of_two_diaries_on_one_day_the_older_offer_is_not_written_over_the_newer(home: Household) -> None:
    await home.store("Ann sang")
    old = the(await home.run_patrol(), "diary")
    await home.store("Ben laughed")
    new = the(await home.run_patrol(), "diary")
    assert old.id != new.id
    assert (
        not (await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=new.id, **DIARY)]))
        .decided[0]
        .refused
    )
    late = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=old.id, **DIARY)])
    assert "has changed since" in late.decided[0].refused


async def test_a_run_is_kept_if_its_pending_decisions_cannot_be_offered(
    home: Household, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its decisions were paid for."""
    [memory] = await home.store("Ann sang")

    async def full(*_: object, **__: object) -> None:
        raise StorageFull("No room.")

    monkeypatch.setattr(home.mortal, "store_decision_requests_unless_erased", full, raising=False)
    with caplog.at_level(logging.ERROR):
        report = await home.run_patrol(steps=["age"])
    assert (report.pending, (await home.now(memory)).session_count) == ((), 1)
    assert (await home.patrol.runs(ADA))[0].state == "finished"
    assert "pending decisions could not be offered" in caplog.text


async def test_what_is_forgotten_while_decisions_are_collected_is_not_stored_with_them(
    home: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ruling 11"""
    gone, stays = await home.store("Zoé buried a xylophoniser", "Ann sang")
    store_decision_requests_unless_erased = home.ledger.patrols.store_decision_requests_unless_erased

    async def forget_first(*requests: Any, **fields: Any) -> bool:
        await home.ledger.erasure.forget(ADA, [gone.id], at=home.clock())
        return await store_decision_requests_unless_erased(*requests, **fields)

    monkeypatch.setattr(home.ledger.patrols, "store_decision_requests_unless_erased", forget_first)
    report = await home.run_patrol()
    assert {memory.id for request in report.pending for memory in request.memories} == {stays.id}
    stored = rows(home.path, "SELECT body FROM patrol_offers")
    assert stored
    assert "xylophoniser" not in str(stored)


# --- steps ------------------------------------------------------------------------------------------------------


async def test_clusters_are_decided_concurrently_and_applied_one_by_one(home: Household) -> None:
    for dish in ("lentil carrots garlic", "pumpkin ginger cream", "tomato basil oil"):
        await home.store(*(f"{dish} {pot}" for pot in ("oak", "elm", "fir")))
    mind = ScriptedModel(consolidate=merging)
    report = await home.run_patrol(mind, steps=["assign", "consolidate"])
    counts = report.steps[1].counts
    assert counts["merged"] > 1
    assert mind.asked("consolidate") > 1


async def test_a_dry_run_reports_why_decisions_are_skipped(home: Household) -> None:
    """spec P7"""
    await home.store("Ann sang")
    with_key = await home.run_patrol(ScriptedModel(), dry_run=True)
    without = await home.run_patrol(dry_run=True)
    assert {step.skipped for step in with_key.steps if step.skipped} == {"a dry run asks no language model"}
    assert all("BYOK key not set" in step.skipped for step in without.steps if step.skipped)
