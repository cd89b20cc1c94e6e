"""Forwards bytes between an MCP client and the host of its memory. Outlives the host, and finds the next one."""

from __future__ import annotations

import json
import select
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from madeleine.server import EXIT_USAGE
from madeleine.server.attach.connector import (
    ConnectingToHostCancelled,
    HostHandshakeRequest,
    HostRefused,
    connect_or_start_host,
)
from madeleine.server.attach.streams import (
    MAX_JSON_RPC_LINE_BYTES,
    MAX_STREAM_READ_BYTES,
    LineBuffer,
    NonblockingOutput,
    PollableInputStream,
)
from madeleine.server.attach.tool_calls import encode_json_rpc

MAX_SECONDS_TO_NEXT_HOST_ANSWER_AT_EXIT = 15.0
"""After the client's end, for the next answer: a host hangs up somewhat earlier."""
MAX_UNFORWARDED_BYTES = 1024 * 1024
"""Bytes towards one side from which the other is not read."""
HOST_ENDED_MESSAGE = (
    "Madeleine's process ended, or was told to, before it answered; whether this was carried out is not known. Nothing "
    "acknowledged before is lost. Call again."
)


@dataclass(eq=False)
class McpStdioForwarder:
    """One client. `run` returns when the client has closed its side, and all its requests are answered."""

    client_in: PollableInputStream
    client_out: NonblockingOutput
    connect_host: Callable[..., socket.socket]
    """`connect_or_start_host` with all arguments bound except `until`."""
    stop: socket.socket
    """When it becomes readable the forwarder ends as if the client had closed its side."""

    def __post_init__(self) -> None:
        self._pending = PendingRequests()
        self._host: socket.socket | None = None
        self._to_host = bytearray()
        self._from_host = LineBuffer()
        self._from_client = LineBuffer()
        self._invalid: list[bytes] = []
        """Lines that no host has got yet, and of which one has to answer what is wrong."""
        self._until: float | None = None
        """Once the client has closed its side: when to give up waiting for the next answer."""

    def run(self) -> bool:
        """Forward until the client has closed its side. Return False if a host ended before it answered every request.

        Raises `HostRefused` if there never was a host."""
        with suppress(BrokenPipeError, ConnectingToHostCancelled):
            self._connect_to_host()
            while self._should_continue():
                self._wait_and_forward_ready_bytes()
        self._disconnect_from_host()
        unanswered = b"".join(
            self._pending.remove_unrepeatable_and_yield_errors(HOST_ENDED_MESSAGE, repeatable_too=True)
        )
        with suppress(BrokenPipeError):
            self.client_out.write(unanswered)
        return not unanswered

    def _should_continue(self) -> bool:
        if self._until is None:
            return True
        return time.monotonic() < self._until and bool(self._host or self.client_out.unsent)

    def _wait_and_forward_ready_bytes(self) -> None:
        """Wait for bytes and forward them. Neither side is read while the other does not take its data."""
        readers: list[socket.socket | PollableInputStream] = []
        writers: list[socket.socket | NonblockingOutput] = [self.client_out] if self.client_out.unsent else []
        if self._until is None:
            # It stays readable, for `connect_or_start_host` must see it too.
            readers.append(self.stop)
            if len(self._to_host) < MAX_UNFORWARDED_BYTES:
                readers.append(self.client_in)
        if (host := self._host) is not None:
            if len(self.client_out.unsent) < MAX_UNFORWARDED_BYTES:
                readers.append(host)
            if self._to_host:
                writers.append(host)
        seconds = None if self._until is None else max(0.0, self._until - time.monotonic())
        readable, writable, _ = select.select(readers, writers, [], seconds)
        if self.client_out in writable:
            self.client_out.write_unsent_without_blocking()
        if self.stop in readable:
            self._start_exit_deadline()
        elif self.client_in in readable:
            self._read_client_and_send_to_host()
        if host is not None and host in readable:
            self._read_host_and_write_to_client(host)
        if host in writable:
            self._send_unsent_bytes_to_host()

    def _start_exit_deadline(self) -> None:
        if self._until is None:
            self._until = time.monotonic() + MAX_SECONDS_TO_NEXT_HOST_ANSWER_AT_EXIT
            self._send_unsent_bytes_to_host()

    # --- client → host ------------------------------------------------------------------------------------------

    def _read_client_and_send_to_host(self) -> None:
        data = self.client_in.read()
        for line in _lines_completed_by_data(self._from_client, data or b"\n"):
            valid = self._pending.track_client_line_and_is_valid(line)
            if self._host is not None and not self._pending.awaits_repeated_handshake_reply:
                self._to_host += line
            elif not valid:
                self._invalid.append(line)
        if self._host is None and (self._pending or self._invalid):
            self._connect_to_next_host_and_repeat()
        self._send_unsent_bytes_to_host()
        if not data:
            self._start_exit_deadline()

    def _send_unsent_bytes_to_host(self) -> None:
        if self._host is None:
            return
        try:
            while self._to_host:
                del self._to_host[: self._host.send(self._to_host)]
            if self._until is not None and not self._pending.awaits_repeated_handshake_reply:
                self._host.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:  # the host is gone; that is noticed by reading, after the last that it has sent
            self._to_host.clear()

    # --- host → client ------------------------------------------------------------------------------------------

    def _read_host_and_write_to_client(self, host: socket.socket) -> None:
        try:
            data = host.recv(MAX_STREAM_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._disconnect_and_repeat_to_next_host()
            return
        for line in _lines_completed_by_data(self._from_host, data):
            if self._pending.track_host_line_and_should_forward(line):
                self.client_out.write(line)
                if self._until is not None:
                    self._until = time.monotonic() + MAX_SECONDS_TO_NEXT_HOST_ANSWER_AT_EXIT
            else:  # the answer to the repeated handshake
                self._resend_pending_requests()

    def _disconnect_and_repeat_to_next_host(self) -> None:
        """Repeat the requests without an answer to the next host, or answer them here."""
        self._disconnect_from_host()
        self.client_out.write(b"".join(self._pending.remove_unrepeatable_and_yield_errors(HOST_ENDED_MESSAGE)))
        if self._pending:
            self._connect_to_next_host_and_repeat()

    def _disconnect_from_host(self) -> None:
        if self._host is not None:
            self._host.close()
        self._host = None
        self._to_host.clear()
        self._from_host = LineBuffer()

    def _connect_to_host(self) -> None:
        self._host = self.connect_host(until=self._until)
        self._host.setblocking(False)

    def _connect_to_next_host_and_repeat(self) -> None:
        try:
            self._connect_to_host()
        except HostRefused as refusal:
            self._invalid.clear()
            self.client_out.write(
                b"".join(self._pending.remove_unrepeatable_and_yield_errors(str(refusal), repeatable_too=True))
            )
            return
        if handshake := self._pending.handshake_line_to_repeat():
            self._to_host += handshake
            self._send_unsent_bytes_to_host()
        else:
            self._resend_pending_requests()

    def _resend_pending_requests(self) -> None:
        self._to_host += b"".join((*self._pending.lines_to_resend_to_new_host(), *self._invalid))
        self._invalid.clear()
        self._send_unsent_bytes_to_host()


def _lines_completed_by_data(buffer: LineBuffer, data: bytes) -> list[bytes]:
    """The lines that `data` completes, each with its end."""
    return [line + b"\n" for line in buffer.feed(data) if line is not None]


@contextmanager
def open_stop_signal_socket() -> Iterator[socket.socket]:
    """A socket that SIGTERM and SIGINT make readable, as long as they would have ended the process."""
    writer, stop = socket.socketpair()
    with writer, stop:
        writer.setblocking(False)
        # Before the handlers, which have no work and would swallow a signal that comes before there is this descriptor.
        wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        handlers = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield stop
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)


