"""spec O7, ruling 6: another embedding model takes over while the memory is in use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from madeleine.inference import PACKAGED_MODEL_NAME
from madeleine.memory.errors import EmbeddingUnavailable, InvalidInput
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.model import MemoryId, Scene
from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.background import model_switch
from madeleine.server.background.index_origin import INDEX_FOLDERS
from madeleine.server.background.model_records import (
    EmbeddingModelRecords,
    EmbeddingModelSwitchRecord,
    WantedEmbeddingModelRecord,
)
from madeleine.server.background.served_model import ServedEmbedderAndIndex, SwitchableEmbedderAndIndex
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from tests.doubles import ADA, WordEmbedder

OLD, NEW = "old words", "new words"
DIMENSIONS = {OLD: 64, NEW: 96, PACKAGED_MODEL_NAME: 64}
TOLD = [f"Brick{number} lies in cellar{number}" for number in range(60)]


def make_embedder(model: str) -> WordEmbedder:
    if model not in DIMENSIONS:
        raise InvalidInput(f"nobody knows {model}")
    return WordEmbedder(DIMENSIONS[model], model)


def settings(tmp_path: Path, model: str = OLD) -> Settings:
    return Settings(data_dir=tmp_path / "data", being="ada", embedding_model=model, patrol_auto=False)


@asynccontextmanager
async def opened(tmp_path: Path, model: str = OLD) -> AsyncIterator[OpenedMemoryStore]:
    async with open_memory_store(settings(tmp_path, model), make_embedder=make_embedder, background=False) as memory:
        yield memory


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[OpenedMemoryStore]:
    async with opened(tmp_path) as memory:
        await store(memory, *TOLD)
        yield memory


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when another model has begun to serve."""
    event = asyncio.Event()
    retire = SwitchableEmbedderAndIndex.close_when_unused

    async def tell(self: SwitchableEmbedderAndIndex, pair: ServedEmbedderAndIndex) -> None:
        event.set()
        await retire(self, pair)

    monkeypatch.setattr(SwitchableEmbedderAndIndex, "close_when_unused", tell)
    return event


async def store(memory: OpenedMemoryStore, *texts: str) -> list[MemoryId]:
    stored = await memory.use_cases.store(ADA, [NewScene(scene=Scene(action=text)) for text in texts])
    return [one.memory.id for one in stored]


async def recalled(memory: OpenedMemoryStore, text: str) -> list[str]:
    answer = await memory.use_cases.recall(ADA, RecallQuery(text=text))
    return [one.scene.action for one, _ in answer.memories]


async def switch(memory: OpenedMemoryStore, model: str) -> WantedEmbeddingModelRecord:
    wanted = await EmbeddingModelRecords(memory.ledger.index_source).request_switch(model)
    await memory.model_switch.switch_or_record_refusal(wanted)
    return wanted


async def refusal(memory: OpenedMemoryStore, wanted: WantedEmbeddingModelRecord) -> str | None:
    return await EmbeddingModelRecords(memory.ledger.index_source).refusal_reason(wanted.request)


async def test_the_new_model_serves_and_the_next_start_has_it_until_the_setting_changes(tmp_path: Path) -> None:
    """The latest explicit act wins."""
    async with opened(tmp_path) as memory:
        await store(memory, *TOLD)
        await switch(memory, NEW)
        assert memory.embedder.model_name == NEW
        assert (await recalled(memory, TOLD[7]))[0] == TOLD[7]
    assert [folder for folder in INDEX_FOLDERS if (tmp_path / "data" / folder).exists()] == [INDEX_FOLDERS[1]]
    async with opened(tmp_path) as memory:
        assert memory.embedder.model_name == NEW
        assert (await recalled(memory, TOLD[7]))[0] == TOLD[7]
        await switch(memory, OLD)
        assert memory.embedder.model_name == OLD
    async with opened(tmp_path, NEW) as memory:
        assert memory.embedder.model_name == NEW
        assert (await recalled(memory, TOLD[7]))[0] == TOLD[7]


