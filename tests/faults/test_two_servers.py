"""Two servers over one PostgreSQL (spec O10, ADR 69): what one acknowledges the other recalls, whoever is killed."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from madeleine.memory.patrol_records import PatrolRun
from madeleine.storage.sql.database.location import PostgresLocation
from madeleine.storage.sql.ledger import open_ledger
from tests.doubles import ADA, BOB
from tests.e2e.hosting import hosts_of, kill, madeleine
from tests.e2e.http.http_serving import asked, serving
from tests.e2e.serving import COMMAND, ROOT, call_tool, environment
from tests.postgres import PostgresCluster

BEINGS = (ADA, BOB)
SCENES_OF_A_CALL = 10
CALL_SECONDS = 120.0
"""On a machine with much else to do."""
POLL_SECONDS = 0.05
GREATEST_LAG_SECONDS = 120.0
"""Of one probe, while the other server is killed and starts again; the median and the greatest are printed."""
MEMORIES = int(os.environ.get("MEMORIES_OF_TWO_SERVERS", "400"))
"""4,000 on a machine with nothing else to do."""


@asynccontextmanager
async def client_of(data_dir: Path, url: str, being: str) -> AsyncIterator[Client]:
    """A client of the host of that directory, which its forwarder starts again when it is gone."""
    more = environment(data_dir, being, MADELEINE_DATABASE_URL=url)
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=more, cwd=ROOT)
    async with Client(stdio_client(server), read_timeout_seconds=CALL_SECONDS) as client:
        yield client


def madeleine_once_free(data_dir: Path, *arguments: str, url: str) -> subprocess.CompletedProcess[str]:
    """One run of the command, tried again as it says while another server holds the database's lock for long."""
    began = time.monotonic()
    while True:
        done = madeleine(data_dir, *arguments, MADELEINE_DATABASE_URL=url)
        if "try again" not in done.stderr or time.monotonic() - began > CALL_SECONDS:
            return done


async def answer_of(client: Client, tool: str, **arguments: Any) -> dict[str, Any] | None:
    """None from a server that is gone: the outcome is unknown."""
    try:
        answer = await client.call_tool(tool, arguments)
    except MCPError:
        return None
    return None if answer.is_error else answer.structured_content


async def recalled(client: Client, text: str) -> bool:
    answer = await answer_of(client, "recall", query=text, format="memories", limit=3)
    return answer is not None and text in [memory["text"] for memory in answer["memories"]]


async def seconds_until_recalled(client: Client, text: str) -> float:
    began = time.monotonic()
    while not await recalled(client, text):
        assert time.monotonic() - began < GREATEST_LAG_SECONDS, text
        await asyncio.sleep(POLL_SECONDS)  # another process: nothing here tells when it has taken it in
    return time.monotonic() - began


@pytest.mark.slow
async def test_what_one_server_stores_another_recalls_over_stdio_and_http(
    tmp_path: Path, postgres: PostgresCluster
) -> None:
    async with postgres.database() as url, AsyncExitStack() as stack:
        stack.callback(end_hosts, tmp_path / "first")
        stdio = await stack.enter_async_context(client_of(tmp_path / "first", url, "ada"))
        served = await stack.enter_async_context(serving(tmp_path / "second", database_url=url))
        http = await stack.enter_async_context(httpx.AsyncClient(base_url=served.url, timeout=CALL_SECONDS))
        stored = await call_tool(stdio, "store", text="Ada planted a lemon tree behind the house")
        answer = await asked(http, "recall_memory", {"ids": [stored["id"]]})
        assert "lemon tree" in str(answer["structuredContent"])
        await asked(http, "store", {"text": "Ada painted the garden gate green"})
        assert await seconds_until_recalled(stdio, "Ada painted the garden gate green") < GREATEST_LAG_SECONDS
        exported = madeleine_once_free(tmp_path / "first", "export", "-", url=url)
        assert exported.stdout.count("garden gate") >= 1, exported.stderr
        refused = madeleine_once_free(tmp_path / "first", "backup", url=url)
        assert "pg_dump" in refused.stderr
        told = madeleine_once_free(tmp_path / "first", "status", "--json", url=url)
        assert '"unread": 0' in told.stdout, told.stderr
        checked = madeleine_once_free(tmp_path / "first", "doctor", url=url)
        assert "The memory is in PostgreSQL: 2 memories of 1 being." in checked.stdout, checked.stdout


