"""Input and output that commands share: files, JSON, terminals, and their connection to the host."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from madeleine.memory.errors import InvalidInput
from madeleine.server.settings.environment import environment, madeleine_variables
from madeleine.server.settings.settings import Settings

if TYPE_CHECKING:
    from rich.console import Console

    from madeleine.server.attach.client import HostClient

PIPED_WIDTH = 120


def read_text(file: str) -> str:
    """Of a file in UTF-8, or of standard input for "-". Raises `InvalidInput`."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from error


def print_json(content: object) -> None:
    print(json.dumps(content, ensure_ascii=False, indent=2))


def printable(text: object) -> str:
    """On one line, without characters that a terminal would obey."""
    return "".join(character if character.isprintable() else "\ufffd" for character in " ".join(str(text).split()))


def redaction_note(counts: Mapping[str, int]) -> str:
    return f"Redacted: {', '.join(f'{count} {kind}' for kind, count in counts.items())}." if counts else ""


def console(file: IO[str] | None = None) -> Console:
    """On standard output by default."""
    from rich.console import Console

    file = file or sys.stdout
    return Console(file=file, highlight=False, markup=False, width=None if file.isatty() else PIPED_WIDTH)


@asynccontextmanager
async def host_tool(settings: Settings, tool: str, *, command: str, when_lost: str) -> AsyncIterator[HostClient]:
    """Connect to the host as a client with one tool. Raises `HostRefused`; `when_lost` as in `HostClient`."""
    from madeleine.server.attach.client import host_client

    client = host_client(settings.data_dir, environment(), client_settings(tool), command, when_lost=when_lost)
    async with client as call:
        yield call


def client_settings(tool: str) -> dict[str, str]:
    """The settings that a client brings to its host, for a client that needs one tool."""
    own = {
        name: value
        for name, value in madeleine_variables(environment()).items()
        if name not in ("data_dir", "toolsets")
    }
    return own | {"tools": tool}