def forward_stdio_to_host(data_dir: Path, environment: Mapping[str, str], settings: Mapping[str, str]) -> int:
    """Forward standard input and output. The exit code: 2 for what the caller has to change, told on standard error."""
    request = HostHandshakeRequest(session=uuid.uuid4().hex, settings=settings)
    try:
        with open_stop_signal_socket() as stop:
            connect = partial(connect_or_start_host, data_dir, environment, request, cancelled=stop)
            answered = McpStdioForwarder(PollableInputStream(0), NonblockingOutput(1), connect, stop).run()
    except HostRefused as refusal:
        print(f"madeleine: {refusal}", file=sys.stderr)
        return EXIT_USAGE if refusal.usage else 1
    return 0 if answered else 1


REPEATABLE_TOOLS = frozenset(
    {
        "recall", "recall_memory", "search_memory", "context",
        "store", "update_memory", "forget", "observe", "ingest",
    }
)  # fmt: skip
"""Tools whose call may be repeated when nobody knows whether the first was carried out. For `store`, `observe` and
`ingest` the host takes session and request id for an idempotency key."""
MAX_REQUEST_REPEATS = 5
"""A request over which hosts die is not repeated for ever."""
_MCP_PROTOCOL_VERSION_META_KEY = b'"io.modelcontextprotocol/protocolVersion"'

