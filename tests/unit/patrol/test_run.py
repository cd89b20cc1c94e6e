"""spec P6, P7, P12; rulings 1 to 5: a whole patrol."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from datetime import timedelta

import pytest

from madeleine.memory.errors import IndexUnavailable, StorageError
from madeleine.memory.model import EmbeddingModelName
from madeleine.memory.patrol_records import PatrolUndoResult
from madeleine.patrol.context import PatrolServices
from madeleine.patrol.report import (
    PATROL_STEP_SYMBOLS,
    PATROL_STEPS,
    STEP_SKIP_REASON_WITHOUT_MODEL_KEY,
    PatrolProgress,
    PatrolStepName,
)
from madeleine.patrol.run import PatrolEvent, RunPatrols
from tests.doubles import ADA, BOB, Clock, FakeActivationLog, FakeWordStatistics, WordEmbedder, a_memory, unit
from tests.fakes.patrol_ledger import FakePatrolLedger


class Household:
    """A patrol and everything it works with."""

    def __init__(self) -> None:
        self.ledger = FakePatrolLedger()
        self.embedder = WordEmbedder()
        self.activations = FakeActivationLog()
        self.clock = Clock()
        self.wrote = 0
        self.index_fails_with: BaseException | None = None
        self.words = FakeWordStatistics()
        services = PatrolServices(ledger=self.ledger, word_idf=self.words, embedder=self.embedder, now=self.clock)
        self.patrol = RunPatrols(services, self.activations, update_index=self._written)

    async def _written(self) -> None:
        self.wrote += 1
        if self.index_fails_with:
            raise self.index_fails_with

    def snapshot(self) -> object:
        state = self.ledger.state
        return copy.deepcopy((state.memories, list(state.clusters), state.notes, state.runs, list(self.ledger.cached)))


@pytest.fixture
def home() -> Household:
    return Household()


def scene(action: str, **fields: object) -> str:
    return json.dumps({"action": action, **fields})


async def test_the_steps_run_in_the_order_of_the_spec(home: Household) -> None:
    """spec P6: ❶ to ❼, in that order; then what spec L3, P8 and O8 add."""
    report = await home.patrol(ADA)
    assert [step.name for step in report.steps] == list(PATROL_STEPS)
    assert [step["step"] for step in report.as_json()["steps"]] == list("❶❷❸❹❺❻❼+++++")


async def test_chosen_steps_run_in_the_order_of_the_spec_whatever_order_was_asked(home: Household) -> None:
    """spec P6"""
    report = await home.patrol(ADA, steps=["merge", "age", "assign", "age"])
    assert [step.name for step in report.steps] == ["assign", "age", "merge"]


async def test_progress_is_told_after_each_step(home: Household) -> None:
    """spec P12"""
    told: list[PatrolProgress] = []
    await home.patrol(ADA, on_progress=told.append)
    assert [(news.step, news.done, news.total) for news in told] == [
        (name, i + 1, 12) for i, name in enumerate(PATROL_STEPS)
    ]


async def test_steps_that_need_a_key_are_skipped_with_the_words_of_the_spec(
    home: Household, caplog: pytest.LogCaptureFixture
) -> None:
    """spec P7"""
    with caplog.at_level(logging.INFO):
        report = await home.patrol(ADA)
    words = "[graph] BYOK key not set: skipping ❹❻ diary/think_md (mechanical processing only)"
    assert {step.name: step.skipped for step in report.steps if step.skipped} == dict.fromkeys(
        ("consolidate", "split", "supersede", "repair", "compress", "diary"), words
    )
    assert words == STEP_SKIP_REASON_WITHOUT_MODEL_KEY
    assert [record.getMessage() for record in caplog.records].count(words) == 1


async def test_a_skipped_step_says_only_why(home: Household) -> None:
    """spec P7"""
    [result] = (await home.patrol(ADA, steps=["split"])).as_json()["steps"]
    assert result == {
        "step": PATROL_STEP_SYMBOLS["split"],
        "name": "split",
        "skipped": STEP_SKIP_REASON_WITHOUT_MODEL_KEY,
    }


@pytest.mark.parametrize("steps", [["assign"], ["age", "flag", "revive", "merge"]])
async def test_a_patrol_that_needs_no_key_does_not_log_a_missing_one(
    home: Household, steps: list[PatrolStepName], caplog: pytest.LogCaptureFixture
) -> None:
    """spec P7"""
    with caplog.at_level(logging.INFO):
        await home.patrol(ADA, steps=steps)
    assert STEP_SKIP_REASON_WITHOUT_MODEL_KEY not in caplog.text


async def test_scene_notes_become_fresh_memories_under_a_root(home: Household) -> None:
    """spec P6 ❶ 1 to 5"""
    note = home.ledger.put_note(scene("I walked home with the family", feeling="calm", importance=0.7))
    await home.patrol(ADA)
    [memory] = home.ledger.state.memories.values()
    assert (memory.scene.action, memory.feeling, memory.importance) == ("I walked home with the family", "calm", 0.7)
    assert (memory.fresh, memory.status, memory.provenance.tool) == (True, "active", "notes")
    assert memory.cluster_id is not None
    assert home.ledger.state.clusters[memory.cluster_id].is_root
    assert home.ledger.state.notes[note.id].state == "done"


async def test_a_note_that_cannot_be_read_is_kept_and_marked(home: Household) -> None:
    """spec P6 ❶ 2, ruling 1: `[PARSE_FAILED]`, retained for self-repair; the good ones go through."""
    bad = home.ledger.put_note('{"action": ')
    worse = home.ledger.put_note('{"feeling": "calm"}')
    home.ledger.put_note(scene("I walked home"))
    report = await home.patrol(ADA, steps=["assign"])
    for note in (bad, worse):
        kept = home.ledger.state.notes[note.id]
        assert kept.state == "parse_failed"
        assert kept.reason.startswith("[PARSE_FAILED] ")
        assert kept.content == note.content
    assert len(home.ledger.state.memories) == 1
    assert (report.steps[0].counts["notes_read"], report.steps[0].counts["notes_failed"]) == (1, 2)


@pytest.mark.parametrize(("given", "kept"), [(7, 1.0), (-1, 0.0), (0.25, 0.25)])
async def test_a_notes_importance_is_clamped(home: Household, given: float, kept: float) -> None:
    """spec P6 ❶ 3"""
    home.ledger.put_note(scene("I walked home", importance=given))
    await home.patrol(ADA)
    assert [memory.importance for memory in home.ledger.state.memories.values()] == [kept]


async def test_a_note_is_read_once(home: Household) -> None:
    """spec P6 ❶"""
    home.ledger.put_note(scene("I walked home"))
    home.ledger.put_note("not JSON")
    await home.patrol(ADA)
    await home.patrol(ADA)
    assert len(home.ledger.state.memories) == 1


async def test_notes_of_another_type_or_being_are_left_alone(home: Household) -> None:
    """spec P6 ❶ 1, P1"""
    todo = home.ledger.put_note(scene("Buy milk"), type_="todo")
    foreign = home.ledger.put_note(scene("I walked home"), scope=BOB)
    await home.patrol(ADA)
    assert home.ledger.state.memories == {}
    assert {home.ledger.state.notes[note.id].state for note in (todo, foreign)} == {"unread"}


async def test_all_new_texts_are_embedded_in_one_call_and_their_vectors_kept(home: Household) -> None:
    """spec P6 ❶ 4: "in a single API call"; L1: cached by content hash."""
    for action in ("I walked home", "We ate ramen", "She slept"):
        home.ledger.put_note(scene(action))
    await home.patrol(ADA)
    [batch] = home.embedder.batches
    assert {"I walked home", "We ate ramen", "She slept"} <= set(batch)
    await home.patrol(ADA)
    assert len(home.embedder.batches) == 1


async def test_the_text_of_a_note_is_embedded_as_when_action_and_feeling(home: Household) -> None:
    """spec P4, P6 ❶ 4"""
    home.ledger.put_note(scene("I walked home", when=["2026-02-27"], feeling="calm", setting="park"))
    await home.patrol(ADA)
    assert "2026-02-27 I walked home calm" in home.embedder.batches[0]


async def test_a_patrol_without_a_model_leaves_memories_waiting_and_does_the_rest(home: Household) -> None:
    """spec P6 ❶; the model's absence is no reason to lose a note."""
    home.embedder.available = False
    home.ledger.put_note(scene("I walked home"))
    old = home.ledger.put(a_memory("old", session_count=75))
    report = await home.patrol(ADA)
    assert report.steps[0].counts["waiting_for_vectors"] == 2
    assert all(memory.cluster_id is None for memory in home.ledger.state.memories.values())
    assert home.ledger.memory(old).status == "dying"
    assert len(home.ledger.state.memories) == 2


