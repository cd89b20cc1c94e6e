"""What no well-behaved client sends over HTTP. No answer ever holds a traceback, or anything of another being."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from madeleine.server.http import app
from madeleine.server.http.serve import serve_http
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.language_models import LanguageModelPool
from madeleine.tools.tool import ToolUseCases
from tests.e2e.http.http_serving import JSON, MODERN, Served, asked, bearer, call, headers_of, posted, serving
from tests.e2e.serving import call_tool
from tests.waiting import DEADLOCK_S

TEXT = "Grandmother cooked lasagne on Sunday"


def clean(answer: httpx.Response) -> bool:
    return not any(sign in answer.text for sign in ("Traceback", 'File "', "site-packages", "secret"))


async def test_ids_clusters_and_cursors_of_another_being_answer_as_if_they_did_not_exist(tmp_path: Path) -> None:
    """spec P1, ruling 12."""
    async with serving(tmp_path) as server:
        ada, bo = bearer(await server.token("ada")), bearer(await server.token("bo", role="human"))
        async with server.browser() as client:
            ids = []
            for n in range(4):
                stored = await asked(client, "store", {"text": f"{TEXT}, number {n}, {'abcd'[n] * 9}"}, headers=ada)
                ids.append(stored["structuredContent"]["id"])
            await asked(client, "run_patrol", {}, headers=ada)
            page = await asked(client, "search_memory", {"query": "lasagne", "limit": 1}, headers=ada)
            cursor = page["structuredContent"]["next_cursor"]
            clusters = (await asked(client, "recall_memory", {}, headers=ada))["structuredContent"]["clusters"]

            def answers(result: dict[str, Any], *others: str) -> str:
                """What was said, without what was asked for."""
                text = json.dumps(result)
                for other in others:
                    text = text.replace(other, "…")
                return text

            unknown = "00000000-0000-4000-8000-000000000000"
            theirs = await asked(client, "recall_memory", {"ids": [ids[0]]}, headers=bo)
            nobodys = await asked(client, "recall_memory", {"ids": [unknown]}, headers=bo)
            assert answers(theirs, ids[0]) == answers(nobodys, unknown)
            for cluster in clusters:
                theirs = await asked(client, "recall_memory", {"cluster_id": cluster["id"]}, headers=bo)
                nobodys = await asked(client, "recall_memory", {"cluster_id": unknown}, headers=bo)
                assert answers(theirs, cluster["id"]) == answers(nobodys, unknown)
            carried = {"query": "lasagne", "limit": 1, "cursor": cursor}
            assert "lasagne" not in answers(await asked(client, "search_memory", carried, headers=bo)).replace(
                "query", ""
            )
            for argument in ("being", "being_id", "scope", "role", "client"):
                result = await asked(client, "recall", {"query": "lasagne", argument: "ada"}, headers=bo)
                assert result["isError"]
                assert TEXT not in answers(result)
            meta = call("tools/call", {"name": "search_memory", "arguments": {"query": "lasagne"}})
            meta["params"]["_meta"] |= {"being": "ada", "io.modelcontextprotocol/being": "ada"}
            answer = await client.post("/mcp", json=meta, headers=headers_of(meta) | bo | {"x-being": "ada"})
            assert answer.json()["result"]["structuredContent"]["hits"] == []


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(app, "MAX_BODY_ARRIVAL_SECONDS", 0.5)
    async with serving(tmp_path, sse=True, http_max_body_bytes=10_000) as served:
        yield served


async def test_a_body_that_is_too_long_is_refused_whether_it_says_so_or_not(server: Served) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1_000

    async with server.browser(MODERN) as client:
        for content in (b" " * 10_001, pieces()):
            answer = await client.post("/mcp", content=content)
            assert answer.status_code == 413
            assert "10,000 bytes" in answer.json()["error"]["message"]


async def test_a_body_that_does_not_come_is_not_waited_for(server: Served) -> None:
    async def stuck() -> AsyncIterator[bytes]:
        yield b'{"jsonrpc":'
        await asyncio.Event().wait()

    head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
    reader, writer = await asyncio.open_connection("127.0.0.1", server.settings.http_port)
    writer.write(head)
    async with asyncio.timeout(DEADLOCK_S):
        assert (await reader.readline()).split()[1] == b"408"
    writer.close()


async def test_a_client_that_leaves_in_the_midst_of_its_body_is_no_error(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for _ in range(5):
        _, writer = await asyncio.open_connection("127.0.0.1", server.settings.http_port)
        head = (
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
        )
        writer.write(head.encode())
        await writer.drain()
        writer.close()
    async with asyncio.timeout(DEADLOCK_S), server.browser() as client:
        while caplog.text.count("POST /mcp unanswered") < 5:
            assert (await posted(client, "tools/list")).status_code == 200
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING or record.exc_info]


async def test_what_is_not_json_or_not_a_message_is_refused_in_words(server: Served) -> None:
    bodies = (
        b"", b"{", b"null", b"[]", b"[1,2]", b'"text"', b"\xff\xfe", b"[" * 9_000, b'{"jsonrpc":"2.0"}', b"NaN",
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
        b'{"jsonrpc":"2.0","id":1e999,"method":"tools/list"}',
        *(b'{"jsonrpc":"2.0","id":%b,"method":"tools/list"}' % id_ for id_ in (b"true", b"1.5", b"null", b"[]")),
    )  # fmt: skip
    async with server.browser() as client:
        for headers in (JSON, MODERN):
            for body in bodies:
                answer = await client.post("/mcp", content=body, headers=headers)
                assert 400 <= answer.status_code < 500, (headers, body, answer.text)
                assert answer.json()["error"]["message"]
                assert clean(answer)
        assert (await posted(client, "tools/list")).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"])
async def test_what_does_not_call_itself_json_is_refused(server: Served, kind: str) -> None:
    """A page of anybody's can send these without asking first."""
    message = call("tools/list")
    async with server.browser() as client:
        for path in ("/mcp", "/messages"):
            answer = await client.post(path, json=message, headers=headers_of(message) | {"content-type": kind})
            assert answer.status_code == 415
            assert "application/json" in answer.json()["error"]["message"]


