"""The tools that a client sees, and the one place where a call is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import mcp_types as types

from madeleine.memory.errors import InvalidInput, MadeleineError, NotPermitted
from madeleine.memory.model import MemoryLevel, Role
from madeleine.memory.permissions import permissions_of_role
from madeleine.memory.retention.levels import MemoryLevelKeepsNothing
from madeleine.memory.rules.prompting import RandomSource
from madeleine.tools.archive import manage_archive
from madeleine.tools.arguments import excerpt_for_error, tool_input_schema, unique, validate_tool_arguments
from madeleine.tools.chat_app import TOOLS_WITH_MCP_APP, mcp_app_tool_meta
from madeleine.tools.context import build_context
from madeleine.tools.conversation import ingest, observe_conversation
from madeleine.tools.core_blocks import edit_core_memory, read_core_memory
from madeleine.tools.graph import add_or_remove_stated_relations, find_related_entities
from madeleine.tools.lessons import find_or_rate_lessons, report_failure
from madeleine.tools.organisation import retract_shared_knowledge, search_shared, share_with_organisation
from madeleine.tools.profile import show_or_edit_profile
from madeleine.tools.reading import make_recall_tool, read_whole_memories, search_memory
from madeleine.tools.replies import notice_field, tool_result_of_content, tool_result_of_crash, tool_result_of_error
from madeleine.tools.run_patrol import run_patrol
from madeleine.tools.tool import RunTool, Tool, ToolCallContext
from madeleine.tools.writing import forget, store_memories, update_memory

TOOL_NAMES_BY_TOOLSET: Mapping[str, tuple[str, ...]] = {
    "memory": ("recall", "recall_memory", "search_memory", "store", "update_memory", "forget"),
    "patrol": ("run_patrol",),
    "conversation": ("observe", "ingest"),
    "context": ("context", "profile"),
    "organisation": ("share", "search_shared", "retract"),
    "lessons": ("report_failure", "lessons"),
    "graph": ("related", "relate"),
    "self_editing": ("core_memory", "edit_core_memory"),
    "archive": ("archive",),
}
ALL_TOOLS_TOOLSET_NAME = "all"
"""The toolset of every tool."""


class Toolset:
    """`max_text_chars` bounds every long text, in the schemas and at each call. `refused`: names of tools that would be
    here if the server were not read-only."""

    def __init__(
        self, tools: Sequence[Tool], *, max_text_chars: int, role: Role = "human", refused: Iterable[str] = ()
    ) -> None:
        self.refused = frozenset(refused)
        self._tools = {tool.name: tool for tool in tools}
        self.max_text_chars = max_text_chars
        self._role = role
        self._permissions = permissions_of_role(role)
        self._listed = [tool for tool in tools if tool.listed and tool.permission in self._permissions]

    @property
    def listed_tool_names(self) -> Sequence[str]:
        """Names of the listed tools."""
        return [tool.name for tool in self._listed]

    def list_tools(self) -> list[types.Tool]:
        return [to_mcp_tool(tool, self.max_text_chars) for tool in self._listed]

    def for_caller(self, role: Role, *, read_only: bool = False) -> Toolset:
        """The tools for a caller of this role. The one place where a right is decided: `call` refuses what the role
        lacks, by tool and by argument."""
        tools = read_only_tools(self._tools.values()) if read_only else list(self._tools.values())
        return Toolset(tools, max_text_chars=self.max_text_chars, role=role)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def counts_recalls(self, name: str) -> bool:
        """Whether memories that this tool recalls are counted."""
        return name in self._tools and self._tools[name].counts_recalls

    async def call_tool(self, name: str, arguments: Mapping[str, Any], call: ToolCallContext) -> types.CallToolResult:
        """Expected errors become answers that say what to do; others are logged. Cancellation passes."""
        tool = self._tools[name]
        try:
            notices: list[str] = []
            given = validate_tool_arguments(
                tool.arguments, arguments, max_text_chars=self.max_text_chars, notices=notices
            )
            self._require_permissions(tool, given, call.scope.level)
            content = await tool.run(call, given)
            if notices:
                content |= notice_field(content.get("notice", ""), *unique(notices))
            return tool_result_of_content(content)
        except MadeleineError as error:
            error.args = (await call.replace_ids_with_short_ids(str(error)),)
            return tool_result_of_error(error)
        except Exception as error:  # the one place where an unexpected error of a tool is caught
            return tool_result_of_crash(name, error)

    def _require_permissions(self, tool: Tool, arguments: Any, level: MemoryLevel) -> None:
        required = tool.required_permissions(arguments)
        if missing := required - self._permissions:
            raise NotPermitted(tool.name, permission=min(missing), role=self._role)
        if level == "none" and "write" in required:
            raise MemoryLevelKeepsNothing


def choose_tools(
    tools: Sequence[Tool],
    *,
    toolsets: Sequence[str] = (),
    names: Sequence[str] = (),
    exclude: Sequence[str] = (),
    read_only: bool = False,
) -> list[Tool]:
    """Select tools, in their order: those of the `toolsets` and the `names`, all if neither is given, without those to
    `exclude`. Tools requested by toolset or name are listed. `read_only` keeps tools that change nothing, and those
    that only count recalls, which then do not count.

    Raises `InvalidInput` for an unknown name, and for an empty selection.
    """
    known = {tool.name for tool in tools}
    _require_known_tool_or_toolset_names("toolset", toolsets, [*TOOL_NAMES_BY_TOOLSET, ALL_TOOLS_TOOLSET_NAME])
    _require_known_tool_or_toolset_names("tool", [*names, *exclude], known)
    requested = {name for toolset in toolsets for name in TOOL_NAMES_BY_TOOLSET.get(toolset, known)} | set(names)
    if toolsets or names:
        tools = [replace(tool, listed=True) for tool in tools if tool.name in requested]
    selected = [tool for tool in tools if tool.name not in exclude]
    if read_only:
        selected = read_only_tools(selected)
    if not selected:
        raise InvalidInput(
            "The selection leaves no tools. Relax --toolsets, --tools, --exclude-tools or --read-only, or the settings "
            "of these names."
        )
    return selected


def _require_known_tool_or_toolset_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    options = sorted(known)
    if unknown := [name for name in names if name not in options]:
        raise InvalidInput(f"Unknown {kind} {excerpt_for_error(unknown[0])!r}. Known are {', '.join(options)}.")


def read_only_tools(tools: Iterable[Tool]) -> list[Tool]:
    """Tools that change nothing, and those that only count recalls, without counting."""
    return [
        replace(
            tool,
            read_only=True,
            idempotent=True,
            counts_recalls=False,
            run=partial(_run_tool_without_counting_recalls, tool.run),
        )
        for tool in tools
        if tool.read_only or tool.counts_recalls
    ]


async def _run_tool_without_counting_recalls(run: RunTool, call: ToolCallContext, arguments: Any) -> dict[str, Any]:
    return await run(replace(call, scope=replace(call.scope, count_activations=False)), arguments)


def to_mcp_tool(tool: Tool, max_text_chars: int) -> types.Tool:
    """The tool as `tools/list` shows it."""
    shown = types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool_input_schema(tool.arguments, max_text_chars=max_text_chars),
        output_schema=dict(tool.output_schema),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only or tool.counts_recalls,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )
    return shown.model_copy(update={"meta": mcp_app_tool_meta()}) if tool.name in TOOLS_WITH_MCP_APP else shown


def make_all_tools(rng: RandomSource) -> list[Tool]:
    """Every tool; `choose_tools` selects among them."""
    return [
        make_recall_tool(rng), read_whole_memories, search_memory, store_memories, update_memory, forget, run_patrol,
        observe_conversation, ingest, build_context, show_or_edit_profile, share_with_organisation, search_shared,
        retract_shared_knowledge, report_failure, find_or_rate_lessons, manage_archive, find_related_entities,
        add_or_remove_stated_relations, read_core_memory, edit_core_memory,
    ]  # fmt: skip
