"""spec T4, T6, ruling 1: what is stored is kept once, at once recallable, and never lost or doubled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from madeleine.memory.errors import IndexUnavailable, InvalidInput, KeyConflict
from madeleine.memory.index import IndexPoint
from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.model import (
    Category,
    DatedAction,
    Memory,
    MemoryId,
    MemoryStatus,
    Scene,
    Scope,
    Vector,
    embedded_text,
)
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.memory.recall.recall import RecallMemories
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.storing.likeness import DuplicateThresholds
from madeleine.memory.rules.storing.retelling import MAX_RETOLD_ENTRIES_PER_MEMORY
from madeleine.memory.rules.storing.secrets import redact_nothing
from madeleine.memory.vector_space import VectorSpace
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.qdrant.schema import IndexFingerprint
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from tests.contracts.ledger.ledger_values import apply_changes, states
from tests.doubles import ADA, BOB, Clock, WordEmbedder
from tests.fakes.ledger import InMemoryLedger
from tests.waiting import DEADLOCK_S

DINNER = "At the long table in the kitchen we talked about the quiet house by the lake"


class AwayIndex:
    """The index of a server that is down."""

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        raise IndexUnavailable("the server is down")

    async def nearest(
        self, scope: Scope, vector: Vector, *, limit: int, statuses: Sequence[MemoryStatus]
    ) -> list[tuple[MemoryId, float]]:
        raise IndexUnavailable("the server is down")

    async def living_ids_sharing_most_words(
        self, scope: Scope, words: str, *, limit: int, statuses: Sequence[MemoryStatus]
    ) -> list[MemoryId]:
        raise IndexUnavailable("the server is down")


class HeldIndex(EmbeddedQdrantIndex):
    """Says when an upsert has begun, and begins it in earnest when it may."""

    def hold(self) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        self.begun.set()
        await self.go.wait()
        await super().upsert(points)


@dataclass
class Home:
    """A store and everything it works with."""

    ledger: LedgerRepositories | InMemoryLedger
    index: EmbeddedQdrantIndex
    embedder: WordEmbedder = field(default_factory=WordEmbedder)
    clock: Clock = field(default_factory=Clock)
    told: int = 0
    """How often it was said that there are marks to work off."""

    def __post_init__(self) -> None:
        self.store = StoreScenes(self.ledger.memories, self.index, self.embedder, now=self.clock, on_commit=self._wrote)
        self.keeper = IndexKeeper(self.ledger.index_source, self.index, self.embedder)

    def _wrote(self) -> None:
        self.told += 1

    async def kept(self, scope: Scope = ADA) -> list[Memory]:
        everything = await self.ledger.index_source.memories_after_id(after=None, limit=100)
        return [memory for memory in everything if memory.being_id == scope.being_id]

    async def recalled(self, text: str) -> list[MemoryId]:
        recall = RecallMemories(self.ledger.recall, self.index, self.embedder, self.ledger.activations, now=self.clock)
        return [memory.id for memory, _ in (await recall(ADA, RecallQuery(text=text))).memories]


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    index = await EmbeddedQdrantIndex.open(
        tmp_path / "index", IndexFingerprint(WordEmbedder().model_name, WordEmbedder().dim)
    )
    yield Home(InMemoryLedger(), index)
    await index.close()


@pytest.fixture
async def durable_home(tmp_path: Path, new_db: Path) -> AsyncIterator[Home]:
    """Over a database: where a call may be cancelled at each of its steps."""
    index = await EmbeddedQdrantIndex.open(
        tmp_path / "index", IndexFingerprint(WordEmbedder().model_name, WordEmbedder().dim)
    )
    async with open_ledger(new_db) as ledger:
        yield Home(ledger, index)
    await index.close()


def scene(
    action: str,
    *,
    when: tuple[str, ...] = (),
    feeling: str = "",
    category: Category = "episodic",
    importance: float | None = None,
    themes: tuple[str, ...] = (),
    pinned: bool = False,
    key: str | None = None,
) -> NewScene:
    return NewScene(
        scene=Scene(action=action, when=when),
        feeling=feeling,
        category=category,
        importance=importance,
        themes=themes,
        pinned=pinned,
        key=key,
    )


def cosine(embedder: WordEmbedder, one: NewScene, other: NewScene) -> float:
    mine, theirs = [embedder.vector(embedded_text(new.scene, new.feeling)) for new in (one, other)]
    return float(np.dot(mine, theirs))


# --- secrets


def with_token(last: str) -> str:
    return f"{DINNER}, and the token was gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R" + last


async def test_secrets_are_gone_before_the_model_the_hash_and_the_comparison_see_a_scene(home: Home) -> None:
    [first, again] = await home.store(ADA, [scene(with_token("1"), key="a"), scene(with_token("2"), key="b")])
    assert first.memory.scene.action == f"{DINNER}, and the token was [redacted: github token]"
    assert (again.status, again.memory.id) == ("reinforced", first.memory.id)
    assert first.redacted == again.redacted == {"github token": 1}
    assert "a1B2" not in str(home.embedder.batches)
    [repeated] = await home.store(ADA, [scene(with_token("3"), key="a")])
    assert repeated.repeated


async def test_a_secret_as_a_key_is_refused_and_nothing_of_the_batch_is_stored(home: Home) -> None:
    with pytest.raises(InvalidInput, match="key"):
        await home.store(ADA, [scene(DINNER), scene("b", key=with_token("1")[-40:])])
    assert await home.kept() == []


async def test_where_redaction_is_off_scenes_are_kept_as_they_are(home: Home) -> None:
    store = StoreScenes(home.ledger.memories, home.index, home.embedder, now=home.clock, redact=redact_nothing)
    [stored] = await store(ADA, [scene(with_token("1"))])
    assert stored.memory.scene.action == with_token("1")
    assert stored.redacted == {}


# --- the same again


@pytest.mark.parametrize(("model_at_first", "model_then"), [(True, True), (False, False), (False, True)])
async def test_the_same_text_stored_again_reinforces_with_and_without_the_model(
    home: Home, model_at_first: bool, model_then: bool
) -> None:
    """spec T6: access_count and last access; the greater importance, new themes and a pin are taken over."""
    home.embedder.available = model_at_first
    [first] = await home.store(ADA, [scene(DINNER, importance=0.6, themes=("home",))])
    home.embedder.available = model_then
    [again] = await home.store(ADA, [scene(DINNER, importance=0.8, themes=("lake",), pinned=True)])
    assert (first.status, again.status, again.repeated) == ("stored", "reinforced", False)
    assert bool(first.embedding_error) is not model_at_first
    [kept] = await home.kept()
    assert kept == again.memory
    assert (kept.id, kept.access_count, kept.last_accessed) == (first.memory.id, 1, home.clock())
    assert (kept.importance, kept.themes, kept.pinned) == (0.8, ("home", "lake"), True)


async def test_the_same_facts_in_other_words_reinforce(home: Home) -> None:
    """spec T6: a cosine near enough, and the same words."""
    other = scene(DINNER.replace("we talked", "we have talked"))
    assert DuplicateThresholds().same <= cosine(home.embedder, scene(DINNER), other) < 1
    [first], [again] = await home.store(ADA, [scene(DINNER)]), await home.store(ADA, [other])
    assert (again.status, again.memory.id) == ("reinforced", first.memory.id)
    assert again.memory.scene.action == DINNER


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(scene(f"{DINNER} for 3 hours"), scene(f"{DINNER} for 4 hours"), id="number"),
        pytest.param(scene(f"{DINNER} on Monday"), scene(f"{DINNER} on Sunday"), id="date"),
        pytest.param(scene(f"{DINNER} with Anna"), scene(f"{DINNER} with Maria"), id="name"),
        pytest.param(scene(DINNER), scene(DINNER.replace("we talked", "we never talked")), id="negation"),
        pytest.param(scene(DINNER), scene(DINNER, category="procedural"), id="category"),
    ],
)
async def test_scenes_that_differ_in_a_fact_are_both_kept_though_their_vectors_are_alike(
    home: Home, one: NewScene, other: NewScene
) -> None:
    """spec T6, in two calls and in one."""
    assert cosine(home.embedder, one, other) >= DuplicateThresholds().same
    apart = [*await home.store(ADA, [one]), *await home.store(ADA, [other])]
    together = await home.store(BOB, [one, other])
    assert [stored.status for stored in apart + together] == ["stored"] * 4
    assert (len(await home.kept(ADA)), len(await home.kept(BOB))) == (2, 2)


async def test_a_day_a_lesson_and_a_feeling_that_are_told_later_stay_with_the_memory_and_are_found(home: Home) -> None:
    """Ruling 13: the same fact told on five days is one memory, and nothing that was told is lost."""
    [first] = await home.store(
        ADA, [replace(scene(DINNER, feeling="proud", when=("2026-02-27",)), lesson="Listen more.")]
    )
    days = [f"2026-03-0{day}" for day in range(1, 5)]
    told = [
        replace(scene(DINNER, when=(day,), feeling="wistful"), lesson="Bring candles.", emotions=("joy",))
        for day in days
    ]
    again = [(await home.store(ADA, [new]))[0] for new in told]
    assert [stored.status for stored in again] == ["reinforced"] * 4
    [kept] = await home.kept()
    assert (kept.id, kept.access_count, kept.feeling) == (first.memory.id, 4, "proud")
    assert kept.lesson == "Listen more.\nBring candles."
    assert kept.retold == (DatedAction(days[0], "wistful"), *days[1:])
    assert kept.emotions == ("joy",)
    await home.keeper.index_marked_memories()
    assert await home.recalled("candles") == await home.recalled("wistful") == [first.memory.id]


async def test_a_day_of_telling_is_no_news_of_a_standing_fact(home: Home) -> None:
    """Ruling 13"""
    days = [scene(DINNER, category="semantic", when=(day,)) for day in ("2026-02-27", "2026-03-05")]
    [_, again] = [(await home.store(ADA, [new]))[0] for new in days]
    assert (again.status, again.memory.retold) == ("reinforced", ())


async def test_a_caller_can_insist_that_a_scene_is_distinct(home: Home) -> None:
    """Ruling 13: it is stored beside the other and linked to it."""
    [first] = await home.store(ADA, [scene(DINNER)])
    [second] = await home.store(ADA, [replace(scene(DINNER), distinct=True)])
    assert (second.status, second.resembled_memory_id) == ("stored", first.memory.id)


async def test_what_a_memory_has_no_room_for_is_stored_beside_it(home: Home) -> None:
    """Ruling 13: nothing acknowledged is lost."""
    told = [scene(DINNER, when=(f"2026-02-{day:02}",)) for day in range(1, MAX_RETOLD_ENTRIES_PER_MEMORY + 4)]
    stored = await home.store(ADA, told)
    assert [one.status for one in stored].count("stored") == 2


async def test_what_says_the_same_as_a_dead_memory_is_stored_anew(home: Home) -> None:
    """ruling 1: stored means recallable, and a dead memory is not recalled."""
    [first] = await home.store(ADA, [scene(DINNER)])
    dead = replace((await states(home.ledger))[first.memory.id], status="dead")
    await apply_changes(home.ledger, PatrolChanges(states=(dead,)))
    await home.keeper.index_marked_memories()
    [again] = await home.store(ADA, [scene(DINNER)])
    assert again.status == "stored"
    assert await home.recalled(DINNER) == [again.memory.id]


async def test_two_equal_scenes_of_a_batch_become_one_memory(home: Home) -> None:
    """spec T6"""
    stored = await home.store(ADA, [scene(DINNER), scene("Bought bread"), scene(DINNER)])
    assert [one.status for one in stored] == ["stored", "stored", "reinforced"]
    assert stored[0].memory.id == stored[2].memory.id
    assert sorted((memory.scene.action, memory.access_count) for memory in await home.kept()) == [
        (DINNER, 1), ("Bought bread", 0)
    ]  # fmt: skip


async def test_equal_scenes_stored_at_once_become_one_memory(home: Home) -> None:
    """spec T6"""
    stored = await asyncio.gather(*(home.store(ADA, [scene(DINNER)]) for _ in range(5)))
    assert sorted(one.status for [one] in stored) == ["reinforced"] * 4 + ["stored"]
    [kept] = await home.kept()
    assert kept.access_count == 4


async def test_what_the_model_cannot_read_is_not_taken_for_the_same(home: Home) -> None:
    """ruling 8, ADR 3: such vectors lie close to everything, and no fact is seen to differ in a script unknown."""
    home.embedder.vector_space = VectorSpace(np.zeros((1, home.embedder.dim), np.float32), np.zeros(1, np.float32))
    one, other = scene(DINNER), scene(DINNER.replace("talked", "chatted"))
    assert cosine(home.embedder, one, other) >= DuplicateThresholds().same
    together = await home.store(ADA, [one, other])
    apart = [*await home.store(BOB, [one]), *await home.store(BOB, [other])]
    assert [stored.status for stored in together + apart] == ["stored"] * 4


async def test_a_reinforcement_leaves_work_for_the_index_only_where_it_adds_a_theme(home: Home) -> None:
    """ruling 1: of all that it changes, themes alone are among the words that are searched."""
    [stored] = await home.store(ADA, [scene(DINNER)])
    await home.keeper.index_marked_memories()
    assert home.told == 1
    await home.store(ADA, [scene(DINNER, importance=1.0, pinned=True)])
    assert (home.told, await home.ledger.index_source.pending_index_marks_with_memory_ids(limit=9)) == (1, [])
    await home.store(ADA, [scene(DINNER, themes=("regatta",))])
    assert home.told == 2
    assert await home.keeper.index_marked_memories() == 1
    assert await home.recalled("regatta") == [stored.memory.id]


async def test_a_memory_that_died_is_not_reinforced_though_the_index_has_yet_to_hear_of_it(home: Home) -> None:
    """ruling 1: what is stored is recallable."""
    [first] = await home.store(ADA, [scene(DINNER)])
    died = replace((await states(home.ledger))[first.memory.id], status="dead")
    await apply_changes(home.ledger, PatrolChanges(states=(died,)))
    [again] = await home.store(ADA, [scene(DINNER)])
    assert again.status == "stored"
    assert again.memory.id in await home.recalled(DINNER)


# --- keys


async def test_a_key_repeated_gives_the_first_answer_and_stores_nothing(home: Home) -> None:
    """spec T4: a client that got no answer may ask again."""
    keyed = scene(DINNER, key="k")
    [first], [again] = await home.store(ADA, [keyed]), await home.store(ADA, [keyed])
    assert (first.status, first.repeated) == ("stored", False)
    assert (again.status, again.repeated, again.memory) == ("stored", True, first.memory)
    assert await home.kept() == [first.memory]


async def test_the_key_of_a_reinforcement_repeated_counts_it_once(home: Home) -> None:
    """spec T4, T6"""
    await home.store(ADA, [scene(DINNER)])
    keyed = scene(DINNER, key="k")
    [first], [again] = await home.store(ADA, [keyed]), await home.store(ADA, [keyed])
    assert (first.status, first.repeated) == ("reinforced", False)
    assert (again.status, again.repeated, again.memory) == ("reinforced", True, first.memory)
    assert [memory.access_count for memory in await home.kept()] == [1]


async def test_a_key_twice_in_a_batch_is_one_store(home: Home) -> None:
    """spec T4"""
    first, again = await home.store(ADA, [scene(DINNER, key="k"), scene(DINNER, key="k")])
    assert (again.status, again.repeated, again.memory) == ("stored", True, first.memory)
    assert await home.kept() == [first.memory]


async def test_a_key_twice_in_a_batch_that_reinforces_counts_it_once(home: Home) -> None:
    """spec T4, T6. Once the second was answered with a memory that had never been stored: a KeyError."""
    [known] = await home.store(ADA, [scene(DINNER)])
    first, again = await home.store(ADA, [scene(DINNER, key="k"), scene(DINNER, key="k")])
    assert (first.status, first.repeated) == ("reinforced", False)
    assert (again.status, again.repeated, again.memory) == ("reinforced", True, first.memory)
    assert [(memory.id, memory.access_count) for memory in await home.kept()] == [(known.memory.id, 1)]


@pytest.mark.parametrize("before", [[scene(DINNER, key="k")], []], ids=["earlier", "in the batch"])
async def test_a_key_with_another_text_is_refused_and_nothing_of_the_batch_is_stored(
    home: Home, before: list[NewScene]
) -> None:
    """spec T4: whose key it is cannot be told, so neither text is taken for the other."""
    await home.store(ADA, before)
    with pytest.raises(KeyConflict) as error:
        await home.store(ADA, [scene("Bought bread"), scene(DINNER, key="k"), scene("Baked bread", key="k")])
    assert error.value.key == "k"
    assert [memory.scene.action for memory in await home.kept()] == [new.scene.action for new in before]


# --- when things fail


async def test_a_store_without_the_index_is_acknowledged_and_recallable_once_it_is_back(home: Home) -> None:
    """ruling 1: the ledger is the truth; a mark is left for what the index missed."""
    store = StoreScenes(home.ledger.memories, AwayIndex(), home.embedder, now=home.clock)
    [stored] = await store(ADA, [scene(DINNER)])
    [again] = await store(ADA, [scene(DINNER)])
    assert (stored.status, again.status) == ("stored", "reinforced")
    assert [id_ for _, id_ in await home.ledger.index_source.pending_index_marks_with_memory_ids(limit=9)] == [
        stored.memory.id
    ]
    assert await home.recalled(DINNER) == []
    assert await home.keeper.index_marked_memories() == 1
    assert await home.recalled(DINNER) == [stored.memory.id]


async def test_a_caller_that_goes_away_between_ledger_and_index_stops_neither(tmp_path: Path) -> None:
    """ruling 1"""
    embedder = WordEmbedder()
    index = await HeldIndex.open(tmp_path / "index", IndexFingerprint(embedder.model_name, embedder.dim))
    assert isinstance(index, HeldIndex)
    index.hold()
    async with asyncio.timeout(DEADLOCK_S), open_ledger(tmp_path / "memory.db") as ledger:
        home = Home(ledger, index, embedder)
        caller = asyncio.create_task(home.store(ADA, [scene(DINNER)]))
        await index.begun.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        index.go.set()
        [again] = await home.store(ADA, [scene(DINNER)])
        assert again.status == "reinforced"
        assert await home.recalled(DINNER) == [memory.id for memory in await home.kept()] == [again.memory.id]
    await index.close()


@pytest.mark.parametrize("turns", range(0, 40, 4))
async def test_a_store_that_is_cancelled_and_asked_for_again_is_done_once(durable_home: Home, turns: int) -> None:
    """spec T4, at any moment: the second call stores what the first has not, and repeats what it has."""
    keyed = scene(DINNER, key="k")
    caller = asyncio.create_task(durable_home.store(ADA, [keyed]))
    for _ in range(turns):
        await asyncio.sleep(0)
    caller.cancel()
    with suppress(asyncio.CancelledError):
        await caller
    [stored] = await durable_home.store(ADA, [keyed])
    assert stored.status == "stored"
    [kept] = await durable_home.kept()
    assert (kept.id, kept.access_count) == (stored.memory.id, 0)
    assert await durable_home.recalled(DINNER) == [kept.id]
