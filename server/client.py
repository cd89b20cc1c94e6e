"""A client of the host, for commands that are carried out by it: MCP over its socket, and its live news."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory.errors import StorageBusy
from server import __version__
from server.attach.finding import Finder, Link, reach
from server.attach.hello import Hello, HostSaysNo, NoHost
from server.lines import StreamSink, line_transport, lines

if TYPE_CHECKING:
    from mcp.client.client import Client

TRIES = 3
"""A host that idled may go between two questions."""


class CannotBeWatched(StorageBusy):
    """The host is of a version that tells no news."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"This memory's process is Madeleine {version}, whose patrols cannot be watched. End it with `madeleine "
            "stop`, and try again: the next one is of this version."
        )


@asynccontextmanager
async def tools_of_host(
    data_dir: Path, environment: Mapping[str, str], settings: Mapping[str, str], name: str
) -> AsyncIterator[Client]:
    """Connected; a host is started where there is none. `settings` as in `Hello`. Raises `HostSaysNo`."""
    from mcp.client.client import Client
    from mcp_types import Implementation

    link, rest = await _connect(data_dir, environment, Hello(version=__version__, settings=settings))
    reader, writer = await asyncio.open_connection(sock=link)
    with closing(writer):
        transport = line_transport(_Behind(rest, reader), StreamSink(writer))
        # The handshake of all versions: a host that is older than this program takes part in it as well.
        about = Implementation(name=name, version=__version__)
        async with Client(transport, client_info=about, mode="legacy", cache=None) as client:
            yield client


@asynccontextmanager
async def news_of_host(
    data_dir: Path, environment: Mapping[str, str], settings: Mapping[str, str]
) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """Of patrols of the being in `settings`, from now on and until the host goes. Raises `HostSaysNo`,
    `CannotBeWatched`."""
    link, rest = await _watch(data_dir, environment, settings)
    reader, writer = await asyncio.open_connection(sock=link)
    with closing(writer):
        yield (json.loads(line) async for line in lines(_Behind(rest, reader)) if line is not None)


async def _watch(data_dir: Path, environment: Mapping[str, str], settings: Mapping[str, str]) -> Link:
    version = ""
    for _ in range(TRIES):
        link, _ = await _connect(data_dir, environment, Hello(want="status", version=__version__))
        link.close()
        try:
            wanted = Hello(want="watch", version=__version__, settings=settings)
            link, rest, _ = await asyncio.to_thread(reach, data_dir, wanted)
            return link, rest
        except NoHost:
            version = await asyncio.to_thread(_version_of_host, data_dir)
    raise CannotBeWatched(version or "of an unknown version")


def _version_of_host(data_dir: Path) -> str:
    try:
        link, _, content = reach(data_dir, Hello(want="status", version=__version__))
    except (NoHost, HostSaysNo):
        return ""
    link.close()
    return str(content.get("version", ""))


async def _connect(data_dir: Path, environment: Mapping[str, str], hello: Hello) -> Link:
    """A host is started where there is none. Who is cancelled meanwhile takes back the bell: then nobody waits on."""
    alarm, bell = socket.socketpair()

    def connect() -> Link:
        with alarm:
            return Finder(data_dir, environment, alarm=alarm).connect(hello)

    with bell:
        return await asyncio.to_thread(connect)


class _Behind:
    """What came with the host's reply, then the rest."""

    def __init__(self, first: bytes, reader: asyncio.StreamReader) -> None:
        self._first = first
        self._reader = reader

    async def read(self, limit: int, /) -> bytes:
        if self._first:
            found, self._first = self._first[:limit], self._first[limit:]
            return found
        return await self._reader.read(limit)
