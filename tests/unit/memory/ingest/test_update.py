"""Correcting a memory: the new text counts at once, the earlier one is history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.update_and_forget import ForgetOutcome
from madeleine.memory.model import Memory, MemoryChanges, MemoryId, Scene
from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from tests.doubles import ADA, BOB, NOW
from tests.remains import DenseWords

ROME = "Ann moved into the yellow house in Rome"
OSLO = "Ann moved into the wooden hut in Oslo"


class Embedder(DenseWords):
    """Waits to be let go, after it has said that it was asked."""

    def hold(self) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def embed(self, texts):  # type: ignore[no-untyped-def]
        if hasattr(self, "go"):
            self.asked.set()
            await self.go.wait()
        return await super().embed(texts)


@pytest.fixture
def embedder() -> Embedder:
    return Embedder()


@pytest.fixture
async def home(new_db: Path, embedder: Embedder) -> AsyncIterator[OpenedMemoryStore]:
    async with open_memory_store(Settings(data_dir=new_db.parent), embedder=embedder, background=False) as memory:
        yield memory


async def stored(home: OpenedMemoryStore, text: str = ROME) -> Memory:
    [found] = await home.use_cases.store(ADA, [NewScene(scene=Scene(action=text))])
    return found.memory


async def recalled(home: OpenedMemoryStore, text: str) -> list[MemoryId]:
    return [memory.id for memory, _ in (await home.use_cases.recall(ADA, RecallQuery(text=text))).memories]


async def test_the_new_text_is_recalled_at_once_and_the_earlier_one_never(home: OpenedMemoryStore) -> None:
    one = await stored(home)
    done = await home.use_cases.update(ADA, one.id, MemoryChanges(text=OSLO))
    assert (done.memory.id, done.changes, done.embedding_error) == (one.id, MemoryChanges(text=OSLO), "")
    assert await recalled(home, OSLO) == [one.id]
    assert await recalled(home, "yellow house Rome") == []
    await home.index_keeper.index_marked_memories()
    assert await recalled(home, OSLO) == [one.id]
    assert await recalled(home, "yellow house Rome") == []
    shown = await home.use_cases.browse.by_ids(ADA, [one.id])
    assert [revision.before.text for revision in shown.revisions] == [ROME]


async def test_a_scene_that_says_the_earlier_text_is_new(home: OpenedMemoryStore) -> None:
    one = await stored(home)
    await home.use_cases.update(ADA, one.id, MemoryChanges(text=OSLO))
    assert (await stored(home, ROME)).id != one.id
    assert (await stored(home, OSLO)).id == one.id


async def test_what_is_not_the_text_is_changed_without_the_model(home: OpenedMemoryStore, embedder: Embedder) -> None:
    one = await stored(home)
    before = len(embedder.batches)
    done = await home.use_cases.update(ADA, one.id, MemoryChanges(importance=0.9, themes=("moving",), pinned=True))
    assert len(embedder.batches) == before
    assert (done.memory.importance, done.memory.themes, done.memory.pinned) == (0.9, ("moving",), True)
    assert await recalled(home, ROME) == [one.id]
    assert await recalled(home, "moving") == [one.id]  # themes are among the words of the index


async def test_without_the_model_it_is_changed_and_found_by_its_words(
    home: OpenedMemoryStore, embedder: Embedder
) -> None:
    one = await stored(home)
    embedder.available = False
    done = await home.use_cases.update(ADA, one.id, MemoryChanges(text=OSLO))
    assert "told to be away" in done.embedding_error
    assert await recalled(home, OSLO) == [one.id]
    embedder.available = True
    assert await home.index_keeper.embed_memories_without_vector() == 1
    assert await home.ledger.index_source.memories_not_embedded_by_model(embedder.model_name, limit=9) == []


@pytest.mark.parametrize("scope", [ADA, BOB])
async def test_a_memory_that_is_not_the_being_s_does_not_exist(home: OpenedMemoryStore, scope: object) -> None:
    """spec P1: the same words for what is another's and for what is nobody's."""
    theirs = (await stored(home)).id if scope is BOB else MemoryId("x" * 36)
    for changes in (MemoryChanges(text=OSLO), MemoryChanges(pinned=True)):
        with pytest.raises(InvalidInput) as error:
            await home.use_cases.update(BOB if scope is BOB else ADA, theirs, changes)
        assert str(error.value).replace(theirs, "…") == (
            "There is no memory '…'. Nothing was changed: take an id that recall or search_memory returned."
        )


async def test_one_that_is_forgotten_while_its_new_text_is_embedded_stays_forgotten(
    home: OpenedMemoryStore, embedder: Embedder
) -> None:
    one = await stored(home)
    embedder.hold()
    updating = asyncio.create_task(home.use_cases.update(ADA, one.id, MemoryChanges(text=OSLO)))
    await embedder.asked.wait()
    assert (await home.ledger.erasure.forget(ADA, [one.id], at=NOW)).erased_ids == (one.id,)
    embedder.go.set()
    with pytest.raises(InvalidInput, match="There is no memory"):
        await updating
    assert await home.ledger.index_source.count_memories() == 0


async def test_a_vector_that_is_filled_in_too_late_is_not_kept(home: OpenedMemoryStore, embedder: Embedder) -> None:
    embedder.available = False
    one = await stored(home)
    embedder.available = True
    embedder.hold()
    filling = asyncio.create_task(home.index_keeper.embed_memories_without_vector())
    await embedder.asked.wait()
    await home.ledger.erasure.forget(ADA, [one.id], at=NOW)
    embedder.go.set()
    await filling
    assert await home.ledger.memories.cached_vectors_by_hash(embedder.model_name, [one.content_hash]) == {}


async def test_stores_updates_and_forgets_at_once_leave_ledger_and_index_agreed(tmp_path: Path) -> None:
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=DenseWords()) as home:
        ones = [await stored(home, f"{ROME} at number {n}") for n in range(12)]
        told: list[ForgetOutcome] = []

        async def forget(one: Memory) -> None:
            told.append(await home.use_cases.forget(ADA, [one.id], wait=True))

        async def update(one: Memory) -> None:
            for n in range(3):
                try:
                    await home.use_cases.update(ADA, one.id, MemoryChanges(text=f"{OSLO} at number {n} after {one.id}"))
                except InvalidInput:
                    return

        async with asyncio.TaskGroup() as tasks:
            for one in ones:
                tasks.create_task(update(one))
                if one in ones[:5]:
                    tasks.create_task(forget(one))
                tasks.create_task(stored(home, one.scene.action))
        assert [found.bytes_scrubbed for found in told] == [True] * 5
        await home.index_keeper.index_marked_memories()
        left = {memory.id for memory in await home.ledger.index_source.memories_after_id(after=None, limit=99)}
        assert not left & {one.id for one in ones[:5]}
        assert {one.id for one in ones[5:]} <= left
        assert await home.index.count() == len(left)
