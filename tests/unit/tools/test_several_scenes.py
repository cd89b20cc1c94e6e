"""`store` with several scenes (spec T4): each is answered by itself; and the short ids (ruling 23)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import mcp_types as types
import pytest

from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from madeleine.tools.tool import ToolCallContext
from madeleine.tools.toolset import Toolset, make_all_tools
from tests.doubles import ADA, BOB, WordEmbedder

TOOLS = Toolset(make_all_tools(Random(1)), max_text_chars=200)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[OpenedMemoryStore]:
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=WordEmbedder()) as memory:
        yield memory


async def ask(memory: OpenedMemoryStore, tool: str, *, scope: Any = ADA, **arguments: Any) -> Any:
    """The answer, or the text of a refusal."""
    result = await TOOLS.call_tool(tool, arguments, ToolCallContext(scope, memory.use_cases))
    [content] = result.content
    assert isinstance(content, types.TextContent)
    return content.text if result.is_error else result.structured_content


async def test_a_scene_that_cannot_be_stored_does_not_lose_the_others(memory: OpenedMemoryStore) -> None:
    await ask(memory, "store", text="The lamp is broken", key="lamp")
    answer = await ask(
        memory,
        "store",
        scenes=[
            {"text": "We shared ramen at the counter", "when": "2026-03-01", "emotions": ["joy", "envy"]},
            {"text": "x" * 201},
            {"text": "The chair is broken", "key": "lamp"},
            "no scene",
            {"text": "We shared ramen at the counter", "when": "2026-03-01"},
            {"text": "The tea went cold", "when": "tomorrow"},
        ],
    )
    first, long, conflict, no_scene, again, undated = answer["scenes"]
    assert (first["id"], first["status"]) == ("m2", "stored")
    assert "at most 200" in long["refused"]
    assert "was used before" in conflict["refused"]
    assert "refused" in no_scene
    assert (again["id"], again["status"]) == ("m2", "reinforced")
    assert undated["refused"].startswith("when: 'tomorrow'"), "of the others something was done"
    assert "envy" in answer["notice"]
    [whole] = (await ask(memory, "recall_memory", ids=["m2"]))["memories"]
    assert (whole["when"], whole["emotions"]) == ("2026-03-01", ["joy"])


async def test_scenes_stand_alone_and_a_store_needs_a_text(memory: OpenedMemoryStore) -> None:
    assert "Beside scenes leave out text" in await ask(memory, "store", text="a", scenes=[{"text": "b"}])
    assert "text: is required, or scenes" in await ask(memory, "store")
    refused = await ask(memory, "store", scenes=[{"text": " "}, {"when": "2026-03-01"}])
    assert isinstance(refused, str)
    assert "text" in refused


async def test_every_tool_takes_short_and_full_ids(memory: OpenedMemoryStore) -> None:
    """ruling 23"""
    await ask(memory, "store", scenes=[{"text": "Ann lives in Oslo"}, {"text": "Bob grows beans"}])
    [whole] = (await ask(memory, "recall_memory", ids=["M1"]))["memories"]
    full_id = whole["provenance"]["full_id"]
    for named in (full_id, full_id[:8]):
        [same] = (await ask(memory, "recall_memory", ids=[named]))["memories"]
        assert same["id"] == "m1"
    assert (await ask(memory, "update_memory", id=full_id, pinned=True))["id"] == "m1"
    assert "m9" in await ask(memory, "update_memory", id="m9", pinned=True)
    assert (await ask(memory, "recall_memory", ids=["m1", "m9"]))["missing"] == ["m9"]
    assert (await ask(memory, "recall_memory", ids=["m1"], scope=BOB))["missing"] == ["m1"]
    assert await ask(memory, "forget", ids=["m2", "m9"], wait=True) == {"erased": ["m2"], "missing": ["m9"]}


async def test_a_refusal_names_memories_by_their_short_ids(memory: OpenedMemoryStore) -> None:
    await ask(memory, "store", text="Ann lives in Oslo")
    await ask(memory, "store", text="Ann lives in Bergen", supersedes="m1")
    refused = await ask(memory, "store", text="Ann lives in Rome", supersedes="m1")
    assert "m1" in refused
    assert len(max(refused.split(), key=len)) < 36


async def test_a_number_is_never_used_again(memory: OpenedMemoryStore) -> None:
    """ruling 23: also when the newest memory is forgotten."""
    await ask(memory, "store", text="Ann lives in Oslo")
    assert (await ask(memory, "forget", ids=["m1"]))["erased"] == ["m1"]
    assert (await ask(memory, "store", text="Bob grows beans"))["id"] == "m2"


async def test_a_correction_is_dated_wherever_the_memory_is_shown(memory: OpenedMemoryStore) -> None:
    await ask(memory, "store", text="Ann lives in Oslo", lesson="Write to Ann", when="2026-03-01")
    await ask(memory, "update_memory", id="m1", pinned=True)
    [before] = (await ask(memory, "recall", query="Where does Ann live?", format="memories"))["memories"]
    await ask(memory, "update_memory", id="m1", text="Ann lives in Bergen")
    [after] = (await ask(memory, "recall", query="Where does Ann live?", format="memories"))["memories"]
    assert "updated" not in before
    assert (after["text"], after["lesson"], len(after["updated"])) == ("Ann lives in Bergen", "Write to Ann", 10)
