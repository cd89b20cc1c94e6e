"""ruling 1 (design: truth and index): what is written reaches the index by itself, whatever fails on the way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from madeleine.memory.errors import EmbeddingUnavailable, IndexUnavailable
from madeleine.memory.ingest.erased_bytes import ErasedBytesScrubber
from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.ingest.ports import StoreBatch
from madeleine.memory.model import LIVING_STATUSES, EmbeddingModelName, Memory
from madeleine.server.background import index_upkeep as background
from madeleine.server.background.index_upkeep import BackgroundIndexUpkeep
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.qdrant.schema import IndexFingerprint
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from tests.doubles import ADA, WordEmbedder, a_memory
from tests.waiting import DEADLOCK_S

Turn = int | str
"""Memories brought in, or what else was done."""


class WatchedKeeper(IndexKeeper):
    """Tells of each turn, fails when it is told to, and rests behind a turn while it may not go on."""

    def __init__(self, ledger: LedgerRepositories, index: EmbeddedQdrantIndex, embedder: WordEmbedder) -> None:
        super().__init__(ledger.index_source, index, embedder)
        self.turns: asyncio.Queue[Turn] = asyncio.Queue()
        self.filled: asyncio.Queue[int] = asyncio.Queue()
        self.fails_to_catch_up: list[Exception] = []
        self.fails_to_fill_in: list[Exception] = []
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def index_marked_memories(self) -> int:
        if self.fails_to_catch_up:
            self.turns.put_nowait("failed")
            raise self.fails_to_catch_up.pop()
        done = await super().index_marked_memories()
        self.turns.put_nowait(done)
        await self.goes_on.wait()
        return done

    async def embed_memories_without_vector(self) -> int:
        if self.fails_to_fill_in:
            raise self.fails_to_fill_in.pop()
        done = await super().embed_memories_without_vector()
        self.filled.put_nowait(done)
        return done


class WatchedIndex(EmbeddedQdrantIndex):
    """Tells when it is asked to optimise itself."""

    turns: asyncio.Queue[Turn]

    async def optimize_if_worthwhile(self) -> bool:
        self.turns.put_nowait("optimized")
        return await super().optimize_if_worthwhile()


class House:
    """The background work with the adapters that it has in the server."""

    def __init__(self, ledger: LedgerRepositories, index: WatchedIndex) -> None:
        self.ledger = ledger
        self.index = index
        self.embedder = WordEmbedder()
        self.keeper = WatchedKeeper(ledger, index, self.embedder)
        self.scrubber = ErasedBytesScrubber(ledger.erasure, self.keeper, index)
        index.turns = self.keeper.turns

    async def write(self, memory: Memory, *, embedded: bool = True) -> None:
        """Into the ledger alone, which leaves a mark."""
        vectors = {memory.content_hash: self.embedder.vector(memory.embedded_text)} if embedded else {}
        await self.ledger.memories.commit_store_batch(
            ADA, StoreBatch(new=(memory,), model=self.embedder.model_name, vectors=vectors)
        )

    async def turns(self, count: int) -> list[Turn]:
        return [await self.keeper.turns.get() for _ in range(count)]

    @asynccontextmanager
    async def at_work(
        self, warm_up: Callable[[], Awaitable[None]] | None = None
    ) -> AsyncIterator[BackgroundIndexUpkeep]:
        work = BackgroundIndexUpkeep(self.keeper, self.index, warm_up or self.embedder.warm_up, self.scrubber)
        task = asyncio.create_task(work.run())
        try:
            async with asyncio.timeout(DEADLOCK_S):
                yield work
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture
async def house(tmp_path: Path, new_db: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setattr(background, "INDEX_CATCH_UP_DELAY_SECONDS", 0)
    monkeypatch.setattr(background, "EMBED_RETRY_SECONDS", 0)
    index = await WatchedIndex.open(tmp_path / "index", IndexFingerprint(WordEmbedder().model_name, WordEmbedder().dim))
    assert isinstance(index, WatchedIndex)
    async with open_ledger(new_db) as ledger:
        yield House(ledger, index)
    await index.close()


async def test_what_is_written_is_brought_in_when_it_is_said_and_its_mark_is_cleared(house: House) -> None:
    """ruling 1"""
    async with house.at_work() as work:
        assert await house.turns(2) == [0, "optimized"]
        await house.write(a_memory("Sailed to the harbor"))
        work.wake_background_tasks()
        assert await house.turns(1) == [1]
        assert await house.ledger.index_source.pending_index_marks_with_memory_ids(limit=9) == []
        assert await house.index.count() == 1


async def test_what_is_left_from_the_last_time_is_brought_in_at_the_start(house: House) -> None:
    """ruling 1: the last server may have been killed before it came to it."""
    await house.write(a_memory("Sailed to the harbor"))
    async with house.at_work():
        assert await house.turns(1) == [1]
        assert await house.ledger.index_source.pending_index_marks_with_memory_ids(limit=9) == []


async def test_what_is_written_during_a_turn_gets_a_turn_of_its_own(house: House) -> None:
    """A wake-up that is forgotten leaves a mark until the next store, or for ever."""
    async with house.at_work() as work:
        assert await house.turns(2) == [0, "optimized"]
        house.keeper.goes_on.clear()
        await house.write(a_memory("Sailed to the harbor"))
        work.wake_background_tasks()
        assert await house.turns(1) == [1]
        await house.write(a_memory("Played the violin"))
        work.wake_background_tasks()
        house.keeper.goes_on.set()
        assert await house.turns(1) == [1]


async def test_a_turn_that_fails_is_logged_and_tried_again_without_being_asked(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """ruling 1: the marks are still there."""
    house.keeper.fails_to_catch_up = [IndexUnavailable("the server is down"), OSError("no space")]
    await house.write(a_memory("Sailed to the harbor"))
    async with house.at_work():
        assert await house.turns(3) == ["failed", "failed", 1]
    unforeseen, foreseen = caplog.records
    assert unforeseen.exc_info is not None
    assert str(unforeseen.exc_info[1]) == "no space"
    assert "the server is down" in foreseen.getMessage()
    assert (unforeseen.levelno, foreseen.levelno) == (logging.ERROR, logging.WARNING)


async def test_the_index_is_optimized_at_the_start_and_again_when_enough_has_come(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the start it may pay: the index was built anew, or the last server was killed."""
    monkeypatch.setattr(background, "MIN_NEW_MEMORIES_TO_OPTIMIZE_INDEX", 2)
    async with house.at_work() as work:
        assert await house.turns(2) == [0, "optimized"]
        for seen in ([1], [1, "optimized"], [1]):
            await house.write(a_memory("Sailed to the harbor"))
            work.wake_background_tasks()
            assert await house.turns(len(seen)) == seen
        assert house.keeper.turns.empty()


