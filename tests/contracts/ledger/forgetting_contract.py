"""What every ledger must do to correct and to forget (ruling 11). Inherited beside `LedgerContract`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import numpy as np

from madeleine.memory.ingest.ports import ErasureResult
from madeleine.memory.model import (
    ClusterId,
    DatedAction,
    EmbeddingModelName,
    Memory,
    MemoryChanges,
    MemoryId,
    Scene,
    Scope,
    Vector,
)
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.memory.recall.ports import MemoryReactivation
from tests.contracts.ledger.any_ledger import AnyLedger
from tests.contracts.ledger.ledger_values import (
    ADA,
    BOB,
    MODEL,
    MOMENT,
    RUN,
    all_states,
    apply_changes,
    batch,
    cluster,
    ids,
    keyword_query,
    memory,
    note,
    reinforcement_of,
    stored_memory,
    vector,
)
from tests.contracts.ledger.truth_contract import CHANGED_AT, chain_of_three

LATER = MOMENT + timedelta(days=3)
OTHER = EmbeddingModelName("other")
DESK = Scope(ADA.being_id, client="desk")


async def stored(ledger: AnyLedger, *new: Memory, scope: Scope = ADA, row: Vector | None = None) -> None:
    vectors = {} if row is None else {one.content_hash: row for one in new}
    await ledger.memories.commit_store_batch(scope, batch(*new, vectors=vectors))


async def change(ledger: AnyLedger, one: Memory, scope: Scope = DESK, **to_be: object) -> Memory | None:
    wanted = MemoryChanges(**to_be)  # type: ignore[arg-type]
    found = await ledger.memories.change_memory(scope, one.id, wanted, at=LATER, model=MODEL, vectors={})
    return None if found is None else found[0]


class ForgettingContract:
    # --- correcting

    async def test_a_change_is_there_at_once_and_what_was_before_is_kept(self, ledger: AnyLedger) -> None:
        one = memory("Ann lives in Rome", importance=0.3, themes=("home",))
        await stored(ledger, one)
        asked_for = MemoryChanges(text="Ann lives in Oslo", importance=0.3, themes=("home", "move"), pinned=True)
        found = await ledger.memories.change_memory(DESK, one.id, asked_for, at=LATER, model=MODEL, vectors={})
        assert found is not None
        now, done = found
        assert done == replace(asked_for, importance=None)
        assert now == await stored_memory(ledger, one)
        assert (now.scene.action, now.themes, now.pinned) == ("Ann lives in Oslo", ("home", "move"), True)
        assert (now.created_at, now.happened_at, now.provenance) == (one.created_at, one.happened_at, one.provenance)
        await change(ledger, one, importance=0.9)
        first, second = await ledger.recall.revision_history(ADA, [one.id])
        assert (first.at, first.client, first.memory_id) == (LATER, "desk", one.id)
        assert first.before == MemoryChanges(text="Ann lives in Rome", themes=("home",), pinned=False)
        assert second.before == MemoryChanges(importance=0.3)

    async def test_a_change_to_what_is_so_already_is_none(self, ledger: AnyLedger) -> None:
        one = memory("Ann lives in Rome", importance=0.3)
        await stored(ledger, one)
        marks = await ledger.index_source.pending_index_marks_with_memory_ids(limit=9)
        assert await change(ledger, one, text="Ann lives in Rome", importance=0.3, pinned=False) == one
        assert await ledger.recall.revision_history(ADA, [one.id]) == []
        assert await ledger.index_source.pending_index_marks_with_memory_ids(limit=9) == marks

    async def test_the_earlier_text_is_found_by_no_search_and_the_new_one_is(self, ledger: AnyLedger) -> None:
        one = memory("Ann lives in Rome", themes=("italy",))
        await stored(ledger, one)
        await change(ledger, one, text="Ann lives in Oslo", themes=("norway",))
        for old in ("rome", "italy"):
            assert await ledger.search.newest_matching_texts(ADA, keyword_query(old)) == []
        for new in ("oslo", "norway"):
            assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query(new))) == [one.id]
        assert await ledger.memories.ids_with_content_hash(ADA, one.content_hash) == []

    async def test_a_changed_memory_leaves_a_mark_and_the_vector_of_its_new_text(self, ledger: AnyLedger) -> None:
        one, twin = memory("Rome"), memory("Rome", scope=BOB)
        new = replace(one, scene=Scene(action="Oslo"))
        await stored(ledger, one, row=vector(1, 0))
        await ledger.index_source.clear_pending_index_marks(
            [mark for mark, _ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=9)]
        )
        vectors = {new.content_hash: vector(0, 1), memory("elsewhere").content_hash: vector(1, 1)}
        await ledger.memories.change_memory(
            ADA, one.id, MemoryChanges(text="Oslo"), at=LATER, model=MODEL, vectors=vectors
        )
        assert [id_ for _, id_ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=9)] == [one.id]
        assert list(await ledger.memories.cached_vectors_by_hash(MODEL, [one.content_hash, *vectors])) == [
            new.content_hash
        ]
        await stored(ledger, twin, scope=BOB, row=vector(1, 0))
        assert list(await ledger.memories.cached_vectors_by_hash(MODEL, [twin.content_hash])) == [twin.content_hash]

    async def test_the_vector_of_the_earlier_text_stays_while_another_memory_has_it(self, ledger: AnyLedger) -> None:
        one, twin = memory("Rome"), memory("Rome", scope=BOB)
        await stored(ledger, one, row=vector(1, 0))
        await stored(ledger, twin, scope=BOB)
        await change(ledger, one, text="Oslo")
        assert list(await ledger.memories.cached_vectors_by_hash(MODEL, [twin.content_hash])) == [twin.content_hash]

    async def test_a_key_is_of_what_was_stored_also_after_a_change(self, ledger: AnyLedger) -> None:
        one = memory("Ann lives in Rome", key="k")
        await stored(ledger, one)
        await change(ledger, one, importance=0.9)
        await change(ledger, one, text="Ann lives in Oslo")
        await change(ledger, one, text="Ann lives in Bern")
        assert (await ledger.memories.idempotency_key_outcomes(ADA, ["k"]))["k"].text == "Ann lives in Rome"

    async def test_a_cluster_is_no_longer_what_a_changed_memory_was(self, ledger: AnyLedger) -> None:
        """spec P3: the mean of its active memories."""
        await self._in_cluster(ledger, left := memory("a"), moved := memory("b"))
        now = await change(ledger, moved, text="c")
        assert now is not None
        assert (now.cluster_id, now.fresh) == (None, True)
        assert await self._vector(ledger) == [1.0, 0.0]
        assert (await stored_memory(ledger, left)).cluster_id == "c"

    async def test_a_memory_of_another_being_cannot_be_changed_or_forgotten(self, ledger: AnyLedger) -> None:
        """spec P1; as if there were none."""
        theirs = memory("theirs", scope=BOB)
        await stored(ledger, theirs, scope=BOB, row=vector(1, 0))
        await change(ledger, theirs, BOB, importance=0.9)
        before = await stored_memory(ledger, theirs, BOB)
        assert await change(ledger, theirs, ADA, text="mine") is None
        assert await ledger.recall.revision_history(ADA, [theirs.id]) == []
        assert await ledger.erasure.forget(ADA, [theirs.id, MemoryId("nobody")], at=LATER) == ErasureResult()
        assert await stored_memory(ledger, theirs, BOB) == before
        assert len(await ledger.recall.revision_history(BOB, [theirs.id])) == 1
        assert list(await ledger.memories.cached_vectors_by_hash(MODEL, [theirs.content_hash])) == [theirs.content_hash]
        assert await ledger.erasure.pending_scrub_marks_with_memory_ids() == []

    # --- forgetting

    async def test_what_is_forgotten_is_nowhere_any_more(self, ledger: AnyLedger) -> None:
        """ruling 11"""
        one, other = memory("Zoé sold a xylophone", key="k", themes=("music",)), memory("Ate a madeleine", key="o")
        await stored(ledger, one, other, row=vector(1, 0))
        await ledger.memories.commit_store_batch(
            ADA, batch(again=[reinforcement_of(one, "Zoé sold her xylophone", key="r")])
        )
        await ledger.patrols.cache_vectors(OTHER, {one.content_hash: vector(0, 1)})
        await change(ledger, one, text="Zoé sold the xylophone")
        before = await stored_memory(ledger, other)
        assert await ledger.erasure.forget(ADA, [one.id, MemoryId("nobody"), one.id], at=LATER) == ErasureResult(
            (one.id,)
        )
        assert await ledger.memories.memories_with_ids(ADA, [one.id]) == []
        assert await ledger.recall.revision_history(ADA, [one.id]) == []
        assert await ledger.memories.idempotency_key_outcomes(ADA, ["k", "r"]) == {}
        assert await ledger.search.newest_matching_texts(ADA, keyword_query("xylophone")) == []
        for model in (MODEL, OTHER):
            assert await ledger.memories.cached_vectors_by_hash(model, [one.content_hash]) == {}
        assert one.id not in [id_ for _, id_ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=9)]
        assert await ledger.index_source.count_memories() == 1
        assert await stored_memory(ledger, other) == before
        await stored(ledger, memory("Zoé sold a xylophone", key="k"))  # as if it had never been

    async def test_a_mark_stays_until_it_is_said_that_nothing_is_left(self, ledger: AnyLedger) -> None:
        one, two = memory("one"), memory("two")
        await stored(ledger, one, two)
        await ledger.erasure.forget(ADA, [one.id], at=LATER)
        await ledger.erasure.forget(ADA, [two.id], at=LATER)
        first, second = await ledger.erasure.pending_scrub_marks_with_memory_ids()
        assert (first[1], second[1]) == (one.id, two.id)
        await ledger.erasure.scrub_deleted_bytes()
        await ledger.erasure.clear_scrub_marks([first[0]])
        assert await ledger.erasure.pending_scrub_marks_with_memory_ids() == [second]
        assert await ledger.erasure.forget(ADA, [one.id], at=LATER) == ErasureResult()
        assert await ledger.erasure.pending_scrub_marks_with_memory_ids() == [second]

    async def test_a_vector_stays_while_another_memory_has_the_text(self, ledger: AnyLedger) -> None:
        one, twin = memory("Rome"), memory("Rome", scope=BOB)
        await stored(ledger, one, row=vector(1, 0))
        await stored(ledger, twin, scope=BOB)
        await ledger.erasure.forget(ADA, [one.id], at=LATER)
        assert list(await ledger.memories.cached_vectors_by_hash(MODEL, [twin.content_hash])) == [twin.content_hash]
        await ledger.erasure.forget(BOB, [twin.id], at=LATER)
        assert await ledger.memories.cached_vectors_by_hash(MODEL, [twin.content_hash]) == {}

    async def test_the_note_that_it_came_from_goes_with_it_and_others_stay(self, ledger: AnyLedger) -> None:
        """spec P6 ❶"""
        one = memory("Found a key")
        taken, unread = note("Found a key", type_="scene"), note("Found a key as well", type_="scene")
        for inbox in (taken, unread):
            await ledger.context.add_note(ADA, inbox)
        await apply_changes(
            ledger, PatrolChanges(new_memories=(one,), notes=(replace(taken, state="parse_failed", memory_id=one.id),))
        )
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("key", sources=("notes",)))) == [
            taken.id,
            unread.id,
        ]
        await ledger.erasure.forget(ADA, [one.id], at=LATER)
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("key", sources=("notes",)))) == [
            unread.id
        ]

    async def test_a_cluster_is_the_mean_of_those_that_stay(self, ledger: AnyLedger) -> None:
        """spec P3"""
        await self._in_cluster(ledger, memory("a"), gone := memory("b"))
        assert await self._vector(ledger) == [0.5, 0.5]
        await ledger.erasure.forget(ADA, [gone.id], at=LATER)
        assert await self._vector(ledger) == [1.0, 0.0]

    async def test_a_cluster_without_active_members_is_the_mean_of_the_others_and_else_nothing(
        self, ledger: AnyLedger
    ) -> None:
        """Its last mean may be the very vector of what is forgotten."""
        await self._in_cluster(ledger, asleep := memory("a", status="dead"), gone := memory("b"))
        await ledger.erasure.forget(ADA, [gone.id], at=LATER)
        assert await self._vector(ledger) == [1.0, 0.0]
        await ledger.erasure.forget(ADA, [asleep.id], at=LATER)
        assert await self._vector(ledger) is None

    async def test_names_of_clusters_and_old_reports_tell_nothing_of_it(self, ledger: AnyLedger) -> None:
        gone, stays = memory("Zoé sold a xylophone"), memory("Ann tuned a harp", themes=("harps",))
        await stored(ledger, gone, stays)
        async with ledger.patrols.patrol_transaction(ADA) as transaction:
            places = {gone.id: "alone", stays.id: "mixed"}
            await transaction.apply_changes(
                PatrolChanges(
                    states=tuple(
                        replace(one, cluster_id=ClusterId(places[one.id]))
                        for one in await all_states(ledger, transaction)
                    ),
                    clusters=(
                        cluster("root", "Private", "root", is_root=True),
                        cluster("alone", "xylophone", "root"),
                        cluster("mixed", "harp & xylophone", "root"),
                        cluster("other", "harp", "root"),
                    ),
                ),
                run=RUN,
                step="assign",
            )
            report = {
                "pending": [{"cluster_id": "x", "cluster": "sold xylo"}, {"cluster_id": "other", "cluster": "harp"}]
            }
        await ledger.patrols.begin_run(ADA, RUN, MOMENT)
        await ledger.patrols.finish_run(ADA, RUN, LATER, report)
        await ledger.erasure.forget(ADA, [gone.id], at=LATER)
        named = {one.id: one.name for one in await ledger.recall.clusters_with_memory_counts(ADA)}
        assert named == {"root": "Private", "mixed": "harps", "other": "harp"}
        [kept] = await self._reports(ledger)
        assert kept == {
            "pending": [{"cluster_id": "x", "cluster": "[forgotten]"}, {"cluster_id": "other", "cluster": "harp"}]
        }

    async def test_what_a_forgotten_survivor_had_absorbed_stays_and_is_told(self, ledger: AnyLedger) -> None:
        """ruling 3: it may come back by itself then, for its survivor lives no more."""
        last, middle = memory("last"), memory("middle")
        first = memory("first", status="dead", absorbed_into=middle.id)
        middle = replace(middle, status="dead", absorbed_into=last.id)
        await stored(ledger, last, middle, first)
        assert await ledger.erasure.forget(ADA, [middle.id], at=LATER) == ErasureResult(
            (middle.id,), (first.id, last.id)
        )
        assert (await stored_memory(ledger, first)).absorbed_into == last.id
        assert await ledger.erasure.forget(ADA, [last.id], at=LATER) == ErasureResult((last.id,), (first.id,))
        assert (await stored_memory(ledger, first)).absorbed_into is None

    async def test_a_chain_of_mergers_forgotten_together_leaves_no_tie(self, ledger: AnyLedger) -> None:
        one, two = memory("one"), memory("two")
        three = memory("three", status="dead", absorbed_into=one.id)
        ring = replace(one, absorbed_into=two.id), replace(two, absorbed_into=one.id)
        await stored(ledger, *ring, three)
        assert await ledger.erasure.forget(ADA, [one.id, two.id], at=LATER) == ErasureResult(
            (one.id, two.id), (three.id,)
        )
        assert (await stored_memory(ledger, three)).absorbed_into is None

    async def test_a_survivor_no_longer_retells_what_it_absorbed(self, ledger: AnyLedger) -> None:
        """spec P4"""
        told = DatedAction("2025-02-01", "Zoé sold a xylophone")
        own = DatedAction("2025-01-01", "The hall opened")
        survivor = memory("An auction", scene=Scene(action="An auction", when=(own, told)))
        absorbed = memory(told.action, status="dead", absorbed_into=survivor.id)
        await stored(ledger, survivor, absorbed, row=vector(1, 0))
        await ledger.index_source.clear_pending_index_marks(
            [mark for mark, _ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=9)]
        )
        assert await ledger.erasure.forget(ADA, [absorbed.id], at=LATER) == ErasureResult(
            (absorbed.id,), (survivor.id,)
        )
        now = await stored_memory(ledger, survivor)
        assert now.scene.when == (own,)
        assert await ledger.search.newest_matching_texts(ADA, keyword_query("xylophone")) == []
        assert await ledger.memories.cached_vectors_by_hash(MODEL, [survivor.content_hash]) == {}
        assert await ledger.index_source.memories_not_embedded_by_model(MODEL, limit=9) == [now]
        assert [id_ for _, id_ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=9)] == [
            survivor.id
        ]

    # --- beside others

    async def test_a_vector_that_comes_too_late_is_not_kept(self, ledger: AnyLedger) -> None:
        """It was being embedded while it was forgotten."""
        one, other = memory("gone"), memory("here")
        await stored(ledger, one, other)
        await ledger.erasure.forget(ADA, [one.id], at=LATER)
        await ledger.index_source.cache_vectors_of_texts_in_memories(
            MODEL, {o.content_hash: vector(1, 0) for o in (one, other)}
        )
        assert list(await ledger.memories.cached_vectors_by_hash(MODEL, [one.content_hash, other.content_hash])) == [
            other.content_hash
        ]

    async def test_a_reactivation_that_comes_too_late_brings_nothing_back(self, ledger: AnyLedger) -> None:
        await stored(ledger, one := memory())
        ledger.activations.add_reactivations(ADA, [MemoryReactivation(one.id, 1, MOMENT)])
        await ledger.erasure.forget(ADA, [one.id], at=LATER)
        await ledger.activations.flush()
        assert await ledger.memories.memories_with_ids(ADA, [one.id]) == []

    async def test_forgetting_waits_for_a_patrol_and_has_the_last_word(self, ledger: AnyLedger) -> None:
        await stored(ledger, one := memory("one"), memory("two"))
        async with ledger.patrols.patrol_transaction(ADA) as transaction:
            forgetting = asyncio.create_task(ledger.erasure.forget(ADA, [one.id], at=LATER))
            changed = [replace(subject, session_count=7) for subject in await all_states(ledger, transaction)]
            await asyncio.sleep(0)
            await transaction.apply_changes(PatrolChanges(states=tuple(changed)), run=RUN, step="assign")
            assert not forgetting.done()
        assert await forgetting == ErasureResult((one.id,))
        assert [left.session_count for left in await ledger.index_source.memories_after_id(after=None, limit=9)] == [7]

    async def test_many_at_once_are_forgotten_each_once(self, ledger: AnyLedger) -> None:
        new = [memory(f"number {n}") for n in range(30)]
        await stored(ledger, *new)
        wishes = [[one.id for one in new[start : start + 12]] for start in range(0, 30, 6)]
        erased = await asyncio.gather(*(ledger.erasure.forget(ADA, wish, at=LATER) for wish in wishes))
        assert sorted(id_ for found in erased for id_ in found.erased_ids) == sorted(one.id for one in new)
        assert await ledger.index_source.count_memories() == 0

    # --- help

    async def _in_cluster(self, ledger: AnyLedger, first: Memory, second: Memory) -> None:
        """Both in the cluster `c`; the first has the vector (1, 0), the second (0, 1)."""
        rows = {first.content_hash: vector(1, 0), second.content_hash: vector(0, 1)}
        await ledger.memories.commit_store_batch(ADA, batch(first, second, vectors=rows))
        async with ledger.patrols.patrol_transaction(ADA) as transaction:
            moved = tuple(replace(one, cluster_id=ClusterId("c")) for one in await all_states(ledger, transaction))
            made = (
                cluster("root", "Private", "root", is_root=True),
                cluster("c", "…", "root", vector=vector(0.5, 0.5), model=MODEL),
            )
            await transaction.apply_changes(PatrolChanges(states=moved, clusters=made), run=RUN, step="assign")

    async def _vector(self, ledger: AnyLedger) -> list[float] | None:
        async with ledger.patrols.patrol_transaction(ADA) as transaction:
            [found] = [one.vector for one in await transaction.clusters() if one.id == "c"]
        return None if found is None else np.round(found, 6).tolist()

    async def _reports(self, ledger: AnyLedger) -> list[object]:
        """As they are kept; no port reads them yet."""
        raise NotImplementedError

    # --- what is true now (rulings 14 and 25)

    async def test_without_the_current_version_the_one_before_is_current_again(self, ledger: AnyLedger) -> None:
        first, second, third = await chain_of_three(ledger)
        erased = await ledger.erasure.forget(ADA, [third.id], at=LATER)
        assert erased.related_ids == (second.id,), "whoever forgets is told what is true again"
        assert await stored_memory(ledger, second) == replace(
            second, valid_from=CHANGED_AT, before=f"{first.happened_at.date()}: lives in Lyon"
        )
        assert (await stored_memory(ledger, first)).superseded_by == second.id

    async def test_without_a_version_in_the_middle_the_chain_is_linked_again(self, ledger: AnyLedger) -> None:
        first, second, third = await chain_of_three(ledger)
        await ledger.erasure.forget(ADA, [second.id], at=LATER)
        relinked = await stored_memory(ledger, first)
        assert (relinked.truth, relinked.superseded_by) == ("superseded", third.id)
        assert relinked.valid_until == CHANGED_AT, "nobody has said that it was true any longer"
        assert (await stored_memory(ledger, third)).before == f"{first.happened_at.date()}: lives in Lyon"
        await ledger.erasure.forget(ADA, [first.id, third.id], at=LATER)
        assert await ledger.index_source.count_memories() == 0
