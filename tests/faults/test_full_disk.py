"""A full disk: a clear error on `store`, recalls go on, nothing acknowledged is lost, room is used without a restart.

The real server and a real client; the disk is a small one of its own, where the machine lets a test mount one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client

from madeleine.memory.errors import IndexUnavailable, StorageFull
from madeleine.memory.index import IndexPoint
from madeleine.memory.model import EmbeddingModelName
from madeleine.storage import resources
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.qdrant.schema import IndexFingerprint
from madeleine.storage.sql.ledger import open_ledger
from tests.contracts.ledger.ledger_values import ADA, batch, memory
from tests.doubles import a_memory, unit
from tests.e2e.serving import call_tool, tool_error
from tests.faults.small_disk import SmallDisk, small_disk

THINGS = ("lamp", "kettle", "violin", "ladder", "compass", "teapot")
MEGABYTES = 140
RECLAIMED_BYTES = 5_000_000
"""More than what a tmpfs may take back of blocks that were only read."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", megabytes=MEGABYTES) as disk:
        if disk is None:
            pytest.skip("no disk may be mounted here; the tests without a server stand in")
        yield disk


async def store(client: Client, thing: str) -> str:
    return str((await call_tool(client, "store", text=f"In the attic stands a {thing}", key=thing))["id"])


async def recalled(client: Client, thing: str) -> list[str]:
    answer = await call_tool(client, "recall", query=f"Where is the {thing}?", format="memories", limit=1)
    return [memory["id"] for memory in answer["memories"]]


async def everything(client: Client) -> dict[str, Any]:
    return {hit["id"]: hit for hit in (await call_tool(client, "search_memory", query="attic", limit=100))["hits"]}


@pytest.mark.parametrize(
    "left",
    [
        0,
        *(
            pytest.param(left, marks=pytest.mark.slow)
            for left in (
                300_000,
                resources.INDEX_DISK_RESERVE_BYTES - RECLAIMED_BYTES,
                resources.LEDGER_DISK_RESERVE_BYTES - RECLAIMED_BYTES,
            )
        ),
    ],
)
async def test_on_a_full_disk_stores_are_refused_recalls_go_on_and_room_is_used_at_once(
    disk: SmallDisk, left: int
) -> None:
    """At 300,000 bytes the ledger took what the index had no room for, and the engine ended the process by SIGBUS."""
    async with disk.connected() as client:
        stored = {thing: await store(client, thing) for thing in THINGS}
        # At once, so that the index has yet to write what it was given.
        disk.fill(leave=left)
        for number in range(3):
            said = await tool_error(
                client, "store", {"text": f"In the attic stands a trunk {number} " + "full " * 5000}
            )
            assert said.startswith("The disk is full")
            assert "Nothing was stored" in said
        for thing, id_ in stored.items():
            assert await recalled(client, thing) == [id_]
        if left < resources.INDEX_DISK_RESERVE_BYTES:
            await disk.logged("updating the index failed")
        assert "disk is full" in await tool_error(client, "run_patrol", {})
        assert set(await everything(client)) == set(stored.values())
        assert await recalled(client, THINGS[0]) == [stored[THINGS[0]]]
        disk.make_room()
        stored["trunk"] = await store(client, "trunk")
        assert await recalled(client, "trunk") == [stored["trunk"]]
        assert set(await everything(client)) == set(stored.values())
    async with disk.connected() as client:
        assert set(await everything(client)) == set(stored.values())
        for thing, id_ in stored.items():
            assert await recalled(client, thing) == [id_]
        assert await store(client, "lamp") == stored["lamp"]
    assert "Traceback" not in disk.log.read_text(encoding="utf-8")


@pytest.mark.slow
async def test_a_server_that_ends_on_a_full_disk_has_lost_nothing(disk: SmallDisk) -> None:
    async with disk.connected() as client:
        stored = {thing: await store(client, thing) for thing in THINGS}
        disk.fill()
        assert await recalled(client, "lamp") == [stored["lamp"]]
    disk.make_room()
    async with disk.connected() as client:
        for thing, id_ in stored.items():
            assert await recalled(client, thing) == [id_]


