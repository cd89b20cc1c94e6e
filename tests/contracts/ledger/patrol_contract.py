"""What every ledger must do for a patrol, and to forget what patrols have made of a memory (ruling 11). Inherited
beside `LedgerContract`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madeleine.memory.errors import CannotUndo
from madeleine.memory.ingest.ports import ErasureResult
from madeleine.memory.model import (
    BeingId,
    ClusterId,
    DatedAction,
    Memory,
    MemoryStatus,
    Provenance,
    RunId,
    Scene,
    Scope,
)
from madeleine.memory.patrol_records import (
    DecisionRequestId,
    DiaryEntry,
    PatrolChanges,
    StoredDecisionRequest,
    ThoughtsForNextSession,
)
from madeleine.memory.rules.dynamics.importance import status_from_decayed_importance
from madeleine.patrol.unit_of_work import patrol_fields_from_memory
from tests.contracts.ledger.any_ledger import AnyLedger
from tests.contracts.ledger.forgetting_contract import LATER, change, stored
from tests.contracts.ledger.ledger_values import (
    ADA,
    BOB,
    MODEL,
    MOMENT,
    SHARED,
    all_states,
    batch,
    cluster,
    ids,
    keyword_query,
    memory,
    stored_memory,
    vector,
)
from tests.contracts.ledger.truth_contract import superseding

FIRST, SECOND = RunId("first"), RunId("second")
POINTS = ThoughtsForNextSession(points=("ask Ann",))
TOLD = "Zoé sold a xylophone"


async def run(ledger: AnyLedger, id_: RunId, changes: PatrolChanges) -> None:
    """A patrol of one step."""
    await ledger.patrols.begin_run(ADA, id_, MOMENT)
    async with ledger.patrols.patrol_transaction(ADA) as transaction:
        await transaction.apply_changes(changes, run=id_, step="consolidate")
    await ledger.patrols.finish_run(ADA, id_, MOMENT, {})


async def merged(ledger: AnyLedger, id_: RunId, survivor: Memory, absorbed: Memory, *told: str) -> Memory:
    """The survivor, with the day's entries of what it absorbed in its timeline."""
    entries = tuple(DatedAction("2025-02-01", text) for text in told or (absorbed.scene.action,))
    to_be = replace(survivor, scene=replace(survivor.scene, when=(*survivor.scene.when, *entries)), importance=0.55)
    dead = replace(absorbed, status="dead", absorbed_into=survivor.id)
    vectors = {to_be.content_hash: vector(0, 1)}
    subjects = (patrol_fields_from_memory(to_be), patrol_fields_from_memory(dead))
    await run(ledger, id_, PatrolChanges(states=subjects, rewritten_memories=(to_be,), model=MODEL, vectors=vectors))
    return to_be


def entry(text: str, *of: Memory, date: str = "2025-03-01", at: timedelta = timedelta()) -> DiaryEntry:
    return DiaryEntry(date=date, text=text, sources=tuple(one.id for one in of), written_at=MOMENT + at)


def offer(id_: str, *of: Memory, **body: Any) -> StoredDecisionRequest:
    shown = {"memories": [{"id": one.id, "text": one.scene.action} for one in of]}
    return StoredDecisionRequest(id=DecisionRequestId(id_), topic=id_, body=shown | body)