JsonRpcRequestId = str | int


@dataclass(slots=True)
class PendingRequest:
    line: bytes
    method: str
    tool: str
    repeats: int = 0

    @property
    def is_repeatable(self) -> bool:
        return self.repeats < MAX_REQUEST_REPEATS and (self.method != "tools/call" or self.tool in REPEATABLE_TOOLS)


class PendingRequests:
    """The pending requests in order of arrival, and the handshake, which has to be repeated to a new host."""

    def __init__(self) -> None:
        self._pending: dict[JsonRpcRequestId, PendingRequest] = {}
        self._initialize: tuple[JsonRpcRequestId, bytes] | None = None
        self._initialized: bytes | None = None
        self._repeated_handshake: JsonRpcRequestId | None = None
        """Its answer is not for the client, who has had one."""

    def __len__(self) -> int:
        return len(self._pending)

    def track_client_line_and_is_valid(self, line: bytes) -> bool:
        """Note a line of the client's. False if it is no JSON-RPC message: then a host has to answer what is wrong."""
        if len(line) > MAX_JSON_RPC_LINE_BYTES:  # no host reads it; its answer names no request
            return False
        match _parse_json(line):
            case {"method": str(method), "id": str() | int() as id_, **fields} if not isinstance(id_, bool):
                params = fields.get("params")
                tool = params.get("name") if isinstance(params, dict) else ""
                self._pending[id_] = PendingRequest(line, method, tool if isinstance(tool, str) else "")
                if method == "initialize":
                    self._initialize = id_, line
            case {"method": "notifications/cancelled", "params": {"requestId": str() | int() as id_}}:
                self._pending.pop(id_, None)
            case {"method": "notifications/initialized"}:
                self._initialized = line
            case {"method": str()} as message if "id" not in message:
                pass
            case _:
                return False
        return True

    def track_host_line_and_should_forward(self, line: bytes) -> bool:
        """Note a line of the host's. Whether it is for the client: the answer to a repeated handshake is not."""
        match _parse_json(line):
            case {"id": str() | int() as id_, **fields} if "method" not in fields:
                if id_ == self._repeated_handshake:
                    self._repeated_handshake = None
                    return False
                self._pending.pop(id_, None)
        return True

    def handshake_line_to_repeat(self) -> bytes | None:
        """The line that a new host has to get, and to answer, before any other; None if there was no handshake."""
        if self._initialize is None or self._initialize[0] in self._pending:
            return None
        self._repeated_handshake, line = self._initialize
        return line

    @property
    def awaits_repeated_handshake_reply(self) -> bool:
        return self._repeated_handshake is not None

    def lines_to_resend_to_new_host(self) -> list[bytes]:
        """The lines for a new host after `handshake_line_to_repeat`. An unfinished handshake of the client comes
        first."""
        handshake = self._initialize[0] if self._initialize else None
        requests = [self._pending[id_] for id_ in sorted(self._pending, key=lambda id_: id_ != handshake)]
        for request in requests:
            request.repeats += 1
        lines = [request.line for request in requests]
        if self._initialized is not None:
            lines.insert(1 if handshake in self._pending else 0, self._initialized)
        return lines

    def remove_unrepeatable_and_yield_errors(self, reason: str, *, repeatable_too: bool = False) -> Iterator[bytes]:
        """Error answers to the requests that must not be repeated, or to all, which are then no longer pending."""
        for id_, request in list(self._pending.items()):
            if repeatable_too or not request.is_repeatable:
                del self._pending[id_]
                yield _failed_request_answer(id_, request, reason)


def _failed_request_answer(id_: JsonRpcRequestId, request: PendingRequest, reason: str) -> bytes:
    if request.method != "tools/call":
        return encode_json_rpc(id=id_, error={"code": -32603, "message": reason})
    # Since 2026-07-28 each request names the version, and each result has a type.
    result_type = {"resultType": "complete"} if _MCP_PROTOCOL_VERSION_META_KEY in request.line else {}
    result = {"content": [{"type": "text", "text": reason}], "isError": True}
    return encode_json_rpc(id=id_, result=result | result_type)


def _parse_json(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
