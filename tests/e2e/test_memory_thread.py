"""spec T1 to T6 through a real server and SDK: what is observed becomes memories, and nobody feels what goes wrong."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client

from tests.e2e.serving import call_tool, connected
from tests.household import rows
from tests.language.stub import ModelRequest, Stub, StubAnswer, http_error, language_server, model_says
from tests.waiting import DEADLOCK_S

LYON = "I moved to Lyon in May with my two cats, and I am glad of it."
ESSENCE = "Ada moved to Lyon in May with her two cats."
TOOLS = {"MADELEINE_TOOLS": "observe,recall,recall_memory,search_memory,store"}


def shown(asked: ModelRequest) -> list[dict[str, Any]]:
    return [json.loads(line) for line in asked.text.splitlines() if line.startswith("{")]


def extraction(*memories: dict[str, Any]) -> StubAnswer:
    return model_says({"memories": list(memories)})


def sensible(asked: ModelRequest) -> StubAnswer:
    """For Lyon what is right, and else what was said, word for word."""
    new = [line for line in shown(asked) if line.get("new")]
    texts = {line["n"]: ESSENCE if line["text"] == LYON else line["text"] for line in new if len(line["text"]) > 12}
    return extraction(*({"essence": text, "messages": [n]} | REST for n, text in list(texts.items())[:3]))


REST: dict[str, Any] = {"emotions": ["joy", "relief"], "weight": 0.7, "lesson": ""}


def environment(stub: Stub, **more: str) -> dict[str, str]:
    own = {"MADELEINE_THREAD": "auto", "MADELEINE_THREAD_SECONDS": "0.05", "MADELEINE_LLM_TIMEOUT_SECONDS": "1"}
    return stub.environment() | TOOLS | own | more


async def say(client: Client, text: str, *, session: str = "s", role: str = "user", answer: str = "I see.") -> None:
    messages = [{"role": role, "text": text, "speaker": "Ada"} if role == "user" else {"role": role, "text": text}]
    await call_tool(client, "observe", session_id=session, messages=[*messages, {"role": "assistant", "text": answer}])


async def eventually(client: Client, found: Callable[[], bool]) -> None:
    """Of what the server does by itself, while it is asked other things."""
    async with asyncio.timeout(DEADLOCK_S):
        while not found():
            await client.list_tools()


def waiting(data_dir: Path) -> int:
    [(count,)] = rows(data_dir / "memory.db", "SELECT count(*) FROM sessions WHERE watched < messages")
    return int(count)


def to_look_at(data_dir: Path) -> int:
    """Sessions with messages that are neither read nor put off."""
    [(count,)] = rows(data_dir / "memory.db", "SELECT count(*) FROM sessions WHERE max(watched, put_off) < messages")
    return int(count)


def end_put_off(data_dir: Path) -> None:
    """As if the hour had passed for which messages are put off."""
    with closing(sqlite3.connect(data_dir / "memory.db", timeout=DEADLOCK_S)) as connection, connection:
        connection.execute("UPDATE sessions SET next_try = 0")


def memories(data_dir: Path) -> list[str]:
    return [text for (text,) in rows(data_dir / "memory.db", "SELECT action FROM memories ORDER BY action")]


async def test_a_conversation_is_remembered_recalled_and_not_remembered_again(tmp_path: Path) -> None:
    """observe, thread, memory, recall; then all that recall shows goes through observe once more."""
    with language_server(sensible) as stub:
        async with connected(tmp_path, more=environment(stub)) as client:
            await call_tool(client, "store", text="We shared ramen at the counter.", feeling="warm and a little sad")
            await say(client, LYON)
            await eventually(client, lambda: waiting(tmp_path) == 0)
            recalled = await call_tool(client, "recall", query="Where does Ada live?", format="memories", details=True)
            before = memories(tmp_path)
            for number, shape in enumerate(("fragments", "memories", "prompt")):
                answer = await call_tool(
                    client, "recall", query="Lyon with cats, ramen at the counter", format=shape, limit=5
                )
                assert len(answer.get("sources", answer.get("memories", []))) == 2
                text = answer[shape] if isinstance(answer[shape], str) else json.dumps(answer[shape])
                told = "I remember that you moved to Lyon in May with your two cats."
                for role in ("user", "assistant"):
                    await say(client, text, session=f"text {number} {role}", role=role, answer=told)
                    await say(client, json.dumps(answer), session=f"whole {number} {role}", role=role, answer=ESSENCE)
            await eventually(client, lambda: to_look_at(tmp_path) == 0)
            end_put_off(tmp_path)
            await eventually(client, lambda: waiting(tmp_path) == 0)
    [first] = recalled["memories"]
    assert (first["text"], first["actors"], first["provenance"]["tool"]) == (ESSENCE, ["Ada"], "thread")
    assert len(before) == 2
    assert memories(tmp_path) == before
    assert [asked.model for asked in stub.asked] == ["small"]
    assert rows(tmp_path / "memory.db", "SELECT purpose, input_tokens, output_tokens FROM cost_records") == [
        ("extract", 100, 20)
    ]


@pytest.mark.slow
async def test_while_the_model_is_away_the_conversation_goes_on(tmp_path: Path) -> None:
    """What else it may answer, and what comes later: tests/unit/server/test_thread_and_model.py"""
    database = tmp_path / "memory.db"
    with language_server(lambda asked: http_error(529)) as stub:
        async with connected(tmp_path, more=environment(stub)) as client:
            await say(client, LYON)
            await eventually(client, lambda: rows(database, "SELECT sum(failures) FROM sessions") == [(1,)])
            await call_tool(client, "store", text="We shared ramen at the counter.")
            await say(client, "My sister Rosa is coming to see me.", session="t")
            assert len((await call_tool(client, "recall", query="ramen", format="memories"))["memories"]) == 1
    assert waiting(tmp_path) == 2
    assert len(stub.asked) == 1, "it rests"


@pytest.mark.slow
async def test_without_a_model_that_was_chosen_nothing_runs_and_nothing_is_lost(tmp_path: Path) -> None:
    """spec T1: and what was not looked at waits for a process that has one."""
    async with connected(
        tmp_path, more=TOOLS | {"MADELEINE_THREAD": "auto", "MADELEINE_THREAD_SECONDS": "0.01"}
    ) as client:
        await say(client, LYON)
    assert waiting(tmp_path) == 1
    with language_server(sensible) as stub:
        async with connected(tmp_path, more=environment(stub)) as client:
            await eventually(client, lambda: waiting(tmp_path) == 0)
    assert memories(tmp_path) == [ESSENCE]


@pytest.mark.slow
async def test_without_a_model_exchanges_can_be_recorded(tmp_path: Path) -> None:
    """spec H6"""
    more = TOOLS | {"MADELEINE_THREAD": "auto", "MADELEINE_THREAD_RECORDS": "true", "MADELEINE_THREAD_SECONDS": "0.05"}
    async with connected(tmp_path, more=more) as client:
        await say(client, LYON, answer="How do the cats like it?")
        await say(client, "thanks!")
        await eventually(client, lambda: waiting(tmp_path) == 0)
        [found] = (await call_tool(client, "recall", query="moved to Lyon with cats", format="memories"))["memories"]
        [whole] = (await call_tool(client, "recall_memory", ids=[found["id"]]))["memories"]
    assert (whole["text"], whole["dialogue"]) == (LYON, ["How do the cats like it?"])
