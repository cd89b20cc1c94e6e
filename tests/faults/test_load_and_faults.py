"""A bad day in three minutes: eight HTTP and eight stdio clients of three beings store, recall and search, while the
host is killed, its disk is full, its model server and its issuer hang, and others hold its sockets."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from benchmarks.attack.__main__ import free_port, hanging_issuer
from tests.e2e.hosting import hosts_of, kill
from tests.e2e.http.http_serving import bearer, posted
from tests.e2e.serving import COMMAND, ROOT, environment, snippets
from tests.faults.small_disk import SmallDisk, small_disk
from tests.waiting import DEADLOCK_S

BEINGS = ("ada", "bert", "cleo")
CLIENTS_OF_KIND = 8
CALLS_OF_CLIENT = 40
MEGABYTES = 250
ATTACKS = ("silent_sockets", "slow_readers", "stalled_bodies", "unknown_keys")
WHOLE_SECONDS = 900
"""For a start or an answer, on a machine with much else to do."""

Answer = Mapping[str, Any] | None
"""The structured answer of a call; None for one that was refused, or whose outcome is unknown."""
CallTool = Callable[[str, Mapping[str, Any]], Awaitable[Answer]]


@dataclass
class Day:
    """What was tried, and what came of it."""

    tried: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    acknowledged: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """By being and text, the id."""
    calls: int = 0
    answered: int = 0
    faults: int = 0
    milliseconds: list[float] = field(default_factory=list)
    """Of recalls that were answered."""
    went_on: asyncio.Condition = field(default_factory=asyncio.Condition)
    serving: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether HTTP is served: without it a client does not call."""

    async def reached(self, share: float) -> None:
        wanted = share * 2 * CLIENTS_OF_KIND * CALLS_OF_CLIENT
        async with self.went_on:
            await self.went_on.wait_for(lambda: self.calls >= wanted)

    async def live(self, client: int, call: CallTool) -> None:
        """A client's calls, one after the other."""
        being, chance = BEINGS[client % len(BEINGS)], random.Random(client)
        for number in range(CALLS_OF_CLIENT):
            tool, arguments = self._next(being, client, number, chance)
            started = time.perf_counter()
            answer = await call(tool, arguments)
            self.answered += answer is not None
            if answer is not None and tool == "recall":
                self.milliseconds.append(1_000 * (time.perf_counter() - started))
            if answer is not None and tool == "store":
                self.acknowledged[being][arguments["text"]] = answer["id"]
            async with self.went_on:
                self.calls += 1
                self.went_on.notify_all()

    def _next(self, being: str, client: int, number: int, chance: random.Random) -> tuple[str, Mapping[str, Any]]:
        known = list(self.acknowledged[being].items())
        text, id_ = chance.choice(known) if known else ("coin", "m1")
        store = {"text": f"{being} put coin {number} into pocket {client * 100_000 + number}"}
        said = {"role": "user", "text": f"I am {being}, and this is line {number}."}
        choices: list[tuple[str, Mapping[str, Any]]] = [
            ("store", store),
            ("recall", {"query": text, "format": "memories"}),
            ("search_memory", {"query": text, "limit": 5}),
            ("recall_memory", {"ids": [id_]}),
            ("update_memory", {"id": id_, "importance": 0.7}),
            ("observe", {"session_id": f"s{client}", "messages": [said]}),
        ]
        tool, arguments = chance.choices(choices, weights=[40, 30, 12, 8, 5, 5])[0]
        if tool == "store":
            self.tried[being].add(store["text"])
        return tool, arguments


@asynccontextmanager
async def http_client(day: Day, port: int, token: str) -> AsyncIterator[CallTool]:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=DEADLOCK_S) as client:

        async def call(tool: str, arguments: Mapping[str, Any]) -> Answer:
            await day.serving.wait()
            try:
                answer = await posted(
                    client, "tools/call", {"name": tool, "arguments": arguments}, headers=bearer(token)
                )
            except httpx.HTTPError:
                return None
            if answer.status_code != 200:
                return None
            result = message_of(answer).get("result", {"isError": True})
            return None if result.get("isError") else result["structuredContent"]

        yield call


def message_of(answer: httpx.Response) -> dict[str, Any]:
    """The response, which comes as a stream of events when it takes long; {} if the stream ended before."""
    if answer.headers.get("content-type", "").startswith("application/json"):
        texts = [answer.text]
    else:
        texts = [line.removeprefix("data:") for line in answer.text.splitlines() if line.startswith("data:")]
    messages = [json.loads(text) for text in texts if text.strip()]
    return next((message for message in messages if "result" in message or "error" in message), {})


@asynccontextmanager
async def stdio_client_of(disk: SmallDisk, being: str, variables: Mapping[str, str]) -> AsyncIterator[Client]:
    executable, *arguments = disk.command(COMMAND)
    env = environment(disk.path / "data", being, **variables) | {"PYTHONPATH": str(ROOT)}
    server = StdioServerParameters(command=executable, args=arguments, env=env, cwd=ROOT)
    with disk.log.open("a", encoding="utf-8") as log:
        async with Client(stdio_client(server, errlog=log), read_timeout_seconds=DEADLOCK_S) as client:
            yield client


def calls_of(client: Client) -> CallTool:
    async def call(tool: str, arguments: Mapping[str, Any]) -> Answer:
        try:
            answer = await client.call_tool(tool, dict(arguments))
        except MCPError:
            return None
        return None if answer.is_error else answer.structured_content

    return call


