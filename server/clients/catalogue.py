"""The clients that `madeleine init` knows, and what an entry looks like in each."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from madeleine.operating_system import executable_file_name
from madeleine.server.clients.configuration_paths import ClientConfigurationPaths
from madeleine.server.clients.jsonc import (
    append_json_item,
    json_text_without_unwanted_items,
    parse_json_with_comments,
    remove_json_member,
    set_json_member,
)
from madeleine.server.clients.toml_text import parse_toml, remove_toml_table, set_toml_table

MCP_SERVER_NAME = "madeleine"
PLUGIN_HOOKS_FILE = Path(__file__).parents[2] / "plugin" / "hooks" / "hooks.json"
"""Of the plugin, which the package holds as well."""
_OWN_HOOK_COMMAND_PATTERN = re.compile(r"madeleine(?:-memory)?(?:\.exe)?['\"]? observe\b")


@dataclass(frozen=True, slots=True)
class McpServerEntry:
    """What a client starts."""

    command: Sequence[str]
    variables: Mapping[str, str]

    def as_json(self, *, with_type: bool = False) -> dict[str, Any]:
        program, *arguments = self.command
        kind = {"type": "stdio"} if with_type else {}
        return {**kind, "command": program, "args": arguments, "env": dict(self.variables)}


def server_start_command_line() -> list[str]:
    """How this installation is started, from anywhere: a client sees no shell's `PATH`."""
    if "archive-v0" in Path(sys.prefix).parts:  # made by uvx, and gone with its cache
        return [shutil.which("uvx") or "uvx", "madeleine-memory"]
    script = Path(sys.executable).with_name(executable_file_name("madeleine"))
    return [str(script)] if script.exists() else [sys.executable, "-P", "-m", "madeleine"]


@dataclass(frozen=True, slots=True)
class ClientConfigurationFile:
    """A file of a client's, and what is ours in it. `put` and `take` change its text; `put` replaces what is ours
    already. `read` raises `UnreadableConfiguration`."""

    path: Path
    put: Callable[[str], str]
    take: Callable[[str], str]
    read: Callable[[str], Any]
    is_ours_in: Callable[[Any], bool]
    empty: str = "{}\n"
    """The text of a new one."""


@dataclass(frozen=True, slots=True)
class McpClientProgram:
    """`marks`: one of these exists where the client is installed."""

    name: str
    title: str
    marks: Sequence[Path]
    files: Sequence[ClientConfigurationFile]
    next_step: str = "Restart it."


def known_mcp_client_programs(places: ClientConfigurationPaths, entry: McpServerEntry) -> list[McpClientProgram]:
    """In alphabetical order."""
    plain = {MCP_SERVER_NAME: entry.as_json()}
    typed = {MCP_SERVER_NAME: entry.as_json(with_type=True)}
    hooks = _claude_code_hooks_file(places.claude_code_settings_file, entry)
    return [
        McpClientProgram(
            "claude-code",
            "Claude Code",
            [places.claude_code_folder, places.claude_code_servers_file],
            [_json_servers_file(places.claude_code_servers_file, "mcpServers", typed), hooks],
            "Begin another session.",
        ),
        _client_with_json_servers_file(
            "claude-desktop", "Claude Desktop", places.claude_desktop_servers_file, "mcpServers", plain
        ),
        McpClientProgram(
            "codex", "Codex", [places.codex_folder], [_codex_servers_file(places.codex_settings_file, entry)]
        ),
        _client_with_json_servers_file("cursor", "Cursor", places.cursor_servers_file, "mcpServers", plain),
        _client_with_json_servers_file("gemini-cli", "Gemini CLI", places.gemini_settings_file, "mcpServers", plain),
        _client_with_json_servers_file("vscode", "VS Code", places.vscode_servers_file, "servers", typed),
        _client_with_json_servers_file("windsurf", "Windsurf", places.windsurf_servers_file, "mcpServers", plain),
        _client_with_json_servers_file("zed", "Zed", places.zed_settings_file, "context_servers", plain),
    ]


def _client_with_json_servers_file(
    name: str, title: str, file: Path, key: str, servers: Mapping[str, Any]
) -> McpClientProgram:
    return McpClientProgram(name, title, [file.parent], [_json_servers_file(file, key, servers)])


