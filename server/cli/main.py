"""The command `madeleine`. Without a subcommand it is what an MCP client starts.

That has to be fast: nothing but the standard library is imported until it is known that more is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from madeleine.memory.errors import InvalidInput, MadeleineError, ServerUnavailable
from madeleine.server import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_USAGE, pause_garbage_collection
from madeleine.server.attach.connector import (
    HostUnavailable,
    exchange_host_handshake_and_disconnect,
    hung_host_message,
    is_host_running,
    stop_host,
)
from madeleine.server.cli.arguments import parse_command_line
from madeleine.server.crash_output import (
    flush_output,
    make_output_streams_error_tolerant,
    print_error,
    report_unexpected_error,
)
from madeleine.server.settings.environment import (
    TOKEN_VARIABLE,
    URL_VARIABLE,
    read_environment_variables,
    resolve_data_directory,
    setting_values_from_variables,
    settings_with_automatic_project_resolved,
)


def main(argv: Sequence[str] | None = None) -> int:
    make_output_streams_error_tolerant()
    try:
        arguments = parse_command_line(argv)
    except SystemExit as error:
        # To a hook's caller 2 means: stop the agent.
        if error.code and "observe" in (sys.argv[1:] if argv is None else argv):
            return EXIT_FAILURE
        raise
    try:
        code = run_cli_command(arguments)
        flush_output()
        return code
    except MadeleineError as error:
        print_error(str(error))
        is_failure = isinstance(error, ServerUnavailable) and not getattr(error, "usage", False)
        return EXIT_FAILURE if is_failure else EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # the one place where an unexpected error of a command is caught
        return report_unexpected_error(error, debug=is_debug_log_level_set())


def is_debug_log_level_set() -> bool:
    return setting_values_from_variables(read_environment_variables()).get("log_level", "").lower() == "debug"


def run_cli_command(arguments: argparse.Namespace) -> int:
    """The exit code. Raises `MadeleineError`."""
    if arguments.command == "observe":
        from madeleine.server.cli.observing.command import observe_command

        return observe_command(arguments)
    if arguments.command in ("completion", "doctor", "help"):  # whatever is wrong with the settings
        from importlib import import_module

        module = "doctor" if arguments.command == "doctor" else "cli.help"
        command = getattr(import_module(f"madeleine.server.{module}.command"), f"{arguments.command}_command")
        return command(arguments) or 0
    if arguments.command == "serve" and not (arguments.in_process or arguments.http):
        return forward_stdio_to_url(url) if (url := server_url_from_arguments(arguments)) else run_forwarder(arguments)
    warn_if_remote_server_is_ignored(arguments)
    if arguments.command not in ("status", "stop"):
        return run_command_with_settings(arguments)
    data_dir = resolve_data_directory(setting_values_from_variables(read_environment_variables()).get("data_dir"))
    if data_dir.exists() and not data_dir.is_dir():
        raise InvalidInput(f"{data_dir} is no directory. Set MADELEINE_DATA_DIR to the memory's.")
    if arguments.command == "status":
        print_host_status(data_dir, as_json=arguments.json)
    else:
        stopped = stop_host(data_dir)
        if arguments.json:
            print(json.dumps({"stopped": stopped, "data_dir": str(data_dir)}))
        else:
            print("Ended." if stopped else f"No process serves the memory in {data_dir}.")
    return 0


def server_url_from_arguments(arguments: argparse.Namespace) -> str:
    """Of the server over HTTP to be used instead of this machine's memory, "" for none."""
    return str(getattr(arguments, "url", None) or read_environment_variables().get(URL_VARIABLE, ""))


def forward_stdio_to_url(url: str) -> int:
    """Serve standard input and output by the server at `url`. Raises `MadeleineError`."""
    import asyncio

    with pause_garbage_collection():
        from madeleine.server.mcp.remote import serve_remote_on_stdio
    asyncio.run(serve_remote_on_stdio(url, read_environment_variables().get(TOKEN_VARIABLE, "")))
    return 0