async def test_memories_that_waited_get_their_cluster_when_the_model_is_back(home: Household) -> None:
    """spec P6 ❶, ruling 1"""
    home.embedder.available = False
    home.ledger.put_note(scene("I walked home with the family"))
    await home.patrol(ADA)
    [memory] = home.ledger.state.memories.values()
    home.embedder.available = True
    await home.ledger.cache_vectors(
        home.embedder.model_name, {memory.content_hash: home.embedder.vector(memory.embedded_text)}
    )  # as the background work does
    await home.patrol(ADA)
    assert home.ledger.memory(memory).cluster_id is not None


async def test_a_dry_run_changes_nothing(home: Household) -> None:
    """spec P12: it reports what would change."""
    home.ledger.put_note(scene("I walked home"))
    home.ledger.put_note("not JSON")
    home.ledger.put(a_memory("old", session_count=75))
    home.ledger.put(a_memory("dead", status="dead", reactivation_count=1))
    home.ledger.put_cluster("Empty", home.ledger.put_cluster("Private"))
    before = home.snapshot()
    report = await home.patrol(ADA, dry_run=True)
    assert home.snapshot() == before
    assert home.wrote == 0
    counts = {step.name: step.counts for step in report.steps}
    assert report.dry_run
    assert (counts["assign"]["notes_read"], counts["assign"]["notes_failed"]) == (1, 1)
    assert (counts["flag"]["dying"], counts["revive"]["revived"], counts["merge"]["removed"]) == (1, 1, 1)


