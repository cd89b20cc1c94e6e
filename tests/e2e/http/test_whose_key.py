"""By whose key a call asks the language model: over HTTP, over SSE, through a host; and that none is ever told."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.language_model import ModelCallCost
from madeleine.server.attach.connector import HostHandshakeRequest
from madeleine.server.attach.endpoint import open_host_listener
from madeleine.server.host.host import MemoryHost
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.language_models import LanguageModelPool
from madeleine.server.wiring.open_memory import open_memory_store
from madeleine.tools import toolset
from madeleine.tools.run_patrol import run_patrol
from madeleine.tools.tool import ToolCallContext
from tests.contracts.language_model_contract import GOOD, Kind, prompt
from tests.doubles import WordEmbedder
from tests.e2e.hosting import hosted, madeleine, no_host_left
from tests.e2e.http.http_serving import asked, posted, serving
from tests.e2e.serving import call_tool
from tests.language.stub import Stub, http_error, language_server, model_says
from tests.waiting import DEADLOCK_S

OWN, ADAS, BOBS = (f"sk-{name}-" + "9Zt" * 8 for name in ("own", "ada", "bob"))
HEADER = "X-Madeleine-LLM-Key"


async def probe(call: ToolCallContext, arguments: Any) -> dict[str, Any]:
    """A tool that asks the language model of its call."""
    spent: list[ModelCallCost] = []
    if call.language_model is None:
        return {"asked": False}
    await call.language_model.answer_prompt(prompt(), Kind, spent.append)
    return {"asked": True}


@pytest.fixture(autouse=True)
def probing(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the patrol's place, for servers in this process."""
    probing_tool = replace(run_patrol, run=probe, output_schema={"type": "object"})
    monkeypatch.setattr(toolset, "run_patrol", probing_tool)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with language_server(lambda asked: model_says(GOOD)) as stub:
        yield stub


def own_settings(stub: Stub) -> dict[str, Any]:
    return {"llm": "anthropic", "llm_url": stub.anthropic_url, "llm_api_key": OWN, "llm_retries": "0"}


@pytest.mark.parametrize("sse", [False, True])
async def test_over_http_the_key_comes_with_the_request(tmp_path: Path, stub: Stub, sse: bool) -> None:
    async with serving(tmp_path, sse=True, **own_settings(stub)) as server:
        for more in ({HEADER: ADAS}, {HEADER.lower(): BOBS}, {}):
            async with server.connected(sse=sse, more=more) as client:
                assert await call_tool(client, "run_patrol") == {"asked": True}
    assert [one.key for one in stub.asked] == [ADAS, BOBS, OWN]


async def test_over_http_no_answer_and_no_log_tells_a_key(
    tmp_path: Path, stub: Stub, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for name in ("server", "mcp", "uvicorn"):
        caplog.set_level(logging.DEBUG, name)
    stub.answers = lambda asked: http_error(401, message=f"{asked.key} is no key")
    async with serving(tmp_path, **own_settings(stub)) as server, server.browser() as client:
        answers = [await asked(client, "run_patrol", {}, headers={HEADER: key}) for key in (ADAS, BOBS)]
        two = await posted(client, "tools/list", headers={HEADER: f"{ADAS} {BOBS}"})
    assert two.status_code == 400
    assert all(answer["isError"] and "refused the key" in str(answer) for answer in answers)
    assert [one.key for one in stub.asked] == [ADAS, BOBS]
    for key in (OWN, ADAS, BOBS):
        assert key not in f"{answers} {two.text} {caplog.text}"


async def test_a_request_without_a_key_gets_no_others(tmp_path: Path, stub: Stub) -> None:
    """One session, two requests: the key is the request's, not the session's."""
    given = own_settings(stub) | {"llm_api_key": ""}
    async with serving(tmp_path, **given) as server, server.browser() as client:
        with_key = await asked(client, "run_patrol", {}, headers={HEADER: ADAS})
        without = await asked(client, "run_patrol", {})
    assert with_key["structuredContent"] == {"asked": True}
    assert without["structuredContent"] == {"asked": False}
    assert [one.key for one in stub.asked] == [ADAS]


async def test_through_a_host_each_client_asks_by_its_own_key(tmp_path: Path, stub: Stub) -> None:
    settings = Settings.model_validate({"data_dir": tmp_path} | own_settings(stub))
    async with (
        asyncio.timeout(DEADLOCK_S),
        LanguageModelPool(settings) as models,
        open_memory_store(settings, embedder=WordEmbedder(), background=False) as memory,
    ):

        async def use_cases() -> Any:
            return memory.use_cases

        with open_host_listener(tmp_path, "unix") as (listener, address):
            host = MemoryHost(settings, use_cases, models, stays_without_clients=True)
            serving = asyncio.create_task(host.serve(listener))
            theirs = own_settings(stub) | {"llm_api_key": ADAS}
            assert await called(address.path, theirs) == {"asked": True}
            assert await called(address.path, {}) == {"asked": True}
            assert await called(address.path, {"llm": "off", "anthropic_api_key": BOBS}) == {"asked": False}
            assert await called(address.path, theirs) == {"asked": True}
            host.request_stop_after_open_calls()
            await serving
    assert [one.key for one in stub.asked] == [ADAS, OWN, ADAS]


async def called(path: str, settings: Mapping[str, str]) -> Any:
    """What `run_patrol` answers to a client with these settings."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(HostHandshakeRequest(version="0", settings=settings).json_line())
        assert "error" not in json.loads(await reader.readline())["madeleine"]
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        for message in (
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "run_patrol", "arguments": {}}},
        ):
            writer.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        while True:
            answer = json.loads(await reader.readline())
            if answer.get("id") == 2:
                return answer["result"]["structuredContent"]
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.slow
async def test_no_file_and_no_status_of_a_host_holds_a_key(tmp_path: Path, stub: Stub) -> None:
    """A real one, started with a client's environment."""
    more = {f"MADELEINE_{name.upper()}": value for name, value in own_settings(stub).items()}
    more |= {"MADELEINE_LOG_LEVEL": "debug", "ANTHROPIC_LOG": "debug", "OPENAI_API_KEY": BOBS}
    with no_host_left(tmp_path):
        async with (
            hosted(tmp_path, more=more) as ada,
            hosted(tmp_path, being="bob", more=more | {"MADELEINE_LLM_API_KEY": ADAS}) as bob,
        ):
            for client in (ada, bob):
                await call_tool(client, "store", text="Grandmother cooked lasagne on Sunday")
            status = await asyncio.to_thread(madeleine, tmp_path, "status", "--json", **more)
            bad = await asyncio.to_thread(madeleine, tmp_path, **(more | {"MADELEINE_LLM_URL": "http://example.org"}))
            trail = await asyncio.to_thread(madeleine, tmp_path, "audit", **more)
        await asyncio.to_thread(madeleine, tmp_path, "stop")
    assert json.loads(status.stdout)["clients"]
    assert "https://" in bad.stderr
    told = f"{status.stdout}{status.stderr}{bad.stdout}{bad.stderr}{trail.stdout}{trail.stderr}"
    written = await asyncio.to_thread(all_bytes, tmp_path)
    for key in (OWN, ADAS, BOBS):
        assert key not in told
        assert key.encode() not in written


def all_bytes(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())
