"""A real server process over stdio, in a data directory of its own, gone afterwards."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

from tests.household import new_store
from tests.waiting import DEADLOCK_S

ROOT = Path(__file__).parents[2]
Era = Literal["legacy", "2026-07-28"]
ERAS: tuple[Era, ...] = ("legacy", "2026-07-28")
EVERY_TOOL = {"recall", "recall_memory", "search_memory", "store", "update_memory", "forget", "run_patrol"}


COMMAND = [sys.executable, "-m", "madeleine"]
"""What an MCP client starts."""


def command() -> list[str]:
    """A server that lives no longer than its client."""
    return [*COMMAND, "--in-process"]


def environment(data_dir: Path, being: str = "ada", **more: str) -> dict[str, str]:
    """Patrols come when a test asks for one, and no memory thread runs; one that is about those that come by themselves
    says so in `more`."""
    settings = {
        "MADELEINE_DATA_DIR": str(data_dir),
        "MADELEINE_BEING": being,
        "MADELEINE_LOG_LEVEL": "warning",
        "MADELEINE_PATROL_AUTO": "false",
        "MADELEINE_THREAD": "off",
    }
    return {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "")} | settings | more


@cache
def _templates() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def furnish(data_dir: Path) -> None:
    """A new data directory gets a store that was migrated before: half a second less of a server's start. Those that
    are started in other ways than by `connected` and `asking` make their own."""
    if not data_dir.exists():
        data_dir.mkdir(mode=0o700, parents=True)
    if data_dir.is_dir() and not any(data_dir.iterdir()):
        new_store(_templates(), data_dir / "memory.db")


@asynccontextmanager
async def connected(
    data_dir: Path,
    *,
    being: str = "ada",
    era: Era = "legacy",
    more: Mapping[str, str] | None = None,
    words: Sequence[str] | None = None,
) -> AsyncIterator[Client]:
    """A real client; `words`: the command, `command()` by default."""
    furnish(data_dir)
    executable, *arguments = words or command()
    server = StdioServerParameters(
        command=executable, args=arguments, env=environment(data_dir, being, **(more or {})), cwd=ROOT
    )
    async with Client(stdio_client(server), mode=era, read_timeout_seconds=DEADLOCK_S) as client:
        yield client


async def call_tool(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a call that succeeds; its text is the same."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer_text(answer)
    assert isinstance(answer.structured_content, dict)
    assert json.loads(answer_text(answer)) == answer.structured_content
    return answer.structured_content


async def tool_error(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    """What is said of a call that fails."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    assert answer.structured_content is None
    return answer_text(answer)


def answer_text(answer: CallToolResult) -> str:
    return "".join(part.text for part in answer.content if isinstance(part, TextContent))


class RawConnection:
    """Bytes to and from a server process, past any client."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        assert process.stdout
        self.sink: IO[bytes] = process.stdin
        self.source: IO[bytes] = process.stdout
        self.call(
            "initialize",
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
        )
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def send(self, line: bytes) -> None:
        self.sink.write(line + b"\n")
        self.sink.flush()

    def answer(self) -> Any:
        return json.loads(self.source.readline())

    def call(self, method: str, params: Any) -> Any:
        self.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
        return self.answer()

    def store(self, arguments: bytes) -> Any:
        self.send(
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"store","arguments":' + arguments + b"}}"
        )
        return self.answer()


@contextmanager
def raw_connection(data_dir: Path) -> Iterator[RawConnection]:
    with subprocess.Popen(
        command(), env=environment(data_dir), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield RawConnection(process)
            assert process.stdin
            process.stdin.close()
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()


async def snippets(client: Client, word: str) -> Counter[str]:
    """Of all hits of `search_memory`, page by page."""
    found: Counter[str] = Counter()
    cursor: dict[str, str] = {}
    while True:
        page = await call_tool(client, "search_memory", query=word, limit=100, **cursor)
        found.update(hit["text"] for hit in page["hits"])
        if "next_cursor" not in page:
            return found
        cursor = {"cursor": page["next_cursor"]}
