"""A program's connection to the memory: its tools over MCP, and the live events of its host."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from madeleine.memory.errors import ConnectionLost, MadeleineError, ServerError, StorageBusy
from madeleine.server import __version__
from madeleine.server.attach.connector import HostConnector, Link, connect_to_host, query_host
from madeleine.server.attach.handshake import HostRequest, NoHost
from madeleine.server.attach.tool_calls import structured_answer
from madeleine.server.mcp.lines import SocketWriter, line_transport, read_lines

if TYPE_CHECKING:
    from mcp.client._transport import Transport
    from mcp.client.client import Client
    from mcp.shared.dispatcher import ProgressFnT
    from mcp.shared.exceptions import MCPError

TRIES = 3
"""One host may go and the next one come between two requests."""
LOST = "The memory's process went away before it answered"


class PatrolsNotWatchable(StorageBusy):
    """The host's version sends no events."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"This memory's process is Madeleine {version}, whose patrols cannot be watched. End it with `madeleine "
            "stop`, and try again: the next one is of this version."
        )


class ToolClient:
    """Calls tools and returns their structured answers. Calls may run at the same time."""

    def __init__(self, client: Client, *, when_lost: str) -> None:
        """`when_lost`: the next step for the person if the connection breaks."""
        self._client = client
        self._when_lost = when_lost

    async def __call__(
        self, tool: str, arguments: Mapping[str, Any], *, on_progress: ProgressFnT | None = None
    ) -> dict[str, Any]:
        """The structured answer. Raises the `MadeleineError` that the tool answered with, `ConnectionLost`."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        try:
            # Not `call_tool`: it lists all tools again after each call of one that is not listed.
            result = await self._client.session.send_request(request, CallToolResult, progress_callback=on_progress)
        except MCPError as error:
            raise self._translated(error) from error
        return structured_answer(result.model_dump(by_alias=True, mode="json"))

    async def input_schema(self, tool: str) -> Mapping[str, Any] | None:
        """The JSON schema of a tool's arguments; None if this connection does not list the tool."""
        from mcp.shared.exceptions import MCPError

        try:
            listed = await self._client.list_tools()
        except MCPError as error:
            raise self._translated(error) from error
        return next((each.input_schema for each in listed.tools if each.name == tool), None)

    def _translated(self, error: MCPError) -> MadeleineError:
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        if error.error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
            return ConnectionLost(f"{LOST} ({error.error.message}). {self._when_lost}")
        return ServerError(error.error.message)


@asynccontextmanager
async def host_client(
    data_dir: Path,
    environment: Mapping[str, str],
    settings: Mapping[str, str],
    name: str,
    *,
    when_lost: str = "Connect again.",
) -> AsyncIterator[ToolClient]:
    """Connect, starting a host if there is none. `settings` as in `HostRequest`. Raises `HostRefused`."""
    link = await _connect(data_dir, environment, HostRequest(version=__version__, settings=settings))
    async with _streams(link) as (reader, writer):
        transport = line_transport(reader, SocketWriter(writer))
        # The handshake of all versions: a host that is older than this program takes part in it as well.
        async with tool_client(transport, name, mode="legacy", when_lost=when_lost) as call:
            yield call


@asynccontextmanager
async def tool_client(transport: Transport, name: str, *, mode: str, when_lost: str) -> AsyncIterator[ToolClient]:
    """A client that calls itself `name`. `mode` as in the SDK's `Client`."""
    from mcp.client.client import Client
    from mcp_types import Implementation

    failure: Exception | None = None
    client_info = Implementation(name=name, version=__version__)
    async with Client(transport, client_info=client_info, mode=mode, cache=None) as client:
        try:
            yield ToolClient(client, when_lost=when_lost)
        except Exception as error:  # raised below, or the SDK's task groups would wrap it
            failure = error
    if failure is not None:
        raise failure


async def start_host(data_dir: Path, environment: Mapping[str, str]) -> None:
    """Start a host if there is none. Raises `HostRefused`."""
    link, _ = await _connect(data_dir, environment, HostRequest(want="status", version=__version__))
    link.close()


@asynccontextmanager
async def patrol_events(data_dir: Path, settings: Mapping[str, str]) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """Events of the patrols of the being in `settings`, from now on until the host ends.

    Raises `NoHost`, `HostRefused`, `PatrolsNotWatchable`."""
    link = await asyncio.to_thread(_watch, data_dir, settings)
    async with _streams(link) as (reader, _):
        yield (json.loads(line) async for line in read_lines(reader) if line is not None)


def _watch(data_dir: Path, settings: Mapping[str, str]) -> Link:
    status: Mapping[str, Any] = {}
    for _ in range(TRIES):
        try:
            link, received, _ = connect_to_host(
                data_dir, HostRequest(want="watch", version=__version__, settings=settings)
            )
            return link, received
        except NoHost:
            # A host that is gone does not answer this either.
            status = query_host(data_dir, HostRequest(want="status", version=__version__))
    raise PatrolsNotWatchable(str(status.get("version")))


async def _connect(data_dir: Path, environment: Mapping[str, str], request: HostRequest) -> Link:
    """Connect in a thread, starting a host if there is none. Cancelling the task ends the thread as well."""
    cancelled, cancel = socket.socketpair()

    def connect() -> Link:
        with cancelled:
            return HostConnector(data_dir, environment, alarm=cancelled).connect(request)

    with cancel:
        return await asyncio.to_thread(connect)


@asynccontextmanager
async def _streams(link: Link) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """The connection's streams; the reader begins with the bytes that came behind the host's reply."""
    connected, received = link
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    reader.feed_data(received)
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.create_connection(lambda: protocol, sock=connected)
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    with closing(writer):
        yield reader, writer
