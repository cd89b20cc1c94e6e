"""A program's connection to the host: its tools over MCP, and the live events of its patrols.

Hand-made, as `tool_calls` is: the SDK's client takes a second to import, and its task groups wrap the caller's errors.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any, Protocol

from madeleine.memory.errors import ConnectionLost, StorageBusy
from madeleine.server import __version__
from madeleine.server.attach.connector import Link, connect_or_start, connect_to_host, query_host
from madeleine.server.attach.handshake import HostRequest, NoHost
from madeleine.server.attach.lines import read_lines
from madeleine.server.attach.tool_calls import initialize_params, result_of, structured_answer

MAX_ATTEMPTS = 3
"""One host may go and the next one come between two requests."""

OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""(done, total, message)."""


class PatrolsNotWatchable(StorageBusy):
    """The host's version sends no events."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"This memory's process is Madeleine {version}, whose patrols cannot be watched. End it with `madeleine "
            "stop`, and try again: the next one is of this version."
        )


class ToolClient(Protocol):
    async def __call__(
        self, tool: str, arguments: Mapping[str, Any], *, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        """The structured answer. Calls may run at the same time.

        Raises the `MadeleineError` that the tool answered with, `ConnectionLost`, `ServerUnavailable`."""
        ...


class HostClient:
    """`ToolClient` over a connection to the host."""

    def __init__(self, writer: asyncio.StreamWriter, *, when_lost: str) -> None:
        """`when_lost`: the next step for the person if the connection breaks."""
        self._writer = writer
        self._when_lost = when_lost
        self._received: dict[int, asyncio.Queue[dict[str, Any] | None]] = {}
        """By request id: progress, then the answer; None if the connection is lost."""
        self._count = 0
        self._lost = False

    async def __call__(
        self, tool: str, arguments: Mapping[str, Any], *, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        return structured_answer(await self._request("tools/call", params, on_progress))

    async def input_schema(self, tool: str) -> Mapping[str, Any] | None:
        """The JSON schema of a tool's arguments; None if this connection does not list the tool."""
        listed: list[dict[str, Any]] = (await self._request("tools/list", {}))["tools"]
        return next((each["inputSchema"] for each in listed if each["name"] == tool), None)

    async def initialize(self, name: str) -> None:
        """The handshake of all versions: a host that is older than this program takes part in it as well."""
        await self._request("initialize", initialize_params(name))
        await self._send(method="notifications/initialized")

    async def receive(self, reader: asyncio.StreamReader) -> None:
        """Hand each message to the request that it belongs to, until the host hangs up."""
        try:
            async for line in read_lines(reader):
                message = json.loads(line or b"{}")
                if (received := self._received.get(_request_id(message))) is not None:
                    received.put_nowait(message)
        except (OSError, ValueError):
            pass
        finally:
            self._lost = True
            for received in self._received.values():
                received.put_nowait(None)

    async def _request(
        self, method: str, params: Mapping[str, Any], on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        self._count += 1
        id_ = self._count
        received = self._received[id_] = asyncio.Queue()
        token = {"_meta": {"progressToken": id_}} if on_progress else {}
        try:
            await self._send(id=id_, method=method, params={**params, **token})
            while (message := await received.get()) is not None:
                if "method" not in message:
                    return result_of(message)
                if on_progress:
                    await report_progress(message, on_progress)
            raise self._connection_lost()
        except asyncio.CancelledError:
            self._write(method="notifications/cancelled", params={"requestId": id_})
            raise
        finally:
            del self._received[id_]

    async def _send(self, **message: Any) -> None:
        if self._lost:
            raise self._connection_lost()
        self._write(**message)
        try:
            await self._writer.drain()
        except OSError as error:
            raise self._connection_lost() from error

    def _write(self, **message: Any) -> None:
        self._writer.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")

    def _connection_lost(self) -> ConnectionLost:
        return ConnectionLost(f"The memory's process went away before it answered. {self._when_lost}")


async def report_progress(notification: Mapping[str, Any], on_progress: OnProgress) -> None:
    params = notification["params"]
    await on_progress(params["progress"], params.get("total"), params.get("message"))


def _request_id(message: Mapping[str, Any]) -> Any:
    if message.get("method") == "notifications/progress":
        return message["params"]["progressToken"]
    return None if "method" in message else message.get("id")


@asynccontextmanager
async def host_client(
    data_dir: Path,
    environment: Mapping[str, str],
    settings: Mapping[str, str],
    name: str,
    *,
    when_lost: str = "Connect again.",
) -> AsyncIterator[HostClient]:
    """Connect, starting a host if there is none. `settings` as in `HostRequest`. Raises `ServerUnavailable`."""
    link = await _connect(data_dir, environment, HostRequest(version=__version__, settings=settings))
    async with _streams(link) as (reader, writer):
        client = HostClient(writer, when_lost=when_lost)
        receiving = asyncio.create_task(client.receive(reader), name="receive")
        try:
            await client.initialize(name)
            yield client
        finally:
            receiving.cancel()
            with suppress(asyncio.CancelledError):
                await receiving


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
    request = HostRequest(want="watch", version=__version__, settings=settings)
    for _ in range(MAX_ATTEMPTS):
        try:
            link, received, _ = connect_to_host(data_dir, request)
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
            return connect_or_start(data_dir, environment, request, cancelled=cancelled)

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
