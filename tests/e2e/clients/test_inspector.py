"""The MCP Inspector, which is neither ours nor our SDK's, lists and calls the tools over every transport."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.e2e.clients.npm import npx, output_of
from tests.e2e.http.http_serving import serving
from tests.e2e.serving import EVERY_TOOL, command, environment
from tests.waiting import DEADLOCK_S

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
Transport = Literal["stdio", "http", "sse"]

pytestmark = pytest.mark.slow

Inspect = Callable[..., Awaitable[str]]
"""Its arguments to what it said."""


@asynccontextmanager
async def inspector(directory: Path, transport: Transport, era: str) -> AsyncIterator[Inspect]:
    data_dir = directory / "data"

    async def inspect(where: list[str], server: list[str], arguments: tuple[str, ...]) -> str:
        patience = ["--connect-timeout", f"{1_000 * DEADLOCK_S:.0f}"]
        given = ["--cli", *where, "--protocol-era", era, *patience, *arguments, *(["--", *server] if server else [])]
        code, said = await output_of(npx(INSPECTOR, *given), home=directory)
        assert code == 0, said
        return said

    if transport == "stdio":
        settings = environment(data_dir)
        named = [name for name in sorted(settings) if name.startswith("MADELEINE_")]
        where = [part for name in named for part in ("-e", f"{name}={settings[name]}")]
        yield lambda *arguments: inspect(where, command(), arguments)
        return
    async with serving(data_dir, sse=True) as server:
        token = await server.token(role="senior")
        url = f"{server.url}/{'sse' if transport == 'sse' else 'mcp'}"
        where = ["--transport", transport, "--server-url", url, "--header", f"Authorization: Bearer {token}"]
        yield lambda *arguments: inspect(where, [], arguments)


def answer_in(said: str) -> Any:
    """What npm has to say stands around it."""
    return json.JSONDecoder().raw_decode(said[said.index("{") :])[0]


async def called(inspect: Inspect, tool: str, *arguments: str) -> Any:
    pairs = [part for argument in arguments for part in ("--tool-arg", argument)]
    answer = answer_in(await inspect("--method", "tools/call", "--tool-name", tool, *pairs))
    assert not answer.get("isError"), answer
    return answer["structuredContent"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
async def test_strict_finds_nothing_wrong_with_the_schemas(tmp_path: Path, transport: Transport, era: str) -> None:
    async with inspector(tmp_path, transport, era) as inspect:
        said = await inspect("--method", "tools/list", "--strict")
    listed = {tool["name"] for tool in answer_in(said)["tools"]}
    assert listed == EVERY_TOOL
    assert "error" not in said.lower()


@pytest.mark.parametrize(("transport", "era"), [("stdio", "legacy"), ("http", "modern"), ("sse", "legacy")])
async def test_all_five_tools_can_be_called(tmp_path: Path, transport: Transport, era: str) -> None:
    text = "Ann lost her umbrella at the harbour"
    async with inspector(tmp_path, transport, era) as inspect:
        stored = await called(inspect, "store", f"text={text}")
        assert text in (await called(inspect, "recall", "query=umbrella at the harbour"))["fragments"]
        [found] = (await called(inspect, "search_memory", "query=umbrella"))["hits"]
        assert found["id"] == stored["id"]
        [memory] = (await called(inspect, "recall_memory", f'ids=["{stored["id"]}"]'))["memories"]
        assert memory["text"] == text
        assert (await called(inspect, "run_patrol"))["steps"][0]["name"] == "assign"