async def test_a_dry_run_reports_what_the_run_then_does(home: Household) -> None:
    """spec P12"""
    for i in range(5):
        home.ledger.put_note(scene(f"We ate ramen number{i} together with friends"))
    foreseen = await home.patrol(ADA, dry_run=True)
    done = await home.patrol(ADA)
    assert foreseen.steps == done.steps
    assert done.steps[0].counts["new_clusters"] == 1


async def test_a_run_is_recorded_with_its_report_and_its_times(home: Household) -> None:
    """ruling 11: a patrol run can be found again."""
    report = await home.patrol(ADA, on_progress=lambda _: home.clock.advance(timedelta(seconds=1)))
    [run] = await home.patrol.runs(ADA)
    assert (run.id, run.state) == (report.run_id, "finished")
    assert run.report == report.as_json_for_ledger()
    assert run.finished - run.started == timedelta(seconds=12)
    assert json.dumps(run.report)


async def test_reactivations_are_flushed_before_the_steps(home: Household) -> None:
    """spec P6 ❺: a recall of a moment ago counts."""
    await home.patrol(ADA, steps=["revive"])
    assert home.activations.settled == 1


async def test_the_index_is_updated_after_a_run(home: Household) -> None:
    """ruling 1"""
    await home.patrol(ADA)
    assert home.wrote == 1


