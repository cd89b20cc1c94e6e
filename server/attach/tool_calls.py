"""Tool calls by a program that somebody waits for. The MCP SDK takes a second to import; this takes nothing."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from madeleine.memory.errors import ERROR_META, ConnectionLost, ServerError, error_from_json
from madeleine.server import __version__
from madeleine.server.attach.connector import connect_or_start
from madeleine.server.attach.handshake import HostRequest
from madeleine.server.attach.lines import CHUNK, LineBuffer

PROTOCOL_VERSION = "2025-11-25"
"""Of MCP, with the handshake that every host knows."""
TIMED_OUT_MESSAGE = "the memory's process did not answer in time"


def initialize_params(name: str) -> dict[str, Any]:
    """For a client that calls itself `name`."""
    client = {"name": name, "version": __version__}
    return {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}


def result_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a JSON-RPC answer. Raises `ServerError`."""
    if "error" in answer:
        raise ServerError(str(answer["error"].get("message")))
    result: dict[str, Any] = answer["result"]
    return result


def structured_answer(result: Mapping[str, Any]) -> dict[str, Any]:
    """The structured content of a `tools/call` result. Raises the `MadeleineError` that the tool answered with."""
    if result.get("isError"):
        message = "".join(str(part.get("text", "")) for part in result.get("content", ()))
        raise error_from_json((result.get("_meta") or {}).get(ERROR_META), message)
    content = result.get("structuredContent")
    return content if isinstance(content, dict) else {}


class ToolCalls:
    """One connection to the host; one call at a time."""

    def __init__(self, link: socket.socket, received: bytes, *, until: float) -> None:
        """`received`: bytes that came behind the host's reply. `until`: by the monotonic clock; a call that is not
        answered by then raises `ConnectionLost`."""
        self._link = link
        self._buffer = LineBuffer()
        self._lines = self._buffer.feed(received)
        self._until = until
        self._count = 0

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The structured answer. Raises the `MadeleineError` that the tool answered with, `ConnectionLost`."""
        self._count += 1
        self._send(id=self._count, method="tools/call", params={"name": tool, "arguments": arguments})
        return structured_answer(result_of(self._answer(self._count)))

    def initialize(self, name: str) -> None:
        self._send(id=0, method="initialize", params=initialize_params(name))
        self._answer(0)
        self._send(method="notifications/initialized")

    def _send(self, **message: Any) -> None:
        try:
            self._link.settimeout(self._seconds_left())
            self._link.sendall(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        except OSError as error:
            raise ConnectionLost(str(error)) from error

    def _answer(self, id_: int) -> dict[str, Any]:
        """The answer to this request; notifications and requests of the host's are skipped."""
        while True:
            message = self._receive()
            if isinstance(message, dict) and message.get("id") == id_ and "method" not in message:
                return message

    def _receive(self) -> Any:
        while not self._lines:
            try:
                self._link.settimeout(self._seconds_left())
                received = self._link.recv(CHUNK)
            except OSError as error:
                raise ConnectionLost(TIMED_OUT_MESSAGE) from error
            if not received:
                raise ConnectionLost("the memory's process went away")
            self._lines = self._buffer.feed(received)
        try:
            return json.loads(self._lines.pop(0) or b"null")
        except ValueError as error:
            raise ConnectionLost("what answers is not the memory's process") from error

    def _seconds_left(self) -> float:
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise ConnectionLost(TIMED_OUT_MESSAGE)
        return seconds


@contextmanager
def host_tool_calls(
    data_dir: Path, environment: Mapping[str, str], settings: Mapping[str, str], *, name: str, until: float
) -> Iterator[ToolCalls]:
    """Connect, starting a host if there is none. `settings` as in `HostRequest`. Raises `ServerUnavailable`."""
    cancelled, cancel = socket.socketpair()
    with cancelled, cancel:
        request = HostRequest(version=__version__, settings=settings)
        link, received = connect_or_start(data_dir, environment, request, cancelled=cancelled, until=until)
    with closing(link):
        calls = ToolCalls(link, received, until=until)
        calls.initialize(name)
        yield calls
