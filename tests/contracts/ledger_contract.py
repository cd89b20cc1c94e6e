"""What every ledger must do. An adapter's tests inherit `LedgerContract` and give it an empty ledger."""

from __future__ import annotations

import asyncio
import itertools
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from madeleine.memory.errors import KeyConflict, MadeleineError
from madeleine.memory.ingest.ports import KeyOutcome, Reinforcement, StoreBatch
from madeleine.memory.keyword_search import KeywordQuery, SearchHit
from madeleine.memory.model import (
    BeingId,
    Cluster,
    ClusterId,
    ContentHash,
    DatedAction,
    EmotionVector,
    Memory,
    MemoryId,
    ModelName,
    Note,
    NoteId,
    Provenance,
    RunId,
    Scene,
    Status,
    Vector,
    scene_to_text,
)
from madeleine.memory.patrol_records import MemoryState, PatrolChanges, RecentActivity
from madeleine.memory.recall.ports import Activation
from madeleine.memory.scope import Scope
from madeleine.patrol.ports import PatrolReads
from tests.contracts.any_ledger import AnyLedger

ADA = Scope(BeingId("ada"))
BOB = Scope(BeingId("bob"))
MODEL = ModelName("tests")
MOMENT = datetime(2025, 3, 1, 12, 0, 0, 123457, tzinfo=UTC)
WAIT_S = 10
"""How long a test waits for what should come at once."""
_numbers = itertools.count(1)


def memory_id(number: int) -> MemoryId:
    return MemoryId(str(UUID(int=number)))


def memory(action: str = "Ate a madeleine", *, scope: Scope = ADA, number: int | None = None, **other: Any) -> Memory:
    """One of its own id, minutes after the one before unless told."""
    number = next(_numbers) if number is None else number
    given: dict[str, Any] = {
        "id": memory_id(number),
        "being_id": scope.being_id,
        "scene": Scene(action=action),
        "provenance": Provenance(tool="store"),
        "created_at": MOMENT,
        "happened_at": MOMENT + timedelta(minutes=number),
    }
    return Memory(**(given | other))


def vector(*values: float) -> Vector:
    return np.asarray(values, dtype=np.float32)


def batch(
    *new: Memory, again: Sequence[Reinforcement] = (), vectors: dict[ContentHash, Vector] | None = None
) -> StoreBatch:
    return StoreBatch(new=new, reinforcements=tuple(again), model=MODEL, vectors=vectors or {})


def again(of: Memory, text: str = "Ate one again", **other: Any) -> Reinforcement:
    given: dict[str, Any] = {"memory_id": of.id, "text": text, "at": MOMENT + timedelta(days=1), "tool": "store"}
    return Reinforcement(**(given | other))


def note(content: str, *, scope: Scope = ADA, type_: str = "todo", at: datetime = MOMENT, **other: Any) -> Note:
    id_ = NoteId(f"note-{next(_numbers):06}")
    return Note(id=id_, being_id=scope.being_id, type=type_, content=content, created_at=at, **other)


def cluster(id_: str, name: str, parent: str, *, scope: Scope = ADA, **other: Any) -> Cluster:
    return Cluster(id=ClusterId(id_), being_id=scope.being_id, name=name, parent_id=ClusterId(parent), **other)


def asked(*terms: str, **other: Any) -> KeywordQuery:
    return KeywordQuery(terms=tuple(term.casefold() for term in terms), **other)


def ids(hits: Sequence[SearchHit]) -> list[str]:
    return [hit.id for hit in hits]


async def the(ledger: AnyLedger, one: Memory, scope: Scope = ADA) -> Memory:
    (found,) = await ledger.memories.memories(scope, [one.id])
    return found


RUN = RunId("run")


async def everyone(ledger: AnyLedger, patrol: PatrolReads) -> list[MemoryState]:
    """Of all that were committed those that the patrol's being has."""
    return await patrol.states([one.id for one in await ledger.index_source.all_memories(after=None, limit=10_000)])


async def states(ledger: AnyLedger, scope: Scope = ADA) -> dict[MemoryId, MemoryState]:
    return {one.id: one for one in await everyone(ledger, ledger.patrols.patrol_reads(scope))}


async def apply(ledger: AnyLedger, changes: PatrolChanges, scope: Scope = ADA) -> None:
    async with ledger.patrols.patrol(scope) as transaction:
        await transaction.apply(changes, run=RUN, step="assign")


