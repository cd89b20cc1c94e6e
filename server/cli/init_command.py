"""`madeleine init` and `config`: what MCP clients need of this server, written into their configuration or printed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from madeleine import operating_system
from madeleine.memory.errors import InvalidInput
from madeleine.memory.rules.storing.secrets import redact_secrets
from madeleine.memory.text.structure import text_without_invisible_chars
from madeleine.server import EXIT_FAILURE, EXIT_NOTHING_TO_DO
from madeleine.server.cli.output import print_json
from madeleine.server.clients.catalogue import (
    MCP_SERVER_NAME,
    McpClientProgram,
    McpServerEntry,
    is_claude_code_plugin_enabled_in_settings,
    known_mcp_client_programs,
    server_start_command_line,
)
from madeleine.server.clients.changes import (
    FileChange,
    plan_client_configuration_changes,
    read_client_configuration_text,
    write_file_change,
)
from madeleine.server.clients.configuration_paths import ClientConfigurationPaths
from madeleine.server.clients.jsonc import UnreadableConfiguration
from madeleine.server.settings.environment import ENVIRONMENT_VARIABLE_PREFIX, read_environment_variables
from madeleine.server.settings.settings import Settings


async def init_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """Show and write the change of each client. 1 if one could not be made, 3 if there was nothing to do."""
    variables = read_environment_variables()
    places = ClientConfigurationPaths(Path.home(), operating_system.OPERATING_SYSTEM, variables)
    entry = server_entry_from_settings(settings, variables)
    clients = select_named_or_installed_clients(known_mcp_client_programs(places, entry), arguments.client)
    if not (arguments.yes or arguments.dry_run or sys.stdin.isatty()):
        raise InvalidInput("Nobody can be asked here: give --yes to write the changes, or --dry-run to see them.")
    codes = {configure_client(client, places, arguments) for client in clients}
    if not clients:
        print(f"No client was found. Known are {', '.join(c.name for c in known_mcp_client_programs(places, entry))}.")
        print("`madeleine config` prints the entry for any other.")
    return EXIT_FAILURE if EXIT_FAILURE in codes else 0 if 0 in codes else EXIT_NOTHING_TO_DO


async def config_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Print what an MCP client needs, in the form that most of them take, or in the form of one."""
    variables = read_environment_variables()
    entry = server_entry_from_settings(settings, variables)
    if arguments.client is None:
        print_json({"mcpServers": {MCP_SERVER_NAME: entry.as_json()}})
        return
    places = ClientConfigurationPaths(Path.home(), operating_system.OPERATING_SYSTEM, variables)
    for client in select_named_or_installed_clients(known_mcp_client_programs(places, entry), [arguments.client]):
        print(configuration_to_paste(client))


def server_entry_from_settings(settings: Settings, variables: dict[str, str]) -> McpServerEntry:
    """With the being, and the folder of the memory if it is not the usual one."""
    chosen = {f"{ENVIRONMENT_VARIABLE_PREFIX}BEING": settings.being}
    if variables.get(f"{ENVIRONMENT_VARIABLE_PREFIX}DATA_DIR"):
        chosen[f"{ENVIRONMENT_VARIABLE_PREFIX}DATA_DIR"] = str(settings.data_dir)
    return McpServerEntry(server_start_command_line(), chosen)


def select_named_or_installed_clients(
    known: Sequence[McpClientProgram], names: Sequence[str] | None
) -> list[McpClientProgram]:
    """Those that were named, else those whose files show that they are here. Raises `InvalidInput`."""
    by_name = {client.name: client for client in known}
    if unknown := [name for name in names or () if name not in by_name]:
        raise InvalidInput(f"--client: there is no {unknown[0]!r}. Known are {', '.join(by_name)}.")
    if names:
        return [by_name[name] for name in dict.fromkeys(names)]
    return [client for client in known if any(mark.exists() for mark in client.marks)]


def configure_client(client: McpClientProgram, places: ClientConfigurationPaths, arguments: argparse.Namespace) -> int:
    """The exit code that this client alone would have."""
    try:
        if not arguments.undo and client.name == "claude-code" and _is_claude_code_plugin_enabled(places):
            print(f"{client.title}: the plugin is installed, which brings server and hooks.")
            return EXIT_NOTHING_TO_DO
        changes = list(plan_client_configuration_changes(list(client.files), undo=arguments.undo))
        if not changes:
            print(f"{client.title}: {'nothing to take out' if arguments.undo else 'it is set up already'}.")
            return EXIT_NOTHING_TO_DO
        _print_client_changes(client, changes)
        if arguments.dry_run:
            return 0
        if not (arguments.yes or _ask_to_confirm_client_changes(client)):
            print(f"{client.title}: left as it is.")
            return EXIT_NOTHING_TO_DO
        for change in changes:
            write_file_change(change)
            if change.backup:
                print(f"  The file as it was: {change.backup}")
    except UnreadableConfiguration as error:
        files = ", ".join(str(file.path) for file in client.files)
        print(
            text_without_invisible_chars(f"{client.title}: {files}: {error}. Nothing was changed there."),
            file=sys.stderr,
        )
        if not arguments.undo:
            print(f"Put this in by hand:\n{configuration_to_paste(client)}", file=sys.stderr)
        return EXIT_FAILURE
    print(f"{client.title}: {'taken out' if arguments.undo else 'set up'}. {client.next_step}")
    return 0


def configuration_to_paste(client: McpClientProgram) -> str:
    """What a person would write into each file of a client, were it empty."""
    texts = [f"{file.path}\n{file.put(file.empty)}" for file in client.files]
    return text_without_invisible_chars("\n".join(texts))


def _is_claude_code_plugin_enabled(places: ClientConfigurationPaths) -> bool:
    text = read_client_configuration_text(places.claude_code_folder / "settings.json")
    return bool(text and text.strip()) and is_claude_code_plugin_enabled_in_settings(text or "")


def _print_client_changes(client: McpClientProgram, changes: Sequence[FileChange]) -> None:
    print(f"{client.title}")
    for change in changes:
        print(text_without_invisible_chars(redact_secrets(change.diff()).text))


def _ask_to_confirm_client_changes(client: McpClientProgram) -> bool:
    return input(f"Write this for {client.title}? [y/N] ").strip().lower() in ("y", "yes")
