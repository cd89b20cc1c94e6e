"""Roles: what a caller may do (spec O4)."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from madeleine.memory import permissions
from madeleine.memory.model import CALLER_ROLES, Role
from madeleine.memory.permissions import PERMISSIONS_BY_ROLE
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store
from madeleine.tools.tool import ToolCallContext
from madeleine.tools.toolset import Toolset, make_all_tools
from tests.doubles import ADA, WordEmbedder

CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "recall": ({"query": "lamp"}, "read"),
    "recall_memory": ({}, "read"),
    "search_memory": ({"query": "lamp"}, "read"),
    "context": ({}, "read"),
    "store": ({"text": "The lamp is broken"}, "write"),
    "update_memory": ({"id": "m1", "importance": 0.5}, "write"),
    "observe": ({"session_id": "s", "messages": [{"role": "user", "text": "Hello"}]}, "write"),
    "ingest": ({"text": "The lamp is broken"}, "write"),
    "run_patrol": ({}, "maintain"),
    "forget": ({"ids": ["m1"]}, "erase"),
    "profile": ({"action": "remove", "kind": "soul", "name": "voice"}, "erase"),
    "share": ({"text": "The lamp is broken"}, "write"),
    "search_shared": ({"query": "lamp"}, "read"),
    "retract": ({"id": "s1", "erase": True}, "erase"),
    "report_failure": ({"task": "Deploy", "error": "It broke"}, "write"),
    "lessons": ({"task": "Deploy"}, "read"),
    "related": ({"entity": "Ada"}, "read"),
    "relate": ({"memory": "m1", "relations": [{"subject": "a", "relation": "b", "object": "c"}]}, "write"),
    "core_memory": ({}, "read"),
    "edit_core_memory": ({"name": "human", "erase": True}, "erase"),
    "archive": ({"action": "restore", "ids": ["m1"]}, "write"),
}


def toolset(role: Role) -> Toolset:
    return Toolset(make_all_tools(random.Random(1)), max_text_chars=10_000).for_caller(role)


def refusal(result: types.CallToolResult) -> str:
    text = "".join(part.text for part in result.content if isinstance(part, types.TextContent))
    return text if result.is_error and "permission to" in text else ""


async def test_a_role_can_do_what_the_table_says_by_any_tool_and_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CALLS.keys() == {tool.name for tool in make_all_tools(random.Random(1))}
    nothing = frozenset[permissions.Permission]()
    async with open_memory_store(Settings(data_dir=tmp_path), embedder=WordEmbedder()) as memory:
        for role, allowed in [*PERMISSIONS_BY_ROLE.items(), *((role, nothing) for role in CALLER_ROLES)]:
            monkeypatch.setattr(permissions, "PERMISSIONS_BY_ROLE", PERMISSIONS_BY_ROLE | {role: allowed})
            tools, call = toolset(role), ToolCallContext(replace(ADA, role=role), memory.use_cases)
            for name, (arguments, permission) in CALLS.items():
                told = refusal(await tools.call_tool(name, arguments, call))
                assert bool(told) == (permission not in allowed), (role, name, told)


def test_what_a_role_may_not_do_is_not_listed() -> None:
    assert "forget" not in toolset("agent").listed_tool_names
    assert "forget" in toolset("senior").listed_tool_names
