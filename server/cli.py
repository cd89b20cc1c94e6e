"""The command `madeleine`. Without a subcommand it serves MCP on standard input and output."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memory.errors import MadeleineError
from server import __version__
from server.token_commands import add_parsers as add_token_parsers
from server.token_commands import token_command

if TYPE_CHECKING:
    from server.settings import Settings

logger = logging.getLogger(__name__)

EXIT_USAGE = 2
TALKATIVE = ("mcp", "uvicorn", "httpx", "httpx2")
"""Libraries that tell at `info` what is our own log's to tell, session ids among it."""
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    from server.settings import read_settings

    try:
        settings = read_settings()
        logging.basicConfig(stream=sys.stderr, level=settings.log_level.upper(), format=LOG_FORMAT)
        if settings.log_level == "info":
            for library in TALKATIVE:
                logging.getLogger(library).setLevel(logging.WARNING)
        run = {"reindex": reindex, "note": add_notes, "config": show_config, "token": token_command}.get(
            arguments.command, serve
        )
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
    server = commands.add_parser("serve", help="serve MCP, on standard input and output (the default) or over HTTP")
    server.add_argument("--http", action="store_true", help="serve streamable HTTP at /mcp instead")
    server.add_argument("--host", help="with --http: the address to listen on (default 127.0.0.1)")
    server.add_argument("--port", type=int, help="with --http: the port (default 8765; 0 for any that is free)")
    server.add_argument("--sse", action="store_true", help="with --http: the older transport too, at /sse (deprecated)")
    commands.add_parser("reindex", help="build the index anew from the ledger")
    note = commands.add_parser("note", help="put scene notes into the inbox, for the next patrol")
    note.add_argument("file", help="a file with one scene as JSON a line; - for standard input")
    add_token_parsers(commands)
    commands.add_parser(
        "config", help="print the configuration that an MCP client needs, with this installation's path"
    )
    return found


async def serve(settings: Settings, arguments: argparse.Namespace) -> None:
    """Until standard input ends, or the process is told to. Answers at once; the memory opens behind the first
    answers."""
    from memory.errors import InvalidInput

    given = vars(arguments)
    if given.get("http"):
        from server.http.command import serve_over_http

        await serve_over_http(settings, host=arguments.host, port=arguments.port, sse=arguments.sse)
    elif given.get("sse") or given.get("host") is not None or given.get("port") is not None:
        raise InvalidInput("--host, --port and --sse go with --http.")
    else:
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