class Load:
    """What four clients store in batches, and what was acknowledged."""

    def __init__(self, memories: int) -> None:
        self.calls_of_client = memories // (4 * SCENES_OF_A_CALL)
        self.acknowledged: dict[str, list[str]] = defaultdict(list)
        self.calls = 0
        self.went_on = asyncio.Condition()

    async def store(self, client: Client, being: str, name: str) -> None:
        for call in range(self.calls_of_client):
            texts = [f"{being} put coin {call} into pocket {n} of coat {name}" for n in range(SCENES_OF_A_CALL)]
            if await answer_of(client, "store", scenes=[{"text": text} for text in texts]):
                self.acknowledged[being] += texts
            async with self.went_on:
                self.calls += 1
                self.went_on.notify_all()

    async def reached(self, share: float) -> None:
        async with self.went_on:
            await self.went_on.wait_for(lambda: self.calls >= share * 4 * self.calls_of_client)


@pytest.mark.slow
@pytest.mark.parametrize("memories", [MEMORIES])
async def test_a_killed_server_loses_nothing_and_each_being_has_one_patrol_at_a_time(
    tmp_path: Path, postgres: PostgresCluster, memories: int
) -> None:
    load, lags = Load(memories), list[float]()
    patrols_of_client, probes = max(4, memories // 300), max(6, memories // 200)
    directories = (tmp_path / "first", tmp_path / "second")
    async with postgres.database() as url, AsyncExitStack() as stack:
        stack.callback(end_hosts, *directories)
        clients: dict[tuple[str, Path], Client] = {
            (being.being_id, directory): await stack.enter_async_context(client_of(directory, url, being.being_id))
            for directory in directories
            for being in BEINGS
        }
        asking: dict[tuple[str, Path], Client] = {
            (being.being_id, directory): await stack.enter_async_context(client_of(directory, url, being.being_id))
            for directory in directories
            for being in BEINGS
        }

        async def patrol(client: Client) -> None:
            for number in range(patrols_of_client):
                await load.reached(number / patrols_of_client)
                await answer_of(client, "run_patrol")

        async def probe() -> None:
            for number in range(probes):
                await load.reached(number / probes)
                source, target = directories if number % 2 else directories[::-1]
                text = f"Probe {number}: the {number}th lantern hangs in tower {number * 7}"
                if await answer_of(asking["ada", source], "store", text=text):
                    lags.append(await seconds_until_recalled(asking["ada", target], text))
                    load.acknowledged["ada"].append(text)

        async def kill_first() -> None:
            for share in (0.3, 0.6):
                await load.reached(share)
                end_hosts(directories[0])

        async with asyncio.TaskGroup() as tasks:
            for (being, directory), client in clients.items():
                tasks.create_task(load.store(client, being, directory.name))
                tasks.create_task(patrol(asking[being, directory]))
            tasks.create_task(probe())
            tasks.create_task(kill_first())
        acknowledged = sum(map(len, load.acknowledged.values()))
        assert acknowledged > 0.7 * memories
        await each_is_recalled(load, clients)
        async with open_ledger(PostgresLocation(url, "reader")) as ledger:
            stored = Counter(
                memory.scene.action for memory in await ledger.index_source.memories_after_id(after=None, limit=100_000)
            )
            runs = [await ledger.patrols.runs(being, limit=10_000) for being in BEINGS]
    for texts in load.acknowledged.values():
        assert [text for text in texts if stored[text] != 1] == []
    assert min(map(len, runs)) > 1
    for of_being in runs:
        assert overlapping(of_being) == []
    assert "deadlock" not in postgres.log()
    print(
        f"\n{acknowledged} of {memories} memories acknowledged, {sum(map(len, runs))} patrols; recalled by the other "
        f"server after {median(lags):.2f} s (median), {max(lags):.2f} s at most"
    )


def end_hosts(*directories: Path) -> None:
    """They outlive their clients."""
    for directory in directories:
        for pid in hosts_of(directory):
            kill(pid)


async def each_is_recalled(load: Load, clients: dict[tuple[str, Path], Client]) -> None:
    """A sample, through both servers."""
    chance = random.Random(0)
    for (being, _), client in clients.items():
        for text in chance.sample(load.acknowledged[being], 10):
            assert await seconds_until_recalled(client, text) < GREATEST_LAG_SECONDS


def overlapping(runs: Sequence[PatrolRun]) -> list[tuple[str, str]]:
    """Pairs of runs of a being of which one began before the other had ended."""
    ended = sorted((run for run in runs if run.state != "running"), key=lambda run: run.started)
    return [(one.id, other.id) for one, other in pairwise(ended) if other.started < one.finished]
