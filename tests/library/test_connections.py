"""Connections that cannot be had, or break."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

import madeleine
from madeleine.server.attach.endpoint import host_pid
from tests.e2e.hosting import hosted, kill
from tests.e2e.http.http_serving import serving
from tests.e2e.serving import call_tool


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"url": "http://localhost:1/mcp", "being": "ada"}, "do not go with url"),
        ({"url": "http://localhost:1/mcp", "data_dir": "data"}, "do not go with url"),
        ({"token": "secret"}, "goes with url"),
        ({"url": "http://example.org/mcp", "token": "secret"}, "unencrypted"),
    ],
)
async def test_arguments_that_do_not_go_together_are_refused(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(madeleine.InvalidInput, match=reason):
        async with madeleine.connect(**arguments):
            pass


async def test_a_wrong_or_missing_token_is_named(data_dir: Path) -> None:
    async with serving(data_dir) as served:
        await served.token("ada")
        for token in ("mdl_wrong_token", ""):
            with pytest.raises(madeleine.AuthenticationFailed, match="does not accept the token"):
                async with madeleine.connect(url=f"{served.url}/mcp", token=token):
                    pass


async def test_a_token_that_may_only_read_may_not_store(data_dir: Path) -> None:
    async with serving(data_dir) as served:
        token = await served.token("ada", read_only=True)
        async with madeleine.connect(url=f"{served.url}/mcp", token=token) as memory:
            with pytest.raises(madeleine.NotPermitted, match="read-only") as refused:
                await memory.store("The lamp is broken")
            assert refused.value.tool == "store"


async def test_a_server_that_only_reads_refuses_to_store(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said that there is no such tool, as an error of the server."""
    async with serving(data_dir, read_only=True) as served:
        token = await served.token("ada", role="human")
        async with madeleine.connect(url=f"{served.url}/mcp", token=token) as memory:
            with pytest.raises(madeleine.NotPermitted, match="MADELEINE_READ_ONLY"):
                await memory.store("The lamp is broken")
    monkeypatch.setenv("MADELEINE_READ_ONLY", "1")
    async with madeleine.connect(data_dir=data_dir) as memory:
        with pytest.raises(madeleine.NotPermitted, match="MADELEINE_READ_ONLY"):
            await memory.store("The lamp is broken")
        assert (await memory.recall("lamp")).memories == ()


async def test_no_server_is_an_error_of_its_own() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
        with pytest.raises(madeleine.ServerUnavailable, match="cannot be reached"):
            async with madeleine.connect(url=url):
                pass


@pytest.mark.parametrize("url", ["localhost:1/mcp", "http://localhost:1:2/mcp", "ftp://localhost/mcp"])
async def test_an_address_that_cannot_be_one_is_an_error_of_its_own(url: str) -> None:
    with pytest.raises(madeleine.ServerUnavailable, match="Check server and address"):
        async with madeleine.connect(url=url):
            pass


async def test_a_server_of_something_else_is_an_error_of_its_own() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(madeleine.ServerError, match="no MCP server"):
            async with madeleine.connect(url=f"http://127.0.0.1:{port}/mcp"):
                pass


async def test_an_address_that_is_no_memory_is_an_error_of_its_own(data_dir: Path) -> None:
    async with serving(data_dir) as served:
        with pytest.raises(madeleine.MadeleineError, match="Not Found"):
            async with madeleine.connect(url=f"{served.url}/elsewhere"):
                pass


async def recall_for_ever(memory: madeleine.Memory) -> None:
    """A server finishes what it has begun before it ends."""
    while True:
        await memory.recall("The lamp is broken")


async def test_a_server_that_went_away_is_an_error_of_its_own(data_dir: Path) -> None:
    async with serving(data_dir) as served:
        token = await served.token("ada")
        async with madeleine.connect(url=f"{served.url}/mcp", token=token) as memory:
            await memory.store("The lamp is broken")
            served.end.set()
            with pytest.raises(madeleine.ServerUnavailable):
                await recall_for_ever(memory)


async def test_a_killed_host_fails_the_call_and_the_next_connection_starts_one(data_dir: Path) -> None:
    async with madeleine.connect(being="ada", data_dir=data_dir) as memory:
        stored = await memory.store("The lamp is broken")
        kill(host_pid(data_dir))
        with pytest.raises(madeleine.ConnectionLost, match="Connect again"):
            await memory.recall("The lamp is broken")
        with pytest.raises(madeleine.ConnectionLost):
            await memory.recall("The lamp is broken")
    async with madeleine.connect(being="ada", data_dir=data_dir) as memory:
        assert (await memory.memories([stored.id])).missing == ()


async def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(madeleine.ServerUnavailable, match="cannot be used"):
        async with madeleine.connect(data_dir=tmp_path / "file"):
            pass


async def test_an_mcp_client_and_the_library_share_the_memory(data_dir: Path) -> None:
    """Neither keeps the other out, whoever came first."""
    async with madeleine.connect(being="ada", data_dir=data_dir) as memory, hosted(data_dir, being="ada") as client:
        await memory.store("The lamp is broken")
        assert len((await call_tool(client, "recall", query="The lamp is broken")).get("sources", [])) == 1
        await call_tool(client, "store", text="The chair is repaired")
        assert (await memory.recall("The chair is repaired")).memories[0].text == "The chair is repaired"


@pytest.mark.slow
async def test_tools_chosen_for_a_model_do_not_bind_the_library(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADELEINE_TOOLS", "recall")
    monkeypatch.setenv("MADELEINE_BEING", "bert")
    async with madeleine.connect(data_dir=str(data_dir)) as memory:
        await memory.store("The lamp is broken")
    async with madeleine.connect(being="bert", data_dir=os.fspath(data_dir)) as memory:
        assert (await memory.recall("The lamp is broken")).count == 1
