"""A client that starts a server on standard input and output, whose memory is on another machine."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.e2e.hosting import madeleine, no_host_left
from tests.e2e.http.http_serving import serving
from tests.e2e.serving import ERAS, EVERY_TOOL, Era, call_tool, connected, tool_error

COMMAND = [sys.executable, "-P", "-m", "madeleine"]


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
async def test_tools_prompt_and_skills_come_from_the_server_and_the_token_says_whose_memory_it_is(
    tmp_path: Path, era: Era
) -> None:
    elsewhere = tmp_path / "elsewhere"
    async with serving(tmp_path / "data", being="cyd") as server:
        more = {"MADELEINE_URL": f"{server.url}/mcp", "MADELEINE_TOKEN": await server.token("ada")}
        with no_host_left(elsewhere):
            async with connected(elsewhere, being="bob", era=era, words=COMMAND, more=more) as client:
                assert {tool.name for tool in (await client.list_tools()).tools} == EVERY_TOOL - {"forget"}
                await call_tool(client, "store", text="The harbour crane is called Xanthippe.")
                answer = await call_tool(client, "recall", query="harbour crane called", format="memories")
                assert "Xanthippe" in answer["memories"][0]["text"]
                assert "There is no memory" in await tool_error(client, "update_memory", {"id": "m99", "pinned": True})
                assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["memory_context"]
                resources = {str(resource.uri) for resource in (await client.list_resources()).resources}
                assert {"memory://ada/profile", "skill://using-madeleine/SKILL.md"} <= resources
                [skill] = (await client.read_resource("skill://using-madeleine/SKILL.md")).contents
                assert "# Using Madeleine" in skill.model_dump()["text"]
        async with server.connected(await server.token("ada")) as client:
            again = await call_tool(client, "recall", query="harbour crane called", format="memories")
            assert len(again["memories"]) == 1


@pytest.mark.slow
async def test_commands_ask_the_server_that_is_named_and_others_say_that_they_do_not(tmp_path: Path) -> None:
    """`why` asked this machine's memory, and started a process for it."""
    elsewhere = tmp_path / "elsewhere"
    async with serving(tmp_path / "data") as server:
        token = await server.token("ada", role="senior")
        more = {"MADELEINE_URL": f"{server.url}/mcp", "MADELEINE_TOKEN": token}
        async with server.connected(token) as client:
            await call_tool(client, "store", text="The harbour crane is called Xanthippe.")

        async def run(*words: str) -> str:
            done = await asyncio.to_thread(madeleine, elsewhere, *words, **more)
            assert (done.returncode, "not asked" in done.stderr) == (0, False), words
            return done.stdout

        (text := tmp_path / "text.md").write_text("The ferry to the island leaves at nine every morning.\n")
        assert "Xanthippe" in await run("why", "harbour crane")
        assert (await run("why", "harbour crane", "m1")).startswith("m1: recalled")
        assert "Xanthippe" in await run("graph")
        assert "1 stored" in await run("ingest", str(text))
        assert "Nothing's time is over" in await run("retention", "--dry-run")
        assert "Nothing of it is known" in await run("profile", "show")
        for words in (("status",), ("patrol", "runs"), ("audit",)):
            local = await asyncio.to_thread(madeleine, elsewhere, *words, **more)
            assert "the server of MADELEINE_URL is not asked" in local.stderr, words
        assert not (elsewhere / "memory.db").exists()


async def test_a_server_that_is_not_there_is_named_at_the_start(tmp_path: Path) -> None:
    done = madeleine(tmp_path, "--url", "http://127.0.0.1:9/mcp")
    assert (done.returncode, done.stdout) == (1, "")
    assert "http://127.0.0.1:9/mcp cannot be reached" in done.stderr
