"""What `run_patrol` answers (rulings 10, 22 and 23)."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store
from madeleine.tools.tool import ToolCallContext
from madeleine.tools.toolset import Toolset, make_all_tools
from tests.doubles import ADA, WordEmbedder

TOOLS = Toolset(make_all_tools(Random(1)), max_text_chars=32_000)
SCENE = "The crate of oranges came by the early boat, and Ada signed for it at the harbour office{0}"
"""No two differ in a fact, so all of them are asked about."""


async def test_a_patrol_answers_briefly_and_tells_of_the_rest(tmp_path: Path) -> None:
    """Issue 12: it answered 18,000 characters to whoever had stored a few dozen memories."""
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=WordEmbedder(1024)) as memory:

        async def patrol(**arguments: Any) -> dict[str, Any]:
            result = await TOOLS.call_tool("run_patrol", arguments, ToolCallContext(ADA, memory.use_cases))
            return dict(result.structured_content or {})

        for part in range(0, 60, 20):
            scenes = [{"text": SCENE.format("!" * day), "distinct": True} for day in range(part, part + 20)]
            await TOOLS.call_tool("store", {"scenes": scenes}, ToolCallContext(ADA, memory.use_cases))
        brief = await patrol()
        assert len(json.dumps(brief, ensure_ascii=False).encode()) < 9_500  # 3,000 tokens
        assert {"name": "age", "step": "\u2777", "aged": 60} in brief["steps"]
        assert [set(step) & {"skipped"} for step in brief["steps"]] == [set()] * len(brief["steps"])
        assert next(iter(brief)) == "notice"
        assert json.dumps(brief).count("BYOK key not set") == 1  # spec P7, once and at the top
        assert brief["waiting"] > 0
        assert "the answer to these brings the next" in brief["guidance"]["waiting"]
        whole = await patrol(decisions=[])
        assert whole["pending"] == brief["pending"]
        assert len((await patrol(dry_run=True, details=True))["steps"]) == 12


async def test_a_decision_of_a_wrong_type_rejects_only_itself(tmp_path: Path) -> None:
    """A fresh agent lost a whole batch by one of them."""
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=WordEmbedder(1024)) as memory:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            result = await TOOLS.call_tool(tool, arguments, ToolCallContext(ADA, memory.use_cases))
            return dict(result.structured_content or {})

        await call("store", scenes=[{"text": SCENE.format("!" * day), "distinct": True} for day in range(3)])
        pending = {offer["kind"]: offer["offer"] for offer in (await call("run_patrol"))["pending"]}
        diary = {
            "offer": pending["diary"],
            "diary": "I sang.\nI slept.\nI rose.",
            "think_md": ["One.", "Two.", "Three."],
        }
        wrong = [{"offer": pending["diary"], "merges": "m1"}, {"offer": "nonsense"}, {"summary": "Nothing."}, "m1"]
        decided = (await call("run_patrol", decisions=[*wrong, diary]))["decided"]
        assert ["refused" in one for one in decided] == [True, True, True, True, False]
        assert decided[-1]["written"] == 1