class PatrolContract:
    # --- what a patrol looks at

    @given(
        clocks=st.lists(
            st.tuples(
                st.floats(0, 1) | st.sampled_from([0.05, 0.0501, 0.5]),
                st.integers(0, 120),
                st.sampled_from(["active", "active", "dying", "dead"]),
                st.booleans(),
            ),
            max_size=12,
        )
    )
    @settings(max_examples=40, deadline=None, suppress_health_check=SHARED)
    async def test_those_that_fade_are_those_of_the_rule(
        self, ledger: AnyLedger, clocks: list[tuple[float, int, MemoryStatus, bool]]
    ) -> None:
        """spec P6 ❸, ruling 2: whatever way the ledger looks for them."""
        scope = Scope(BeingId(memory().id))
        all_ = [
            memory(scope=scope, importance=importance, session_count=cycles, status=status, pinned=pinned)
            for importance, cycles, status, pinned in clocks
        ]
        await ledger.memories.commit_store_batch(scope, batch(*all_))
        expected = {one.id for one in all_ if one.status != status_from_decayed_importance(one)}
        assert {
            one.id for one in await ledger.patrols.memory_reader_for_patrol(scope).memory_states_with_outdated_status()
        } == expected

    # --- diary and points

    async def test_a_diary_that_was_written_from_it_goes_with_it_and_others_stay(self, ledger: AnyLedger) -> None:
        """spec P8: a derived text may tell it."""
        gone, stays = memory(TOLD), memory("Ann tuned a harp")
        await stored(ledger, gone, stays)
        await run(ledger, FIRST, PatrolChanges(diary=entry("A harp.", stays), thoughts=_points("Harps.", stays)))
        day = timedelta(days=1)
        later = entry("Both.", gone, stays, date="2025-03-02", at=day)
        await run(ledger, SECOND, PatrolChanges(diary=later, thoughts=_points("Both.", stays, gone)))
        erased = await ledger.erasure.forget(ADA, [gone.id], at=LATER)
        assert erased == ErasureResult((gone.id,), (), 1)
        view = ledger.patrols.memory_reader_for_patrol(ADA)
        assert await view.last_diary_entry() == entry("A harp.", stays)
        assert await view.thoughts_for_next_session() == ThoughtsForNextSession()
        assert (await ledger.erasure.forget(ADA, [stays.id], at=LATER)).diary_entries == 1
        assert await view.last_diary_entry() is None

    async def test_an_undo_brings_back_no_diary_that_told_of_it(self, ledger: AnyLedger) -> None:
        gone, stays = memory(TOLD), memory("Ann tuned a harp")
        await stored(ledger, gone, stays)
        first = PatrolChanges(diary=entry("A xylophone.", gone), thoughts=_points("Xylophones.", gone))
        await run(ledger, FIRST, first)
        second = PatrolChanges(diary=entry("Both.", gone, stays), thoughts=_points("Both.", gone, stays))
        await run(ledger, SECOND, second)
        await ledger.erasure.forget(ADA, [gone.id], at=LATER)
        for run_id in (SECOND, FIRST):
            await ledger.patrols.undo_run(ADA, run_id, at=LATER)
            assert await ledger.patrols.memory_reader_for_patrol(ADA).last_diary_entry() is None
            assert (
                await ledger.patrols.memory_reader_for_patrol(ADA).thoughts_for_next_session()
                == ThoughtsForNextSession()
            )

    async def test_an_undo_brings_back_the_diary_of_before_that_told_nothing_of_it(self, ledger: AnyLedger) -> None:
        gone, stays = memory(TOLD), memory("Ann tuned a harp")
        await stored(ledger, gone, stays)
        await run(ledger, FIRST, PatrolChanges(diary=entry("A harp.", stays), thoughts=_points("Harps.", stays)))
        second = PatrolChanges(diary=entry("Both.", gone, stays), thoughts=_points("Both.", gone, stays))
        await run(ledger, SECOND, second)
        await ledger.erasure.forget(ADA, [gone.id], at=LATER)
        await ledger.patrols.undo_run(ADA, SECOND, at=LATER)
        assert await ledger.patrols.memory_reader_for_patrol(ADA).last_diary_entry() == entry("A harp.", stays)
        assert await ledger.patrols.memory_reader_for_patrol(ADA).thoughts_for_next_session() == _points(
            "Harps.", stays
        )

    # --- offers

    async def test_open_offers_that_show_it_or_tell_of_it_are_withdrawn(self, ledger: AnyLedger) -> None:
        """ruling 10"""
        gone, stays = memory(TOLD), memory("Ann tuned a harp")
        await stored(ledger, gone, stays)
        offers = [
            offer("shows", stays, gone), offer("other", stays, cluster="harps"),
            offer("named", stays, cluster="xylophone"), offer("before", stays, earlier="We sold something."),
        ]  # fmt: skip
        await ledger.patrols.store_decision_requests_unless_erased(ADA, offers, at=MOMENT, at_erasure_count=0)
        await ledger.patrols.store_decision_requests_unless_erased(
            BOB, [offer("theirs", stays, gone)], at=MOMENT, at_erasure_count=0
        )
        await ledger.erasure.forget(ADA, [gone.id], at=LATER)
        asked_for = [one.id for one in offers]
        assert [
            one.id for one in await ledger.patrols.memory_reader_for_patrol(ADA).decision_requests_with_ids(asked_for)
        ] == ["other"]
        assert (
            len(
                await ledger.patrols.memory_reader_for_patrol(BOB).decision_requests_with_ids(
                    [DecisionRequestId("theirs")]
                )
            )
            == 1
        )

    async def test_offers_that_were_read_before_something_was_forgotten_are_not_stored(self, ledger: AnyLedger) -> None:
        """ruling 11"""
        gone, stays = memory(TOLD), memory("Ann tuned a harp")
        await stored(ledger, gone, stays)
        reads = ledger.patrols.memory_reader_for_patrol(ADA)
        before = await reads.last_erasure_number()
        await ledger.erasure.forget(ADA, [gone.id], at=LATER)
        late = [offer("shows", stays, gone)]
        assert not await ledger.patrols.store_decision_requests_unless_erased(
            ADA, late, at=LATER, at_erasure_count=before
        )
        assert await reads.open_decision_requests() == []
        now = await reads.last_erasure_number()
        assert await ledger.patrols.store_decision_requests_unless_erased(
            ADA, [offer("new", stays)], at=LATER, at_erasure_count=now
        )
        assert [request.id for request in await reads.open_decision_requests()] == ["new"]

    async def test_topics_offered_since_a_moment_are_known(self, ledger: AnyLedger) -> None:
        told = memory(TOLD)
        await stored(ledger, told)
        reads = ledger.patrols.memory_reader_for_patrol(ADA)
        for at, id_ in ((MOMENT, "early"), (LATER, "late")):
            await ledger.patrols.store_decision_requests_unless_erased(
                ADA, [offer(id_, told)], at=at, at_erasure_count=await reads.last_erasure_number()
            )
        assert await reads.topics_offered_since(MOMENT) == {"early": MOMENT, "late": LATER}
        assert await reads.topics_offered_since(LATER) == {"late": LATER}
        others = ledger.patrols.memory_reader_for_patrol(BOB)
        assert await others.topics_offered_since(MOMENT) == {}

    # --- summaries

    async def test_what_a_forgotten_summary_stood_for_is_recalled_again(self, ledger: AnyLedger) -> None:
        """spec L3, ruling 11"""
        one, two = memory("one"), memory("two")
        await stored(ledger, one, two)
        summary = await self._summarised_memories(ledger, FIRST, one, two)
        assert (await stored_memory(ledger, one)).compressed_into == summary.id
        await ledger.index_source.clear_pending_index_marks(
            [mark for mark, _ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=9)]
        )
        assert await ledger.erasure.forget(ADA, [summary.id], at=LATER) == ErasureResult(
            (summary.id,), (one.id, two.id)
        )
        assert [await stored_memory(ledger, one), await stored_memory(ledger, two)] == [one, two]
        assert {id_ for _, id_ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=9)} == {
            one.id,
            two.id,
        }
        await ledger.patrols.undo_run(ADA, FIRST, at=LATER)
        assert [await stored_memory(ledger, one), await stored_memory(ledger, two)] == [one, two]

    async def test_the_summary_of_what_is_forgotten_stays_and_is_told(self, ledger: AnyLedger) -> None:
        one, two = memory("one"), memory("two")
        await stored(ledger, one, two)
        summary = await self._summarised_memories(ledger, FIRST, one, two)
        assert await ledger.erasure.forget(ADA, [one.id], at=LATER) == ErasureResult((one.id,), (summary.id,))
        assert (await stored_memory(ledger, two)).compressed_into == summary.id
        both = await ledger.erasure.forget(ADA, [two.id, summary.id], at=LATER)
        assert both == ErasureResult((two.id, summary.id))

    async def test_a_summary_that_quotes_what_a_passage_holds_is_forgotten_with_it(self, ledger: AnyLedger) -> None:
        """ruling 25: a passage stands between a scene and the summary of its session."""
        one, two = memory("Ann sold the xylophone"), memory("Ben rowed")
        await stored(ledger, one, two)
        made: dict[str, Any] = {"compression_source": True, "category": "semantic"}
        summary = memory("A day: Ann sold the xylophone", **made)
        passage = memory("Ann sold the xylophone\nBen rowed", compressed_into=summary.id, **made)
        changes = PatrolChanges(new_memories=(summary, passage), compressed={one.id: passage.id, two.id: passage.id})
        await run(ledger, FIRST, changes)
        asked = [summary.id, passage.id, one.id]
        assert await ledger.recall.passage_ids_by_summary_id(ADA, asked) == {summary.id: [passage.id]}
        assert await ledger.recall.passage_ids_by_summary_id(BOB, asked) == {}
        erased = await ledger.erasure.forget(ADA, [one.id], at=LATER)
        assert set(erased.erased_ids) == {one.id, passage.id, summary.id}
        assert await stored_memory(ledger, two) == two

    async def test_a_corrected_passage_stays_without_its_earlier_text(self, ledger: AnyLedger) -> None:
        """ruling 25: its history would tell what was forgotten; what it says now was told since."""
        one = memory("Ann sold the xylophone")
        await stored(ledger, one)
        passage = memory("Ann sold the xylophone\nBen rowed", compression_source=True, category="semantic")
        changes = PatrolChanges(new_memories=(passage,), compressed={one.id: passage.id})
        await run(ledger, FIRST, changes)
        await change(ledger, passage, text="Ann sold an instrument")
        assert (await ledger.erasure.forget(ADA, [one.id], at=LATER)).erased_ids == (one.id,)
        assert (await stored_memory(ledger, passage)).scene.action == "Ann sold an instrument"
        [revision] = await ledger.recall.revision_history(ADA, [passage.id])
        assert revision.before.text is None

    async def test_a_passage_that_quotes_what_its_scene_has_absorbed_is_forgotten_with_it(
        self, ledger: AnyLedger
    ) -> None:
        """ruling 25: the absorbed memory is behind its survivor, and that behind the passage."""
        survivor, absorbed, other = memory("Ann plays"), memory("Ann sold the xylophone"), memory("Ben rowed")
        await stored(ledger, survivor, absorbed, other)
        grown = replace(survivor.scene, when=("2026-03-01", DatedAction("2026-03-02", absorbed.scene.action)))
        merged = replace(survivor, scene=grown)
        gone = replace(absorbed, status="dead", absorbed_into=survivor.id)
        await run(
            ledger,
            FIRST,
            PatrolChanges(states=(patrol_fields_from_memory(gone),), rewritten_memories=(merged,)),
        )
        passage = memory(
            "Ann plays 2026-03-02: Ann sold the xylophone\nBen rowed", compression_source=True, category="semantic"
        )
        held = {survivor.id: passage.id, other.id: passage.id}
        await run(ledger, SECOND, PatrolChanges(new_memories=(passage,), compressed=held))
        erased = await ledger.erasure.forget(ADA, [absorbed.id], at=LATER)
        assert set(erased.erased_ids) == {absorbed.id, passage.id}
        left = await stored_memory(ledger, survivor)
        assert ("xylophone" in str(left.scene), left.compressed) == (False, False)

    async def test_what_is_dying_is_read_but_not_what_a_passage_holds(self, ledger: AnyLedger) -> None:
        dying = memory("Ann sang", status="dying", happened_at=MOMENT)
        earlier = memory("Ben rowed", status="dying", happened_at=MOMENT - timedelta(days=1))
        held = memory("Carl slept", status="dying", compressed=True)
        await stored(ledger, dying, earlier, held, memory("Dora waved"))
        reads = ledger.patrols.memory_reader_for_patrol(ADA)
        assert [one.id for one in await reads.dying_memories(limit=9)] == [earlier.id, dying.id]
        assert [one.id for one in await reads.dying_memories(limit=1)] == [earlier.id]

    async def test_a_session_of_which_one_memory_is_left_beside_its_summary_is_summarised(
        self, ledger: AnyLedger
    ) -> None:
        """spec L3: nobody is asked to summarise what was too long for a passage; a session of one memory is one."""

        def told(session: str, **fields: Any) -> Memory:
            return memory(provenance=Provenance(tool="store", session_id=session), **fields)

        left, continued, alone = told("left"), told("continued"), told("alone")
        others = [told(session, compressed=True) for session in ("left", "continued")]
        await stored(ledger, left, continued, alone, *others, told("continued"))
        reads = ledger.patrols.memory_reader_for_patrol(ADA)
        sessions = {one.session_id: one.memories for one in await reads.unsummarised_sessions()}
        assert sessions == {"continued": 2, "alone": 1}

    async def _summarised_memories(self, ledger: AnyLedger, id_: RunId, *of: Memory) -> Memory:
        summary = memory("A summary", compression_source=True, category="semantic")
        await run(ledger, id_, PatrolChanges(new_memories=(summary,), compressed={one.id: summary.id for one in of}))
        return summary

    # --- timelines

    async def test_no_survivor_up_the_chain_retells_it(self, ledger: AnyLedger) -> None:
        """spec P4. The first survivor was cleaned, the one that had absorbed that was not."""
        last, middle, first = memory("last"), memory("middle"), memory(TOLD)
        await stored(ledger, last, middle, first, row=vector(1, 0))
        middle = await merged(ledger, FIRST, middle, first)
        await merged(ledger, SECOND, last, middle, "middle", TOLD)
        erased = await ledger.erasure.forget(ADA, [first.id], at=LATER)
        assert set(erased.related_ids) == {middle.id, last.id}
        assert await ledger.search.newest_matching_texts(ADA, keyword_query("xylophone")) == []
        assert (await stored_memory(ledger, last)).scene.when == (DatedAction("2025-02-01", "middle"),)

    async def test_a_survivor_of_long_ago_does_not_retell_one_that_came_back(self, ledger: AnyLedger) -> None:
        """ruling 3: on revival the tie is gone, the timeline is not."""
        survivor, absorbed = memory("An auction"), memory(TOLD)
        await stored(ledger, survivor, absorbed)
        await merged(ledger, FIRST, survivor, absorbed)
        await run(ledger, SECOND, PatrolChanges(states=(patrol_fields_from_memory(absorbed),)))
        assert (await stored_memory(ledger, absorbed)).absorbed_into is None
        assert (await ledger.erasure.forget(ADA, [absorbed.id], at=LATER)).related_ids == (survivor.id,)
        assert (await stored_memory(ledger, survivor)).scene.when == ()

    async def test_a_timeline_that_cut_it_short_does_not_tell_it_either(self, ledger: AnyLedger) -> None:
        survivor, absorbed = memory("An auction"), memory(TOLD + " for a song" * 300)
        await stored(ledger, survivor, absorbed)
        await merged(ledger, FIRST, survivor, absorbed, absorbed.scene.action[:1_999] + "…", "another…")
        await ledger.erasure.forget(ADA, [absorbed.id], at=LATER)
        assert (await stored_memory(ledger, survivor)).scene.when == (DatedAction("2025-02-01", "another…"),)

    async def test_what_it_said_before_it_was_changed_and_its_own_dates_are_not_retold(self, ledger: AnyLedger) -> None:
        dated = DatedAction("2025-01-31", "Zoé tuned it")
        survivor, absorbed = memory("An auction"), memory(scene=Scene(action=TOLD, when=(dated,)))
        other = memory("Ann tuned a harp", status="dead", absorbed_into=absorbed.id)
        await stored(ledger, survivor, absorbed, other)
        await merged(ledger, FIRST, survivor, absorbed, TOLD, dated.action, other.scene.action)
        await change(ledger, absorbed, text="Zoé kept everything")
        await ledger.erasure.forget(ADA, [absorbed.id], at=LATER)
        # What another one did, that stays, is still told.
        assert (await stored_memory(ledger, survivor)).scene.when == (DatedAction("2025-02-01", other.scene.action),)
        assert (await stored_memory(ledger, other)).absorbed_into == survivor.id

    # --- the journal

    async def test_an_undo_after_it_brings_nothing_of_it_back(self, ledger: AnyLedger) -> None:
        survivor, absorbed = memory("An auction", importance=0.5), memory(TOLD)
        await stored(ledger, survivor, absorbed, row=vector(1, 0))
        merged_memory = await merged(ledger, FIRST, survivor, absorbed)
        await ledger.erasure.forget(ADA, [absorbed.id], at=LATER)
        assert (
            await ledger.memories.cached_vectors_by_hash(MODEL, [absorbed.content_hash, merged_memory.content_hash])
            == {}
        )
        await ledger.patrols.undo_run(ADA, FIRST, at=LATER)
        assert await ledger.memories.memories_with_ids(ADA, [absorbed.id]) == []
        assert await stored_memory(ledger, survivor) == survivor
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("auction"))) == [survivor.id]

    async def test_the_vectors_of_all_its_earlier_texts_are_gone(self, ledger: AnyLedger) -> None:
        """Those of a survivor before its timeline grew are kept, for an undo."""
        survivor, absorbed = memory(TOLD), memory("An auction")
        await stored(ledger, survivor, absorbed, row=vector(1, 0))
        merged_memory = await merged(ledger, FIRST, survivor, absorbed)
        assert (
            len(
                await ledger.memories.cached_vectors_by_hash(MODEL, [survivor.content_hash, merged_memory.content_hash])
            )
            == 2
        )
        await ledger.erasure.forget(ADA, [survivor.id], at=LATER)
        assert (
            await ledger.memories.cached_vectors_by_hash(MODEL, [survivor.content_hash, merged_memory.content_hash])
            == {}
        )
        assert list(await ledger.memories.cached_vectors_by_hash(MODEL, [absorbed.content_hash])) == [
            absorbed.content_hash
        ]

    async def test_what_a_forgotten_survivor_absorbed_lives_again_after_an_undo_and_is_tied_to_nobody(
        self, ledger: AnyLedger
    ) -> None:
        last, survivor, absorbed = memory("last"), memory("middle"), memory("first")
        await stored(ledger, last, survivor, absorbed)
        survivor = await merged(ledger, FIRST, survivor, absorbed)
        await merged(ledger, SECOND, last, survivor, "middle", "first")
        await ledger.erasure.forget(ADA, [survivor.id], at=LATER)
        assert (await stored_memory(ledger, absorbed)).absorbed_into == last.id
        await ledger.patrols.undo_run(ADA, FIRST, at=LATER)
        now = await stored_memory(ledger, absorbed)
        assert (now.status, now.absorbed_into) == ("active", None)

    async def test_the_last_runs_can_be_undone_and_older_ones_hold_no_only_copy(self, ledger: AnyLedger) -> None:
        """ruling 26. The clock of those that are pruned still counts: nothing ages twice on a day."""
        one = memory("Ann tuned a harp")
        await ledger.memories.commit_store_batch(ADA, batch(one))
        days = [RunId(f"run {day}") for day in range(5)]
        for day, id_ in enumerate(days):
            started = MOMENT + timedelta(days=day)
            await ledger.patrols.begin_run(ADA, id_, started)
            async with ledger.patrols.patrol_transaction(ADA) as transaction:
                if day == 1:
                    await transaction.age_active_memories(id_)
                state = replace(patrol_fields_from_memory(one), importance=0.9 - day / 10)
                changes = PatrolChanges(states=(state,), diary=entry(f"Told {day} times", one), thoughts=POINTS)
                await transaction.apply_changes(changes, run=id_, step="assign")
            await ledger.patrols.finish_run(ADA, id_, started, {})
        await ledger.patrols.prune_journal(ADA, undoable_runs=5)
        assert {run.state for run in await ledger.patrols.runs(ADA, limit=9)} == {"finished"}
        await ledger.patrols.prune_journal(BOB, undoable_runs=1)
        await ledger.patrols.prune_journal(ADA, undoable_runs=2)
        states = {run.id: run.state for run in await ledger.patrols.runs(ADA, limit=9)}
        assert [states[id_] for id_ in days] == ["pruned"] * 3 + ["finished"] * 2
        assert await ledger.patrols.memory_reader_for_patrol(ADA).last_aged_at() == MOMENT + timedelta(days=1)
        for id_ in days[:3]:
            with pytest.raises(CannotUndo, match="too long ago"):
                await ledger.patrols.undo_run(ADA, id_, at=LATER)
        for id_ in days[:2:-1]:
            await ledger.patrols.undo_run(ADA, id_, at=LATER)
        assert (await stored_memory(ledger, one)).importance == pytest.approx(0.7)
        last = await ledger.patrols.memory_reader_for_patrol(ADA).last_diary_entry()
        assert last is not None
        assert last.text == "Told 2 times"

    async def test_a_cluster_that_an_undo_brings_back_tells_nothing_of_it(self, ledger: AnyLedger) -> None:
        """Neither its name nor its mean, which may be the very vector of what is forgotten."""
        gone, stays = memory(TOLD), memory("Ann tuned a harp")
        rows = {gone.content_hash: vector(1, 0), stays.content_hash: vector(0, 1)}
        await ledger.memories.commit_store_batch(ADA, batch(gone, stays, vectors=rows))
        root = cluster("root", "Private", "root", is_root=True)
        mean = vector(*np.sqrt([0.5, 0.5]))
        named = cluster("c", "harp & xylophone", "root", vector=mean, model=MODEL)
        in_c = tuple(replace(patrol_fields_from_memory(one), cluster_id=named.id) for one in (gone, stays))
        await run(ledger, FIRST, PatrolChanges(clusters=(root, named), states=in_c))
        at_root = tuple(replace(one, cluster_id=root.id) for one in in_c)
        await run(ledger, SECOND, PatrolChanges(removed_clusters=(named.id,), states=at_root))
        await ledger.erasure.forget(ADA, [gone.id], at=LATER)
        await ledger.patrols.undo_run(ADA, SECOND, at=LATER)
        async with ledger.patrols.patrol_transaction(ADA) as transaction:
            [found] = [one for one in await transaction.clusters() if one.id == "c"]
            assert [one.id for one in await all_states(ledger, transaction)] == [stays.id]
        assert "xylophone" not in found.name
        assert found.vector is not None
        assert found.vector.tolist() == [0, 1]
        assert (await stored_memory(ledger, stays)).cluster_id == ClusterId("c")

    # --- what is true now (ruling 14)

    async def test_a_patrol_supersedes_by_decision_and_its_undo_takes_that_back(self, ledger: AnyLedger) -> None:
        await ledger.memories.commit_store_batch(
            ADA, batch(old := memory("lives in Lyon"), new := memory("lives in Rome"))
        )
        await run(ledger, FIRST, PatrolChanges(superseded=(superseding(old, new),)))
        assert (await stored_memory(ledger, old)).superseded_by == new.id
        await ledger.memories.undo_last_truth_change(ADA, old.id, at=LATER)
        assert [await stored_memory(ledger, old), await stored_memory(ledger, new)] == [old, new]
        await run(ledger, SECOND, PatrolChanges(superseded=(superseding(old, new),)))
        await ledger.patrols.undo_run(ADA, SECOND, at=LATER)
        assert [await stored_memory(ledger, old), await stored_memory(ledger, new)] == [old, new]
        with pytest.raises(CannotUndo, match="neither"):
            await ledger.memories.undo_last_truth_change(ADA, old.id, at=LATER)

    async def test_what_may_supersede_is_read_in_the_order_of_happening_while_both_are_current(
        self, ledger: AnyLedger
    ) -> None:
        await ledger.memories.commit_store_batch(ADA, batch(lyon := memory("lives in Lyon")))
        rome = replace(memory("lives in Rome"), may_supersede=lyon.id, happened_at=LATER)
        oslo = replace(memory("lives in Oslo"), may_supersede=rome.id, happened_at=LATER + timedelta(days=1))
        dead = replace(memory("lives in Graz"), may_supersede=lyon.id, status="dead")
        await ledger.memories.commit_store_batch(ADA, batch(oslo, rome, dead))
        reads = ledger.patrols.memory_reader_for_patrol(ADA)
        assert await reads.all_memory_ids_that_may_supersede() == [rome.id, oslo.id]
        assert await ledger.patrols.memory_reader_for_patrol(BOB).all_memory_ids_that_may_supersede() == []
        await run(ledger, FIRST, PatrolChanges(superseded=(superseding(lyon, rome),)))
        assert await reads.all_memory_ids_that_may_supersede() == [oslo.id]

    async def test_of_a_chain_the_later_pair_may_be_decided_first(self, ledger: AnyLedger) -> None:
        """Else the oldest stayed current for good."""
        await ledger.memories.commit_store_batch(ADA, batch(lyon := memory("lives in Lyon")))
        rome = replace(memory("lives in Rome"), may_supersede=lyon.id, happened_at=LATER)
        oslo = replace(memory("lives in Oslo"), may_supersede=rome.id, happened_at=LATER + timedelta(days=1))
        await ledger.memories.commit_store_batch(ADA, batch(rome, oslo))
        later = replace(superseding(rome, oslo), since=oslo.happened_at)
        await run(ledger, FIRST, PatrolChanges(superseded=(later,)))
        assert await ledger.patrols.memory_reader_for_patrol(ADA).all_memory_ids_that_may_supersede() == [rome.id]
        await run(ledger, SECOND, PatrolChanges(superseded=(replace(superseding(lyon, rome), since=LATER),)))
        chain = [await stored_memory(ledger, each) for each in (lyon, rome, oslo)]
        assert [each.superseded_by for each in chain] == [rome.id, oslo.id, None]
        assert [each.valid_until for each in chain] == [LATER, oslo.happened_at, None]
        await ledger.patrols.undo_run(ADA, SECOND, at=LATER)
        assert [(await stored_memory(ledger, each)).truth for each in (lyon, rome)] == ["current", "superseded"]

    async def test_an_undo_does_not_supersede_by_what_was_forgotten(self, ledger: AnyLedger) -> None:
        """ruling 25: the journal of a later act named it."""
        await ledger.memories.commit_store_batch(
            ADA, batch(old := memory("lives in Lyon"), new := memory("lives in Rome"))
        )
        await run(ledger, FIRST, PatrolChanges(superseded=(superseding(old, new),)))
        retracted = await ledger.memories.retract(ADA, old.id, "misheard", at=LATER)
        assert retracted is not None
        await ledger.erasure.forget(ADA, [new.id], at=LATER)
        with pytest.raises(CannotUndo, match="neither"):
            await ledger.memories.undo_last_truth_change(ADA, old.id, at=LATER)
        await ledger.patrols.undo_run(ADA, FIRST, at=LATER)
        assert (await stored_memory(ledger, old)).superseded_by is None


def _points(text: str, *of: Memory) -> ThoughtsForNextSession:
    return ThoughtsForNextSession(points=(text,), sources=tuple(one.id for one in of))
