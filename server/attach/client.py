"""A program's connection to the host: its tools over MCP, and the live events of its patrols.

Hand-made, as `tool_calls` is: the SDK's client takes a second to import, and its task groups wrap the caller's errors.
"""

from __future__ import annotations

import asyncio
import json
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

from madeleine.memory.errors import ConnectionLost, error_from_json
from madeleine.server.attach.connector import HostHandshakeRequest, connect_or_start_host, connect_to_host
from madeleine.server.attach.streams import read_lines_of_byte_stream
from madeleine.server.attach.tool_calls import (
    encode_json_rpc,
    mcp_initialize_params,
    result_of_json_rpc_answer,
    structured_content_of_tool_result,
)

ToolProgressCallback = Callable[[float, float | None, str | None], Awaitable[None]]
"""(done, total, message)."""


class ToolClient(ABC):
    """A connection to a memory's server. Calls may run at the same time."""

    async def __call__(
        self, tool: str, arguments: Mapping[str, Any], *, on_progress: ToolProgressCallback | None = None
    ) -> dict[str, Any]:
        """The structured answer.

        Raises the `MadeleineError` that the tool answered with, `ConnectionLost`, `ServerUnavailable`."""
        params = {"name": tool, "arguments": arguments}
        return structured_content_of_tool_result(await self.request("tools/call", params, on_progress))

    @abstractmethod
    async def request(
        self, method: str, params: Mapping[str, Any], on_progress: ToolProgressCallback | None = None
    ) -> dict[str, Any]:
        """The result of a JSON-RPC request. Raises `ServerError`, `ConnectionLost`, `ServerUnavailable`."""


async def pass_progress_notification_to_callback(
    notification: Mapping[str, Any], on_progress: ToolProgressCallback
) -> None:
    params = notification["params"]
    await on_progress(params["progress"], params.get("total"), params.get("message"))


class ConnectionToHost(ToolClient):
    """A connection to the host."""

    def __init__(self, writer: asyncio.StreamWriter, *, lost_hint: str) -> None:
        """`lost_hint`: the next step for the person if the connection breaks."""
        self._writer = writer
        self._lost_hint = lost_hint
        self._received: dict[int, asyncio.Queue[dict[str, Any] | None]] = {}
        """Request id → its progress, then its answer; None if the connection is lost."""
        self._request_count = 0
        self._lost = False

    async def initialize(self, name: str) -> None:
        """The handshake of all versions: a host that is older than this program takes part in it as well."""
        await self.request("initialize", mcp_initialize_params(name))
        await self._send(method="notifications/initialized")

    async def dispatch_received_messages(self, reader: asyncio.StreamReader) -> None:
        """Hand each message to the request that it belongs to, until the host hangs up."""
        try:
            with suppress(OSError, ValueError):
                async for line in read_lines_of_byte_stream(reader.read):
                    message = json.loads(line or b"{}")
                    if (received := self._received.get(_id_of_request_message_belongs_to(message))) is not None:
                        received.put_nowait(message)
        finally:
            self._lost = True
            for received in self._received.values():
                received.put_nowait(None)

    async def request(
        self, method: str, params: Mapping[str, Any], on_progress: ToolProgressCallback | None = None
    ) -> dict[str, Any]:
        self._request_count += 1
        id_ = self._request_count
        received = self._received[id_] = asyncio.Queue()
        token = {"_meta": {"progressToken": id_}} if on_progress else {}
        try:
            await self._send(id=id_, method=method, params={**params, **token})
            while (message := await received.get()) is not None:
                if "method" not in message:
                    return result_of_json_rpc_answer(message)
                if on_progress:
                    await pass_progress_notification_to_callback(message, on_progress)
            raise self._connection_lost_error()
        except asyncio.CancelledError:
            self._writer.write(encode_json_rpc(method="notifications/cancelled", params={"requestId": id_}))
            raise
        finally:
            del self._received[id_]

    async def _send(self, **message: Any) -> None:
        if self._lost:
            raise self._connection_lost_error()
        self._writer.write(encode_json_rpc(**message))
        try:
            await self._writer.drain()
        except OSError as error:
            raise self._connection_lost_error() from error

    def _connection_lost_error(self) -> ConnectionLost:
        return ConnectionLost(f"The memory's process went away before it answered. {self._lost_hint}")


