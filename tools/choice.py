"""Which tools a connection gets: a pure choice, so that a host can make it from names that came over a wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from madeleine.memory.errors import InvalidInput
from madeleine.tools.arguments import printable
from madeleine.tools.tool import Call, Run, Tool

TOOLSETS: Mapping[str, tuple[str, ...]] = {
    "memory": ("recall", "recall_memory", "search_memory", "store", "update_memory", "forget"),
    "patrol": ("run_patrol",),
    "conversation": ("observe", "ingest"),
    "context": ("context", "profile"),
}
ALL = "all"
"""The toolset of every tool."""


def choose_tools(
    tools: Sequence[Tool],
    *,
    toolsets: Sequence[str] = (),
    names: Sequence[str] = (),
    exclude: Sequence[str] = (),
    read_only: bool = False,
) -> list[Tool]:
    """Of `tools`, in their order: those of the `toolsets` and those `names`d, all where neither is given, without those
    to `exclude`. What is asked for is listed; else some are left to programs that know of them (`Tool.listed`).
    `read_only` leaves those that change nothing, and those that only count what came to mind, which then do not even
    that.

    Raises `InvalidInput` for a name that nobody knows, and if nothing is left.
    """
    known = {tool.name for tool in tools}
    _require_known("toolset", toolsets, [*TOOLSETS, ALL])
    _require_known("tool", [*names, *exclude], known)
    wanted = {name for toolset in toolsets if toolset != ALL for name in TOOLSETS[toolset]} | set(names)
    if ALL in toolsets:
        wanted = known
    if toolsets or names:
        tools = [replace(tool, listed=True) for tool in tools if tool.name in wanted]
    chosen = [tool for tool in tools if tool.name not in exclude]
    if read_only:
        chosen = only_reading(chosen)
    if not chosen:
        raise InvalidInput(
            "No tool is left to serve. Loosen what is asked for by toolsets, tools, exclude-tools and read-only."
        )
    return chosen


def only_reading(tools: Iterable[Tool]) -> list[Tool]:
    """Those that change nothing; those that only count what came to mind are left, and do not even that."""
    return [_without_counting(tool) for tool in tools if tool.read_only or tool.only_counts]


def _require_known(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    among = sorted(known)
    if unknown := [name for name in given if name not in among]:
        raise InvalidInput(f"There is no {kind} {printable(unknown[0])!r}. Known are {', '.join(among)}.")


def _without_counting(tool: Tool) -> Tool:
    return replace(tool, read_only=True, idempotent=True, run=_uncounted(tool.run))


def _uncounted(run: Run) -> Run:
    async def quietly(call: Call, arguments: Any) -> dict[str, Any]:
        return await run(replace(call, scope=replace(call.scope, count_activations=False)), arguments)

    return quietly