async def test_sessions_that_do_not_exist_and_paths_and_methods_that_do_not(server: Served) -> None:
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    async with server.browser(JSON) as client:
        assert (await client.post("/mcp", json=listing, headers={"mcp-session-id": "0" * 32})).status_code == 404
        assert (await client.post("/messages", params={"session_id": "0" * 32}, json=listing)).status_code == 404
        for method, path, status in (("GET", "/", 404), ("GET", "/mcp/", 404), ("PUT", "/health", 405)):
            answer = await client.request(method, path)
            assert answer.status_code == status, (method, path)
            assert answer.json()["error"]["message"]
        for method in ("PUT", "PATCH", "DELETE"):
            assert 400 <= (await client.request(method, "/mcp")).status_code < 500


async def test_whoever_asks_too_often_waits_and_nobody_else(tmp_path: Path) -> None:
    async with serving(tmp_path, http_rate_per_minute=3) as server:
        eager, patient = bearer(await server.token()), bearer(await server.token())
        async with server.browser() as client:
            codes = [(await posted(client, "tools/list", headers=eager)).status_code for _ in range(3)]
            answer = await posted(client, "tools/list", headers=eager)
            assert (codes, answer.status_code) == ([200] * 3, 429)
            assert answer.headers["connection"] == "close", "what was sent behind it is not answered"
            assert 1 <= int(answer.headers["retry-after"]) <= 20
            assert "Try again in" in answer.json()["error"]["message"]
            assert (await posted(client, "tools/list", headers=patient)).status_code == 200
            guesses = [(await posted(client, "tools/list", headers=bearer(f"mdl_{n}"))).status_code for n in range(4)]
            assert guesses == [401, 401, 401, 429]
            assert (await client.get("/health")).status_code == 200