@dataclass
class HttpServer:
    """`serve --http` on the small disk, started again after each kill."""

    disk: SmallDisk
    variables: Mapping[str, str]
    process: asyncio.subprocess.Process | None = None
    said: deque[bytes] = field(default_factory=lambda: deque(maxlen=40))
    """The last lines of its log, for whoever asks why it failed."""
    _draining: asyncio.Task[None] | None = None

    async def run(self, *words: str) -> str:
        process = await self._begin(*words, stdout=asyncio.subprocess.PIPE)
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return out.decode().strip()

    async def start(self) -> None:
        self.process = await self._begin("serve", "--http")
        stream = self.process.stderr
        assert stream is not None
        async with asyncio.timeout(DEADLOCK_S):
            async for line in stream:
                self.said.append(line)
                if line.startswith(b"Madeleine listens on "):
                    self._draining = asyncio.create_task(self._drain(stream))
                    return
        raise AssertionError(f"HTTP is not served; exit code {await self.process.wait()}")

    async def _drain(self, stream: asyncio.StreamReader) -> None:
        async for line in stream:
            self.said.append(line)

    async def kill(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGKILL)
            await self.process.wait()
        if self._draining is not None:
            await self._draining

    async def _begin(self, *words: str, stdout: int = asyncio.subprocess.DEVNULL) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self.disk.command([*COMMAND, *words]),
            env=environment(self.disk.path / "data", **self.variables) | {"PYTHONPATH": str(ROOT)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout,
            stderr=asyncio.subprocess.PIPE,
        )


async def spoil(day: Day, disk: SmallDisk, server: HttpServer) -> None:
    """The faults that begin and end, at shares of the day's calls."""

    async def kill_host() -> None:
        day.serving.clear()
        await server.kill()
        for pid in hosts_of(disk.path / "data"):
            await asyncio.to_thread(kill, pid)
        day.faults += 1
        await server.start()
        day.serving.set()

    await day.reached(0.15)
    await kill_host()
    await day.reached(0.35)
    await asyncio.to_thread(disk.fill)
    day.faults += 1
    await day.reached(0.45)
    disk.make_room()
    for share in (0.6, 0.8):
        await day.reached(share)
        await kill_host()


@asynccontextmanager
async def attacked(port: int, token: str, issuer: str) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.attack.attackers", *ATTACKS,
        "--port", str(port), "--token", token, "--issuer", issuer,
        cwd=ROOT,
    )  # fmt: skip
    try:
        yield
        assert process.returncode is None, "the attacks ended by themselves"
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", megabytes=MEGABYTES) as disk:
        if disk is None:
            pytest.skip("no disk may be mounted here")
        try:
            yield disk
        finally:
            for pid in hosts_of(disk.path / "data"):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


async def live_through(day: Day, disk: SmallDisk, server: HttpServer, tokens: Mapping[str, str], issuer: str) -> None:
    """All clients' calls, the attacks and the faults. Each client has a task of its own: cancel scopes do not nest,
    and what breaks one is told as it was raised."""

    async def live(number: int) -> None:
        being = BEINGS[number % len(BEINGS)]
        if number < CLIENTS_OF_KIND:
            async with http_client(day, port, tokens[being]) as call:
                await day.live(number, call)
        else:
            async with stdio_client_of(disk, being, server.variables) as client:
                await day.live(number, calls_of(client))

    port = int(server.variables["MADELEINE_HTTP_PORT"])
    async with asyncio.timeout(WHOLE_SECONDS), attacked(port, tokens["eve"], issuer), asyncio.TaskGroup() as tasks:
        tasks.create_task(spoil(day, disk, server))
        for number in range(2 * CLIENTS_OF_KIND):
            tasks.create_task(live(number))


@pytest.mark.slow
async def test_a_bad_day_loses_doubles_and_leaks_nothing(disk: SmallDisk) -> None:
    day = Day()
    with hanging_issuer() as hanging:
        server = HttpServer(disk, {
            "MADELEINE_HTTP_PORT": str(free_port()), "MADELEINE_OAUTH_ISSUER": hanging, "MADELEINE_THREAD": "on",
            "MADELEINE_LLM": "openai", "MADELEINE_LLM_URL": f"{hanging}/v1", "MADELEINE_LLM_LARGE_MODEL": "none",
            "MADELEINE_LLM_TIMEOUT_SECONDS": "5",
        })  # fmt: skip
        try:
            tokens = {being: await server.run("token", "create", "--being", being) for being in BEINGS}
            tokens["eve"] = await server.run("token", "create", "--being", "eve", "--read-only")
            await server.start()
            day.serving.set()
            await live_through(day, disk, server, tokens, hanging)
            found = {}
            for being in BEINGS:
                async with stdio_client_of(disk, being, server.variables) as client:
                    found[being] = await snippets(client, "pocket")
        finally:
            await server.kill()
            print(b"".join(server.said).decode(errors="replace"), disk.log.read_text()[-8_000:], sep="\n")
    lost, doubled, leaked = judge(day, found)
    p99 = quantiles(day.milliseconds, n=100)[98]
    print(
        f"{day.calls} calls, {day.answered} answered, {day.faults} faults and {len(ATTACKS) + 2} at all times; lost "
        f"{len(lost)}, doubled {len(doubled)}, leaked {len(leaked)}; p99 of a recall {p99:.0f} ms"
    )
    assert (lost, doubled, leaked) == ([], [], [])
    assert day.calls == 2 * CLIENTS_OF_KIND * CALLS_OF_CLIENT
    assert day.answered > 0.8 * day.calls


def judge(day: Day, found: Mapping[str, Counter[str]]) -> tuple[list[str], list[str], list[str]]:
    """What was acknowledged and is not there, what is there more than once, what its being never told."""
    lost = [text for being in BEINGS for text in day.acknowledged[being] if text not in found[being]]
    doubled = [text for texts in found.values() for text, count in texts.items() if count > 1]
    leaked = [text for being, texts in found.items() for text in texts if text not in day.tried[being]]
    return lost, doubled, leaked
