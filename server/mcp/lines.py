"""MCP over a pair of byte streams: one JSON-RPC message a line (MCP specification, stdio transport).

Like the SDK's `stdio_server`, but it reads and writes without a thread hop a line, bounds the length of a line, and
answers a line that is not a message, so that no client waits for ever. JSON that names half of a surrogate pair is let
through: the tool that gets it says what is wrong with it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from madeleine.server.attach.streams import (
    MAX_JSON_RPC_LINE_BYTES,
    PIPE_WRITE_CHUNK_BYTES,
    ReadBytes,
    can_write_without_blocking,
    read_lines_of_byte_stream,
)
from madeleine.server.mcp.json_limits import json_size_or_nesting_error

logger = logging.getLogger(__name__)

OPEN_CALLS_GRACE_SECONDS = 10.0
"""How long calls under way may take to their end when the process is told to end …"""
OPEN_CALLS_GRACE_FACTOR_AT_END_OF_INPUT = 3
"""… and how much longer, between two answers, when the client has only ended its input (`printf … | madeleine`): the
first of them waits for the memory to be opened."""


WriteBytes = Callable[[bytes], Awaitable[None]]
IncomingMcpMessageStream = MemoryObjectReceiveStream[SessionMessage | Exception]
OutgoingMcpMessageStream = MemoryObjectSendStream[SessionMessage]
MessageStreams = tuple[IncomingMcpMessageStream, OutgoingMcpMessageStream]


class OpenRequestCounter:
    """The number of requests that are neither answered nor cancelled by the client."""

    def __init__(self) -> None:
        self._count = 0
        self._removed = anyio.Event()

    def add(self) -> None:
        self._count += 1

    async def remove(self) -> None:
        self._count -= 1
        self._removed.set()
        self._removed = anyio.Event()

    async def wait_until_all_finished(self, *, in_all: bool = True) -> bool:
        """Wait until no request is open; False after `OPEN_CALLS_GRACE_SECONDS` in all, or thrice that since the last
        removal."""
        seconds = OPEN_CALLS_GRACE_SECONDS * (1 if in_all else OPEN_CALLS_GRACE_FACTOR_AT_END_OF_INPUT)
        with anyio.move_on_after(seconds) as limit:
            while self._count > 0:
                await self._removed.wait()
                if not in_all:
                    limit.deadline = anyio.current_time() + seconds
        return self._count <= 0


@asynccontextmanager
async def open_mcp_line_transport(
    read_bytes: ReadBytes, write_bytes: WriteBytes, stop_event: anyio.Event
) -> AsyncIterator[MessageStreams]:
    """The two streams that `Server.run` takes.

    Reading ends with the source, with a client that reads no more, or when `stop_event` is set. The read side ends
    after it: when all requests that were read are answered or cancelled, at the latest thrice
    `OPEN_CALLS_GRACE_SECONDS` after the last of these, or once that after `stop_event` was set. Its end cancels the
    remaining requests, which get no answer: a client can tell a connection that ended from an answer, and repeat them.
    """
    to_server, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](16)
    write_stream, from_server = anyio.create_memory_object_stream[SessionMessage](16)
    unanswered = OpenRequestCounter()
    reading = anyio.CancelScope()
    readable = True

    async def write(message: types.JSONRPCMessage) -> None:
        nonlocal readable
        if not readable:
            return
        try:
            await write_bytes(encode_json_rpc_message_line(message))
        except ConnectionError as error:
            logger.info("the client reads no more: %s", error)
            readable = False
            reading.cancel()

    async def read() -> None:
        async for line in read_lines_of_byte_stream(read_bytes):
            parsed = parse_json_rpc_message_line(line)
            if not isinstance(parsed, SessionMessage):
                await write(parsed)
            elif isinstance(parsed.message, types.JSONRPCRequest):
                metadata = ServerMessageMetadata(on_request_unanswered=unanswered.remove)
                await to_server.send(SessionMessage(parsed.message, metadata))
                unanswered.add()
            else:
                await to_server.send(parsed)

    async def reader() -> None:
        nonlocal readable
        async with to_server:
            with reading, suppress(ConnectionError):
                await read()
            readable = await unanswered.wait_until_all_finished(in_all=stop_event.is_set()) and readable

    async def writer() -> None:
        async with from_server:
            async for message in from_server:
                await write(message.message)
                if isinstance(message.message, (types.JSONRPCResponse, types.JSONRPCError)):
                    await unanswered.remove()

    async def stop_reading() -> None:
        await stop_event.wait()
        reading.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        tasks.start_soon(writer)
        tasks.start_soon(stop_reading)
        yield read_stream, write_stream
        tasks.cancel_scope.cancel()


def parse_json_rpc_message_line(line: bytes | None) -> SessionMessage | types.JSONRPCError:
    """The message, or the error to answer with."""
    if line is None:
        return json_rpc_error(
            types.INVALID_REQUEST, f"the message is longer than {MAX_JSON_RPC_LINE_BYTES} bytes", None
        )
    if shape_error := json_size_or_nesting_error(line):
        return json_rpc_error(types.INVALID_REQUEST, f"the message was not read: {shape_error}", None)
    with suppress(ValidationError):
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        # A request whose id is neither text nor a whole number passes for a notification, and nobody would answer.
        if not (isinstance(message, types.JSONRPCNotification) and b'"id"' in line and "id" in json.loads(line)):
            return SessionMessage(message)
        return json_rpc_error(types.INVALID_REQUEST, "the id of a request is text or a whole number", None)
    try:
        raw: Any = json.loads(line)
    except (ValueError, RecursionError):
        return json_rpc_error(types.PARSE_ERROR, "the line is not JSON", None)
    with suppress(ValidationError):
        return SessionMessage(types.jsonrpc_message_adapter.validate_python(raw, by_name=False))
    id_ = raw.get("id") if isinstance(raw, dict) else None
    known_id = id_ if isinstance(id_, (str, int)) and not isinstance(id_, bool) else None
    return json_rpc_error(types.INVALID_REQUEST, "the line is not a JSON-RPC 2.0 message", known_id)


def json_rpc_error(code: int, message: str, id_: str | int | None) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=id_, error=types.ErrorData(code=code, message=message))


def encode_json_rpc_message_line(message: types.JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except PydanticSerializationError:  # half of a surrogate pair, as in a request's id: JSON carries it escaped
        return json.dumps(message.model_dump(by_alias=True, exclude_unset=True, mode="json")).encode() + b"\n"


async def write_and_drain(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


async def _read_fd(fd: int, limit: int) -> bytes:
    """Read a pipe or socket on the event loop, a regular file (or anything on Windows) in a thread."""
    if await _wait_until_fd_ready(anyio.wait_readable, fd):
        return os.read(fd, limit)
    return await anyio.to_thread.run_sync(os.read, fd, limit, abandon_on_cancel=True)


class _FdWriter:
    """Writes each message whole. A client that does not read holds up its own answers only."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._write_lock = anyio.Lock()

    async def __call__(self, data: bytes) -> None:
        async with self._write_lock:
            view = memoryview(data)
            while view:
                if can_write_without_blocking(self._fd) or await _wait_until_fd_ready(anyio.wait_writable, self._fd):
                    view = view[os.write(self._fd, view[:PIPE_WRITE_CHUNK_BYTES]) :]
                else:
                    view = view[await anyio.to_thread.run_sync(os.write, self._fd, view) :]


async def _wait_until_fd_ready(wait: Callable[[int], Awaitable[None]], fd: int) -> bool:
    """True when the descriptor is ready; False if the event loop cannot watch it."""
    try:
        await wait(fd)
    except (OSError, ValueError, NotImplementedError):
        return False
    return True


@asynccontextmanager
async def open_mcp_stdio_transport(stop_event: anyio.Event) -> AsyncIterator[MessageStreams]:
    """Serve standard input and output, until `stop_event` at the latest. Meanwhile nothing else can write to the wire:
    descriptor 1 leads to standard error, and descriptor 0 reads nothing."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    try:
        async with open_mcp_line_transport(partial(_read_fd, wire_in), _FdWriter(wire_out), stop_event) as streams:
            yield streams
    finally:
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)
        os.close(wire_in)
        os.close(wire_out)
