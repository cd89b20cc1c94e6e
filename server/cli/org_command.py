"""`madeleine org`: what the beings of a store share (spec O4, O5). Done by the host, through the tools of an agent."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server.cli.output import (
    empty_table_with_headings,
    make_console,
    open_tool_client,
    print_json,
    read_text_file_or_stdin,
    redacted_secrets_sentence,
)
from madeleine.server.settings.settings import Settings

ORG_TOOL_BY_VERB = {
    "share": "share",
    "search": "search_shared",
    "list": "search_shared",
    "history": "search_shared",
    "retract": "retract",
}
ORG_CONNECTION_LOST_HINT = "`madeleine org list` tells what became of it."


async def org_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """The caller has the role of the settings. Raises `HostRefused`, and the error that the tool answers with."""
    tool = ORG_TOOL_BY_VERB[arguments.verb]
    tool_arguments = await asyncio.to_thread(build_org_tool_arguments, arguments)
    async with open_tool_client(settings, tool, command="madeleine org", lost_hint=ORG_CONNECTION_LOST_HINT) as call:
        answer = await call(tool, tool_arguments)
    if arguments.json:
        print_json(answer)
    elif "memories" in answer:
        print_shared_knowledge(answer["memories"])
    else:
        print(f"{answer['id']} {answer['status']}. {redacted_secrets_sentence(answer.get('redacted', {}))}".rstrip())
    if not arguments.json and (notice := answer.get("notice")):
        print(terminal_safe_line(notice))


def build_org_tool_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """The tool's arguments; those that were left out are left out. Raises `InvalidInput` for unreadable input."""
    match arguments.verb:
        case "share":
            text = read_text_file_or_stdin("-") if arguments.text == "-" else arguments.text
            names = ("memory", "kind", "when", "supersedes")
            values = {"text": text} | {name: getattr(arguments, name) for name in names}
        case "search":
            values = {"query": arguments.query, "limit": arguments.limit}
        case "list":
            values = {"kinds": arguments.kind, "as_of": arguments.as_of, "limit": min(arguments.limit, 50)}
        case "history":
            values = {"id": arguments.id}
        case _:
            values = {"id": arguments.id, "reason": arguments.reason}
            values |= {name: True for name in ("undo", "erase") if getattr(arguments, name)}
    return {name: value for name, value in values.items() if value is not None}


def print_shared_knowledge(found: Sequence[Mapping[str, Any]]) -> None:
    """One row each; own memories have no kind."""
    if not found:
        print("Nothing of that is shared. `madeleine org share` does.")
        return
    table = empty_table_with_headings("id", "kind", "since", "by", "text")
    for one in found:
        author = "/".join(one[name] for name in ("author", "author_role") if name in one)
        state = f" ({one['status']})" if "status" in one else ""
        cells = (one["id"], one.get("kind", "own"), one.get("since", one["when"]), author, one["text"] + state)
        table.add_row(*map(terminal_safe_line, cells))
    make_console().print(table, markup=False)
