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
from typing import TYPE_CHECKING, Any

from madeleine.server import EXIT_USAGE, __version__
from madeleine.server.cli.arguments import parser
from madeleine.server.settings.environment import data_directory, environment, given

if TYPE_CHECKING:
    from madeleine.server.settings.settings import Settings


def main(argv: Sequence[str] | None = None) -> int:
    try:
        arguments = parser().parse_args(argv)
    except SystemExit as end:
        # To a hook's caller 2 means: stop the agent.
        if end.code and "observe" in (sys.argv[1:] if argv is None else argv):
            return 1
        raise
    if arguments.command == "observe":
        from madeleine.server.cli.observe_command import observe_command

        return observe_command(arguments)
    if arguments.command in ("status", "stop"):
        return {"status": show_status, "stop": stop}[arguments.command](arguments)
    if arguments.command in (None, "serve") and not (arguments.in_process or getattr(arguments, "http", False)):
        return attach(arguments)
    return run(arguments)


def attach(arguments: argparse.Namespace) -> int:
    """Forward standard input and output to the host of the data directory."""
    from madeleine.server.attach.forwarder import forward

    variables = environment()
    settings = given(variables) | {name: str(value) for name, value in chosen(arguments).items()}
    return forward(data_directory(settings.pop("data_dir", None)), variables, settings, __version__)


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    from madeleine.memory.errors import MadeleineError
    from madeleine.server.attach.handshake import HostRefused
    from madeleine.server.logs import start_logging
    from madeleine.server.settings.settings import read_settings
    from madeleine.server.wiring.privacy import keep_private

    try:
        settings = read_settings(overrides=chosen(arguments))
        start_logging(settings.log_level)
        keep_private()
        telling = {"patrol": patrol, "import": import_conversations, "profile": profile, "ingest": ingest}
        if command := telling.get(arguments.command):
            return asyncio.run(command(settings, arguments))
        others = {"reindex": reindex, "note": add_notes, "audit": audit, "token": token, "config": show_config}
        asyncio.run(others.get(arguments.command, serve)(settings, arguments))
    except MadeleineError as error:
        print(f"madeleine: {error}", file=sys.stderr)
        return 1 if isinstance(error, HostRefused) and not error.usage else EXIT_USAGE
    except KeyboardInterrupt:
        return 130
    return 0


def chosen(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the command line says of settings; it wins over the environment."""
    names = ("toolsets", "tools", "exclude_tools", "read_only")
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


async def serve(settings: Settings, arguments: argparse.Namespace) -> None:
    """Until standard input ends, or the process is told to. Answers at once; the memory opens behind the first
    answers."""
    from madeleine.memory.errors import InvalidInput

    given = vars(arguments)
    if given.get("http"):
        from madeleine.server.cli.serve_command import serve_over_http

        await serve_over_http(settings, host=arguments.host, port=arguments.port, sse=arguments.sse)
    elif given.get("sse") or given.get("host") is not None or given.get("port") is not None:
        raise InvalidInput("--host, --port and --sse go with --http.")
    else:
        from madeleine.server.mcp.stdio import serve_stdio

        await serve_stdio(settings)


def named_directory() -> Path:
    return data_directory(given(environment()).get("data_dir"))


def show_status(arguments: argparse.Namespace) -> int:
    from madeleine.server.attach.connector import host_is_running, no_answer_message, query_host
    from madeleine.server.attach.handshake import HostRefused, HostRequest, NoHost

    data_dir = named_directory()
    try:
        found = query_host(data_dir, HostRequest(want="status", version=__version__))
    except NoHost:
        found = {"data_dir": str(data_dir)}
    except HostRefused as no:
        print(f"madeleine: {no}", file=sys.stderr)
        return EXIT_USAGE
    if arguments.json:
        print(json.dumps(found, indent=2))
    elif "pid" not in found and host_is_running(data_dir):
        print(no_answer_message(data_dir))
    elif "pid" not in found:
        print(f"No process serves the memory in {data_dir}; the next client starts one.")
    else:
        print(f"Process {found['pid']} (madeleine {found['version']}) serves the memory in {found['data_dir']}.")
        if found.get("http"):
            print(f"  over HTTP at {found['http']}")
        for client in found["clients"]:
            print(f"  a client of being {client['being']!r} (madeleine {client['version']})")
    return 0


def stop(arguments: argparse.Namespace) -> int:
    from madeleine.server.attach.connector import stop_host
    from madeleine.server.attach.handshake import HostRefused

    data_dir = named_directory()
    try:
        ended = stop_host(data_dir, __version__)
    except HostRefused as no:
        print(f"madeleine: {no}", file=sys.stderr)
        return 1
    print("Ended." if ended else f"No process serves the memory in {data_dir}.")
    return 0


async def reindex(settings: Settings, arguments: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.progress import Progress

    from madeleine.memory.model import BeingId
    from madeleine.memory.scope import Scope
    from madeleine.server.wiring.open_memory import open_memory

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

    from madeleine.memory.errors import InvalidInput
    from madeleine.memory.ingest.notes import add_note
    from madeleine.memory.model import BeingId
    from madeleine.memory.scope import Scope
    from madeleine.server.wiring.clocks import utc_now
    from madeleine.server.wiring.ledgers import notes_inbox
    from madeleine.server.wiring.use_cases import redaction

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
            noted = await add_note(inbox, scope, line, now=utc_now(), redact=redaction(settings))
            found.update(noted.redacted)
    print(f"{len(lines)} notes wait for the next patrol of {settings.being!r}.")
    if found:
        print(f"Redacted: {', '.join(f'{count} {kind}' for kind, count in found.items())}.")


def _read(file: str) -> str:
    return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")


async def token(settings: Settings, arguments: argparse.Namespace) -> None:
    from madeleine.server.cli.token_command import token_command

    await token_command(settings, arguments)


async def audit(settings: Settings, arguments: argparse.Namespace) -> None:
    from madeleine.server.cli.audit_command import show_audit

    await show_audit(settings, arguments)


async def patrol(settings: Settings, arguments: argparse.Namespace) -> int:
    from madeleine.server.cli.patrol_command import patrol_command

    return await patrol_command(settings, arguments)


async def import_conversations(settings: Settings, arguments: argparse.Namespace) -> int:
    from madeleine.server.cli.import_command import import_command

    return await import_command(settings, arguments)


async def profile(settings: Settings, arguments: argparse.Namespace) -> int:
    from madeleine.server.cli.profile_command import profile_command

    return await profile_command(settings, arguments)


async def ingest(settings: Settings, arguments: argparse.Namespace) -> int:
    from madeleine.server.cli.ingest_command import ingest_command

    return await ingest_command(settings, arguments)


async def show_config(settings: Settings, arguments: argparse.Namespace) -> None:
    installed = Path(sys.executable).with_name("madeleine")
    started = (
        {"command": str(installed)}
        if installed.exists()
        else {"command": sys.executable, "args": ["-P", "-m", "madeleine"]}
    )
    command = started | {"env": {"MADELEINE_BEING": settings.being}}
    print(json.dumps({"mcpServers": {"madeleine": command}}, indent=2))


if __name__ == "__main__":
    sys.exit(main())
