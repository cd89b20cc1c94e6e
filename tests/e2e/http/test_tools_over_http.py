"""The tools over HTTP and SSE, from a real client to the disk and back, in both protocol eras."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.http.http_serving import serving
from tests.e2e.serving import ERAS, Era, call_tool, tool_error

pytestmark = [pytest.mark.parametrize("era", ERAS), pytest.mark.parametrize("sse", [False, True])]


async def test_what_one_client_stores_another_finds_and_both_are_told_what_goes_on(
    tmp_path: Path, era: Era, sse: bool
) -> None:
    told: list[float] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with serving(tmp_path, sse=True) as server:
        async with server.connected(era=era, sse=sse) as client:
            stored = await call_tool(client, "store", text="Grandmother cooked lasagne on Sunday")
        async with server.connected(era=era, sse=sse) as client:
            [found] = (await call_tool(client, "search_memory", query="lasagne"))["hits"]
            assert found["id"] == stored["id"]
            [memory] = (await call_tool(client, "recall_memory", ids=[stored["id"]]))["memories"]
            assert memory["provenance"]["client"]
            assert "being" in await tool_error(client, "recall", {"query": "x", "being": "bo"})
            answer = await client.call_tool("run_patrol", {}, progress_callback=tell)
    assert not answer.is_error
    assert told
    assert told == sorted(told)


async def test_the_being_is_the_tokens(tmp_path: Path, era: Era, sse: bool) -> None:
    """Ruling 12."""
    async with serving(tmp_path, sse=True, being="cyd") as server:
        ada, bo = await server.token("ada"), await server.token("bo")
        async with server.connected(ada, era=era, sse=sse) as client:
            await call_tool(client, "store", text="Grandmother cooked lasagne on Sunday")
        async with server.connected(bo, era=era, sse=sse) as client:
            assert (await call_tool(client, "search_memory", query="lasagne"))["hits"] == []
        async with server.connected(ada, era=era, sse=sse) as client:
            assert len((await call_tool(client, "search_memory", query="lasagne"))["hits"]) == 1