def _id_of_request_message_belongs_to(message: Mapping[str, Any]) -> Any:
    if message.get("method") == "notifications/progress":
        return message["params"]["progressToken"]
    return None if "method" in message else message.get("id")


@asynccontextmanager
async def open_host_client(
    data_dir: Path,
    environment: Mapping[str, str],
    settings: Mapping[str, str],
    name: str,
    *,
    lost_hint: str = "Connect again.",
) -> AsyncIterator[ConnectionToHost]:
    """Connect, starting a host with `settings` (`HostHandshakeRequest`) if none runs. Raises `ServerUnavailable`."""
    reader, writer = await asyncio.open_connection(
        sock=await _connect_or_start_host_in_thread(data_dir, environment, HostHandshakeRequest(settings=settings))
    )
    with closing(writer):
        client = ConnectionToHost(writer, lost_hint=lost_hint)
        receiving = asyncio.create_task(client.dispatch_received_messages(reader), name="receive")
        try:
            await client.initialize(name)
            yield client
        finally:
            receiving.cancel()
            with suppress(asyncio.CancelledError):
                await receiving


async def ensure_host_running(data_dir: Path, environment: Mapping[str, str]) -> None:
    """Start a host if there is none. Raises `HostRefused`."""
    (
        await _connect_or_start_host_in_thread(data_dir, environment, HostHandshakeRequest(requested_service="status"))
    ).close()


async def _connect_or_start_host_in_thread(
    data_dir: Path, environment: Mapping[str, str], request: HostHandshakeRequest
) -> socket.socket:
    """Connect in a thread, starting a host if there is none. Cancelling the task ends the thread as well."""
    cancelled, cancel = socket.socketpair()

    def connect() -> socket.socket:
        with cancelled:
            return connect_or_start_host(data_dir, environment, request, cancelled=cancelled)

    with cancel:
        return await asyncio.to_thread(connect)


async def run_command_on_host(
    data_dir: Path,
    environment: Mapping[str, str],
    settings: Mapping[str, str],
    arguments: Mapping[str, str],
    on_progress: Callable[[int, int], None],
) -> dict[str, Any]:
    """The result of a command that the host carries out, which is started if there is none.

    Raises `ServerUnavailable`, and the error of the command."""
    request = HostHandshakeRequest(requested_service="run", settings=settings, arguments=arguments)
    reader, writer = await asyncio.open_connection(
        sock=await _connect_or_start_host_in_thread(data_dir, environment, request)
    )
    with closing(writer), suppress(OSError, ValueError):
        async for line in read_lines_of_byte_stream(reader.read):
            message = json.loads(line or b"{}")
            if "done" in message:
                on_progress(message["done"], message["total"])
            elif "error" in message:
                raise error_from_json(message["error"], str(message["message"]))
            elif "result" in message:
                result: dict[str, Any] = message["result"]
                return result
    raise ConnectionLost("The memory's process went away before it was done. Run the command again.")


@asynccontextmanager
async def ask_host_to_serve_web_ui(
    data_dir: Path, environment: Mapping[str, str], settings: Mapping[str, str], *, port: int
) -> AsyncIterator[tuple[str, Callable[[], Awaitable[object]]]]:
    """The link of the page, which the host serves meanwhile, and a wait for the host's end. Starts a host if there is
    none. Raises `ServerUnavailable`, and the error of the host."""
    request = HostHandshakeRequest(requested_service="page", settings=settings, arguments={"port": str(port)})
    reader, writer = await asyncio.open_connection(
        sock=await _connect_or_start_host_in_thread(data_dir, environment, request)
    )
    with closing(writer):
        message = json.loads(await reader.readline() or b"{}")
        if "error" in message:
            raise error_from_json(message["error"], str(message["message"]))
        if "url" not in message:
            raise ConnectionLost("The memory's process went away before it served the page. Run the command again.")
        yield str(message["url"]), reader.read


@asynccontextmanager
async def receive_patrol_events_from_host(
    data_dir: Path, settings: Mapping[str, str]
) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """Events of the patrols of the being in `settings`, from now on until the host ends.

    Raises `HostUnavailable`, `HostRefused`."""
    request = HostHandshakeRequest(requested_service="watch", settings=settings)
    connection, _ = await asyncio.to_thread(connect_to_host, data_dir, request)
    reader, writer = await asyncio.open_connection(sock=connection)
    with closing(writer):
        yield (json.loads(line) async for line in read_lines_of_byte_stream(reader.read) if line is not None)