async def test_vectors_are_filled_in_when_the_model_comes_back(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """ruling 1: until then the marks are worked off all the same, and a model that is away is not an error."""
    memory = a_memory("Sailed to the harbor")
    await house.write(memory, embedded=False)
    came_back = asyncio.Event()
    tries = 0

    async def warm_up() -> None:
        nonlocal tries
        tries += 1
        if not came_back.is_set():
            raise EmbeddingUnavailable(EmbeddingModelName("words"), "it is still being fetched")

    target = house.embedder.vector("Sailed to the harbor")
    async with house.at_work(warm_up) as work:
        assert await house.turns(2) == [1, "optimized"]
        await house.write(a_memory("Played the violin"))
        work.wake_background_tasks()
        assert await house.turns(1) == [1]
        assert tries > 1
        assert memory.id not in dict(await house.index.nearest(ADA, target, limit=1, statuses=LIVING_STATUSES))
        came_back.set()
        assert await house.keeper.filled.get() == 1
        assert [id_ for id_, _ in await house.index.nearest(ADA, target, limit=1, statuses=LIVING_STATUSES)] == [
            memory.id
        ]
        assert await house.ledger.index_source.pending_index_marks_with_memory_ids(limit=9) == []
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


async def test_vectors_are_filled_in_again_for_what_was_stored_without_one(house: House) -> None:
    """ruling 1: a store may have given up on the model just before it came, and commit just after."""
    async with house.at_work() as work:
        assert await house.keeper.filled.get() == 0
        await house.write(a_memory("Sailed to the harbor"), embedded=False)
        work.wake_background_tasks()
        assert await house.keeper.filled.get() == 1
        # Not over and over: time for many turns is given, and none is taken.
        for _ in range(20):
            assert await house.ledger.index_source.count_memories() == 1
        assert house.keeper.filled.empty()


async def test_filling_in_that_fails_is_logged_and_tried_again(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """ruling 1"""
    house.keeper.fails_to_fill_in = [IndexUnavailable("the server is down")]
    await house.write(a_memory("Sailed to the harbor"), embedded=False)
    async with house.at_work():
        assert await house.keeper.filled.get() == 1
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["the server is down"]