class Held:
    """Use cases that do not come until they are let go."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(self) -> ToolUseCases:
        self.waiting.set()
        await self.go.wait()
        raise RuntimeError("the reason is for the log alone: secret.py")


class Listening:
    def __init__(self, settings: Settings, use_cases: Held) -> None:
        self.end = anyio.Event()
        self.url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        models = LanguageModelPool(settings)
        self.task = asyncio.create_task(
            serve_http(settings, use_cases, models, stop_event=self.end, sse=True, on_listening=self.url.set_result)
        )

    async def __aenter__(self) -> Listening:
        self.base = (await self.url).removesuffix("/mcp")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end.set()
        await self.task


async def test_calls_above_the_limit_are_refused_and_an_error_inside_stays_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MAX_CONCURRENT_CALLS_PER_CALLER", 1)
    held = Held()
    settings = Settings(data_dir=tmp_path, http_port=0)
    message = ("tools/call", {"name": "recall", "arguments": {"query": "x"}})
    async with (
        asyncio.timeout(DEADLOCK_S),
        Listening(settings, held) as server,
        httpx.AsyncClient(base_url=server.base, timeout=DEADLOCK_S) as client,
    ):
        first = asyncio.create_task(posted(client, *message))
        await held.waiting.wait()
        second = await posted(client, *message)
        assert second.status_code == 503
        assert int(second.headers["retry-after"]) >= 1
        assert second.json()["error"]["message"]
        held.go.set()
        answer = await first
    assert answer.json()["result"]["isError"]
    assert "incident" in answer.text
    assert clean(answer)


@pytest.mark.parametrize("sse", [False, True])
async def test_what_was_begun_is_answered_and_open_streams_do_not_hold_up_the_end(tmp_path: Path, sse: bool) -> None:
    held = Held()
    settings = Settings(data_dir=tmp_path, http_port=0)
    async with asyncio.timeout(DEADLOCK_S), Listening(settings, held) as server:
        port = httpx.URL(server.base).port
        other = Served(settings.model_copy(update={"http_port": port}), server.end)
        async with other.connected(sse=sse) as client:
            call_ = asyncio.create_task(client.call_tool("recall", {"query": "x"}))
            await held.waiting.wait()
            server.end.set()
            async with httpx.AsyncClient(base_url=server.base, timeout=DEADLOCK_S) as late:
                while (await late.get("/health")).status_code != 200:
                    pass
                refused = await posted(late, "tools/list")
            assert refused.status_code == 503
            held.go.set()
            assert (await call_).is_error
            began = asyncio.get_running_loop().time()
            await server.task
            assert asyncio.get_running_loop().time() - began < 5


async def test_a_server_that_is_cancelled_answers_what_was_begun_and_lets_go_of_its_port(tmp_path: Path) -> None:
    """A host process has other things to end than its HTTP server."""
    held = Held()
    settings = Settings(data_dir=tmp_path, http_port=0)
    message = ("tools/call", {"name": "recall", "arguments": {"query": "x"}})
    server = Listening(settings, held)
    async with asyncio.timeout(DEADLOCK_S):
        base = (await server.url).removesuffix("/mcp")
        async with httpx.AsyncClient(base_url=base, timeout=DEADLOCK_S) as client:
            answer = asyncio.create_task(posted(client, *message))
            await held.waiting.wait()
            server.task.cancel()
            held.go.set()
            assert (await answer).json()["result"]["isError"]
            with pytest.raises(asyncio.CancelledError):
                await server.task
            with pytest.raises(httpx.ConnectError):
                await client.get("/health")


async def test_sse_answers_the_one_who_asked(tmp_path: Path) -> None:
    async with serving(tmp_path, sse=True) as server:
        ada, bo = await server.token("ada"), await server.token("bo")
        async with server.connected(ada, sse=True) as one, server.connected(bo, sse=True) as two:
            await call_tool(one, "store", text=TEXT)
            assert (await call_tool(two, "search_memory", query="lasagne"))["hits"] == []
            assert len((await call_tool(one, "search_memory", query="lasagne"))["hits"]) == 1
