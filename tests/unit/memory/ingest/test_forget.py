"""Forgetting: out of every answer at once, off the disk as soon as can be, and tried again until it is (ruling 11)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.errors import IndexUnavailable, StorageFull
from madeleine.memory.ingest import update_and_forget
from madeleine.memory.ingest.erased_bytes import ErasedBytesScrubber
from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.ingest.ports import ScrubBacklog, StoreBatch
from madeleine.memory.ingest.update_and_forget import ForgetMemories
from madeleine.memory.model import MemoryId
from madeleine.server.background.index_upkeep import BackgroundIndexUpkeep
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.qdrant.schema import IndexFingerprint
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from tests.doubles import ADA, NOW, WordEmbedder, a_memory
from tests.waiting import DEADLOCK_S


class Stubborn(EmbeddedQdrantIndex):
    """Fails to scrub, or to delete, as often as it is told, and waits while it may not go on."""

    failures: int = 0
    away: bool = False
    scrubs: int = 0
    begun: asyncio.Event
    go: asyncio.Event

    async def scrub_deleted_bytes(self) -> None:
        self.begun.set()
        await self.go.wait()
        if self.failures:
            self.failures -= 1
            raise IndexUnavailable("it was told to fail")
        self.scrubs += 1
        await super().scrub_deleted_bytes()

    async def delete(self, ids: Sequence[MemoryId]) -> None:
        if self.away:
            raise IndexUnavailable("it was told to be away")
        await super().delete(ids)


class House:
    def __init__(self, ledger: LedgerRepositories, index: Stubborn) -> None:
        self.ledger, self.index = ledger, index
        self.embedder = WordEmbedder()
        self.keeper = IndexKeeper(ledger.index_source, index, self.embedder)
        self.scrubber = ErasedBytesScrubber(ledger.erasure, self.keeper, index, promised_seconds=0.2)
        self.forget = ForgetMemories(ledger.erasure, self.keeper, self.scrubber, asyncio.Lock(), now=lambda: NOW)

    async def stored(self, *texts: str) -> list[MemoryId]:
        new = tuple(a_memory(text) for text in texts)
        await self.ledger.memories.commit_store_batch(
            ADA, StoreBatch(new=new, model=self.embedder.model_name, vectors={})
        )
        await self.keeper.index_marked_memories()
        return [one.id for one in new]


@pytest.fixture
async def house(tmp_path: Path, new_db: Path) -> AsyncIterator[House]:
    index: Any = await Stubborn.open(
        tmp_path / "index", IndexFingerprint(WordEmbedder().model_name, WordEmbedder().dim)
    )
    index.begun, index.go = asyncio.Event(), asyncio.Event()
    index.go.set()
    async with open_ledger(new_db) as ledger:
        yield House(ledger, index)
    await index.close()


@pytest.fixture
async def at_work(house: House) -> AsyncIterator[House]:
    task = asyncio.create_task(
        BackgroundIndexUpkeep(house.keeper, house.index, house.embedder.warm_up, house.scrubber).run(),
        name="background",
    )
    try:
        async with asyncio.timeout(DEADLOCK_S):
            yield house
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_the_answer_comes_when_the_bytes_are_gone_and_says_what_was_not_there(at_work: House) -> None:
    one, _ = await at_work.stored("one", "two")
    answer = await at_work.forget(ADA, [one, MemoryId("nobody"), one], wait=True)
    assert (answer.erased, answer.missing, answer.related, answer.bytes_scrubbed) == ((one,), ("nobody",), (), True)
    assert await at_work.ledger.erasure.pending_scrub_marks_with_memory_ids() == []
    assert await at_work.index.count() == 1
    assert at_work.index.scrubs == 1


async def test_without_waiting_the_answer_comes_at_once_and_one_rewriting_serves_all(at_work: House) -> None:
    """ruling 25: gone from every answer, and from the bytes within the promised time"""
    one, two, _ = await at_work.stored("one", "two", "three")
    at_work.index.go.clear()
    for id_ in (one, two):
        answer = await at_work.forget(ADA, [id_])
        assert (answer.erased, answer.bytes_scrubbed, answer.promised_seconds) == ((id_,), False, 0.2)
        assert await at_work.ledger.memories.memories_with_ids(ADA, [id_]) == []
    assert await at_work.index.count() == 1
    backlog = await at_work.ledger.erasure.read_scrub_backlog()
    assert (backlog.pending, backlog.since is not None) == (2, True)
    at_work.index.go.set()
    assert await at_work.scrubber.request_and_wait(within_seconds=DEADLOCK_S)
    assert await at_work.ledger.erasure.read_scrub_backlog() == ScrubBacklog(0, None)
    assert at_work.index.scrubs <= 2


async def test_where_nothing_was_forgotten_nothing_is_written_anew(at_work: House) -> None:
    await at_work.stored("one")
    assert (await at_work.forget(ADA, [MemoryId("nobody")], wait=True)).bytes_scrubbed
    assert at_work.index.scrubs == 0


async def test_what_takes_long_goes_on_behind_the_answer(at_work: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update_and_forget, "MAX_SCRUB_WAIT_SECONDS", 0.05)
    [one] = await at_work.stored("one")
    at_work.index.go.clear()
    answer = await at_work.forget(ADA, [one], wait=True)
    assert (answer.erased, answer.bytes_scrubbed) == ((one,), False)
    assert await at_work.ledger.memories.memories_with_ids(ADA, [one]) == []
    assert await at_work.index.count() == 0
    at_work.index.go.set()
    monkeypatch.setattr(update_and_forget, "MAX_SCRUB_WAIT_SECONDS", DEADLOCK_S)
    assert (await at_work.forget(ADA, [one], wait=True)).bytes_scrubbed
    assert await at_work.ledger.erasure.pending_scrub_marks_with_memory_ids() == []


async def test_what_fails_is_told_and_tried_again(at_work: House) -> None:
    assert await at_work.scrubber.request_and_wait(within_seconds=DEADLOCK_S), "that of the beginning is done"
    [one] = await at_work.stored("one")
    at_work.index.failures = 1
    answer = await at_work.forget(ADA, [one], wait=True)
    assert (answer.erased, answer.bytes_scrubbed) == ((one,), False)
    assert (await at_work.forget(ADA, [one], wait=True)).bytes_scrubbed
    assert await at_work.ledger.erasure.pending_scrub_marks_with_memory_ids() == []


async def test_an_index_that_is_away_keeps_nothing_from_being_forgotten(at_work: House) -> None:
    [one] = await at_work.stored("one")
    at_work.index.away = True
    answer = await at_work.forget(ADA, [one], wait=True)
    assert (answer.erased, answer.bytes_scrubbed) == ((one,), False)
    assert await at_work.ledger.memories.memories_with_ids(ADA, [one]) == []
    at_work.index.away = False
    assert (await at_work.forget(ADA, [one], wait=True)).bytes_scrubbed
    assert await at_work.index.count() == 0


async def test_what_is_forgotten_while_another_is_being_erased_is_erased_after_it(at_work: House) -> None:
    one, two, three = await at_work.stored("one", "two", "three")
    at_work.index.go.clear()
    first = asyncio.create_task(at_work.forget(ADA, [one], wait=True))
    await at_work.index.begun.wait()
    others = [asyncio.create_task(at_work.forget(ADA, [id_], wait=True)) for id_ in (two, three)]
    while await at_work.ledger.index_source.count_memories():  # noqa: ASYNC110
        await asyncio.sleep(0)
    at_work.index.go.set()
    assert [(await task).bytes_scrubbed for task in (first, *others)] == [True] * 3
    assert at_work.index.scrubs == 2  # the two that waited shared one
    assert await at_work.ledger.erasure.pending_scrub_marks_with_memory_ids() == []


async def test_a_caller_who_goes_away_does_not_stop_it(at_work: House) -> None:
    [one] = await at_work.stored("one")
    at_work.index.go.clear()
    task = asyncio.create_task(at_work.forget(ADA, [one], wait=True))
    await at_work.index.begun.wait()
    task.cancel()
    await asyncio.wait({task})
    at_work.index.go.set()
    assert await at_work.scrubber.request_and_wait(within_seconds=DEADLOCK_S)
    assert await at_work.ledger.erasure.pending_scrub_marks_with_memory_ids() == []


async def test_what_the_last_process_left_is_finished_without_being_asked_for(house: House) -> None:
    [one] = await house.stored("one")
    await house.ledger.erasure.forget(ADA, [one], at=NOW)
    assert await house.scrubber.scrub_once() == 1
    assert await house.ledger.erasure.pending_scrub_marks_with_memory_ids() == []
    assert await house.index.count() == 0


async def test_marks_stay_when_the_ledger_cannot_be_written_anew(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    [one] = await house.stored("one")
    await house.ledger.erasure.forget(ADA, [one], at=NOW)

    async def full() -> None:
        raise StorageFull("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(house.ledger.erasure, "scrub_deleted_bytes", full)
        with pytest.raises(StorageFull):
            await house.scrubber.scrub_once()
    assert [id_ for _, id_ in await house.ledger.erasure.pending_scrub_marks_with_memory_ids()] == [one]
    assert await house.scrubber.scrub_once() == 1


async def test_a_memory_that_was_being_brought_in_is_taken_out_after_it(house: House) -> None:
    """It was read while it was there; brought in afterwards, it would stay in the index for good."""
    [one] = await house.stored("one")
    [memory] = await house.ledger.memories.memories_with_ids(ADA, [one])
    reached, go = asyncio.Event(), asyncio.Event()
    real = house.index.upsert

    async def slow(points: Any) -> None:
        reached.set()
        await go.wait()
        await real(points)

    house.index.upsert = slow  # type: ignore[method-assign]
    await house.ledger.patrols.cache_vectors(
        house.embedder.model_name, {memory.content_hash: house.embedder.vector("one")}
    )
    catching_up = asyncio.create_task(house.keeper.index_marked_memories())
    await reached.wait()
    await house.ledger.erasure.forget(ADA, [one], at=NOW)
    taking_out = asyncio.create_task(house.keeper.remove_memories([one]))
    go.set()
    await catching_up
    await taking_out
    assert await house.index.count() == 0