async def test_a_call_that_began_with_the_old_model_ends_with_it(
    memory: OpenedMemoryStore, changed: asyncio.Event
) -> None:
    """No vector of one model meets an index of another; what it stores is recalled by the new one."""
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def call() -> str:
        memory.pin_model()
        begun.set()
        await goes_on.wait()
        await store(memory, "A violin hangs in the hall")
        assert (await recalled(memory, TOLD[3]))[0] == TOLD[3]
        return memory.embedder.model_name

    running = asyncio.create_task(call())
    await begun.wait()
    switching = asyncio.create_task(switch(memory, NEW))
    async with asyncio.timeout(60):
        await changed.wait()
        assert memory.embedder.model_name == NEW
        assert (await recalled(memory, TOLD[3]))[0] == TOLD[3]
        goes_on.set()
        assert await running == OLD
        assert "A violin hangs in the hall" in await recalled(memory, "Where does the violin hang?")
        await switching
    assert not await memory.ledger.index_source.memories_not_embedded_by_model(memory.embedder.model_name, limit=1)


@pytest.mark.slow
async def test_what_is_stored_and_forgotten_while_the_index_is_built_is_so_in_the_new_one(
    memory: OpenedMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ruling 25"""
    [gone] = await store(memory, "A secret about the lantern")
    verify = memory.model_switch._verify_new_index

    async def meanwhile(*arguments: object) -> None:
        await store(memory, "A kettle stands in the kitchen")
        await memory.use_cases.forget(ADA, [gone])
        await verify(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(memory.model_switch, "_verify_new_index", meanwhile)
    await switch(memory, NEW)
    assert memory.embedder.model_name == NEW
    assert "A kettle stands in the kitchen" in await recalled(memory, "Where is the kettle?")
    assert "A secret about the lantern" not in await recalled(memory, "secret lantern")
    assert await memory.index.count() == await memory.ledger.index_source.count_memories() == len(TOLD) + 1


async def test_a_model_that_cannot_serve_is_refused_and_the_old_one_goes_on(
    tmp_path: Path, memory: OpenedMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unsteady(WordEmbedder):
        """Gives another vector each time."""

        async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return np.roll(await super().embed(texts), len(self.batches), axis=1)

    class Away(WordEmbedder):
        async def warm_up(self) -> None:
            raise EmbeddingUnavailable("away", "there is no network")

    for model, embedder, reason in (
        ("unknown", None, "nobody knows unknown"),
        (OLD, None, "serves already"),
        ("unsteady", Unsteady(96, "unsteady"), "another vector"),
        ("away", Away(96, "away"), "there is no network"),
    ):
        made = make_embedder if embedder is None else lambda name, made=embedder: made
        monkeypatch.setattr(memory.model_switch, "make_embedder", made)
        wanted = await switch(memory, model)
        assert reason in (await refusal(memory, wanted) or "")
        assert memory.embedder.model_name == OLD
        assert (await recalled(memory, TOLD[5]))[0] == TOLD[5]
        assert not (tmp_path / "data" / INDEX_FOLDERS[1]).exists()


async def test_the_old_vectors_are_kept_for_the_way_back_and_older_ones_dropped(
    memory: OpenedMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DIMENSIONS, "third", 32)
    await switch(memory, NEW)
    await switch(memory, "third")
    assert set(await memory.ledger.index_source.count_vectors_by_model()) == {NEW, "third"}
    record = await EmbeddingModelRecords(memory.ledger.index_source).last_switch()
    assert record is not None
    assert (record.model, record.previous) == ("third", NEW)


async def test_a_request_is_noticed_by_the_process_that_owns_the_memory(
    tmp_path: Path, changed: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_switch, "MODEL_SWITCH_REQUEST_POLL_SECONDS", 0.0)
    async with open_memory_store(settings(tmp_path), make_embedder=make_embedder) as memory, asyncio.timeout(60):
        await store(memory, *TOLD)
        await EmbeddingModelRecords(memory.ledger.index_source).request_switch(NEW)
        await changed.wait()
        assert memory.embedder.model_name == NEW


async def test_a_store_says_how_it_is_calibrated(memory: OpenedMemoryStore) -> None:
    """ruling 16: by the same texts in the default model, here one that is alike."""
    await switch(memory, NEW)
    calibration = await EmbeddingModelRecords(memory.ledger.index_source).calibration(memory.embedder.model_name)
    assert calibration is not None
    assert memory.embedder.vector_space.calibration == calibration


async def test_a_record_of_another_setting_does_not_hold(memory: OpenedMemoryStore) -> None:
    records = EmbeddingModelRecords(memory.ledger.index_source)
    await records.record_model_switch_for_next_start(
        EmbeddingModelSwitchRecord(model=NEW, previous=OLD, configured="something else")
    )
    assert await records.model_to_serve(OLD) == OLD
