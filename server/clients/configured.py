"""The clients on this machine whose configuration has this server, and their hooks: read only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from madeleine.server.clients.changes import read_client_configuration_text
from madeleine.server.clients.configuration_paths import ClientConfigurationPaths
from madeleine.server.clients.jsonc import UnreadableConfiguration, parse_json_with_comments
from madeleine.server.clients.toml_text import parse_toml

_MADELEINE_NAME_PATTERN = re.compile(r"madeleine", re.I)
_MADELEINE_OBSERVE_COMMAND_PATTERN = re.compile(r"madeleine\S*\s+observe\b")


@dataclass(frozen=True, slots=True)
class MadeleineServerEntry:
    """An entry for this server. `command`: "" for one that is reached by `url`."""

    client: str
    file: Path
    name: str
    command: str = ""
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] | None = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class UnreadableConfigurationFileReport:
    client: str
    file: Path
    reason: str


def configuration_files_of_all_clients(
    places: ClientConfigurationPaths, project: Path
) -> Iterator[tuple[str, Path, str]]:
    """(client, file, key of the servers) of this user and of a project."""
    yield "Claude Code", places.claude_code_servers_file, "mcpServers"
    yield "Claude Code, project", project / ".mcp.json", "mcpServers"
    yield "Claude Desktop", places.claude_desktop_servers_file, "mcpServers"
    yield "Codex", places.codex_settings_file, "mcp_servers"
    yield "Cursor", places.cursor_servers_file, "mcpServers"
    yield "Cursor, project", project / ".cursor" / "mcp.json", "mcpServers"
    yield "Gemini CLI", places.gemini_settings_file, "mcpServers"
    yield "VS Code", places.vscode_servers_file, "servers"
    yield "VS Code, project", project / ".vscode" / "mcp.json", "servers"
    yield "Windsurf", places.windsurf_servers_file, "mcpServers"
    yield "Zed", places.zed_settings_file, "context_servers"


def find_madeleine_server_entries(
    places: ClientConfigurationPaths, project: Path
) -> Iterator[MadeleineServerEntry | UnreadableConfigurationFileReport]:
    """The entries for this server in all files that are there."""
    for client, file, key in configuration_files_of_all_clients(places, project):
        try:
            content = read_client_configuration(file)
        except UnreadableConfiguration as error:
            yield UnreadableConfigurationFileReport(client, file, str(error))
            continue
        servers = content.get(key) if isinstance(content, dict) else None
        for name, entry in servers.items() if isinstance(servers, dict) else ():
            if isinstance(entry, dict) and _is_madeleine_server_entry(str(name), entry):
                yield _parse_madeleine_server_entry(client, file, str(name), entry)


def _is_madeleine_server_entry(name: str, entry: Mapping[str, Any]) -> bool:
    words = [name, str(entry.get("command", "")), *map(str, _list_or_empty(entry.get("args")))]
    return any(map(_MADELEINE_NAME_PATTERN.search, words))


def _parse_madeleine_server_entry(client: str, file: Path, name: str, entry: Mapping[str, Any]) -> MadeleineServerEntry:
    variables = entry.get("env")
    return MadeleineServerEntry(
        client=client,
        file=file,
        name=name,
        command=str(entry.get("command", "")),
        arguments=tuple(map(str, _list_or_empty(entry.get("args")))),
        variables={str(key): str(value) for key, value in variables.items()} if isinstance(variables, dict) else {},
        url=str(entry.get("url") or entry.get("serverUrl") or entry.get("httpUrl") or ""),
    )


def _list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def claude_code_madeleine_hook_events_by_file(
    places: ClientConfigurationPaths, project: Path
) -> Mapping[Path, frozenset[str]]:
    """Settings file → the events at which it runs `madeleine observe`. Raises `UnreadableConfiguration`."""
    files = [places.claude_code_settings_file]
    files += [project / ".claude" / name for name in ("settings.json", "settings.local.json")]
    found: dict[Path, frozenset[str]] = {}
    for file in files:
        content = read_client_configuration(file)
        hooks = content.get("hooks") if isinstance(content, dict) else None
        events = hooks.items() if isinstance(hooks, dict) else ()
        if own := frozenset(
            str(event) for event, groups in events if _MADELEINE_OBSERVE_COMMAND_PATTERN.search(json.dumps(groups))
        ):
            found[file] = own
    return found


def read_client_configuration(file: Path) -> Any:
    """The content of a JSON file, with comments and trailing commas as editors allow them, or of a TOML file; None
    where there is none. Raises `UnreadableConfiguration`."""
    text = read_client_configuration_text(file)
    if text is None or not text.strip():
        return None
    return parse_toml(text) if file.suffix == ".toml" else parse_json_with_comments(text)