def _json_servers_file(path: Path, key: str, servers: Mapping[str, Any]) -> ClientConfigurationFile:
    [(name, entry)] = servers.items()
    return ClientConfigurationFile(
        path,
        put=lambda text: set_json_member(text, [key, name], entry),
        take=lambda text: remove_json_member(text, [key, name]),
        read=parse_json_with_comments,
        is_ours_in=lambda data: isinstance(data, dict) and name in (data.get(key) or {}),
    )


def _codex_servers_file(path: Path, entry: McpServerEntry) -> ClientConfigurationFile:
    table = ("mcp_servers", MCP_SERVER_NAME)
    return ClientConfigurationFile(
        path,
        put=lambda text: set_toml_table(text, table, entry.as_json()),
        take=lambda text: remove_toml_table(text, table),
        read=parse_toml,
        is_ours_in=lambda data: MCP_SERVER_NAME in data.get("mcp_servers", {}),
        empty="",
    )


# --- hooks of Claude Code -----------------------------------------------------------------------------------------


def _claude_code_hooks_file(path: Path, entry: McpServerEntry) -> ClientConfigurationFile:
    hooks = claude_code_hooks_by_event(entry)

    def take(text: str) -> str:
        for event in hooks:
            had = event in _hook_groups_by_event(parse_json_with_comments(text))
            text = json_text_without_unwanted_items(text, ["hooks", event], _is_own_hook_group)
            if had and not _hook_groups_by_event(parse_json_with_comments(text)).get(event):
                text = remove_json_member(text, ["hooks", event])
        return text

    def put(text: str) -> str:
        text = take(text)
        for event, groups in hooks.items():
            for group in groups:
                text = append_json_item(text, ["hooks", event], group)
        return text

    def is_ours_in(data: Any) -> bool:
        events = _hook_groups_by_event(data).values()
        return any(_is_own_hook_group(group) for groups in events if isinstance(groups, list) for group in groups)

    return ClientConfigurationFile(path, put, take, parse_json_with_comments, is_ours_in)


def claude_code_hooks_by_event(entry: McpServerEntry) -> dict[str, list[Any]]:
    """The plugin's hooks, with the command, the being and the folder of this entry: a hook has no variables of its
    own."""
    options = [
        word
        for option, name in (("--being", "MADELEINE_BEING"), ("--data-dir", "MADELEINE_DATA_DIR"))
        if (value := entry.variables.get(name))
        for word in (option, value)
    ]
    hooks = _read_plugin_hooks_by_event()
    for groups in hooks.values():
        for hook in (hook for group in groups for hook in group["hooks"]):
            hook["command"] = shlex.join([*entry.command, *shlex.split(hook["command"])[1:], *options])
    return hooks


def claude_code_hook_event_names() -> tuple[str, ...]:
    """The events of Claude Code at which something is done, as in `docs/hooks.md`."""
    return tuple(_read_plugin_hooks_by_event())


def _read_plugin_hooks_by_event() -> dict[str, list[Any]]:
    hooks: dict[str, list[Any]] = json.loads(PLUGIN_HOOKS_FILE.read_text(encoding="utf-8"))["hooks"]
    return hooks


def is_claude_code_plugin_enabled_in_settings(settings_text: str) -> bool:
    """Whether the plugin, which has server and hooks, is enabled in this `settings.json`."""
    data = parse_json_with_comments(settings_text)
    plugins = data.get("enabledPlugins") if isinstance(data, dict) else None
    return isinstance(plugins, dict) and any(
        name.partition("@")[0] == MCP_SERVER_NAME and enabled for name, enabled in plugins.items()
    )


def _hook_groups_by_event(data: Any) -> Mapping[str, Any]:
    events = data.get("hooks") if isinstance(data, dict) else None
    return events if isinstance(events, dict) else {}


def _is_own_hook_group(group: Any) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return (
        isinstance(hooks, list)
        and bool(hooks)
        and all(
            isinstance(hook, dict) and _OWN_HOOK_COMMAND_PATTERN.search(str(hook.get("command", ""))) for hook in hooks
        )
    )
