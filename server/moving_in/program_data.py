"""Where other programs keep what they remember, on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_APPLICATION_DATA_FOLDERS = ("~/.config", "~/Library/Application Support", "$APPDATA")


@dataclass(frozen=True, slots=True)
class OtherProgramDataLocation:
    """`patterns`: files or folders, of which the first that there are count; "*" stands for any name. A variable of
    the environment stands for the place that the program itself takes from it."""

    product: str
    patterns: tuple[str, ...]


OTHER_PROGRAM_DATA_LOCATIONS = (
    OtherProgramDataLocation(
        "Claude Code", ("$CLAUDE_CONFIG_DIR/projects", "~/.claude/projects", "~/.config/claude/projects")
    ),
    OtherProgramDataLocation("Codex", ("$CODEX_HOME/sessions", "~/.codex/sessions")),
    OtherProgramDataLocation("Codex archive", ("$CODEX_HOME/archived_sessions", "~/.codex/archived_sessions")),
    OtherProgramDataLocation("Gemini CLI", ("$GEMINI_CLI_HOME/.gemini/tmp/*/chats", "~/.gemini/tmp/*/chats")),
    OtherProgramDataLocation("Cursor", ("~/.cursor/projects/*/agent-transcripts",)),
    OtherProgramDataLocation(
        "Cursor", tuple(f"{base}/Cursor/User/globalStorage/state.vscdb" for base in _APPLICATION_DATA_FOLDERS)
    ),
    OtherProgramDataLocation(
        "MCP knowledge graph",
        (
            "$MEMORY_FILE_PATH",
            "~/.npm/_npx/*/node_modules/@modelcontextprotocol/server-memory/dist/memory.json*",
            "~/.npm-global/lib/node_modules/@modelcontextprotocol/server-memory/dist/memory.json*",
        ),
    ),
    OtherProgramDataLocation("mem0", ("$MEM0_DIR/history.db", "~/.mem0/history.db")),
    OtherProgramDataLocation("basic-memory", ("$BASIC_MEMORY_HOME", "~/basic-memory")),
    OtherProgramDataLocation("claude-mem", ("$CLAUDE_MEM_DATA_DIR/claude-mem.db", "~/.claude-mem/claude-mem.db")),
    OtherProgramDataLocation(
        "mcp-memory-service",
        (
            "$MCP_MEMORY_SQLITE_PATH",
            "~/.local/share/mcp-memory/sqlite_vec.db",
            "~/Library/Application Support/mcp-memory/sqlite_vec.db",
            "$LOCALAPPDATA/mcp-memory/sqlite_vec.db",
        ),
    ),
)
_CLIENT_CONFIGURATION_FILE_PATTERNS = (
    "~/.claude.json",
    "~/.cursor/mcp.json",
    *(f"{base}/Claude/claude_desktop_config.json" for base in _APPLICATION_DATA_FOLDERS),
)


def find_data_of_other_programs(environment: Mapping[str, str], home: Path) -> list[tuple[str, Path]]:
    """(product, file or folder) of those that there are."""
    found: dict[Path, str] = {}
    for place in OTHER_PROGRAM_DATA_LOCATIONS:
        for pattern in place.patterns:
            paths = list(_existing_paths_matching_pattern(pattern, environment, home))
            for path in paths:
                found.setdefault(path, place.product)
            if paths:
                break
    for path in _knowledge_graph_files_set_in_clients(environment, home):
        found.setdefault(path, "MCP knowledge graph")
    return [(product, path) for path, product in found.items()]


def _existing_paths_matching_pattern(pattern: str, environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    first, _, rest = pattern.partition("/")
    base = str(home) if first == "~" else environment.get(first.removeprefix("$"), "")
    if not base:
        return
    root = Path(base).expanduser()
    if not rest:
        matching = [root]
    elif "*" in rest:
        matching = sorted(root.glob(rest))
    else:
        matching = [root / rest]
    yield from (path for path in matching if path.exists())


def _knowledge_graph_files_set_in_clients(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Files that clients have set for the official server."""
    for pattern in _CLIENT_CONFIGURATION_FILE_PATTERNS:
        for path in _existing_paths_matching_pattern(pattern, environment, home):
            try:
                servers = json.loads(path.read_text(encoding="utf-8")).get("mcpServers", {})
                files = [server.get("env", {}).get("MEMORY_FILE_PATH") for server in servers.values()]
            except (OSError, ValueError, AttributeError):
                continue
            yield from (Path(file).expanduser() for file in files if isinstance(file, str) and Path(file).is_file())
