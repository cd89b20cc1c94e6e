"""The command `madeleine`. Without a subcommand it is what an MCP client starts.

That has to be fast: nothing but the standard library is imported until it is known that more is needed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from server import __version__
from server.environment import data_directory, environment, given

if TYPE_CHECKING:
    from server.settings import Settings

EXIT_USAGE = 2
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    if arguments.command in ("status", "stop"):
        return {"status": show_status, "stop": stop}[arguments.command](arguments)
    if arguments.command in (None, "serve") and not arguments.in_process:
        return attach()
    return run(arguments)


def attach() -> int:
    """Forward standard input and output to the host of the data directory."""
    from server.attach.forwarder import forward

    variables = environment()
    settings = given(variables)
    return forward(data_directory(settings.pop("data_dir", None)), variables, settings, __version__)


def run(arguments: argparse.Namespace) -> int:
    import asyncio
    import logging

    from memory.errors import MadeleineError
    from server.privacy import keep_private
    from server.settings import read_settings

    try:
        settings = read_settings()
        logging.basicConfig(stream=sys.stderr, level=settings.log_level.upper(), format=LOG_FORMAT)
        keep_private()
        others = {"reindex": reindex, "note": add_notes, "audit": audit, "config": show_config}
        asyncio.run(others.get(arguments.command, serve)(settings, arguments))
    except MadeleineError as error:
        print(f"madeleine: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="madeleine",
        description="Long-term memory for AI agents, an MCP server. Without a command: serve MCP on stdin and stdout, "
        "through the one process that owns the memory; it is started where there is none.",
    )
    found.add_argument("--version", action="version", version=f"madeleine {__version__}")
    found.add_argument("--in-process", action="store_true", help="serve in this process, as in a container")
    commands = found.add_subparsers(dest="command", metavar="command")
    serving = commands.add_parser("serve", help="serve MCP on standard input and output (the default)")
    # As the one above; not to be set back where it is not given here.
    serving.add_argument("--in-process", action="store_true", default=argparse.SUPPRESS, help="see madeleine --help")
    status = commands.add_parser("status", help="tell which process owns the memory, and who its clients are")
    status.add_argument("--json", action="store_true", help="as JSON")
    commands.add_parser("stop", help="end that process, when it has finished what it has begun")
    commands.add_parser("reindex", help="build the index anew from the ledger")
    note = commands.add_parser("note", help="put scene notes into the inbox, for the next patrol")
    note.add_argument("file", help="a file with one scene as JSON a line; - for standard input")
    shown = commands.add_parser("audit", help="show who did what to which memories, and when")
    shown.add_argument("--being", metavar="B", help="only this being's memories; all if left out")
    shown.add_argument("--since", metavar="T", help="ISO date or time")
    shown.add_argument("--until", metavar="T", help="ISO date or time, inclusive")
    shown.add_argument("--event", metavar="E", help="only this: store, recall, patrol and so on")
    shown.add_argument("--limit", metavar="N", type=int, default=100, help="the last N entries (default 100)")
    shown.add_argument("--json", action="store_true", help="one JSON object a line, with all ids")
    commands.add_parser(
        "config", help="print the configuration that an MCP client needs, with this installation's path"
    )
    return found


async def serve(settings: Settings, arguments: argparse.Namespace) -> None:
    """Until standard input ends. Answers at once; the memory opens behind the first answers."""
    from server.stdio import serve_stdio

    await serve_stdio(settings)


def show_status(arguments: argparse.Namespace) -> int:
    from server.attach.finding import reach
    from server.attach.hello import Hello, HostSaysNo, NoHost

    data_dir = data_directory(given(environment()).get("data_dir"))
    try:
        link, _, found = reach(data_dir, Hello(want="status", version=__version__))
        link.close()
    except NoHost:
        found = {"data_dir": str(data_dir)}
    except HostSaysNo as no:
        print(f"madeleine: {no}", file=sys.stderr)
        return EXIT_USAGE
    if arguments.json:
        print(json.dumps(found, indent=2))
    elif "pid" not in found:
        print(f"No process serves the memory in {data_dir}; the next client starts one.")
    else:
        print(f"Process {found['pid']} (madeleine {found['version']}) serves the memory in {found['data_dir']}.")
        for client in found["clients"]:
            print(f"  a client of being {client['being']!r} (madeleine {client['version']})")
    return 0


def stop(arguments: argparse.Namespace) -> int:
    from server.attach import finding
    from server.attach.hello import HostSaysNo

    data_dir = data_directory(given(environment()).get("data_dir"))
    try:
        ended = finding.stop(data_dir, __version__)
    except HostSaysNo as no:
        print(f"madeleine: {no}", file=sys.stderr)
        return 1
    print("Ended." if ended else f"No process serves the memory in {data_dir}.")
    return 0


async def reindex(settings: Settings, arguments: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from memory.model import BeingId
    from memory.scope import Scope
    from server.wiring import open_memory

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("reindex", total=None)

        async def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        async with open_memory(settings, rebuild=True, progress=show, background=False) as memory:
            memory.use.audit(Scope(BeingId(""), "madeleine reindex"), "reindex")
            await memory.index.optimize()
            count = await memory.index.count()
    print(f"The index was built anew: {count} memories.")


async def add_notes(settings: Settings, arguments: argparse.Namespace) -> None:
    """Into the ledger only: safe beside a running server."""
    import asyncio

    from memory.errors import InvalidInput
    from memory.ingest.notes import add_note
    from memory.ingest.redaction import clean_note
    from memory.model import BeingId
    from memory.scope import Scope
    from server.wiring import notes_inbox, redaction, utc_now

    try:
        text = await asyncio.to_thread(_read, arguments.file)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{arguments.file} cannot be read: {error}") from error
    # Not splitlines: JSON may hold U+2028, U+0085 and other ends of lines as they are.
    lines = [line for line in text.split("\n") if line.strip()]
    found: Counter[str] = Counter()
    scope = Scope(BeingId(settings.being), "madeleine note")
    async with notes_inbox(settings) as inbox:
        for line in lines:
            cleaned, secrets = clean_note(line, redaction(settings))
            found.update(secrets)
            await add_note(inbox, scope, cleaned, now=utc_now(), redact=redaction(settings))
    print(f"{len(lines)} notes wait for the next patrol of {settings.being!r}.")
    if found:
        print(f"Redacted: {', '.join(f'{count} {kind}' for kind, count in found.items())}.")


def _read(file: str) -> str:
    return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")


async def audit(settings: Settings, arguments: argparse.Namespace) -> None:
    from server.audit import show_audit

    await show_audit(settings, arguments)


async def show_config(settings: Settings, arguments: argparse.Namespace) -> None:
    installed = Path(sys.executable).with_name("madeleine")
    started = (
        {"command": str(installed)} if installed.exists() else {"command": sys.executable, "args": ["-m", "server.cli"]}
    )
    command = started | {"env": {"MADELEINE_BEING": settings.being}}
    print(json.dumps({"mcpServers": {"madeleine": command}}, indent=2))


if __name__ == "__main__":
    sys.exit(main())
