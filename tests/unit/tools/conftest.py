"""The tools over the real ledger and index, with an embedder that reads words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from madeleine.tools.tool import ToolCallContext
from madeleine.tools.toolset import Toolset, make_all_tools
from tests.doubles import ADA, WordEmbedder

TOOLS = Toolset(make_all_tools(Random(1)), max_text_chars=32_000)
Use = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[OpenedMemoryStore]:
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=WordEmbedder(1024)) as memory:
        yield memory


@pytest.fixture
async def use(memory: OpenedMemoryStore) -> Use:
    async def call(tool: str, **arguments: Any) -> dict[str, Any]:
        result = await TOOLS.call_tool(tool, arguments, ToolCallContext(ADA, memory.use_cases))
        if result.is_error:
            raise RuntimeError(result.content[0].text)  # type: ignore[union-attr]
        return dict(result.structured_content or {})

    return call


async def recalled(use: Use, query: str, **arguments: Any) -> list[str]:
    answer = await use("recall", query=query, format="memories", **arguments)
    return [item["text"] for item in answer["memories"]]
