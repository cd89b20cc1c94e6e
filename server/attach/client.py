"""A client of the host, for commands that are carried out by it: MCP over its socket, and its live news."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from madeleine.memory.errors import StorageBusy
from madeleine.server import __version__
from madeleine.server.attach.connector import HostConnector, Link, connect_to_host, query_host
from madeleine.server.attach.handshake import HostRequest, NoHost
from madeleine.server.mcp.lines import SocketWriter, line_transport, lines

if TYPE_CHECKING:
    from mcp.client.client import Client

TRIES = 3
"""One host may go and the next one come between two questions."""


class PatrolsNotWatchable(StorageBusy):
    """The host is of a version that tells no news."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"This memory's process is Madeleine {version}, whose patrols cannot be watched. End it with `madeleine "
            "stop`, and try again: the next one is of this version."
        )


@asynccontextmanager
async def host_client(
    data_dir: Path, environment: Mapping[str, str], settings: Mapping[str, str], name: str
) -> AsyncIterator[Client]:
    """Connected; a host is started where there is none. `settings` as in `HostRequest`. Raises `HostRefused`."""
    from mcp.client.client import Client
    from mcp_types import Implementation

    link, rest = await _connect(data_dir, environment, HostRequest(version=__version__, settings=settings))
    reader, writer = await asyncio.open_connection(sock=link)
    with closing(writer):
        transport = line_transport(_Behind(rest, reader), SocketWriter(writer))
        # The handshake of all versions: a host that is older than this program takes part in it as well.
        about = Implementation(name=name, version=__version__)
        async with Client(transport, client_info=about, mode="legacy", cache=None) as client:
            yield client


async def start_host(data_dir: Path, environment: Mapping[str, str]) -> None:
    """If there is none. Raises `HostRefused`."""
    link, _ = await _connect(data_dir, environment, HostRequest(want="status", version=__version__))
    link.close()


@asynccontextmanager
async def patrol_events(data_dir: Path, settings: Mapping[str, str]) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """Of patrols of the being in `settings`, from now on and until the host goes. Raises `NoHost`, `HostRefused`,
    `PatrolsNotWatchable`."""
    link, rest = await asyncio.to_thread(_watch, data_dir, settings)
    reader, writer = await asyncio.open_connection(sock=link)
    with closing(writer):
        yield (json.loads(line) async for line in lines(_Behind(rest, reader)) if line is not None)


def _watch(data_dir: Path, settings: Mapping[str, str]) -> Link:
    content: Mapping[str, Any] = {}
    for _ in range(TRIES):
        try:
            link, rest, _ = connect_to_host(data_dir, HostRequest(want="watch", version=__version__, settings=settings))
            return link, rest
        except NoHost:
            # A host that is gone does not answer this either.
            content = query_host(data_dir, HostRequest(want="status", version=__version__))
    raise PatrolsNotWatchable(str(content.get("version")))


async def _connect(data_dir: Path, environment: Mapping[str, str], hello: HostRequest) -> Link:
    """A host is started where there is none. Who is cancelled meanwhile takes back the bell: then nobody waits on."""
    alarm, bell = socket.socketpair()

    def connect() -> Link:
        with alarm:
            return HostConnector(data_dir, environment, alarm=alarm).connect(hello)

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