class LedgerContract:
    # --- storing

    async def test_a_memory_comes_back_as_it_was_stored(self, ledger: AnyLedger) -> None:
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
        await ledger.memories.commit(ADA, batch(bare, full))
        assert await ledger.memories.memories(ADA, [full.id, bare.id]) == [full, bare]

    async def test_memories_come_each_once_in_the_order_asked_and_unknown_ids_are_left_out(
        self, ledger: AnyLedger
    ) -> None:
        one, two, three = memory(), memory(), memory()
        await ledger.memories.commit(ADA, batch(one, two, three))
        asked_for = [three.id, memory_id(10**9), one.id, three.id, two.id]
        assert await ledger.memories.memories(ADA, asked_for) == [three, one, two]
        assert await ledger.memories.memories(ADA, []) == []

    async def test_a_list_of_ids_may_be_longer_than_a_statement_has_variables(self, ledger: AnyLedger) -> None:
        one = memory()
        await ledger.memories.commit(ADA, batch(one))
        many = [memory_id(10**6 + n) for n in range(40_000)]
        assert await ledger.memories.memories(ADA, [*many, one.id]) == [one]
        assert await ledger.memories.vectors(MODEL, [ContentHash(id_) for id_ in many]) == {}

    async def test_a_batch_is_stored_whole_or_not_at_all(self, ledger: AnyLedger) -> None:
        one, two = memory(), memory()
        await ledger.memories.commit(ADA, batch(one))
        twice = memory(number=UUID(one.id).int)
        vectors = {two.content_hash: vector(1, 0)}
        marks = await ledger.index_source.pending(limit=100)
        with pytest.raises(MadeleineError):
            await ledger.memories.commit(ADA, batch(two, twice, vectors=vectors))
        assert await ledger.memories.memories(ADA, [two.id]) == []
        assert await ledger.memories.vectors(MODEL, [two.content_hash]) == {}
        assert await ledger.index_source.pending(limit=100) == marks
        await ledger.memories.commit(ADA, batch(two))
        assert await ledger.index_source.count_memories() == 2

    async def test_a_memory_is_stored_for_the_scope_s_being_only(self, ledger: AnyLedger) -> None:
        with pytest.raises(MadeleineError):
            await ledger.memories.commit(ADA, batch(memory(scope=BOB)))
        assert await ledger.index_source.count_memories() == 0

    # --- reinforcement

    async def test_storing_again_counts_raises_pins_and_adds_themes_but_keeps_the_words(
        self, ledger: AnyLedger
    ) -> None:
        one = memory("Ate a madeleine", importance=0.5, themes=("Food",))
        await ledger.memories.commit(ADA, batch(one))
        later = again(one, importance=0.8, pinned=True, themes=("Tea", "food", "Tea"))
        await ledger.memories.commit(ADA, batch(again=[later]))
        assert await the(ledger, one) == replace(
            one, access_count=1, last_accessed=later.at, importance=0.8, pinned=True, themes=("Food", "Tea")
        )
        assert ids(await ledger.search.search(ADA, asked("tea"))) == [one.id]

    async def test_storing_again_never_lowers_or_unpins(self, ledger: AnyLedger) -> None:
        one = memory(importance=0.9, pinned=True)
        await ledger.memories.commit(ADA, batch(one, again=[again(one, importance=0.1), again(one)]))
        found = await the(ledger, one)
        assert (found.importance, found.pinned, found.access_count) == (0.9, True, 2)

    async def test_nothing_is_stored_when_the_memory_to_reinforce_is_not_the_being_s(self, ledger: AnyLedger) -> None:
        theirs, mine = memory(scope=BOB), memory()
        await ledger.memories.commit(BOB, batch(theirs))
        with pytest.raises(MadeleineError):
            await ledger.memories.commit(ADA, batch(mine, again=[again(theirs)]))
        assert await ledger.memories.memories(ADA, [mine.id]) == []
        assert await the(ledger, theirs, BOB) == theirs

    # --- keys

    async def test_the_same_text_is_found_among_the_living_of_the_being(self, ledger: AnyLedger) -> None:
        first, second, other = memory("Same"), memory("Same"), memory("Other")
        dead, foreign = memory("Same", status="dead"), memory("Same", scope=BOB)
        await ledger.memories.commit(ADA, batch(first, second, other, dead))
        await ledger.memories.commit(BOB, batch(foreign))
        assert await ledger.memories.same_text(ADA, first.content_hash) == [first.id, second.id]
        assert await ledger.memories.same_text(ADA, ContentHash("nothing")) == []

    async def test_a_key_tells_what_it_led_to(self, ledger: AnyLedger) -> None:
        one = memory("First words", key="a")
        await ledger.memories.commit(ADA, batch(one))
        await ledger.memories.commit(ADA, batch(again=[again(one, "Other words", key="b")]))
        assert await ledger.memories.keyed(ADA, ["a", "b", "c"]) == {
            "a": KeyOutcome(one.id, "First words", "stored"),
            "b": KeyOutcome(one.id, "Other words", "reinforced"),
        }
        assert await ledger.memories.keyed(ADA, []) == {}

    @pytest.mark.parametrize("first_by", ["store", "reinforcement"])
    @pytest.mark.parametrize("then_by", ["store", "reinforcement"])
    async def test_a_taken_key_is_refused_whichever_way_it_was_used(
        self, ledger: AnyLedger, first_by: str, then_by: str
    ) -> None:
        base, bystander = memory(), memory()
        await ledger.memories.commit(ADA, batch(base))

        def using_the_key(how: str) -> StoreBatch:
            if how == "store":
                return batch(bystander, memory(key="k")) if how == then_by else batch(memory(key="k"))
            return batch(again=[again(base, key="k")])

        await ledger.memories.commit(ADA, batch(memory(key="k")) if first_by == "store" else using_the_key(first_by))
        before = await the(ledger, base)
        with pytest.raises(KeyConflict) as refused:
            await ledger.memories.commit(ADA, using_the_key(then_by))
        assert refused.value.key == "k"
        assert await ledger.memories.memories(ADA, [bystander.id]) == []
        assert await the(ledger, base) == before

    async def test_a_key_used_twice_in_a_batch_is_refused(self, ledger: AnyLedger) -> None:
        with pytest.raises(KeyConflict):
            await ledger.memories.commit(ADA, batch(memory(key="k"), memory(key="k")))
        assert await ledger.index_source.count_memories() == 0

    async def test_of_stores_racing_for_a_key_one_wins_and_the_others_leave_nothing(self, ledger: AnyLedger) -> None:
        racers = [memory(f"Racer {n}", key="k") for n in range(8)]
        ends = await asyncio.gather(
            *(ledger.memories.commit(ADA, batch(one)) for one in racers), return_exceptions=True
        )
        assert sum(end is None for end in ends) == 1
        assert sum(isinstance(end, KeyConflict) for end in ends) == 7
        assert await ledger.index_source.count_memories() == 1
        assert len(await ledger.index_source.pending(limit=100)) == 1

    async def test_two_beings_may_use_the_same_key(self, ledger: AnyLedger) -> None:
        mine, theirs = memory(key="k"), memory(scope=BOB, key="k")
        await ledger.memories.commit(ADA, batch(mine))
        await ledger.memories.commit(BOB, batch(theirs))
        assert (await ledger.memories.keyed(BOB, ["k"]))["k"].memory_id == theirs.id

    # --- isolation

    async def test_a_memory_of_another_being_does_not_exist(self, ledger: AnyLedger) -> None:
        theirs = memory("Secret harbour", scope=BOB, cluster_id=ClusterId("c"), key="k")
        await ledger.memories.commit(BOB, batch(theirs))
        await ledger.profile.add_note(BOB, note("Secret note", scope=BOB))
        await apply(ledger, PatrolChanges(clusters=(cluster("c", "Theirs", "c", scope=BOB),)), BOB)
        assert await ledger.memories.memories(ADA, [theirs.id]) == []
        assert await ledger.memories.keyed(ADA, ["k"]) == {}
        assert await ledger.search.search(ADA, asked("secret")) == []
        assert await ledger.browsing.cluster_memories(ADA, ClusterId("c"), limit=10, after=None) is None
        assert await ledger.browsing.cluster_summaries(ADA) == []
        assert await ledger.patrols.unread_notes(ADA, type="todo") == []
        async with ledger.patrols.patrol(ADA) as transaction:
            assert await everyone(ledger, transaction) == []
            assert await transaction.clusters() == []
            assert await transaction.clusters([ClusterId("c")]) == []
            assert await transaction.memories([theirs.id]) == []

    async def test_nothing_of_another_being_can_be_changed(self, ledger: AnyLedger) -> None:
        theirs = memory(scope=BOB, cluster_id=ClusterId("c"))
        inbox = note("todo", scope=BOB)
        group = cluster("c", "Theirs", "c", scope=BOB, is_root=True)
        await ledger.memories.commit(BOB, batch(theirs))
        await ledger.profile.add_note(BOB, inbox)
        await apply(ledger, PatrolChanges(clusters=(group,)), BOB)
        (subject,) = (await states(ledger, BOB)).values()
        marks = await ledger.index_source.pending(limit=100)
        await apply(
            ledger,
            PatrolChanges(
                states=(replace(subject, status="dead", importance=0.0, cluster_id=None),),
                clusters=(replace(group, name="Mine now"),),
                notes=(replace(inbox, state="done"),),
                removed_clusters=(group.id,),
            ),
            ADA,
        )
        ledger.activations.add(ADA, [Activation(theirs.id, 5, MOMENT)])
        await ledger.activations.flush()
        assert await the(ledger, theirs, BOB) == theirs
        assert [one.name for one in await ledger.browsing.cluster_summaries(BOB)] == ["Theirs"]
        assert await ledger.patrols.unread_notes(BOB, type="todo") == [inbox]
        assert await ledger.index_source.pending(limit=100) == marks

    # --- vectors

    async def test_vectors_are_kept_by_model_and_content(self, ledger: AnyLedger) -> None:
        one = memory()
        await ledger.memories.commit(ADA, batch(one, vectors={one.content_hash: vector(0.6, 0.8)}))
        await ledger.patrols.add_vectors(MODEL, {ContentHash("h"): vector(1, 0)})
        await ledger.patrols.add_vectors(MODEL, {ContentHash("h"): vector(0, 1)})
        await ledger.patrols.add_vectors(ModelName("other"), {ContentHash("h"): vector(-1, 0)})
        found = await ledger.memories.vectors(MODEL, [one.content_hash, ContentHash("h"), ContentHash("unknown")])
        assert {hash_: row.tolist() for hash_, row in found.items()} == {
            one.content_hash: vector(0.6, 0.8).tolist(),
            "h": [1.0, 0.0],
        }
        assert all(row.dtype == np.float32 for row in found.values())
        assert await ledger.memories.vectors(MODEL, []) == {}

    async def test_memories_without_a_vector_of_the_model_are_found(self, ledger: AnyLedger) -> None:
        one, two, theirs = memory("One"), memory("Two"), memory("Three", scope=BOB)
        await ledger.memories.commit(ADA, batch(one, two, vectors={one.content_hash: vector(1, 0)}))
        await ledger.memories.commit(BOB, batch(theirs))
        assert await ledger.index_source.without_vector(MODEL, limit=10) == [two, theirs]
        assert await ledger.index_source.without_vector(MODEL, limit=1) == [two]
        assert len(await ledger.index_source.without_vector(ModelName("other"), limit=10)) == 3

    # --- pending marks, and the whole store

    async def test_each_new_memory_leaves_a_mark_until_it_is_cleared(self, ledger: AnyLedger) -> None:
        one, two = memory(), memory()
        assert await ledger.index_source.last_mark() == 0
        await ledger.memories.commit(ADA, batch(one, two))
        await ledger.memories.commit(ADA, batch(again=[again(one)]))
        marks = await ledger.index_source.pending(limit=10)
        assert [id_ for _, id_ in marks] == [one.id, two.id]
        assert await ledger.index_source.pending(limit=1) == marks[:1]
        assert await ledger.index_source.last_mark() == marks[-1][0]
        await ledger.index_source.clear_marks([marks[0][0]])
        assert await ledger.index_source.pending(limit=10) == marks[1:]
        await ledger.index_source.clear_marks([])

    async def test_marks_made_after_a_moment_outlive_the_clearing_up_to_it(self, ledger: AnyLedger) -> None:
        one, two = memory("One"), memory("Two")
        await ledger.memories.commit(ADA, batch(one, two))
        last = await ledger.index_source.last_mark()
        await ledger.patrols.add_vectors(MODEL, {one.content_hash: vector(1, 0), ContentHash("h"): vector(0, 1)})
        await ledger.index_source.clear_marks_of([one.id], up_to=last)
        assert [id_ for _, id_ in await ledger.index_source.pending(limit=10)] == [two.id, one.id]

    async def test_a_mark_is_greater_than_all_before_even_when_those_are_cleared(self, ledger: AnyLedger) -> None:
        one = memory()
        await ledger.memories.commit(ADA, batch(one))
        ((first, _),) = await ledger.index_source.pending(limit=10)
        await ledger.index_source.clear_marks([first])
        await ledger.patrols.add_vectors(MODEL, {one.content_hash: vector(1, 0)})
        assert await ledger.index_source.last_mark() > first

    async def test_the_store_s_own_reads_know_no_being(self, ledger: AnyLedger) -> None:
        mine, theirs = memory(number=5002), memory(number=5001, scope=BOB)
        third = memory(number=5003, scope=BOB)
        await ledger.memories.commit(ADA, batch(mine))
        await ledger.memories.commit(BOB, batch(third, theirs))
        assert await ledger.index_source.count_memories() == 3
        assert await ledger.index_source.any_memories([third.id, mine.id]) == [third, mine]
        assert await ledger.index_source.all_memories(after=None, limit=2) == [theirs, mine]
        assert await ledger.index_source.all_memories(after=mine.id, limit=2) == [third]
        assert await ledger.index_source.all_memories(after=third.id, limit=2) == []

    async def test_a_setting_is_any_json_and_none_until_it_is_set(self, ledger: AnyLedger) -> None:
        assert await ledger.index_source.setting("model") is None
        for value in ("é", {"dim": 384, "of": [1.5, None, True]}, 0):
            await ledger.index_source.set_setting("model", value)
            assert await ledger.index_source.setting("model") == value
        assert await ledger.index_source.setting("other") is None

    # --- search

    @pytest.mark.parametrize(
        ("written", "searched"),
        [
            ("Die Straße am Hafen", "STRASSE"),
            ("ΟΔΥΣΣΕΥΣ came home", "οδυσσευς"),
            ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
            ("Hashiに正式決定", "正式"),
            ("an ŒUVRE, cafe\u0301", "œuvre, café"),
            ("100% of under_scores \\ and 'quotes\" too", "% of under_scores \\ and 'quotes\""),
        ],
    )
    async def test_a_term_is_found_whatever_its_case_and_width(
        self, ledger: AnyLedger, written: str, searched: str
    ) -> None:
        one = memory(written)
        await ledger.memories.commit(ADA, batch(one, memory("something else")))
        assert ids(await ledger.search.search(ADA, asked(searched))) == [one.id]

    @pytest.mark.parametrize("sign", ["%", "_", "\\", "*", "?"])
    async def test_no_character_of_a_term_stands_for_others(self, ledger: AnyLedger, sign: str) -> None:
        one = memory(f"with {sign} in it")
        await ledger.memories.commit(ADA, batch(one, memory("without in it")))
        assert ids(await ledger.search.search(ADA, asked(sign))) == [one.id]

    async def test_four_fields_are_searched_and_a_theme_only_as_a_whole(self, ledger: AnyLedger) -> None:
        by_action = memory("The quince tree")
        by_feeling = memory(feeling="like a quince")
        by_when = memory(scene=Scene(action="x", when=(DatedAction("Day7", "bought a quince"), "Day8")))
        by_theme = memory(themes=("fruit", "Quince"))
        in_part = memory(themes=("quince jam",))
        elsewhere = memory(
            scene=Scene(action="x", actors=("quince",), setting="quince", dialogue=("quince",)), lesson="quince"
        )
        await ledger.memories.commit(ADA, batch(by_action, by_feeling, by_when, by_theme, in_part, elsewhere))
        assert set(ids(await ledger.search.search(ADA, asked("quince")))) == {
            by_action.id, by_feeling.id, by_when.id, by_theme.id,
        }  # fmt: skip
        assert ids(await ledger.search.search(ADA, asked("day7"))) == [by_when.id]
        assert ids(await ledger.search.search(ADA, asked("quince jam"))) == [in_part.id]

    async def test_no_term_matches_across_two_fields_or_themes(self, ledger: AnyLedger) -> None:
        await ledger.memories.commit(ADA, batch(memory("left", feeling="right", themes=("a", "b"))))
        for term in ("left\x1fright", "leftright", "left right", "a\x1f\x1fb", "\x1f", "ab"):
            assert await ledger.search.search(ADA, asked(term)) == []

    async def test_or_takes_any_term_and_and_takes_all_in_any_field(self, ledger: AnyLedger) -> None:
        both = memory("tea", feeling="warm")
        one = memory("tea", feeling="cold")
        none = memory("milk")
        await ledger.memories.commit(ADA, batch(both, one, none))
        assert ids(await ledger.search.search(ADA, asked("tea", "warm"))) == [one.id, both.id]
        assert ids(await ledger.search.search(ADA, asked("tea", "warm", mode="and"))) == [both.id]
        assert ids(await ledger.search.search(ADA, asked())) == [none.id, one.id, both.id]

    async def test_filters_narrow_by_theme_category_time_and_state(self, ledger: AnyLedger) -> None:
        day = timedelta(days=1)
        plain = memory("tea", happened_at=MOMENT)
        themed = memory("tea", happened_at=MOMENT - day, themes=("Food", "Trips"), category="social")
        dead = memory("tea", happened_at=MOMENT - 2 * day, status="dead")
        packed = memory("tea", happened_at=MOMENT - 3 * day, compressed=True)
        await ledger.memories.commit(ADA, batch(plain, themed, dead, packed))

        async def found(**filters: Any) -> list[str]:
            return ids(await ledger.search.search(ADA, asked("tea", **filters)))

        assert await found() == [plain.id, themed.id, dead.id]
        assert await found(include_dead=False) == [plain.id, themed.id]
        assert await found(include_compressed=True) == [plain.id, themed.id, dead.id, packed.id]
        assert await found(themes=("trips", "FOOD")) == [themed.id]
        assert await found(themes=("trips", "other")) == []
        assert await found(categories=("social", "semantic")) == [themed.id]
        assert await found(since=MOMENT - day, until=MOMENT) == [plain.id, themed.id]
        assert await found(until=MOMENT - timedelta(microseconds=1)) == [themed.id, dead.id]

    async def test_a_hit_says_what_it_found(self, ledger: AnyLedger) -> None:
        one = memory(
            scene=Scene(
                action="Drank tea", setting="Combray", dialogue=("Ah",), when=("2025-01-02",), actors=("Marcel",)
            ),
            feeling="moved", themes=("Food",), status="dying", happened_at=MOMENT,
            provenance=Provenance(tool="store", client="inspector", session_id="s1"),
        )  # fmt: skip
        aside = note("Buy tea", at=MOMENT + timedelta(hours=1))
        await ledger.memories.commit(ADA, batch(one))
        await ledger.profile.add_note(ADA, aside)
        of_note, of_memory = await ledger.search.search(ADA, asked("tea"))
        micros = 1740830400123457
        assert of_memory == SearchHit(
            source="memories", id=one.id, timestamp=MOMENT, text=scene_to_text(one.scene, one.feeling),
            tags=("Food",), status="dying", position=(micros, one.id),
            stored_at=one.created_at, provenance=one.provenance, actors=("Marcel",),
        )  # fmt: skip
        assert of_note == SearchHit(
            source="notes", id=aside.id, timestamp=aside.created_at, text="Buy tea",
            stored_at=aside.created_at, provenance=Provenance(tool="notes"),
            position=(micros + 3_600_000_000, aside.id),
        )  # fmt: skip

    async def test_notes_are_found_unless_the_search_is_for_memories(self, ledger: AnyLedger) -> None:
        aside = note("Buy TEA")
        taken_in = note('{"action": "tea"}', type_="scene", state="done")
        waiting = note('{"action": "tea"}', type_="scene", at=MOMENT - timedelta(hours=1))
        for one in (aside, taken_in, waiting):
            await ledger.profile.add_note(ADA, one)
        await ledger.memories.commit(ADA, batch(mem := memory("tea", themes=("x",))))
        assert ids(await ledger.search.search(ADA, asked("tea", sources=("notes",)))) == [aside.id, waiting.id]
        assert ids(await ledger.search.search(ADA, asked("tea", sources=("memories",)))) == [mem.id]
        assert ids(await ledger.search.search(ADA, asked("tea", themes=("x",)))) == [mem.id]
        assert ids(await ledger.search.search(ADA, asked("tea", categories=("episodic",)))) == [mem.id]
        assert await ledger.search.search(ADA, asked("tea", sources=())) == []

    @given(
        written=st.lists(
            st.tuples(st.integers(0, 3), st.sampled_from(["tea", "milk", "tea milk"]), st.booleans()), max_size=14
        ),
        terms=st.lists(st.sampled_from(["tea", "MILK", "x"]), max_size=2),
        every=st.booleans(),
        limit=st.integers(1, 5),
    )
    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    async def test_pages_join_without_gap_or_repeat(
        self, ledger: AnyLedger, written: list[tuple[int, str, bool]], terms: list[str], every: bool, limit: int
    ) -> None:
        scope = Scope(BeingId(f"being {next(_numbers)}"))
        expected: list[tuple[int, str]] = []
        for hours, text, is_note in written:
            at = MOMENT + timedelta(hours=hours)
            one = note(text, scope=scope, at=at) if is_note else memory(text, scope=scope, happened_at=at)
            if isinstance(one, Note):
                await ledger.profile.add_note(scope, one)
            else:
                await ledger.memories.commit(scope, batch(one))
            matched = [term.casefold() in text for term in terms]
            if not terms or (all(matched) if every else any(matched)):
                expected.append((-hours, one.id))
        query = asked(*terms, mode="and" if every else "or", limit=limit)
        seen: list[str] = []
        while page := await ledger.search.search(scope, query):
            assert len(page) <= limit
            seen += ids(page)
            query = replace(query, after=page[-1].position)
        assert seen == [id_ for _, id_ in sorted(expected)]

    @given(text=st.text(st.characters(codec="utf-8"), max_size=30), data=st.data())
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    async def test_every_part_of_what_was_written_finds_it(
        self, ledger: AnyLedger, text: str, data: st.DataObject
    ) -> None:
        scope = Scope(BeingId(f"being {next(_numbers)}"))
        one = memory(text, scope=scope)
        await ledger.memories.commit(scope, batch(one))
        seen = unicodedata.normalize("NFKC", text).casefold()
        start = data.draw(st.integers(0, len(seen)))
        # A combining mark cut off from its letter is another text under NFKC, so parts begin and end at letters.
        part = seen[start : data.draw(st.integers(start, len(seen)))] if seen.isascii() else seen
        assert ids(await ledger.search.search(scope, asked(part))) == [one.id]

    async def test_a_position_beyond_every_moment_begins_or_ends_the_search(self, ledger: AnyLedger) -> None:
        one = memory("tea")
        await ledger.memories.commit(ADA, batch(one))
        assert ids(await ledger.search.search(ADA, asked("tea", after=(10**30, "")))) == [one.id]
        assert await ledger.search.search(ADA, asked("tea", after=(-(10**30), ""))) == []

    # --- clusters

    async def test_a_cluster_s_memories_come_newest_first_a_page_at_a_time(self, ledger: AnyLedger) -> None:
        c = ClusterId("c")
        members = [
            memory(number=7000 + n, cluster_id=c, happened_at=MOMENT + timedelta(hours=n // 2), status=status)
            for n, status in enumerate[Status](("active", "dead", "dying", "active", "dead"))
        ]
        await ledger.memories.commit(ADA, batch(*members, memory()))
        await apply(ledger, PatrolChanges(clusters=(cluster("c", "C", "c"), cluster("e", "Empty", "c"))))
        expected = sorted(members, key=lambda one: (-one.happened_at.timestamp(), one.id))
        seen: list[Memory] = []
        after: str | None = None
        while page := await ledger.browsing.cluster_memories(ADA, c, limit=2, after=after):
            seen += page
            after = page[-1].id
        assert seen == expected
        assert await ledger.browsing.cluster_memories(ADA, ClusterId("e"), limit=2, after=None) == []
        assert await ledger.browsing.cluster_memories(ADA, c, limit=2, after="unknown") == []
        assert await ledger.browsing.cluster_memories(ADA, ClusterId("none"), limit=2, after=None) is None

    async def test_summaries_count_by_status_roots_first_then_the_most_alive(self, ledger: AnyLedger) -> None:
        await apply(
            ledger,
            PatrolChanges(
                clusters=(
                    cluster("p", "Private", "p", is_root=True),
                    cluster("b", "Business", "b", is_root=True),
                    cluster("s1", "Zoo", "p"),
                    cluster("s2", "Apples", "p"),
                    cluster("s3", "Trips", "p"),
                )
            ),
        )
        statuses: tuple[Status, ...] = ("active", "active", "dying", "dead", "dead")
        await ledger.memories.commit(
            ADA, batch(*(memory(cluster_id=ClusterId("s3"), status=status) for status in statuses))
        )
        found = await ledger.browsing.cluster_summaries(ADA)
        assert [one.name for one in found] == ["Business", "Private", "Trips", "Apples", "Zoo"]
        assert [one.parent for one in found] == ["Business", "Private", "Private", "Private", "Private"]
        assert [one.is_root for one in found] == [True, True, False, False, False]
        trips = found[2]
        assert (trips.active, trips.dying, trips.dead) == (2, 1, 2)

    # --- patrol

    async def test_the_patrol_reads_and_changes_a_being_s_state(self, ledger: AnyLedger) -> None:
        moved, counted, born = memory(importance=0.4), memory(), memory("From a note")
        await ledger.memories.commit(ADA, batch(moved, counted, vectors={moved.content_hash: vector(1, 0)}))
        waiting = note("{}", type_="scene")
        await ledger.profile.add_note(ADA, waiting)
        await ledger.index_source.clear_marks([mark for mark, _ in await ledger.index_source.pending(limit=10)])
        root = cluster("r", "Private", "r", is_root=True)
        group = cluster("g", "Tea", "r", vector=vector(0.6, 0.8), model=MODEL)
        async with ledger.patrols.patrol(ADA) as transaction:
            read = {one.id: one for one in await everyone(ledger, transaction)}
            assert list(read) == [moved.id, counted.id]
            assert read[moved.id] == MemoryState(
                id=moved.id, content_hash=moved.content_hash, importance=0.4, status="active", fresh=True,
                pinned=False, cluster_id=None, absorbed_into=None, session_count=0, reactivation_count=0,
            )  # fmt: skip
            assert list(await transaction.vectors(MODEL, [moved.content_hash])) == [moved.content_hash]
            assert await transaction.memories([counted.id]) == [counted]
            await transaction.apply(
                PatrolChanges(
                    new=(born,),
                    notes=(replace(waiting, state="done", reason="why"),),
                    states=(
                        replace(
                            read[moved.id],
                            status="dead",
                            cluster_id=group.id,
                            importance=0.9,
                            fresh=False,
                            absorbed_into=counted.id,
                            session_count=7,
                            reactivation_count=2,
                        ),
                        replace(read[counted.id], session_count=1),
                    ),
                    clusters=(root, group),
                ),
                run=RUN,
                step="assign",
            )
            assert len(await transaction.states([moved.id, counted.id, born.id])) == 3
        await ledger.patrols.begin_run(ADA, RUN, MOMENT)
        await ledger.patrols.finish_run(ADA, RUN, MOMENT + timedelta(seconds=1), {"é": [1]})
        assert await the(ledger, moved) == replace(
            moved, status="dead", cluster_id=group.id, importance=0.9, fresh=False, absorbed_into=counted.id,
            session_count=7, reactivation_count=2,
        )  # fmt: skip
        assert await the(ledger, counted) == replace(counted, session_count=1)
        assert await the(ledger, born) == born
        assert {id_ for _, id_ in await ledger.index_source.pending(limit=10)} == {born.id, moved.id}
        assert await ledger.patrols.unread_notes(ADA, type="scene") == []
        async with ledger.patrols.patrol(ADA) as transaction:
            first, second = await transaction.clusters()
            assert (first.id, second) == (group.id, root)
            assert await transaction.clusters([root.id, ClusterId("none")]) == [root]
            [count] = await transaction.cluster_counts()
            assert (count.cluster_id, count.active, count.dead, count.total) == (group.id, 0, 1, 1)
            assert await transaction.cluster_counts([root.id, ClusterId("none")]) == []
            assert await transaction.cluster_counts([group.id, root.id]) == [count]
            there = await transaction.members(group.id)
            assert [one.id for one in there] == [moved.id]
            assert await transaction.members(root.id, group.id) == there
            assert await transaction.members(root.id) == []
            assert first.vector is not None
            assert first.vector.tolist() == vector(0.6, 0.8).tolist()
            await transaction.apply(
                PatrolChanges(clusters=(replace(root, name="New"),), removed_clusters=(group.id,)),
                run=RUN,
                step="assign",
            )
        assert [one.name for one in await ledger.browsing.cluster_summaries(ADA)] == ["New"]

    async def test_a_subject_leaves_a_mark_only_if_status_or_cluster_differ(self, ledger: AnyLedger) -> None:
        kept, died, joined, left = memory(), memory(), memory(), memory(cluster_id=ClusterId("c"))
        await ledger.memories.commit(ADA, batch(kept, died, joined, left))
        read = await states(ledger)
        await ledger.index_source.clear_marks([mark for mark, _ in await ledger.index_source.pending(limit=10)])
        changes = PatrolChanges(
            states=(
                replace(read[kept.id], session_count=9, importance=0.1, reactivation_count=3, fresh=False),
                replace(read[died.id], status="dead"),
                replace(read[joined.id], cluster_id=ClusterId("c")),
                replace(read[left.id], cluster_id=None),
            )
        )
        # Once as the patrol does it, with what it has read, and once more without: the second finds nothing to move.
        async with ledger.patrols.patrol(ADA) as transaction:
            await everyone(ledger, transaction)
            await transaction.apply(changes, run=RUN, step="assign")
        await apply(ledger, changes)
        assert [id_ for _, id_ in await ledger.index_source.pending(limit=10)] == [died.id, joined.id, left.id]

    async def test_a_being_to_whom_nothing_came_since_its_last_patrol_is_left_alone(self, ledger: AnyLedger) -> None:
        """spec P12: what was there before does not count again; what came since does, and so does a recall."""

        def later(minutes: int) -> datetime:
            return MOMENT + timedelta(minutes=minutes)

        assert await ledger.beings.recent_activity() == []
        old = [memory(f"Old {n}", created_at=later(n)) for n in range(3)]
        await ledger.memories.commit(ADA, batch(*old))
        await ledger.memories.commit(BOB, batch(memory("Another's", scope=BOB, created_at=later(1))))
        bobs = RecentActivity(being_id=BOB.being_id, stored=1, first=later(1), latest=later(1))
        assert await ledger.beings.recent_activity() == [
            RecentActivity(being_id=ADA.being_id, stored=3, first=later(0), latest=later(2)), bobs
        ]  # fmt: skip
        await self.patrolled(ledger, RunId("one"), later(10))
        assert await ledger.beings.recent_activity() == [bobs]
        ledger.activations.add(ADA, [Activation(old[1].id, 1, later(20))])
        await ledger.activations.flush()
        recalled = RecentActivity(being_id=ADA.being_id, stored=0, first=later(20), latest=later(20))
        assert await ledger.beings.recent_activity() == [recalled, bobs]
        await ledger.memories.commit(ADA, batch(memory("New", created_at=later(30))))
        await ledger.profile.add_note(ADA, note("{}", type_="scene", at=later(15)))
        everything = RecentActivity(being_id=ADA.being_id, stored=2, first=later(15), latest=later(30))
        assert await ledger.beings.recent_activity() == [everything, bobs]
        await self.patrolled(ledger, RunId("two"), later(40))
        await ledger.patrols.undo(ADA, RunId("two"), at=later(41))
        assert await ledger.beings.recent_activity() == [bobs], "what was undone is not done again by itself"

    async def test_what_a_patrol_writes_is_nothing_new_and_what_comes_while_it_runs_is(self, ledger: AnyLedger) -> None:
        """spec P12: else each patrol would bring the next."""
        start, since = MOMENT, MOMENT + timedelta(minutes=1)
        await ledger.patrols.begin_run(ADA, RUN, start)
        await ledger.memories.commit(ADA, batch(memory("Meanwhile", created_at=since)))
        async with ledger.patrols.patrol(ADA) as transaction:
            await transaction.increment_session_counts(RUN)
            for tool in ("notes", "run_patrol"):
                written = memory(f"By {tool}", created_at=since, provenance=Provenance(tool=tool))
                await transaction.apply(PatrolChanges(new=(written,)), run=RUN, step="assign")
        await ledger.patrols.finish_run(ADA, RUN, since, {"steps": [{"name": "assign"}]})
        assert await ledger.beings.recent_activity() == [
            RecentActivity(being_id=ADA.being_id, stored=1, first=since, latest=since)
        ]

    async def test_a_run_that_was_rolled_back_or_only_carried_out_decisions_was_no_patrol(
        self, ledger: AnyLedger
    ) -> None:
        """spec P12"""
        await ledger.memories.commit(ADA, batch(memory("New", created_at=MOMENT)))
        await ledger.patrols.begin_run(ADA, RunId("killed"), MOMENT + timedelta(minutes=1))
        await ledger.patrols.undo(ADA, RunId("killed"), at=MOMENT, state="rolled_back")
        await ledger.patrols.begin_run(ADA, RunId("decided"), MOMENT + timedelta(minutes=2))
        await ledger.patrols.finish_run(ADA, RunId("decided"), MOMENT, {"steps": [], "decided": [{"offer": "x"}]})
        assert [one.stored for one in await ledger.beings.recent_activity()] == [1]

    async def patrolled(self, ledger: AnyLedger, run: RunId, started: datetime) -> None:
        await ledger.patrols.begin_run(ADA, run, started)
        async with ledger.patrols.patrol(ADA) as transaction:
            await transaction.increment_session_counts(run)
        await ledger.patrols.finish_run(ADA, run, started + timedelta(seconds=1), {"steps": [{"name": "age"}]})

    async def test_a_patrol_left_with_an_exception_changes_nothing(self, ledger: AnyLedger) -> None:
        one = memory()
        await ledger.memories.commit(ADA, batch(one))
        marks = await ledger.index_source.pending(limit=10)
        (subject,) = (await states(ledger)).values()

        async def fail_after_applying() -> None:
            async with ledger.patrols.patrol(ADA) as transaction:
                await transaction.apply(
                    PatrolChanges(
                        new=(memory("Never"),),
                        states=(replace(subject, status="dead"),),
                        clusters=(cluster("c", "C", "c"),),
                    ),
                    run=RUN,
                    step="assign",
                )
                raise RuntimeError("a step failed")

        with pytest.raises(RuntimeError):
            await fail_after_applying()
        assert await the(ledger, one) == one
        assert await ledger.index_source.count_memories() == 1
        assert await ledger.browsing.cluster_summaries(ADA) == []
        assert await ledger.index_source.pending(limit=10) == marks

    async def test_reads_go_on_while_a_patrol_holds_the_writer_and_see_what_was_before(self, ledger: AnyLedger) -> None:
        one, later = memory("tea"), memory()
        await ledger.memories.commit(ADA, batch(one))
        async with asyncio.timeout(WAIT_S), ledger.patrols.patrol(ADA) as transaction:
            (subject,) = await everyone(ledger, transaction)
            await transaction.apply(PatrolChanges(states=(replace(subject, status="dead"),)), run=RUN, step="assign")
            store = asyncio.create_task(ledger.memories.commit(ADA, batch(later)))
            reads = await asyncio.gather(*(ledger.memories.memories(ADA, [one.id]) for _ in range(20)))
            assert reads == [[one]] * 20
            assert ids(await ledger.search.search(ADA, asked("tea"))) == [one.id]
            assert not store.done()
        await store
        assert (await the(ledger, one)).status == "dead"
        assert await the(ledger, later) == later

    async def test_a_patrol_that_is_cancelled_changes_nothing_and_frees_the_writer(self, ledger: AnyLedger) -> None:
        one = memory()
        await ledger.memories.commit(ADA, batch(one))
        applied = asyncio.Event()

        async def patrol() -> None:
            async with ledger.patrols.patrol(ADA) as transaction:
                (subject,) = await everyone(ledger, transaction)
                await transaction.apply(
                    PatrolChanges(states=(replace(subject, status="dead"),)), run=RUN, step="assign"
                )
                applied.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(patrol())
        await applied.wait()
        waiting = asyncio.create_task(ledger.memories.commit(ADA, batch(memory("cancelled in the queue"))))
        await asyncio.sleep(0)
        waiting.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await the(ledger, one) == one
        await ledger.memories.commit(ADA, batch(memory()))
        assert await ledger.index_source.count_memories() == 2

    @pytest.mark.parametrize("turns", range(0, 30, 3))
    async def test_a_store_that_is_cancelled_is_whole_or_absent(self, ledger: AnyLedger, turns: int) -> None:
        base = memory()
        await ledger.memories.commit(ADA, batch(base))
        new = [memory(f"New {turns} {n}", key=f"k{n}") for n in range(20)]
        vectors = {one.content_hash: vector(1, 0) for one in new}
        store = asyncio.create_task(ledger.memories.commit(ADA, batch(*new, again=[again(base)], vectors=vectors)))
        for _ in range(turns):
            await asyncio.sleep(0)
        store.cancel()
        await asyncio.wait({store})
        found = await ledger.memories.memories(ADA, [one.id for one in new])
        assert found in ([], new)
        share = 1 if found else 0
        assert len(await ledger.index_source.pending(limit=100)) == 1 + 20 * share
        assert len(await ledger.memories.vectors(MODEL, list(vectors))) == 20 * share
        assert (await the(ledger, base)).access_count == share
        await ledger.memories.commit(ADA, batch(memory()))
        assert await ledger.index_source.count_memories() == 2 + 20 * share

    # --- notes

    async def test_unread_notes_of_a_type_come_oldest_first(self, ledger: AnyLedger) -> None:
        late, early = note("late", at=MOMENT + timedelta(days=1)), note("early", reason="r")
        for one in (late, early, note("other", type_="x"), note("read", state="done")):
            await ledger.profile.add_note(ADA, one)
        assert await ledger.patrols.unread_notes(ADA, type="todo") == [early, late]

    # --- activations

    async def test_activations_are_added_up_and_rewind_the_clock_of_the_living(self, ledger: AnyLedger) -> None:
        active = memory(status="active", session_count=5, reactivation_count=1)
        dying = memory(status="dying", session_count=40)
        dead = memory(status="dead", session_count=60)
        untouched = memory(session_count=2)
        await ledger.memories.commit(ADA, batch(active, dying, dead, untouched))
        later = MOMENT + timedelta(minutes=1)
        ledger.activations.add(ADA, [Activation(active.id, 1, later), Activation(dead.id, 2, MOMENT)])
        ledger.activations.add(ADA, [Activation(active.id, 2, MOMENT), Activation(dying.id, 1, MOMENT)])
        ledger.activations.add(ADA, [Activation(memory_id(10**9), 1, MOMENT)])
        ledger.activations.add(ADA, [])
        await ledger.activations.flush()
        assert await the(ledger, active) == replace(active, session_count=0, reactivation_count=4, last_activated=later)
        assert await the(ledger, dying) == replace(dying, session_count=0, reactivation_count=1, last_activated=MOMENT)
        assert await the(ledger, dead) == replace(dead, reactivation_count=2, last_activated=MOMENT)
        assert await the(ledger, untouched) == untouched

    async def test_activations_are_written_without_being_asked_for(self, ledger: AnyLedger) -> None:
        one = memory()
        await ledger.memories.commit(ADA, batch(one))
        ledger.activations.add(ADA, [Activation(one.id, 1, MOMENT)])
        async with asyncio.timeout(WAIT_S):
            while (await the(ledger, one)).reactivation_count == 0:
                pass  # each look lets the writer have a turn

    async def test_activations_from_many_at_once_are_counted_each_once(self, ledger: AnyLedger) -> None:
        one = memory()
        await ledger.memories.commit(ADA, batch(one))

        async def recall() -> None:
            for _ in range(20):
                ledger.activations.add(ADA, [Activation(one.id, 1, MOMENT)])
                await ledger.activations.flush()

        await asyncio.gather(*(recall() for _ in range(5)))
        assert (await the(ledger, one)).reactivation_count == 100
