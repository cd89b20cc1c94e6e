"""SIGKILL in the middle of the memory thread's turns: every conversation is remembered in the end, and once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.e2e.hosting import asking
from tests.e2e.serving import connected
from tests.household import rows
from tests.language.stub import ModelAnswer, ModelRequest, StubAnswer, held_answer, language_server, model_says
from tests.waiting import DEADLOCK_S

TOWNS = ("Lyon", "Turin", "Porto", "Gdansk", "Bergen", "Malmo")


def answer(asked: ModelRequest) -> ModelAnswer:
    """In other words each time: nothing but the key tells that it is the same."""
    shown = [json.loads(line) for line in asked.text.splitlines() if line.startswith("{")]
    new = [line for line in shown if line.get("new") and "Ada" in line["who"]]
    answer.times += 1  # type: ignore[attr-defined]
    way = ("moved to", "has a new home, which is in", "left the coast, and lives now in")[answer.times % 3]  # type: ignore[attr-defined]
    memories = [
        {
            "essence": f"Ada {way} {next(town for town in TOWNS if town in line['text'])}.",
            "emotions": ["joy"],
            "weight": 0.6,
            "lesson": "",
            "messages": [line["n"]],
        }
        for line in new
    ]
    return model_says({"memories": memories})


answer.times = 0  # type: ignore[attr-defined]


def slow(until: Event, asked: ModelRequest) -> StubAnswer:
    return held_answer(until, answer(asked))


def talk(town: str) -> dict[str, Any]:
    messages = [{"role": "user", "speaker": "Ada", "text": f"I moved to {town}."}, {"role": "assistant", "text": "Oh!"}]
    return {"session_id": town, "messages": messages}


def told(data_dir: Path) -> Counter[str]:
    """How many memories there are of each town."""
    texts = [text for (text,) in rows(data_dir / "memory.db", "SELECT action FROM memories")]
    return Counter(town for town in TOWNS for text in texts if town in text)


def waiting(data_dir: Path) -> int:
    return len(rows(data_dir / "memory.db", "SELECT 1 FROM sessions WHERE watched < messages"))


@pytest.mark.slow
async def test_no_conversation_is_lost_or_remembered_twice_by_sigkill_in_its_turn(tmp_path: Path) -> None:
    """Killed while the model thinks, and just as a turn is being stored."""
    with language_server(answer) as stub:
        more = stub.environment() | {
            "MADELEINE_TOOLS": "observe",
            "MADELEINE_THREAD": "auto",
            "MADELEINE_THREAD_SECONDS": "0.05",
        }
        for number, town in enumerate(TOWNS[:-1]):
            thinking = Event()
            stub.answers = answer if number % 2 else partial(slow, thinking)
            before = len(stub.asked)
            with asking(tmp_path, arguments=["--in-process"], more=more) as client:
                client.call(1, "observe", **talk(town))
                assert not client.wait_for(1)[0]["result"]["isError"]
                await stub.came(before + 1)
                os.kill(client.process.pid, signal.SIGKILL)
                client.process.wait()
            thinking.set()
        stub.answers = answer
        async with connected(tmp_path, more=more) as client:
            await client.call_tool("observe", talk(TOWNS[-1]))
            async with asyncio.timeout(DEADLOCK_S):
                while waiting(tmp_path):
                    await client.list_tools()
    assert told(tmp_path) == Counter(dict.fromkeys(TOWNS, 1))