@pytest.mark.parametrize("error", [IndexUnavailable("full"), StorageError("gone"), RuntimeError("the library broke")])
async def test_a_run_whose_index_update_fails_is_reported_as_done(
    home: Household, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """It is committed: told as an error, it was asked for again, and every memory aged twice."""
    memory = home.ledger.put(a_memory("ramen"))
    home.index_fails_with = error
    report = await home.patrol(ADA)
    assert home.ledger.memory(memory).session_count == 1
    assert list(home.ledger.state.runs) == [report.run_id]
    assert str(error) in caplog.text


async def test_a_run_that_is_cancelled_while_the_index_is_written_is_cancelled(home: Household) -> None:
    """Cancellation passes."""
    home.index_fails_with = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await home.patrol(ADA)


async def test_the_next_patrol_waits_for_the_rollback_of_one_that_is_cancelled_again_and_again(
    home: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a cancel scope does with a call whose client has gone: nobody was told of its end, and the next run began
    while it was still rolled back."""
    told: list[PatrolEvent] = []
    rolling, rolled = asyncio.Event(), asyncio.Event()

    async def undo(*_: object, **__: object) -> PatrolUndoResult:
        rolling.set()
        await rolled.wait()
        return PatrolUndoResult(counts={})

    monkeypatch.setattr(home.ledger, "undo_run", undo)
    monkeypatch.setattr(home.patrol, "on_event", told.append)
    reading = asyncio.Event()

    async def read_for_ever(*_: object, **__: object) -> None:
        reading.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(home.ledger, "unread_notes", read_for_ever)
    running = asyncio.create_task(home.patrol(ADA))
    await reading.wait()
    running.cancel()
    await rolling.wait()
    running.cancel()
    await asyncio.sleep(0)
    assert await home.patrol.is_running(ADA.being_id)
    rolled.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [one.event for one in told] == ["begins", "fails"]
    assert not await home.patrol.is_running(ADA.being_id)


async def test_another_beings_memories_do_not_age(home: Household) -> None:
    """spec P1"""
    foreign = home.ledger.put(a_memory("theirs", being_id=BOB.being_id))
    mine = home.ledger.put(a_memory("mine"))
    await home.patrol(ADA)
    assert home.ledger.memory(foreign) == foreign
    assert home.ledger.memory(mine).session_count == 1


async def test_a_failing_step_changes_nothing_and_the_patrol_goes_on(home: Household) -> None:
    home.ledger.put(a_memory("old", session_count=75))

    for _ in range(3):
        home.ledger.put(alike := a_memory("tea with Ann"), home.embedder.vector(alike.embedded_text))
    home.words.fails_with = IndexUnavailable("The index sleeps. Wake it.")
    report = await home.patrol(ADA)
    result = {step.name: step for step in report.steps}
    assert result["assign"].as_json() == {"step": "❶", "name": "assign", "failed": "The index sleeps. Wake it."}
    assert result["flag"].counts["dying"] == 1
    assert {memory.cluster_id for memory in home.ledger.state.memories.values()} == {None}


async def test_pending_decisions_are_offered_to_the_agent(home: Household) -> None:
    """spec P6 ❹ ❻, ruling 10: more than 10 active memories are to be split, fresh and dying ones to be consolidated."""
    root = home.ledger.put_cluster("Private")
    large = home.ledger.put_cluster("Large", root, unit([1] + [0] * 63))
    for i in range(11):
        home.ledger.put(a_memory("a good memory" + "!" * i, cluster_id=large.id, fresh=i < 2), unit([1] + [0] * 63))
    pending = (await home.patrol(ADA, steps=["age"])).pending
    assert [(p.kind, p.cluster, len(p.memories)) for p in pending if p.kind != "diary"] == [
        ("consolidate", "Large", 6),
        ("split", "Large", 11),
    ]


async def test_ten_memories_are_not_to_be_split_and_a_root_never_is(home: Household) -> None:
    """spec P6 ❻: more than 10; "Root clusters are never split"."""
    root = home.ledger.put_cluster("Private")
    sub = home.ledger.put_cluster("Ten", root)
    for i in range(40):
        home.ledger.put(a_memory(f"memory {i}", cluster_id=sub.id if i < 10 else root.id, fresh=False))
    assert [offer.kind for offer in (await home.patrol(ADA, steps=["age"])).pending] == ["diary"]


async def test_a_memory_that_faded_is_found_dying_and_comes_back_after_a_recall(home: Household) -> None:
    """rulings 2 and 3, over several patrols: dying, recalled (clock at 0), active; ❷ has already added a cycle."""
    memory = home.ledger.put(a_memory("ramen", session_count=69))
    await home.patrol(ADA)
    assert home.ledger.memory(memory).status == "dying"
    home.ledger.put(a_memory("ramen", id=memory.id, status="dying", session_count=0, reactivation_count=1))
    await home.patrol(ADA)
    assert (home.ledger.memory(memory).status, home.ledger.memory(memory).session_count) == ("active", 0)


async def test_vectors_of_another_model_are_not_used(home: Household) -> None:
    """ruling 6"""
    memory = a_memory("ramen")
    home.ledger.put(memory, unit([1]), model=EmbeddingModelName("another"))
    report = await home.patrol(ADA)
    assert report.steps[0].counts["waiting_for_vectors"] == 1
