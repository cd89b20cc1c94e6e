"""The tools that a client sees, and the one place where a call is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types

from madeleine.memory.errors import MadeleineError
from madeleine.memory.ports import RandomSource
from madeleine.tools import (
    context,
    forget,
    ingest,
    observe,
    profile,
    recall,
    recall_memory,
    run_patrol,
    search_memory,
    store,
    update_memory,
)
from madeleine.tools.arguments import input_schema, read_arguments
from madeleine.tools.choice import only_reading
from madeleine.tools.replies import answer, crash, refusal
from madeleine.tools.tool import Call, Tool


class Toolset:
    """`max_text_chars` bounds every long text, in the schemas and in what is enforced."""

    def __init__(self, tools: Sequence[Tool], *, max_text_chars: int) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self.max_text_chars = max_text_chars
        self._listed = [listed(tool, max_text_chars) for tool in tools if tool.listed]

    @property
    def names(self) -> Sequence[str]:
        """Of those listed."""
        return [tool.name for tool in self._listed]

    def list(self) -> list[types.Tool]:
        return self._listed

    def reading(self) -> Toolset:
        """For a caller who may change nothing."""
        return Toolset(only_reading(self._tools.values()), max_text_chars=self.max_text_chars)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def counts(self, name: str) -> bool:
        """Whether what that tool brings to mind is counted."""
        return name in self._tools and not self._tools[name].read_only

    async def call(self, name: str, arguments: Mapping[str, Any], call: Call) -> types.CallToolResult:
        """Errors that were foreseen are answers that say what to do; others are logged. Cancellation passes."""
        tool = self._tools[name]
        try:
            read = read_arguments(tool.arguments, arguments, max_text_chars=self.max_text_chars)
            content = await tool.run(call, read)
            if tool.shows:
                call.use.audit(call.scope, "recall", tool=name, ids=shown(content))
            return answer(content)
        except MadeleineError as error:
            return refusal(error)
        except Exception as error:  # the one place where a tool call may end unforeseen
            return crash(name, error)


def shown(content: Mapping[str, Any]) -> list[str]:
    """The ids that an answer names: what it shows, whatever the tool (spec O4)."""
    lists = (value for value in content.values() if isinstance(value, list))
    return [str(item["id"]) for one in lists for item in one if isinstance(item, dict) and "id" in item]


def listed(tool: Tool, max_text_chars: int) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=input_schema(tool.arguments, max_text_chars=max_text_chars),
        output_schema=dict(tool.answers),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )


def default_tools(chance: RandomSource) -> list[Tool]:
    """Every tool; `tools.choice` leaves some out where that is asked for."""
    return [
        recall.tool(chance),
        recall_memory.TOOL,
        search_memory.TOOL,
        store.TOOL,
        update_memory.TOOL,
        forget.TOOL,
        run_patrol.TOOL,
        observe.TOOL,
        ingest.TOOL,
        context.TOOL,
        profile.TOOL,
    ]
