"""The command `madeleine`. Without a subcommand it serves MCP on standard input and output."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory.errors import MadeleineError
from server import __version__

if TYPE_CHECKING:
    from server.settings import Settings

EXIT_USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    from server.logs import start_logging
    from server.settings import read_settings

    try:
        settings = read_settings(overrides=chosen(arguments))
        start_logging(settings.log_level)
        run = {"reindex": reindex, "note": add_notes, "config": show_config}.get(arguments.command, serve)
        asyncio.run(run(settings, arguments))
    except MadeleineError as error:
        print(f"madeleine: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="madeleine",
        description="Long-term memory for AI agents, an MCP server. Without a command: serve MCP on stdin and stdout.",
    )
    found.add_argument("--version", action="version", version=f"madeleine {__version__}")
    commands = found.add_subparsers(dest="command", metavar="command")
    serving = commands.add_parser("serve", help="serve MCP on standard input and output (the default)")
    for one in (found, serving):
        _add_choices(one)
    commands.add_parser("reindex", help="build the index anew from the ledger")
    note = commands.add_parser("note", help="put scene notes into the inbox, for the next patrol")
    note.add_argument("file", help="a file with one scene as JSON a line; - for standard input")
    commands.add_parser(
        "config", help="print the configuration that an MCP client needs, with this installation's path"
    )
    return found


def _add_choices(found: argparse.ArgumentParser) -> None:
    # Without defaults: those of a subcommand would overwrite what was said before it.
    given: dict[str, Any] = {"default": argparse.SUPPRESS, "metavar": "names"}
    found.add_argument("--toolsets", help="only these families of tools, separated by commas (memory, patrol)", **given)
    found.add_argument("--tools", help="only these tools, or these beside those of --toolsets", **given)
    found.add_argument("--exclude-tools", help="not these tools", **given)
    found.add_argument(
        "--read-only", action="store_true", default=argparse.SUPPRESS, help="only tools that change nothing"
    )


def chosen(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the command line says of settings; it wins over the environment."""
    names = ("toolsets", "tools", "exclude_tools", "read_only")
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


async def serve(settings: Settings, arguments: argparse.Namespace) -> None:
    """Until standard input ends. Answers at once; the memory opens behind the first answers."""
    from server.stdio import serve_stdio

    await serve_stdio(settings)


async def reindex(settings: Settings, arguments: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from server.wiring import open_memory

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("reindex", total=None)

        async def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        async with open_memory(settings, rebuild=True, progress=show, background=False) as memory:
            await memory.index.optimize()
            count = await memory.index.count()
    print(f"The index was built anew: {count} memories.")


async def add_notes(settings: Settings, arguments: argparse.Namespace) -> None:
    """Into the ledger only: safe beside a running server."""
    from memory.errors import InvalidInput
    from memory.ingest.notes import add_note
    from memory.model import BeingId
    from memory.scope import Scope
    from server.wiring import notes_inbox, utc_now

    try:
        text = await asyncio.to_thread(_read, arguments.file)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{arguments.file} cannot be read: {error}") from error
    # Not splitlines: JSON may hold U+2028, U+0085 and other ends of lines as they are.
    lines = [line for line in text.split("\n") if line.strip()]
    async with notes_inbox(settings) as inbox:
        for line in lines:
            await add_note(inbox, Scope(BeingId(settings.being), "madeleine note"), line, now=utc_now())
    print(f"{len(lines)} notes wait for the next patrol of {settings.being!r}.")


def _read(file: str) -> str:
    return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")


async def show_config(settings: Settings, arguments: argparse.Namespace) -> None:
    installed = Path(sys.executable).with_name("madeleine")
    started = (
        {"command": str(installed)} if installed.exists() else {"command": sys.executable, "args": ["-m", "server.cli"]}
    )
    command = started | {"env": {"MADELEINE_BEING": settings.being}}
    print(json.dumps({"mcpServers": {"madeleine": command}}, indent=2))


if __name__ == "__main__":
    sys.exit(main())
