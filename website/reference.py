"""Pages made from the code: tools, commands, the public package."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from mcp import types

from madeleine.server.cli.arguments import build_command_line_parser
from madeleine.server.settings.environment import DEFAULT_MAX_TEXT_CHARS
from madeleine.tools.toolset import Toolset, make_all_tools


def pages() -> dict[str, str]:
    """Markdown by path."""
    return {"reference/tools.md": tools(), "reference/commands.md": commands(), "reference/library.md": library()}


def tools() -> str:
    """What `tools/list` says of each tool, and its arguments."""
    every = (replace(tool, listed=True) for tool in make_all_tools(Random(1)))
    parts = map(_tool, Toolset(list(every), max_text_chars=DEFAULT_MAX_TEXT_CHARS).list_tools())
    return "# Tools\n\nAs `tools/list` describes them to a client.\n\n" + "\n".join(parts)


def _tool(tool: types.Tool) -> str:
    return f"## {tool.name}\n\n{tool.description}\n\n{_arguments(tool.input_schema)}\n"


def _arguments(schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    rows = [
        f"| `{name}` | {_kind(field)} | {'yes' if name in required else ''} | {_cell(field.get('description', ''))} |"
        for name, field in schema.get("properties", {}).items()
    ]
    if not rows:
        return "No arguments.\n"
    return "\n".join(["| argument | type | required | |", "|---|---|---|---|", *rows, ""])


def _kind(field: dict[str, Any]) -> str:
    if reference := field.get("$ref"):
        return str(reference).rsplit("/", 1)[-1]
    if options := field.get("anyOf"):
        return " or ".join(_kind(option) for option in options)
    if values := field.get("enum"):
        return ", ".join(f"`{json.dumps(value, ensure_ascii=False)}`" for value in values)
    kind = field.get("type", "any")
    return f"list of {_kind(field.get('items', {}))}" if kind == "array" else str(kind)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def commands() -> str:
    """`--help` of each command."""
    parts = (f"## {name}\n\n```text\n{text.rstrip()}\n```\n" for name, text in _helps(build_command_line_parser()))
    return "# Command line\n\n" + "\n".join(parts)


def _helps(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    yield parser.prog, parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in dict.fromkeys(action.choices.values()):
                yield from _helps(command)


def library() -> str:
    modules = ("madeleine.client", "madeleine.arguments", "madeleine.models", "madeleine.memory.errors")
    return "# Python\n\n" + "\n".join(f"::: {module}\n" for module in modules)