@pytest.mark.slow
async def test_a_server_that_starts_on_a_full_disk_recalls_and_stores_when_there_is_room(disk: SmallDisk) -> None:
    """Loading the index writes, and would end the process: it is used from a copy where there is room."""
    async with disk.connected() as client:
        stored = {thing: await store(client, thing) for thing in THINGS}
    disk.fill(leave=1_000_000)
    async with disk.connected() as client:
        for thing, id_ in stored.items():
            assert await recalled(client, thing) == [id_]
        assert "disk is full" in await tool_error(client, "store", {"text": "In the attic stands a trunk"})
        disk.make_room()
        stored["trunk"] = await store(client, "trunk")
        for thing, id_ in stored.items():
            assert await recalled(client, thing) == [id_]
    async with disk.connected() as client:
        assert set(await everything(client)) == set(stored.values())
        assert await recalled(client, "trunk") == [stored["trunk"]]
    assert "Traceback" not in disk.log.read_text(encoding="utf-8")


@pytest.mark.slow
async def test_a_server_that_starts_without_a_byte_left_says_so_and_opens_when_there_is_room(disk: SmallDisk) -> None:
    """The ledger cannot be read without some kilobytes for the index of its log."""
    async with disk.connected() as client:
        stored = {thing: await store(client, thing) for thing in THINGS}
    assert not (disk.outside / "data" / "memory.db-shm").exists()
    disk.keep_blocks()
    disk.fill()
    async with disk.connected() as client:
        for _ in range(2):
            assert (await tool_error(client, "recall", {"query": "lamp"})).startswith("The disk is full")
        disk.make_room()
        for thing, id_ in stored.items():
            assert await recalled(client, thing) == [id_]


@pytest.mark.slow
async def test_what_the_index_lacks_is_added_to_its_copy_and_then_to_its_own_files(disk: SmallDisk) -> None:
    """The disk was full before the index was written."""
    async with disk.connected() as client:
        stored = {thing: await store(client, thing) for thing in THINGS}
        disk.fill(leave=1_000_000)
    async with disk.connected() as client:
        for thing, id_ in stored.items():
            assert await recalled(client, thing) == [id_]
    disk.make_room()
    async with disk.connected() as client:
        for thing, id_ in stored.items():
            assert await recalled(client, thing) == [id_]


# --- without a server, on any machine -------------------------------------------------------------------------------


def no_disk_has(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    class Usage:
        def __init__(self, path: object) -> None:
            self.free = free

    monkeypatch.setattr(resources, "disk_usage", Usage)


async def test_the_ledger_takes_in_nothing_that_the_index_could_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_ledger(tmp_path / "memory.db") as ledger:
        await ledger.memories.commit_store_batch(ADA, batch(first := memory()))
        no_disk_has(monkeypatch, resources.LEDGER_DISK_RESERVE_BYTES - 1)
        with pytest.raises(StorageFull, match="free some space"):
            await ledger.memories.commit_store_batch(ADA, batch(memory()))
        # What makes no work for the index goes on while SQLite has resources.
        await ledger.index_source.clear_pending_index_marks(
            [mark for mark, _ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=9)]
        )
        no_disk_has(monkeypatch, resources.LEDGER_DISK_RESERVE_BYTES)
        await ledger.memories.commit_store_batch(ADA, batch(second := memory()))
        assert [found.id for found in await ledger.index_source.memories_after_id(after=None, limit=9)] == sorted(
            [first.id, second.id]
        )


async def test_an_index_without_room_writes_nothing_and_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fingerprint = IndexFingerprint(EmbeddingModelName("m"), 2)
    tea, milk = (
        IndexPoint(memory=a_memory(word), words=word, vector=unit([1, 0]), tokens=1) for word in ("tea", "milk")
    )
    index = await EmbeddedQdrantIndex.recreate(tmp_path / "index", fingerprint)
    await index.upsert([tea])
    no_disk_has(monkeypatch, resources.INDEX_DISK_RESERVE_BYTES - 1)
    with pytest.raises(IndexUnavailable, match="disk is full"):
        await index.upsert([milk])
    with pytest.raises(IndexUnavailable, match="disk is full"):
        await index.delete([tea.memory.id])
    with pytest.raises(IndexUnavailable, match="disk is full"):
        await index.flush()
    assert await index.optimize_if_worthwhile() is False
    assert [id_ for id_, _ in await index.nearest(ADA, unit([1, 0]), limit=2, statuses=("active",))] == [tea.memory.id]
    no_disk_has(monkeypatch, resources.INDEX_DISK_RESERVE_BYTES)
    await index.upsert([milk])
    await index.flush()
    assert await index.count() == 2
    await index.close()
