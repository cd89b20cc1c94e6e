"""What every ledger must do: storing, keys, isolation, vectors, marks, notes and activations."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from madeleine.memory.errors import KeyConflict, MadeleineError
from madeleine.memory.ingest.ports import CommittedMemories, IdempotencyKeyOutcome, StoreBatch
from madeleine.memory.model import (
    ClusterId,
    ContentHash,
    DatedAction,
    EmbeddingModelName,
    EmotionVector,
    Memory,
    MemoryId,
    Provenance,
    Scene,
)
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.memory.recall.ports import MemoryReactivation
from tests.contracts.ledger.any_ledger import StoringLedger
from tests.contracts.ledger.ledger_values import (
    ADA,
    BOB,
    MODEL,
    MOMENT,
    all_states,
    apply_changes,
    batch,
    cluster,
    ids,
    keyword_query,
    memory,
    memory_id,
    note,
    reinforcement_of,
    states,
    stored_memory,
    vector,
)
from tests.waiting import DEADLOCK_S


class LedgerContract:
    """A fixture `ledger` gives an empty one."""

    # --- storing

    async def test_a_memory_comes_back_as_it_was_stored(self, ledger: StoringLedger) -> None:
        bare = memory()
        full = Memory(
            id=memory_id(900),
            being_id=ADA.being_id,
            scene=Scene(
                action="Hashiに正式決定 \N{BRIDGE AT NIGHT}",
                actors=("Ann", "橋"),
                when=("2025-01-02", DatedAction("Day7", 'said "yes"')),
                setting="Kyōto",
                dialogue=("Yes.", "Really?"),
                sensory=("rain",),
            ),
            provenance=Provenance(tool="store", client="desk", session_id="s1"),
            created_at=MOMENT,
            happened_at=datetime(1913, 11, 14, 1, 2, 3, 999999, tzinfo=UTC),
            feeling="relieved",
            importance=0.123456789,
            category="semantic",
            themes=("Food", "food & drink"),
            emotions=("joy", "relief"),
            emotion=EmotionVector(0.1, -0.2, 0.3, -0.4, 0.5, -1.0),
            lesson="wait",
            key="k1",
            pinned=True,
            status="dead",
            fresh=False,
            compressed=True,
            cluster_id=ClusterId("c1"),
            absorbed_into=bare.id,
            session_count=3,
            access_count=4,
            reactivation_count=5,
            last_activated=MOMENT + timedelta(microseconds=1),
            last_accessed=MOMENT + timedelta(days=1),
        )
        await ledger.memories.commit_store_batch(ADA, batch(bare, full))
        assert await ledger.memories.memories_with_ids(ADA, [full.id, bare.id]) == [full, bare]

    async def test_memories_come_each_once_in_the_order_asked_and_unknown_ids_are_left_out(
        self, ledger: StoringLedger
    ) -> None:
        one, two, three = memory(), memory(), memory()
        await ledger.memories.commit_store_batch(ADA, batch(one, two, three))
        asked_for = [three.id, memory_id(10**9), one.id, three.id, two.id]
        assert await ledger.memories.memories_with_ids(ADA, asked_for) == [three, one, two]
        assert await ledger.memories.memories_with_ids(ADA, []) == []

    async def test_a_list_of_ids_may_be_longer_than_a_statement_has_variables(self, ledger: StoringLedger) -> None:
        one = memory()
        await ledger.memories.commit_store_batch(ADA, batch(one))
        many = [memory_id(10**6 + n) for n in range(40_000)]
        assert await ledger.memories.memories_with_ids(ADA, [*many, one.id]) == [one]
        assert await ledger.memories.cached_vectors_by_hash(MODEL, [ContentHash(id_) for id_ in many]) == {}

    async def test_a_batch_is_stored_whole_or_not_at_all(self, ledger: StoringLedger) -> None:
        one, two = memory(), memory()
        await ledger.memories.commit_store_batch(ADA, batch(one))
        twice = memory(number=UUID(one.id).int)
        vectors = {two.content_hash: vector(1, 0)}
        marks = await ledger.index_source.pending_index_marks_with_memory_ids(limit=100)
        with pytest.raises(MadeleineError):
            await ledger.memories.commit_store_batch(ADA, batch(two, twice, vectors=vectors))
        assert await ledger.memories.memories_with_ids(ADA, [two.id]) == []
        assert await ledger.memories.cached_vectors_by_hash(MODEL, [two.content_hash]) == {}
        assert await ledger.index_source.pending_index_marks_with_memory_ids(limit=100) == marks
        await ledger.memories.commit_store_batch(ADA, batch(two))
        assert await ledger.index_source.count_memories() == 2

    async def test_a_memory_is_stored_for_the_scope_s_being_only(self, ledger: StoringLedger) -> None:
        with pytest.raises(MadeleineError):
            await ledger.memories.commit_store_batch(ADA, batch(memory(scope=BOB)))
        assert await ledger.index_source.count_memories() == 0

    # --- reinforcement

    async def test_storing_again_counts_raises_pins_and_adds_themes_but_keeps_the_words(
        self, ledger: StoringLedger
    ) -> None:
        one = memory("Ate a madeleine", importance=0.5, themes=("Food",))
        await ledger.memories.commit_store_batch(ADA, batch(one))
        later = reinforcement_of(one, importance=0.8, pinned=True, themes=("Tea", "food", "Tea"))
        await ledger.memories.commit_store_batch(ADA, batch(again=[later]))
        assert await stored_memory(ledger, one) == replace(
            one, access_count=1, last_accessed=later.at, importance=0.8, pinned=True, themes=("Food", "Tea")
        )
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea"))) == [one.id]

    async def test_storing_again_never_lowers_or_unpins(self, ledger: StoringLedger) -> None:
        one = memory(importance=0.9, pinned=True)
        await ledger.memories.commit_store_batch(
            ADA, batch(one, again=[reinforcement_of(one, importance=0.1), reinforcement_of(one)])
        )
        stored = await stored_memory(ledger, one)
        assert (stored.importance, stored.pinned, stored.access_count) == (0.9, True, 2)

    async def test_what_a_retelling_adds_is_kept_with_its_memory(self, ledger: StoringLedger) -> None:
        """Ruling 13"""
        one = memory("Ate an apple", feeling="full", lesson="Wash it.")
        told: dict[str, Any] = {
            "days": ("2031-07-09",),
            "feeling": "hungry",
            "lesson": "Peel it.",
            "emotions": ("joy",),
        }
        await ledger.memories.commit_store_batch(ADA, batch(one))
        await ledger.memories.commit_store_batch(ADA, batch(again=[reinforcement_of(one, **told)]))
        await ledger.memories.commit_store_batch(ADA, batch(again=[reinforcement_of(one, days=("2031-07-10",))]))
        [kept] = await ledger.memories.memories_with_ids(ADA, [one.id])
        assert kept.retold == (DatedAction("2031-07-09", "hungry"), "2031-07-10")
        assert (kept.feeling, kept.lesson, kept.emotions) == ("full", "Wash it.\nPeel it.", ("joy",))

    async def test_nothing_is_stored_when_the_memory_to_reinforce_is_not_the_being_s(
        self, ledger: StoringLedger
    ) -> None:
        theirs, mine = memory(scope=BOB), memory()
        await ledger.memories.commit_store_batch(BOB, batch(theirs))
        with pytest.raises(MadeleineError):
            await ledger.memories.commit_store_batch(ADA, batch(mine, again=[reinforcement_of(theirs)]))
        assert await ledger.memories.memories_with_ids(ADA, [mine.id]) == []
        assert await stored_memory(ledger, theirs, BOB) == theirs

    # --- keys

    async def test_the_same_text_is_found_among_the_living_of_the_being(self, ledger: StoringLedger) -> None:
        first, second, other = memory("Same"), memory("Same"), memory("Other")
        dead, foreign = memory("Same", status="dead"), memory("Same", scope=BOB)
        await ledger.memories.commit_store_batch(ADA, batch(first, second, other, dead))
        await ledger.memories.commit_store_batch(BOB, batch(foreign))
        assert await ledger.memories.ids_with_content_hash(ADA, first.content_hash) == [first.id, second.id]
        assert await ledger.memories.ids_with_content_hash(ADA, ContentHash("nothing")) == []
        await ledger.memories.retract(ADA, first.id, "misheard", at=MOMENT)
        assert await ledger.memories.ids_with_content_hash(ADA, first.content_hash) == [second.id, first.id]

    async def test_it_is_known_whether_a_being_has_anything_that_has_died(self, ledger: StoringLedger) -> None:
        await ledger.memories.commit_store_batch(ADA, batch(memory("Living"), memory("Fading", status="dying")))
        await ledger.memories.commit_store_batch(BOB, batch(memory("Dead", status="dead", scope=BOB)))
        assert not await ledger.recall.has_dead_memories(ADA)
        assert await ledger.recall.has_dead_memories(BOB)

    async def test_a_key_tells_what_it_led_to(self, ledger: StoringLedger) -> None:
        one = memory("First words", key="a")
        await ledger.memories.commit_store_batch(ADA, batch(one))
        await ledger.memories.commit_store_batch(ADA, batch(again=[reinforcement_of(one, "Other words", key="b")]))
        assert await ledger.memories.idempotency_key_outcomes(ADA, ["a", "b", "c"]) == {
            "a": IdempotencyKeyOutcome(one.id, "First words", "stored"),
            "b": IdempotencyKeyOutcome(one.id, "Other words", "reinforced"),
        }
        assert await ledger.memories.idempotency_key_outcomes(ADA, []) == {}

    @pytest.mark.parametrize("first_by", ["store", "reinforcement"])
    @pytest.mark.parametrize("then_by", ["store", "reinforcement"])
    async def test_a_taken_key_is_refused_whichever_way_it_was_used(
        self, ledger: StoringLedger, first_by: str, then_by: str
    ) -> None:
        base, bystander = memory(), memory()
        await ledger.memories.commit_store_batch(ADA, batch(base))

        def using_the_key(how: str) -> StoreBatch:
            if how == "store":
                return batch(bystander, memory(key="k")) if how == then_by else batch(memory(key="k"))
            return batch(again=[reinforcement_of(base, key="k")])

        await ledger.memories.commit_store_batch(
            ADA, batch(memory(key="k")) if first_by == "store" else using_the_key(first_by)
        )
        before = await stored_memory(ledger, base)
        with pytest.raises(KeyConflict) as refused:
            await ledger.memories.commit_store_batch(ADA, using_the_key(then_by))
        assert refused.value.key == "k"
        assert await ledger.memories.memories_with_ids(ADA, [bystander.id]) == []
        assert await stored_memory(ledger, base) == before

    async def test_a_key_used_twice_in_a_batch_is_refused(self, ledger: StoringLedger) -> None:
        with pytest.raises(KeyConflict):
            await ledger.memories.commit_store_batch(ADA, batch(memory(key="k"), memory(key="k")))
        assert await ledger.index_source.count_memories() == 0

    async def test_of_stores_racing_for_a_key_one_wins_and_the_others_leave_nothing(
        self, ledger: StoringLedger
    ) -> None:
        racers = [memory(f"Racer {n}", key="k") for n in range(8)]
        ends = await asyncio.gather(
            *(ledger.memories.commit_store_batch(ADA, batch(one)) for one in racers), return_exceptions=True
        )
        assert sum(isinstance(end, CommittedMemories) for end in ends) == 1
        assert sum(isinstance(end, KeyConflict) for end in ends) == 7
        assert await ledger.index_source.count_memories() == 1
        assert len(await ledger.index_source.pending_index_marks_with_memory_ids(limit=100)) == 1

    async def test_two_beings_may_use_the_same_key(self, ledger: StoringLedger) -> None:
        mine, theirs = memory(key="k"), memory(scope=BOB, key="k")
        await ledger.memories.commit_store_batch(ADA, batch(mine))
        await ledger.memories.commit_store_batch(BOB, batch(theirs))
        assert (await ledger.memories.idempotency_key_outcomes(BOB, ["k"]))["k"].memory_id == theirs.id

    # --- isolation

    async def test_a_memory_of_another_being_does_not_exist(self, ledger: StoringLedger) -> None:
        theirs = memory("Secret harbour", scope=BOB, cluster_id=ClusterId("c"), key="k")
        await ledger.memories.commit_store_batch(BOB, batch(theirs))
        await ledger.context.add_note(BOB, note("Secret note", scope=BOB))
        await apply_changes(ledger, PatrolChanges(clusters=(cluster("c", "Theirs", "c", scope=BOB),)), BOB)
        assert await ledger.memories.memories_with_ids(ADA, [theirs.id]) == []
        assert await ledger.memories.idempotency_key_outcomes(ADA, ["k"]) == {}
        assert await ledger.search.newest_matching_texts(ADA, keyword_query("secret")) == []
        assert await ledger.recall.memories_of_cluster(ADA, ClusterId("c"), limit=10, after=None) is None
        assert await ledger.recall.clusters_with_memory_counts(ADA) == []
        assert await ledger.patrols.unread_notes(ADA, type="todo") == []
        async with ledger.patrols.patrol_transaction(ADA) as transaction:
            assert await all_states(ledger, transaction) == []
            assert await transaction.clusters() == []
            assert await transaction.clusters([ClusterId("c")]) == []
            assert await transaction.memories_with_ids([theirs.id]) == []

    async def test_nothing_of_another_being_can_be_changed(self, ledger: StoringLedger) -> None:
        theirs = memory(scope=BOB, cluster_id=ClusterId("c"))
        inbox = note("todo", scope=BOB)
        group = cluster("c", "Theirs", "c", scope=BOB, is_root=True)
        await ledger.memories.commit_store_batch(BOB, batch(theirs))
        await ledger.context.add_note(BOB, inbox)
        await apply_changes(ledger, PatrolChanges(clusters=(group,)), BOB)
        (subject,) = (await states(ledger, BOB)).values()
        marks = await ledger.index_source.pending_index_marks_with_memory_ids(limit=100)
        await apply_changes(
            ledger,
            PatrolChanges(
                states=(replace(subject, status="dead", importance=0.0, cluster_id=None),),
                clusters=(replace(group, name="Mine now"),),
                notes=(replace(inbox, state="done"),),
                removed_clusters=(group.id,),
            ),
            ADA,
        )
        ledger.activations.add_reactivations(ADA, [MemoryReactivation(theirs.id, 5, MOMENT)])
        await ledger.activations.flush()
        assert await stored_memory(ledger, theirs, BOB) == theirs
        assert [one.name for one in await ledger.recall.clusters_with_memory_counts(BOB)] == ["Theirs"]
        assert await ledger.patrols.unread_notes(BOB, type="todo") == [inbox]
        assert await ledger.index_source.pending_index_marks_with_memory_ids(limit=100) == marks

    # --- vectors

    async def test_vectors_are_kept_by_model_and_content(self, ledger: StoringLedger) -> None:
        one = memory()
        await ledger.memories.commit_store_batch(ADA, batch(one, vectors={one.content_hash: vector(0.6, 0.8)}))
        await ledger.patrols.cache_vectors(MODEL, {ContentHash("h"): vector(1, 0)})
        await ledger.patrols.cache_vectors(MODEL, {ContentHash("h"): vector(0, 1)})
        await ledger.patrols.cache_vectors(EmbeddingModelName("other"), {ContentHash("h"): vector(-1, 0)})
        found = await ledger.memories.cached_vectors_by_hash(
            MODEL, [one.content_hash, ContentHash("h"), ContentHash("unknown")]
        )
        assert {hash_: row.tolist() for hash_, row in found.items()} == {
            one.content_hash: vector(0.6, 0.8).tolist(),
            "h": [1.0, 0.0],
        }
        assert all(row.dtype == np.float32 for row in found.values())
        assert await ledger.memories.cached_vectors_by_hash(MODEL, []) == {}

    async def test_memories_without_a_vector_of_the_model_are_found(self, ledger: StoringLedger) -> None:
        one, two, theirs = memory("One"), memory("Two"), memory("Three", scope=BOB)
        await ledger.memories.commit_store_batch(ADA, batch(one, two, vectors={one.content_hash: vector(1, 0)}))
        await ledger.memories.commit_store_batch(BOB, batch(theirs))
        assert await ledger.index_source.memories_not_embedded_by_model(MODEL, limit=10) == [two, theirs]
        assert await ledger.index_source.memories_not_embedded_by_model(MODEL, limit=1) == [two]
        assert len(await ledger.index_source.memories_not_embedded_by_model(EmbeddingModelName("other"), limit=10)) == 3

    async def test_a_model_that_was_replaced_leaves_no_vectors_and_its_clusters(self, ledger: StoringLedger) -> None:
        """ADR 0040"""
        old, new = EmbeddingModelName("m"), EmbeddingModelName("m@int8")
        texts = [ContentHash(letter) for letter in "abc"]
        await ledger.patrols.cache_vectors(old, {hash_: vector(1, 0) for hash_ in texts})
        await ledger.patrols.cache_vectors(new, {texts[0]: vector(0, 1)})
        retired = [
            await ledger.index_source.drop_vectors_of_replaced_model(old, successor=new, limit=2) for _ in range(3)
        ]
        assert retired == [2, 1, 0]
        assert await ledger.memories.cached_vectors_by_hash(old, texts) == {}
        assert set(await ledger.memories.cached_vectors_by_hash(new, texts)) == {texts[0]}

    # --- pending marks, and the whole store

    async def test_each_new_memory_leaves_a_mark_until_it_is_cleared(self, ledger: StoringLedger) -> None:
        one, two = memory(), memory()
        assert await ledger.index_source.last_index_mark() == 0
        await ledger.memories.commit_store_batch(ADA, batch(one, two))
        await ledger.memories.commit_store_batch(ADA, batch(again=[reinforcement_of(one)]))
        marks = await ledger.index_source.pending_index_marks_with_memory_ids(limit=10)
        assert [id_ for _, id_ in marks] == [one.id, two.id]
        assert await ledger.index_source.pending_index_marks_with_memory_ids(limit=1) == marks[:1]
        assert await ledger.index_source.last_index_mark() == marks[-1][0]
        await ledger.index_source.clear_pending_index_marks([marks[0][0]])
        assert await ledger.index_source.pending_index_marks_with_memory_ids(limit=10) == marks[1:]
        await ledger.index_source.clear_pending_index_marks([])

    async def test_marks_made_after_a_moment_outlive_the_clearing_up_to_it(self, ledger: StoringLedger) -> None:
        one, two = memory("One"), memory("Two")
        await ledger.memories.commit_store_batch(ADA, batch(one, two))
        last = await ledger.index_source.last_index_mark()
        await ledger.patrols.cache_vectors(MODEL, {one.content_hash: vector(1, 0), ContentHash("h"): vector(0, 1)})
        await ledger.index_source.clear_pending_index_marks_of_memories([one.id], up_to=last)
        assert [id_ for _, id_ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=10)] == [
            two.id,
            one.id,
        ]

    async def test_a_mark_is_greater_than_all_before_even_when_those_are_cleared(self, ledger: StoringLedger) -> None:
        one = memory()
        await ledger.memories.commit_store_batch(ADA, batch(one))
        ((first, _),) = await ledger.index_source.pending_index_marks_with_memory_ids(limit=10)
        await ledger.index_source.clear_pending_index_marks([first])
        await ledger.patrols.cache_vectors(MODEL, {one.content_hash: vector(1, 0)})
        assert await ledger.index_source.last_index_mark() > first

    async def test_the_store_s_own_reads_know_no_being(self, ledger: StoringLedger) -> None:
        mine, theirs = memory(number=5002), memory(number=5001, scope=BOB)
        third = memory(number=5003, scope=BOB)
        await ledger.memories.commit_store_batch(ADA, batch(mine))
        await ledger.memories.commit_store_batch(BOB, batch(third, theirs))
        assert await ledger.index_source.count_memories() == 3
        assert await ledger.index_source.memories_of_any_being([third.id, mine.id]) == [third, mine]
        assert await ledger.index_source.memories_after_id(after=None, limit=2) == [theirs, mine]
        assert await ledger.index_source.memories_after_id(after=mine.id, limit=2) == [third]
        assert await ledger.index_source.memories_after_id(after=third.id, limit=2) == []

    async def test_a_setting_is_any_json_and_none_until_it_is_set(self, ledger: StoringLedger) -> None:
        assert await ledger.index_source.setting("model") is None
        for value in ("é", {"dim": 384, "of": [1.5, None, True]}, 0):
            await ledger.index_source.set_setting("model", value)
            assert await ledger.index_source.setting("model") == value
        assert await ledger.index_source.setting("other") is None

    # --- notes

    async def test_unread_notes_of_a_type_come_oldest_first(self, ledger: StoringLedger) -> None:
        late, early = note("late", at=MOMENT + timedelta(days=1)), note("early", reason="r")
        for one in (late, early, note("other", type_="x"), note("read", state="done")):
            await ledger.context.add_note(ADA, one)
        assert await ledger.patrols.unread_notes(ADA, type="todo") == [early, late]

    # --- activations

    async def test_activations_are_added_up_and_rewind_the_clock_of_the_living(self, ledger: StoringLedger) -> None:
        active = memory(status="active", session_count=5, reactivation_count=1)
        dying = memory(status="dying", session_count=40)
        dead = memory(status="dead", session_count=60)
        untouched = memory(session_count=2)
        await ledger.memories.commit_store_batch(ADA, batch(active, dying, dead, untouched))
        later = MOMENT + timedelta(minutes=1)
        ledger.activations.add_reactivations(
            ADA, [MemoryReactivation(active.id, 1, later), MemoryReactivation(dead.id, 2, MOMENT)]
        )
        ledger.activations.add_reactivations(
            ADA, [MemoryReactivation(active.id, 2, MOMENT), MemoryReactivation(dying.id, 1, MOMENT)]
        )
        ledger.activations.add_reactivations(ADA, [MemoryReactivation(memory_id(10**9), 1, MOMENT)])
        ledger.activations.add_reactivations(ADA, [])
        await ledger.activations.flush()
        assert await stored_memory(ledger, active) == replace(
            active, session_count=0, reactivation_count=4, last_activated=later
        )
        assert await stored_memory(ledger, dying) == replace(
            dying, session_count=0, reactivation_count=1, last_activated=MOMENT
        )
        assert await stored_memory(ledger, dead) == replace(dead, reactivation_count=2, last_activated=MOMENT)
        assert await stored_memory(ledger, untouched) == untouched

    async def test_activations_are_written_without_being_asked_for(self, ledger: StoringLedger) -> None:
        one = memory()
        await ledger.memories.commit_store_batch(ADA, batch(one))
        ledger.activations.add_reactivations(ADA, [MemoryReactivation(one.id, 1, MOMENT)])
        async with asyncio.timeout(DEADLOCK_S):
            while (await stored_memory(ledger, one)).reactivation_count == 0:  # noqa: ASYNC110 - the writer has a turn
                await asyncio.sleep(0)

    async def test_activations_from_many_at_once_are_counted_each_once(self, ledger: StoringLedger) -> None:
        one = memory()
        await ledger.memories.commit_store_batch(ADA, batch(one))

        async def recall() -> None:
            for _ in range(20):
                ledger.activations.add_reactivations(ADA, [MemoryReactivation(one.id, 1, MOMENT)])
                await ledger.activations.flush()

        await asyncio.gather(*(recall() for _ in range(5)))
        assert (await stored_memory(ledger, one)).reactivation_count == 100

    # --- short ids

    async def test_memories_are_numbered_per_being_and_found_by_number(self, ledger: StoringLedger) -> None:
        """ruling 23"""
        first, second, third = memory(), memory(), memory(key="k")
        others = memory(scope=BOB)
        stored = await ledger.memories.commit_store_batch(ADA, batch(first, second))
        assert [(one.id, one.number) for one in stored.new] == [(first.id, 1), (second.id, 2)]
        assert [one.number for one in (await ledger.memories.commit_store_batch(BOB, batch(others))).new] == [1]
        await ledger.memories.commit_store_batch(ADA, batch(third))
        with pytest.raises(KeyConflict):
            await ledger.memories.commit_store_batch(ADA, batch(memory(key="k")))
        await apply_changes(ledger, PatrolChanges(new_memories=(summary := memory(),)))
        assert (await stored_memory(ledger, third)).short_id == "m3"
        numbers = await ledger.short_ids.number_by_memory_id(ADA, [first.id, summary.id, others.id])
        assert numbers.keys() == {first.id, summary.id}
        assert (numbers[first.id], numbers[summary.id] > 3) == (1, True)
        assert await ledger.short_ids.memory_id_by_number(ADA, [2, 99]) == {2: second.id}

    async def test_an_id_is_found_by_its_first_signs(self, ledger: StoringLedger) -> None:
        one, near, other = (
            MemoryId(f"{start}-1111-4111-8111-111111111111") for start in ("abcdef01", "abcdef02", "b0")
        )
        await ledger.memories.commit_store_batch(ADA, batch(*(memory(id=id_) for id_ in (one, near, other))))
        await ledger.memories.commit_store_batch(
            BOB, batch(memory(scope=BOB, id=MemoryId(one.replace("-1111", "-2222", 1))))
        )
        find = partial(ledger.short_ids.ids_beginning_with_any, ADA, "memory")
        assert await find(["abcdef01"]) == [one]
        assert sorted(await find(["abcdef01", "abcdef02", "ffffffff"])) == [one, near]
        assert await ledger.short_ids.ids_beginning_with_any(ADA, "cluster", ["abcdef01"]) == []
