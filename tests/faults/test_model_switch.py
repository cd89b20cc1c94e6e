"""spec O7: the embedding model is switched while the memory is in use and its process is killed; no recall fails."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mcp.client.client import Client

from madeleine.inference import PACKAGED_MODEL_NAME
from madeleine.memory.ingest.ports import StoreBatch
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store
from tests.doubles import ADA, a_memory
from tests.e2e.hosting import hosted, hosts_of, kill, madeleine
from tests.e2e.serving import COMMAND, ROOT, call_tool, environment
from tests.models import embedding_model

POLL_SECONDS = 0.02
MEMORIES_WRITTEN_AT_ONCE = 500


def told(number: int) -> str:
    return f"Brick{number} lies in the cellar number {number * 7}, below kettle{number}"


async def fill(data_dir: Path, model: Path, count: int) -> None:
    """Past `store`, whose search for duplicates takes most of its time; the index takes them in at the next start."""
    settings = Settings(data_dir=data_dir, being="ada", embedding_model=str(model), patrol_auto=False)
    async with open_memory_store(settings, background=False) as memory:
        for start in range(0, count, MEMORIES_WRITTEN_AT_ONCE):
            numbers = range(start, min(count, start + MEMORIES_WRITTEN_AT_ONCE))
            new = tuple(a_memory(told(number)) for number in numbers)
            rows = await memory.embedder.embed([one.embedded_text for one in new])
            vectors = {one.content_hash: row for one, row in zip(new, rows, strict=True)}
            await memory.ledger.memories.commit_store_batch(
                ADA, StoreBatch(new=new, model=memory.embedder.model_name, vectors=vectors)
            )
        await memory.index_keeper.index_marked_memories()


def read(data_dir: Path, query: str, *values: str) -> list[tuple[str | int, ...]]:
    """From the ledger, past its owner; nothing while it is being opened."""
    try:
        with closing(sqlite3.connect(f"file:{data_dir / 'memory.db'}?mode=ro", uri=True)) as connection:
            return connection.execute(query, values).fetchall()
    except sqlite3.OperationalError:
        return []


def embedded(data_dir: Path, model: str) -> int:
    rows = read(data_dir, "SELECT count(*) FROM embeddings WHERE model LIKE ?", model)
    return int(rows[0][0]) if rows else 0


def serving(data_dir: Path) -> str:
    rows = read(data_dir, "SELECT value FROM settings WHERE name = 'embedding_model'")
    return str(json.loads(str(rows[0][0]))["model"]) if rows else ""


@dataclass
class Load:
    """Recalls and stores of clients, one after the other; a call that fails is an error of its task."""

    count: int
    recalls: int = 0
    stored: list[str] = field(default_factory=list)
    clients: list[asyncio.Task[None]] = field(default_factory=list)

    async def goes_on(self, seconds: float) -> None:
        before = self.recalls
        await self.until(lambda: self.recalls > before + 1, seconds)

    async def until(self, reached: Callable[[], bool], seconds: float) -> None:
        """Fails as soon as a client does."""
        end = time.monotonic() + seconds
        while not reached():
            for client in self.clients:
                if client.done():
                    client.result()
            assert time.monotonic() < end
            await asyncio.sleep(POLL_SECONDS)

    async def live(self, client: Client, name: str) -> None:
        turn = 0
        while True:
            turn += 1
            asked = (turn * 37) % self.count
            answer = await call_tool(client, "recall", query=f"Where does brick{asked} lie?", format="memories")
            assert any(f"Brick{asked} " in memory["text"] for memory in answer["memories"]), (asked, answer)
            self.recalls += 1
            if turn % 5 == 0:
                text = f"{name} put stone{turn}{name} upon shelf{turn}{name}"
                await call_tool(client, "store", text=text)
                self.stored.append(text)


@asynccontextmanager
async def under_load(data_dir: Path, load: Load, model: Path, clients: int) -> AsyncIterator[None]:
    async def one(name: str) -> None:
        async with hosted(data_dir, more={"MADELEINE_EMBEDDING_MODEL": str(model)}) as client:
            await load.live(client, name)

    load.clients = [asyncio.create_task(one(f"client{number}")) for number in range(clients)]
    try:
        yield
    finally:
        for task in load.clients:
            task.cancel()
        done = await asyncio.gather(*load.clients, return_exceptions=True)
    assert [error for error in done if not isinstance(error, asyncio.CancelledError)] == []


async def run_models(data_dir: Path, variables: Mapping[str, str], *words: str) -> str:
    command = await asyncio.create_subprocess_exec(
        *COMMAND, "models", *words, env=environment(data_dir, **variables), cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await command.communicate()
    assert command.returncode == 0, err.decode()
    return out.decode()


@pytest.mark.slow
async def test_a_switch_under_load_fails_no_recall_and_survives_three_kills(data_dir: Path, tmp_path: Path) -> None:
    """issue: the old model serves until the new index is whole and verified; killed while it embeds, while it builds
    the index, and right behind the change; then the way back."""
    count, clients, seconds = 2_000, 3, 1_500.0
    tiny = embedding_model(tmp_path / "tiny")
    await fill(data_dir, tiny, count)
    variables = {"MADELEINE_EMBEDDING_MODEL": str(tiny)}
    load, kills = Load(count), 0
    async with under_load(data_dir, load, tiny, clients):
        await load.goes_on(seconds)
        switch = asyncio.create_task(run_models(data_dir, variables, "switch", PACKAGED_MODEL_NAME))
        points: tuple[Callable[[], bool], ...] = (
            lambda: embedded(data_dir, PACKAGED_MODEL_NAME) > count // 3,
            (data_dir / "index-2" / "index.json").exists,
            lambda: serving(data_dir) == PACKAGED_MODEL_NAME,
        )
        for reached in points:
            await load.until(reached, seconds)
            for pid in hosts_of(data_dir):
                kill(pid)
                kills += 1
            await load.goes_on(seconds)
        assert "serves now" in await asyncio.wait_for(switch, seconds)
        back = asyncio.create_task(run_models(data_dir, variables, "switch", "--back"))
        assert "serves now" in await asyncio.wait_for(back, seconds)
        await load.goes_on(seconds)
    print(f"{count} memories: {kills} kills, {load.recalls} recalls and {len(load.stored)} stores, none failed")
    assert kills >= 3
    listed = json.loads(madeleine(data_dir, "models", "list", "--json", **variables).stdout)
    assert {"serves", "set"} <= set(listed["models"][0]["roles"])
    assert listed["models"][0]["model"] == str(tiny)
    texts = [str(text) for (text,) in read(data_dir, "SELECT action FROM memories")]
    assert len(texts) == len(set(texts)) >= count + len(load.stored)
    assert set(load.stored) <= set(texts)
