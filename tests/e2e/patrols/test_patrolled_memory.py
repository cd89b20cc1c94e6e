"""What patrols make of memories, as an agent meets it: over the real ledger and the real index (spec P6 ❹, L3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from madeleine.memory.language_model import Prompt
from madeleine.memory.model import Memory
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from madeleine.tools.tool import ToolCallContext
from madeleine.tools.toolset import Toolset, make_all_tools
from tests.doubles import ADA
from tests.household import ScriptedModel, shown_memories
from tests.remains import DenseWords

SESSIONS = 51
"""One more than are left as they are."""
TOOLS = Toolset(make_all_tools(Random(1)), max_text_chars=32_000)


@pytest.fixture
async def memory(new_db: Path) -> AsyncIterator[OpenedMemoryStore]:
    async with open_memory_store(Settings(data_dir=new_db.parent), embedder=DenseWords(dim=96)) as memory:
        yield memory


async def ask(memory: OpenedMemoryStore, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await TOOLS.call_tool(tool, arguments, ToolCallContext(ADA, memory.use_cases))
    assert not answer.is_error, answer.content
    assert isinstance(answer.structured_content, dict)
    return answer.structured_content


async def recalled(memory: OpenedMemoryStore, query: str) -> list[str]:
    found = await ask(memory, "recall", query=query, limit=20, format="memories")
    return [one["text"] for one in found["memories"]]


def summarising() -> ScriptedModel:
    return ScriptedModel(compress=lambda prompt: {"summary": f"Summary: {shown_memories(prompt)[0].split(': ', 1)[1]}"})


async def summarised(memory: OpenedMemoryStore) -> tuple[str, Memory]:
    """After 51 sessions of one memory each: the run, and the summary of the first."""
    for number in range(SESSIONS):
        text = f"Zoé buried xylophoniser number{number} under quincewood{number}"
        await ask(memory, "store", text=text, session_id=f"session {number:02}")
    report = await memory.use_cases.patrol(ADA, steps=["compress"], language=summarising())
    assert report.steps[0].counts["summaries"] == 25
    found = await memory.ledger.index_source.memories_after_id(after=None, limit=100)
    [summary] = [one for one in found if one.compression_source and one.scene.action.endswith("quincewood0")]
    return report.run_id, summary


async def test_a_summary_is_recalled_and_what_it_stands_for_is_not(memory: OpenedMemoryStore) -> None:
    """spec L3, 3.3: originals are kept, and reachable with `include_compressed`."""
    run, summary = await summarised(memory)
    text = "Zoé buried xylophoniser number0 under quincewood0"
    found = await recalled(memory, "quincewood0 number0 xylophoniser")
    assert found[0] == f"Summary: {text}"
    assert text not in found
    assert not any(f"number{number} " in one for one in found if "Summary" not in one for number in range(25))
    hits = (await ask(memory, "search_memory", query="quincewood0"))["hits"]
    assert [hit["id"] for hit in hits] == [summary.short_id]
    hits = (await ask(memory, "search_memory", query="quincewood0", include_compressed=True))["hits"]
    assert len(hits) == 2
    [original_id] = [hit["id"] for hit in hits if hit["id"] != summary.short_id]
    shown_ = (await ask(memory, "recall_memory", ids=[original_id, summary.id]))["memories"]
    assert shown_[0]["compressed_into"] == summary.short_id
    assert shown_[1]["compression_source"] is True
    assert "compressed_into" not in shown_[1]
    await ask(memory, "run_patrol", undo=run)
    assert (await recalled(memory, "quincewood0 number0 xylophoniser"))[0] == text
    assert await memory.ledger.memories.memories_with_ids(ADA, [summary.id]) == []


async def test_what_a_forgotten_summary_stood_for_is_recalled_again(memory: OpenedMemoryStore) -> None:
    """ruling 11"""
    _, summary = await summarised(memory)
    told = await ask(memory, "forget", ids=[summary.id])
    assert told["erased"] == [summary.id]
    [original] = (await memory.use_cases.short_ids.full_memory_id_by_given_id(ADA, told["related"])).values()
    await memory.index_keeper.index_marked_memories()
    assert (await recalled(memory, "quincewood0 number0 xylophoniser"))[0].endswith("quincewood0")
    [now] = await memory.ledger.memories.memories_with_ids(ADA, [original])
    assert not now.compressed


async def test_a_survivor_is_reached_from_what_it_absorbed(memory: OpenedMemoryStore) -> None:
    """spec P6 ❹"""
    ids = [
        (await ask(memory, "store", text=f"Zoé sold the violin in the {shop} shop"))["id"]
        for shop in ("large", "dusty", "corner")
    ]
    answers = ScriptedModel(
        consolidate=lambda prompt: {"merges": [{"survivor": 1, "absorbed": [2]}], "make_dead": [], "keep": []}
    )
    report = await memory.use_cases.patrol(ADA, steps=["assign", "consolidate"], language=answers)
    assert report.steps[1].counts["absorbed"] == 1
    found = (await ask(memory, "recall_memory", ids=ids))["memories"]
    [absorbed] = [one for one in found if one["status"] == "dead"]
    [survivor] = [one for one in found if one["id"] == absorbed["absorbed_into"]]
    assert absorbed["text"] in [item["action"] for item in survivor["timeline"] if isinstance(item, dict)]
    assert absorbed["text"] not in await recalled(memory, absorbed["text"])
    assert all("absorbed_into" not in one for one in found if one["status"] != "dead")


async def test_forgetting_tells_how_many_days_of_the_diary_went_with_it(memory: OpenedMemoryStore) -> None:
    """ruling 11"""
    stored = await ask(memory, "store", text="Zoé sold the violin")

    def diary(_: Prompt) -> Any:
        return {"diary": "I sold.\nI wept.\nI slept.", "think_md": ["One.", "Two.", "Three."]}

    await memory.use_cases.patrol(ADA, steps=["diary"], language=ScriptedModel(diary=diary))
    assert await ask(memory, "forget", ids=[stored["id"]], wait=True) == {"erased": [stored["id"]], "diary_entries": 1}
