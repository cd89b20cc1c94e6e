"""What a store reads while the model embeds its text (ADR 72): not twice, and not what is out of date (ruling 1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from madeleine.memory.errors import EmbeddingUnavailable
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.store import StoredSceneResult, StoreScenes
from madeleine.memory.ingest.write_lock import WriteLock
from madeleine.memory.model import Memory, MemoryId, MemoryStatus, Scene, Scope
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.qdrant.schema import IndexFingerprint
from madeleine.storage.sql.ledger import open_ledger
from madeleine.storage.sql.memories.storing import MemoryRepository
from tests.doubles import ADA, Clock, WordEmbedder
from tests.waiting import DEADLOCK_S

DINNER, DINNER_LOUDER = "Ben cooked a dinner of lentils", "Ben cooked a DINNER of lentils!"


class HeldEmbedder(WordEmbedder):
    """Waits with the texts of `held` until it is told to go on, and then cannot be had."""

    def __init__(self, *held: str) -> None:
        super().__init__()
        self._held = held
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not set(self._held).isdisjoint(texts):
            self.asked.set()
            await self.go_on.wait()
        raise EmbeddingUnavailable(self.model_name, "it was told to be away")


class CountingIndex(EmbeddedQdrantIndex):
    searches = 0
    searched: asyncio.Event

    async def living_ids_sharing_most_words(
        self, scope: Scope, words: str, *, limit: int, statuses: Sequence[MemoryStatus]
    ) -> list[MemoryId]:
        self.searches += 1
        self.searched.set()
        return await super().living_ids_sharing_most_words(scope, words, limit=limit, statuses=statuses)


class Home:
    def __init__(
        self, store: StoreScenes, index: CountingIndex, embedder: HeldEmbedder, ledger: MemoryRepository
    ) -> None:
        self._store, self.index, self.embedder, self.ledger = store, index, embedder, ledger

    async def store(self, text: str) -> StoredSceneResult:
        [stored] = await self._store(ADA, [NewScene(scene=Scene(action=text))])
        return stored


@pytest.fixture
async def home(tmp_path: Path, new_db: Path) -> AsyncIterator[Home]:
    embedder = HeldEmbedder(DINNER_LOUDER)
    index = await CountingIndex.open(tmp_path / "index", IndexFingerprint(embedder.model_name, embedder.dim))
    assert isinstance(index, CountingIndex)
    index.searched = asyncio.Event()
    async with asyncio.timeout(DEADLOCK_S), open_ledger(new_db) as ledger:
        yield Home(StoreScenes(ledger.memories, index, embedder, now=Clock()), index, embedder, ledger.memories)
    await index.close()


async def test_the_index_is_searched_by_words_once_while_the_model_works(home: Home) -> None:
    storing = asyncio.create_task(home.store(DINNER_LOUDER))
    await home.embedder.asked.wait()
    await home.index.searched.wait()
    home.embedder.go_on.set()
    assert (await storing).status == "stored"
    assert home.index.searches == 1


async def test_what_was_stored_meanwhile_is_not_missed(home: Home) -> None:
    """By words alone: the model cannot be had."""
    storing = asyncio.create_task(home.store(DINNER_LOUDER))
    await home.embedder.asked.wait()
    await home.index.searched.wait()
    before = await home.store(DINNER)
    home.embedder.go_on.set()
    after = await storing
    assert (before.status, after.status) == ("stored", "reinforced")
    assert after.memory.id == before.memory.id


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[Memory]:
    """Each memory as often as it was read by its id."""
    queue: asyncio.Queue[Memory] = asyncio.Queue()
    read_memories = MemoryRepository.memories_with_ids

    async def memories_with_ids(self: MemoryRepository, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]:
        memories = await read_memories(self, scope, ids)
        for memory in memories:
            queue.put_nowait(memory)
        return memories

    monkeypatch.setattr(MemoryRepository, "memories_with_ids", memories_with_ids)
    return queue


async def test_a_memory_that_is_changed_meanwhile_without_the_lock_is_read_again(
    home: Home, read: asyncio.Queue[Memory]
) -> None:
    """As a patrol does, or another server. ruling 14: it was retracted, so it is not what the new one reinforces."""
    before = await home.store(DINNER)
    storing = asyncio.create_task(home.store(DINNER_LOUDER))
    assert (await read.get()).id == before.memory.id
    await home.ledger.retract(ADA, before.memory.id, "it was Ann", at=Clock()())
    home.embedder.go_on.set()
    assert (await storing).status == "stored"


async def test_a_memory_that_nobody_changes_meanwhile_is_read_once(home: Home, read: asyncio.Queue[Memory]) -> None:
    home.embedder.go_on.set()
    before = await home.store(DINNER)
    await home.store(DINNER + " and of beans")
    assert read.get_nowait().id == before.memory.id
    assert read.empty()


async def test_a_turn_holds_only_if_nobody_had_the_lock_since() -> None:
    lock = WriteLock()
    turn = lock.start_optimistic_read()
    async with lock:
        assert lock.is_optimistic_read_valid(turn)
        assert lock.start_optimistic_read() is None
    async with lock:
        assert not lock.is_optimistic_read_valid(turn)
        assert not lock.is_optimistic_read_valid(None)
    turn = lock.start_optimistic_read()
    async with lock:
        assert lock.is_optimistic_read_valid(turn)


async def test_a_turn_read_while_another_waits_does_not_hold() -> None:
    lock = WriteLock()
    await lock.acquire()
    waiting = asyncio.create_task(lock.acquire())
    await asyncio.sleep(0)
    lock.release()  # who waits is woken, and has not run yet
    turn = lock.start_optimistic_read()
    await waiting
    lock.release()
    async with lock:
        assert not lock.is_optimistic_read_valid(turn)
