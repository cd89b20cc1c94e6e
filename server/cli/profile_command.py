"""`madeleine profile`: show and change who the being is (spec P5). Done by the host: a preference is a memory too."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

from madeleine.memory.errors import InvalidInput
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

PROFILE_VERB_CONFIRMATIONS = {"set": "Written", "enable": "On", "disable": "Off", "remove": "Removed", "done": "Done"}
"""Verb → the text printed before the entry's name."""
PROFILE_CONNECTION_LOST_HINT = "`madeleine profile show` tells what became of it."


async def profile_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Raises `HostRefused`, and the error that the tool answers with."""
    require_profile_command_allowed(settings)
    tool_arguments = await asyncio.to_thread(build_profile_tool_arguments, arguments)
    async with open_tool_client(
        settings, "profile", command="madeleine profile", lost_hint=PROFILE_CONNECTION_LOST_HINT
    ) as call:
        answer = await call("profile", tool_arguments)
    if arguments.json:
        print_json(answer)
    elif arguments.verb == "show":
        print_profile_entries(answer)
    else:
        done = f"{PROFILE_VERB_CONFIRMATIONS[arguments.verb]}: {terminal_safe_line(arguments.name)}."
        print(f"{done} {redacted_secrets_sentence(answer.get('redacted', {}))}".rstrip())


def require_profile_command_allowed(settings: Settings) -> None:
    """Raises `InvalidInput` where the settings keep `profile`, which shows and writes, from every client."""
    if settings.read_only:
        raise InvalidInput(
            "`madeleine profile` shows and writes the profile, and the setting read_only allows neither. To use it "
            "this once, run it with MADELEINE_READ_ONLY=false."
        )
    if "profile" in settings.exclude_tools:
        raise InvalidInput(
            "`madeleine profile` uses the tool profile, which the setting exclude_tools excludes. To use it this "
            "once, run it with MADELEINE_EXCLUDE_TOOLS=, (a comma: none is excluded)."
        )


def build_profile_tool_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """The tool's arguments. Raises `InvalidInput` for a file that cannot be read."""
    kind = "notes" if arguments.verb == "done" else arguments.kind
    values = {"action": arguments.verb, "kind": kind, "name": arguments.name}
    if arguments.verb == "set":
        if (arguments.value is None) == (arguments.file is None):
            raise InvalidInput("Give the text of the entry, or --file with a file that holds it: one of the two.")
        values["text"] = read_text_file_or_stdin(arguments.file) if arguments.value is None else arguments.value
    return {name: value for name, value in values.items() if value is not None}


def print_profile_entries(answer: Mapping[str, Any]) -> None:
    entries, notes = answer.get("entries", []), answer.get("notes", [])
    if not entries and not notes:
        print("Nothing of it is known yet. `madeleine profile set` writes it.")
        return
    table = empty_table_with_headings("kind", "name", "text")
    for entry in entries:
        off = "" if entry.get("enabled", True) else " (off)"
        table.add_row(entry["kind"], terminal_safe_line(entry["name"]) + off, terminal_safe_line(entry["text"]))
    for note in notes:
        table.add_row(f"note: {terminal_safe_line(note['type'])}", note["id"], terminal_safe_line(note["text"]))
    make_console().print(table, markup=False)
