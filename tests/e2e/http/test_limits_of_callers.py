"""What one caller or one address takes, and what is left to others: connections, bodies, sessions, streams, guesses."""

from __future__ import annotations

import asyncio
import json
import select
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio
import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from madeleine.server.connections import MaxHttpAndHostConnections
from madeleine.server.http import app, connection, streams
from madeleine.server.http.app import GracefulHttpShutdown
from madeleine.server.wiring.clocks import utc_now
from tests.e2e.http.http_serving import JSON, Served, asked, bearer, call, headers_of, posted, serving
from tests.waiting import DEADLOCK_S

LOOK = ("search_memory", {"query": "lasagne"})
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}


class Raw:
    """A connection on which nothing is sent that a test does not send."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def status(self) -> int:
        """Of the answer; 0 if the server hangs up without one."""
        async with asyncio.timeout(DEADLOCK_S):
            try:
                line = await self._reader.readline()
            except ConnectionError:
                return 0
        return int(line.split()[1]) if line else 0

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def raw_connections(server: Served) -> AsyncIterator[Callable[[], Awaitable[Raw]]]:
    opened: list[Raw] = []

    async def connect() -> Raw:
        opened.append(Raw(*await asyncio.open_connection("127.0.0.1", server.settings.http_port)))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


def head_of_post(token: str, *more: str) -> bytes:
    lines = ("POST /mcp HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}", *more)
    return "\r\n".join((*lines, "Content-Type: application/json", "", "")).encode()


async def test_silent_connections_make_room_for_those_that_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        MaxHttpAndHostConnections, "from_open_file_limit", lambda _: MaxHttpAndHostConnections(http=8, host=8)
    )
    async with serving(tmp_path) as server, raw_connections(server) as connect, server.browser() as client:
        silent = [await connect() for _ in range(20)]
        stalled = [await connect() for _ in range(4)]
        for one in stalled:
            await one.send(head_of_post(await server.token(), "Content-Length: 9"))
        for _ in range(3):
            assert (await client.get("/health")).status_code == 200
        assert [await one.status() for one in silent[:12]] == [0] * 12


@pytest.mark.parametrize("begin", [b"", b"POST /mcp HTTP/1.1\r\nHost: "])
async def test_a_head_that_does_not_come_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    monkeypatch.setattr(connection, "MAX_REQUEST_HEAD_ARRIVAL_SECONDS", 0.2)
    async with serving(tmp_path) as server, raw_connections(server) as connect:
        slow, later = await connect(), await connect()
        await slow.send(begin)
        await later.send(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert await later.status() == 200
        assert await slow.status() == 0


@pytest.mark.parametrize("pieces", [1, 256])
@pytest.mark.parametrize("read_bytes", [0, 8 * 2**20])
async def test_an_answer_that_is_not_read_is_given_up(
    monkeypatch: pytest.MonkeyPatch, pieces: int, read_bytes: int
) -> None:
    """At once, in pieces, and when the client stops on the way; an honest one gets all."""
    whole = 16 * 2**20

    async def answer(request: Request) -> StreamingResponse:
        return StreamingResponse(iter([b"x" * (whole // pieces)] * pieces))

    ended = anyio.Event()
    serving_it = Starlette(routes=[Route("/", answer)])
    with app.open_http_listener("127.0.0.1", 0) as listener, socket.socket() as client:
        port = listener.getsockname()[1]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(app.run_uvicorn, serving_it, listener, GracefulHttpShutdown(), stop_event=ended))
            async with httpx.AsyncClient() as honest:
                assert len((await honest.get(f"http://127.0.0.1:{port}/")).content) == whole
            monkeypatch.setattr(connection, "MAX_UNREAD_ANSWER_SECONDS", 0.3)
            client.setblocking(False)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)  # grown by the kernel, it takes what is left
            loop = asyncio.get_running_loop()
            await loop.sock_connect(client, ("127.0.0.1", port))
            await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            while read_bytes > 0:
                read_bytes -= len(await loop.sock_recv(client, min(read_bytes, 2**16)))
            reset = select.poll()
            reset.register(client, 0)  # nothing but errors and the end
            assert await asyncio.to_thread(reset.poll, 1000 * DEADLOCK_S)
            ended.set()


async def test_a_body_in_too_many_chunks_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, raw_connections(server) as connect:
        token = await server.token()
        raw = await connect()
        await raw.send(head_of_post(token, "Transfer-Encoding: chunked") + b"1\r\nx\r\n" * 5_000)
        assert await raw.status() == 400


async def test_json_that_takes_long_to_parse_is_refused_unread(tmp_path: Path) -> None:
    wide = call("tools/call", {"name": "recall", "arguments": {f"x{n}": n for n in range(20_000)}})
    meta = call("tools/call", {"name": "recall", "arguments": {"query": "x"}})
    meta["params"]["_meta"] |= {f"x{n}": n for n in range(20_000)}
    deep = json.dumps(wide | {"params": {}}).replace("{}", "[" * 1_000 + "]" * 1_000)
    async with serving(tmp_path) as server, server.browser(headers_of(meta)) as client:
        for body in (json.dumps(wide), json.dumps(meta), deep):
            answer = await client.post("/mcp", content=body)
            assert answer.status_code == 400
            assert "was not read" in answer.json()["error"]["message"]
        assert (await client.post("/mcp", content=" " * 1_048_577)).status_code == 413


async def test_bodies_that_do_not_come_take_no_place_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_CONCURRENT_CALLS_PER_CALLER", 2)
    monkeypatch.setattr(app, "MAX_CONCURRENT_CALLS", 4)
    monkeypatch.setattr(app, "MAX_BODY_ARRIVAL_SECONDS", 3.0)
    async with serving(tmp_path) as server, raw_connections(server) as connect, server.browser() as client:
        stalling, other = await server.token(), await server.token("bo")
        stalled = [await connect() for _ in range(10)]
        for one in stalled:
            await one.send(head_of_post(stalling, "Content-Length: 9"))
        assert [await one.status() for one in stalled[:8]] == [408] * 8
        for token in (other, stalling):
            assert not (await asked(client, *LOOK, headers=bearer(token))).get("isError")


async def test_a_caller_that_begins_many_sessions_loses_its_own_oldest_idle_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MAX_HTTP_SESSIONS_PER_CALLER", 2)
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    async with serving(tmp_path) as server, server.browser(JSON) as client:
        greedy, patient = bearer(await server.token(read_only=True)), bearer(await server.token("bo"))

        async def begin(token: dict[str, str]) -> dict[str, str]:
            answer = await client.post("/mcp", json=INITIALIZE, headers=token)
            return {"mcp-session-id": answer.headers["mcp-session-id"]} | token

        async def status(session: dict[str, str]) -> int:
            return (await client.post("/mcp", json=listing, headers=session)).status_code

        others = await begin(patient)
        first, second = await begin(greedy), await begin(greedy)
        assert await status(first) == 200
        third = await begin(greedy)
        assert [await status(session) for session in (first, second, third)] == [200, 404, 200]
        for _ in range(5):
            await begin(greedy)
        assert await status(others) == 200
        # Whoever ends a session has its place again.
        assert (await client.delete("/mcp", headers=others)).status_code == 200
        assert await status(others) == 404


async def test_after_too_many_wrong_tokens_a_right_one_is_not_tried_either(tmp_path: Path) -> None:
    async with serving(tmp_path, http_rate_per_minute=3) as server, server.browser() as client:
        known, guessed = await server.token(), await server.token()
        assert (await posted(client, "tools/list", headers=bearer(known))).status_code == 200
        guesses = [(await posted(client, "tools/list", headers=bearer(f"mdl_{n}"))).status_code for n in range(3)]
        assert guesses == [401] * 3
        assert (await posted(client, "tools/list", headers=bearer(guessed))).status_code == 429
        # A client that was let in before is not kept out by its neighbour.
        assert (await posted(client, "tools/list", headers=bearer(known))).status_code == 200


async def test_unknown_paths_verify_nothing_and_are_limited(tmp_path: Path) -> None:
    async with serving(tmp_path, http_rate_per_minute=3) as server, server.browser() as client:
        token = bearer(await server.token())
        assert [(await client.get("/nowhere", headers=token)).status_code for _ in range(4)] == [404, 404, 404, 429]
        assert (await posted(client, "tools/list", headers=token)).status_code == 200


@asynccontextmanager
async def open_stream(client: httpx.AsyncClient, token: dict[str, str]) -> AsyncIterator[httpx.Response]:
    begun = await client.post("/mcp", json=INITIALIZE, headers=token)
    session = {"mcp-session-id": begun.headers["mcp-session-id"]} | token
    async with client.stream("GET", "/mcp", headers=session) as response:
        assert response.status_code == 200
        yield response


async def test_a_stream_ends_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "REVOKED_TOKEN_CHECK_SECONDS", 0.05)
    async with serving(tmp_path) as server, server.browser(JSON) as client, asyncio.timeout(DEADLOCK_S):
        async with open_stream(client, {}) as anonymous:
            revoked = await server.token()
            await anonymous.aread()
        async with open_stream(client, bearer(revoked)) as stream:
            await server.revoke(revoked)
            await stream.aread()
        expiring = await server.token(expires_at=utc_now() + timedelta(seconds=2))
        monkeypatch.setattr(streams, "REVOKED_TOKEN_CHECK_SECONDS", DEADLOCK_S)
        async with open_stream(client, bearer(expiring)) as stream:
            await stream.aread()


async def test_a_caller_that_opens_many_streams_loses_its_own_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MAX_EVENT_STREAMS_PER_CALLER", 1)
    async with serving(tmp_path) as server, server.browser(JSON) as client, asyncio.timeout(DEADLOCK_S):
        token = bearer(await server.token())
        async with open_stream(client, token) as first, open_stream(client, token):
            await first.aread()
