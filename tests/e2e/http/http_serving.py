"""The HTTP server in this process, on a port of its own, with a model of words: started and gone within a test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from madeleine.memory.bearer_tokens import BearerTokenId, BearerTokenRecord
from madeleine.memory.model import BeingId, Role
from madeleine.server.background.loops import PatrolEventBroadcast
from madeleine.server.http.serve import serve_http
from madeleine.server.http.tokens import generate_bearer_token
from madeleine.server.settings.settings import Settings
from madeleine.server.ui.app import build_web_ui_services
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.data_directory import open_bearer_token_ledger
from madeleine.server.wiring.language_models import LanguageModelPool
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from madeleine.tools.tool import ToolUseCases
from tests.doubles import WordEmbedder
from tests.e2e.serving import Era
from tests.waiting import DEADLOCK_S

JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
MODERN = JSON | {"mcp-protocol-version": "2026-07-28"}


@dataclass(frozen=True, slots=True)
class Served:
    settings: Settings
    """With the port that is served."""
    end: anyio.Event

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings.http_port}"

    @asynccontextmanager
    async def browser(self, headers: Mapping[str, str] | None = None) -> AsyncIterator[httpx.AsyncClient]:
        """Any HTTP client."""
        async with httpx.AsyncClient(base_url=self.url, headers=headers, timeout=DEADLOCK_S) as client:
            yield client

    @asynccontextmanager
    async def connected(
        self, token: str = "", *, era: Era = "legacy", sse: bool = False, more: Mapping[str, str] | None = None
    ) -> AsyncIterator[Client]:
        """A client of the SDK's; `more`: headers."""
        headers = (bearer(token) if token else {}) | dict(more or {})
        if sse:
            async with Client(sse_client(f"{self.url}/sse", headers=headers), mode=era) as client:
                yield client
            return
        async with httpx2.AsyncClient(headers=headers, timeout=DEADLOCK_S) as http:
            transport = streamable_http_client(f"{self.url}/mcp", http_client=http)
            async with Client(transport, mode=era, read_timeout_seconds=DEADLOCK_S) as client:
                yield client

    async def token(
        self,
        being: str = "ada",
        *,
        role: Role = "agent",
        read_only: bool = False,
        resource: str = "",
        expires_at: datetime | None = None,
        now: datetime | None = None,
    ) -> str:
        id_, bearer, secret_hash = generate_bearer_token()
        token = BearerTokenRecord(
            id=id_,
            secret_hash=secret_hash,
            being_id=BeingId(being),
            role=role,
            read_only=read_only,
            resource=resource or self.settings.oauth_resource_url,
            name="",
            created_at=now or utc_now(),
            expires_at=expires_at,
        )
        async with open_bearer_token_ledger(self.settings) as tokens:
            await tokens.add(token)
        return bearer

    async def revoke(self, written: str) -> None:
        async with open_bearer_token_ledger(self.settings) as tokens:
            assert await tokens.revoke(BearerTokenId(written.split("_")[1]), at=utc_now())


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def call(method: str, params: Mapping[str, Any] | None = None, *, id_: int = 1) -> dict[str, Any]:
    """A request of 2026-07-28: it needs no session."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": {**(params or {}), "_meta": meta}}


def headers_of(message: Mapping[str, Any]) -> dict[str, str]:
    """The headers that repeat what the message says, as 2026-07-28 wants them."""
    name = message["params"].get("name")
    return MODERN | {"mcp-method": message["method"]} | ({"mcp-name": name} if name else {})


async def posted(
    client: httpx.AsyncClient,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    message = call(method, params)
    return await client.post("/mcp", content=json.dumps(message), headers=headers_of(message) | dict(headers or {}))


async def asked(
    client: httpx.AsyncClient, tool: str, arguments: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The result of a tool that was called, an error's too."""
    answer = await posted(client, "tools/call", {"name": tool, "arguments": arguments}, headers=headers)
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    assert isinstance(result, dict)
    return result


@asynccontextmanager
async def serving(
    data_dir: Path, *, sse: bool = False, being: str = "ada", use: ToolUseCases | None = None, **settings: Any
) -> AsyncIterator[Served]:
    wanted = Settings.model_validate({"data_dir": data_dir, "being": being, "http_port": 0} | settings)
    end = anyio.Event()
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with LanguageModelPool(wanted) as models, open_memory_store(wanted, embedder=WordEmbedder()) as memory:

        async def use_cases() -> ToolUseCases:
            return use or memory.use_cases

        async def opened() -> OpenedMemoryStore:
            return memory

        # A plain task: a fixture is set up in one task and torn down in another.
        task = asyncio.create_task(
            serve_http(
                wanted,
                use_cases,
                models,
                stop_event=end,
                sse=sse,
                page=build_web_ui_services(wanted, opened, models, PatrolEventBroadcast()),
                on_listening=listening.set_result,
            ),
            name="server",
        )
        try:
            both: set[asyncio.Future[Any]] = {task, listening}
            await asyncio.wait(both, timeout=DEADLOCK_S, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            port = httpx.URL(listening.result()).port
            yield Served(wanted.model_copy(update={"http_port": port}), end)
        finally:
            end.set()
            await task
