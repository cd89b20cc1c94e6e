"""Who is let in over HTTP, and who is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from madeleine.server.wiring.clocks import utc_now
from tests.e2e.http.http_serving import Served, asked, bearer, posted, serving
from tests.e2e.serving import EVERY_TOOL

PATHS = ("/mcp", "/sse", "/messages", "/health", "/.well-known/oauth-protected-resource/mcp", "/nowhere")
LOOK = ("search_memory", {"query": "lasagne"})


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, sse=True) as found:
        yield found


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1.evil.example",
        "http://localhos",
        "http://localhost:80.evil.example",
        "http://localhost:@evil.example",
        "http://localhost:8765/",
    ],
)
async def test_a_page_of_another_origin_is_refused_on_every_path(server: Served, origin: str) -> None:
    async with server.browser({"origin": origin}) as client:
        for path in PATHS:
            for method in ("GET", "POST", "DELETE", "OPTIONS"):
                answer = await client.request(method, path)
                assert answer.status_code == 403, (method, path)
                assert "MADELEINE_ALLOWED_ORIGINS" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example",
        "0.0.0.0",
        "localhost:80.evil.example",
        "127.0.0.1:80@evil.example",
        "localhost:",
    ],
)
async def test_another_host_is_refused_on_every_path(server: Served, host: str) -> None:
    """DNS rebinding: the page's own name resolves to this machine."""
    async with server.browser({"host": host}) as client:
        for path in PATHS:
            answer = await client.post(path)
            assert answer.status_code == 421, path
            assert "MADELEINE_ALLOWED_HOSTS" in answer.json()["error"]["message"]


async def test_pages_of_configured_origins_may_read_what_is_answered(tmp_path: Path) -> None:
    page = "https://app.example.org"
    async with serving(tmp_path, allowed_origins=page) as server, server.browser({"origin": page}) as client:
        asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        assert (await client.options("/mcp", headers=asks)).headers["access-control-allow-origin"] == page
        answer = await posted(client, "tools/list")
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == page


async def test_this_machine_comes_in_without_a_token_until_there_is_one(server: Served) -> None:
    async with server.browser() as client:
        assert (await posted(client, "tools/list")).status_code == 200
        token = await server.token()
        assert (await posted(client, "tools/list")).status_code == 401
        assert (await posted(client, "tools/list", headers=bearer(token))).status_code == 200
        await server.revoke(token)
        # A door that was shut once does not open by itself.
        assert (await posted(client, "tools/list")).status_code == 401


async def test_without_a_token_the_answer_says_where_to_get_one(server: Served) -> None:
    """RFC 9728, sections 3 and 5.1."""
    await server.token()
    where = f"{server.url}/.well-known/oauth-protected-resource/mcp"
    async with server.browser() as client:
        for path in ("/mcp", "/sse", "/messages"):
            answer = await (client.get(path) if path == "/sse" else client.post(path))
            assert answer.status_code == 401
            challenge = answer.headers["www-authenticate"]
            assert challenge.startswith("Bearer ")
            assert f'resource_metadata="{where}"' in challenge
        found = (await client.get(where)).json()
    assert found["resource"] == f"{server.url}/mcp"
    assert found["bearer_methods_supported"] == ["header"]


async def test_tokens_that_are_not_for_here_or_not_for_now_are_refused(server: Served) -> None:
    now = utc_now()
    good = await server.token()
    revoked = await server.token()
    await server.revoke(revoked)
    tokens = {
        "of another resource": await server.token(resource="https://other.example/mcp"),
        "of another path": await server.token(resource=f"{server.url}/other"),
        "expired": await server.token(now=now - timedelta(days=2), expires_at=now - timedelta(seconds=1)),
        "revoked": revoked,
        "with another secret": f"{good[:-1]}{'A' if good[-1] != 'A' else 'B'}",
        "with another id": good.replace(good.split("_")[1], "0" * 12),
        "cut off": good[:-1],
        "with something behind": f"{good}x",
        "of nobody's": "mdl_000000000000_" + "A" * 43,
        "huge": "mdl_" + "A" * 10_000,
        "a JWT, though there is no issuer": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.",
    }
    async with server.browser() as client:
        for kind, token in tokens.items():
            answer = await posted(client, "tools/list", headers=bearer(token))
            assert answer.status_code == 401, kind
        assert (await posted(client, "tools/list", headers={"authorization": f"Basic {good}"})).status_code == 401
        assert (await client.get("/mcp", params={"access_token": good})).status_code == 401
        assert (await posted(client, "tools/list", headers=bearer(good))).status_code == 200


async def test_a_token_is_refused_from_the_moment_it_is_revoked_also_within_a_session(server: Served) -> None:
    token = await server.token()
    start = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
    }
    accepts = {"accept": "application/json, text/event-stream"}
    async with server.browser(bearer(token) | accepts) as client:
        begun = await client.post("/mcp", json=start)
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert (await client.post("/mcp", json=listing, headers=session)).status_code == 200
        other = await server.token()
        # A session belongs to its token: to any other it does not exist.
        assert (await client.post("/mcp", json=listing, headers=session | bearer(other))).status_code == 404
        await server.revoke(token)
        assert (await client.post("/mcp", json=listing, headers=session)).status_code == 401


async def test_a_token_that_may_only_read_sees_no_tool_that_writes_and_is_told_so(server: Served) -> None:
    reader, writer = await server.token(read_only=True), await server.token()
    async with server.browser() as client:
        every = (await posted(client, "tools/list", headers=bearer(writer))).json()["result"]["tools"]
        assert {tool["name"] for tool in every} == EVERY_TOOL - {"forget"}, "the token's role is agent"
        for_reader = (await posted(client, "tools/list", headers=bearer(reader))).json()["result"]["tools"]
        assert [tool["name"] for tool in for_reader] == ["recall", "recall_memory", "search_memory"]
        assert all(tool["annotations"]["readOnlyHint"] for tool in for_reader)
        assert not (await asked(client, *LOOK, headers=bearer(reader))).get("isError")
        refused = await asked(client, "store", {"text": "Grandmother cooked lasagne"}, headers=bearer(reader))
        assert refused["isError"]
        assert "read-only" in refused["content"][0]["text"]
        assert (await asked(client, *LOOK, headers=bearer(writer)))["structuredContent"]["hits"] == []


async def test_health_tells_nothing_and_asks_for_nothing(server: Served) -> None:
    await server.token()
    async with server.browser() as client:
        answer = await client.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