def run_forwarder(arguments: argparse.Namespace) -> int:
    """Forward standard input and output to the host of the data directory."""
    from madeleine.server.attach.forwarder import forward_stdio_to_host

    variables = read_environment_variables()
    settings = setting_values_from_variables(variables) | {
        name: str(value) for name, value in setting_overrides_from_arguments(arguments).items()
    }
    settings = settings_with_automatic_project_resolved(settings)
    return forward_stdio_to_host(resolve_data_directory(settings.pop("data_dir", None)), variables, settings)


def print_host_status(data_dir: Path, *, as_json: bool) -> None:
    """Print the process that owns the memory, its clients, whether the memory thread runs, what it has to read, and the
    number of unreadable notes. Raises `HostRefused`, `StorageError`."""
    from madeleine.server.cli.ledger_status import (
        ledger_status_lines,
        memory_extraction_status_of_next_host,
        read_ledger_status,
    )

    try:
        status = exchange_host_handshake_and_disconnect(data_dir, "status")
    except HostUnavailable:
        status = {"data_dir": str(data_dir)} | memory_extraction_status_of_next_host()
    of_ledger = read_ledger_status(data_dir)
    if as_json:
        print(json.dumps(status | of_ledger, indent=2))
        return
    if "pid" not in status and is_host_running(data_dir):
        print(hung_host_message(data_dir))
    elif "pid" not in status:
        print(f"No process serves the memory in {data_dir}; the next client starts one.")
    else:
        print(f"Process {status['pid']} (madeleine {status['version']}) serves the memory in {status['data_dir']}.")
        if status.get("http"):
            print(f"  over HTTP at {status['http']}")
        for client in status["clients"]:
            print(f"  a client of being {client['being']!r} (madeleine {client['version']})")
    for line in ledger_status_lines(status | of_ledger):
        print(line)


_LOCAL_ONLY_COMMANDS = frozenset({
    "status", "stop", "reindex", "note", "audit", "token", "costs", "export", "import", "move-in", "backup", "restore",
    "models", "ui",
})  # fmt: skip
"""They work on files or a process of this machine, so no server over HTTP can carry them out."""


def warn_if_remote_server_is_ignored(arguments: argparse.Namespace) -> None:
    """Say so where a server over HTTP is named, and the command does not ask it."""
    is_local = arguments.command in _LOCAL_ONLY_COMMANDS
    if arguments.command == "patrol":
        is_local = arguments.watch or arguments.verb == "runs"
    if is_local and read_environment_variables().get(URL_VARIABLE):
        print_error(f"this is about the memory on this machine; the server of {URL_VARIABLE} is not asked.")


_MODULE_BY_IRREGULAR_COMMAND = {
    **dict.fromkeys(("reindex", "note", "audit", "token"), "local_commands"),
    "restore": "backup_command",
    "config": "init_command",
    "move-in": "import_command",
    **{name: f"looking.{name}_command" for name in ("graph", "costs")},
    **dict.fromkeys(("retention", "archive"), "archive.command"),
}


def run_command_with_settings(arguments: argparse.Namespace) -> int:
    """Run the function `<command>_command`. Without an exit code of its own, it has succeeded."""
    import asyncio
    from importlib import import_module

    name = f"{arguments.command}_command"
    module = _MODULE_BY_IRREGULAR_COMMAND.get(arguments.command, name)
    name = name.replace("-", "_")
    with pause_garbage_collection():
        from madeleine.server.logs import start_logging
        from madeleine.server.settings.settings import read_settings

        command = getattr(import_module(f"madeleine.server.cli.{module}"), name)
    settings = read_settings(overrides=setting_overrides_from_arguments(arguments))
    start_logging(settings.log_level, tracebacks=arguments.command == "serve")
    os.umask(0o077)  # for all files that libraries create as well
    return asyncio.run(command(settings, arguments)) or 0


def setting_overrides_from_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """Settings from the command line, which win over the environment."""
    names = ("toolsets", "tools", "exclude_tools", "read_only", "http_host", "http_port")
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


if __name__ == "__main__":
    sys.exit(main())
