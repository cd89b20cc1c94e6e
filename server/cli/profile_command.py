"""`madeleine profile`: show and change who the being is (spec P5). All of it is done by the memory's host, for a
preference is a memory too."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from madeleine.memory.errors import InvalidInput
from madeleine.server.cli.patrol_display import console, printable
from madeleine.server.settings.environment import environment, given
from madeleine.server.settings.settings import Settings

NAME = "madeleine profile"


async def profile_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """The exit code. Raises `HostRefused`, and the error that the tool answers with."""
    require_the_tool(settings)
    answer = await ask(settings, await asyncio.to_thread(asked, arguments))
    if getattr(arguments, "json", False):
        print(json.dumps(answer, ensure_ascii=False, indent=2))
    elif arguments.verb == "show":
        show(answer, settings.being)
    else:
        print(told(arguments, answer))
    return 0


def require_the_tool(settings: Settings) -> None:
    """Raises `InvalidInput` where the settings keep `profile`, which shows and writes, from every client."""
    if settings.read_only:
        raise InvalidInput(
            "`madeleine profile` shows and writes the profile, and the setting read_only keeps both from it. To use it "
            "this once, run it with MADELEINE_READ_ONLY=false."
        )
    if "profile" in settings.exclude_tools:
        raise InvalidInput(
            "`madeleine profile` uses the tool profile, which the setting exclude_tools leaves out. To use it this "
            "once, run it with MADELEINE_EXCLUDE_TOOLS=, (a comma: none is left out)."
        )


def asked(arguments: argparse.Namespace) -> dict[str, Any]:
    """The tool's arguments. Raises `InvalidInput` for a file that cannot be read."""
    kind = "notes" if arguments.verb == "done" else arguments.kind
    wanted = {"action": arguments.verb, "kind": kind, "name": arguments.name}
    if arguments.verb == "set":
        wanted["value"] = value_of(arguments)
    return {name: value for name, value in wanted.items() if value is not None}


def value_of(arguments: argparse.Namespace) -> str:
    if (arguments.value is None) == (arguments.file is None):
        raise InvalidInput("Say what the entry says, or --file with where that stands: the one or the other.")
    if arguments.file is None:
        return str(arguments.value)
    try:
        return sys.stdin.read() if arguments.file == "-" else Path(arguments.file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{arguments.file} cannot be read: {error}") from error


def show(answer: Mapping[str, Any], being: str) -> None:
    from rich.table import Table

    entries, notes = answer.get("entries", []), answer.get("notes", [])
    if not entries and not notes:
        print(f"Nothing of it is known of {being!r} yet. `madeleine profile set` writes it.")
        return
    table = Table(box=None, pad_edge=False, show_edge=False)
    for heading in ("kind", "name", "what it says"):
        table.add_column(heading, overflow="fold")
    for one in entries:
        off = "" if one.get("enabled", True) else " (off)"
        table.add_row(one["kind"], printable(one["name"]) + off, printable(one["value"]))
    for one in notes:
        table.add_row(f"note: {printable(one['type'])}", one["id"], printable(one["content"]))
    console().print(table, markup=False)


def told(arguments: argparse.Namespace, answer: Mapping[str, Any]) -> str:
    name = printable(arguments.name)
    done = {
        "set": f"Written: {name}.",
        "enable": f"On: {name}.",
        "disable": f"Off: {name}.",
        "remove": f"Removed: {name}.",
        "done": f"Done: {name}.",
    }[arguments.verb]
    secrets = ", ".join(f"{count} {kind}" for kind, count in answer.get("redacted", {}).items())
    return f"{done} Redacted: {secrets}." if secrets else done


async def ask(settings: Settings, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the tool `profile` answers. Raises as `ToolClient` does."""
    from madeleine.server.attach.client import host_client

    brought = {name: value for name, value in given(environment()).items() if name != "data_dir"}
    tools = brought | {"tools": "profile"}
    when_lost = "`madeleine profile show` tells what became of it."
    async with host_client(settings.data_dir, environment(), tools, NAME, when_lost=when_lost) as call:
        return await call("profile", arguments)
