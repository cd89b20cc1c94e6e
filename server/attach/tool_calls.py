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
from madeleine.server.attach.connector import HostRequest, connect_or_start

MCP_VERSION_WITH_HANDSHAKE = "2025-11-25"
"""Of MCP, with the handshake that every host knows."""
TIMED_OUT_MESSAGE = "the memory's process did not answer in time"


def initialize_params(name: str) -> dict[str, Any]:
    """For a client that calls itself `name`."""
    client = {"name": name, "version": __version__}
    return {"protocolVersion": MCP_VERSION_WITH_HANDSHAKE, "capabilities": {}, "clientInfo": client}


def encode_json_rpc(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n"


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

    def __init__(self, connection: socket.socket, *, until: float) -> None:
        """`until`: by the monotonic clock; a call that is not answered by then raises `ConnectionLost`."""
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._until = until
        self._request_count = 0

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The structured answer. Raises the `MadeleineError` that the tool answered with, `ConnectionLost`."""
        return structured_answer(self._request("tools/call", {"name": tool, "arguments": arguments}))

    def initialize(self, name: str) -> None:
        self._request("initialize", initialize_params(name))
        self._send(method="notifications/initialized")

    def _request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result. Notifications and requests of the host's are skipped."""
        self._request_count += 1
        self._send(id=self._request_count, method=method, params=params)
        while True:
            message = self._receive()
            if isinstance(message, dict) and message.get("id") == self._request_count and "method" not in message:
                return result_of(message)

    def _send(self, **message: Any) -> None:
        try:
            self._limit_time()
            self._connection.sendall(encode_json_rpc(**message))
        except OSError as error:
            raise ConnectionLost(str(error)) from error

    def _receive(self) -> Any:
        try:
            self._limit_time()
            line = self._lines.readline()
        except OSError as error:
            raise ConnectionLost(TIMED_OUT_MESSAGE) from error
        if not line:
            raise ConnectionLost("the memory's process went away")
        try:
            return json.loads(line)
        except ValueError as error:
            raise ConnectionLost("what answers is not the memory's process") from error

    def _limit_time(self) -> None:
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise ConnectionLost(TIMED_OUT_MESSAGE)
        self._connection.settimeout(seconds)


@contextmanager
def host_tool_calls(
    data_dir: Path, environment: Mapping[str, str], settings: Mapping[str, str], *, name: str, until: float
) -> Iterator[ToolCalls]:
    """Connect, starting a host if there is none. `settings` as in `HostRequest`. Raises `ServerUnavailable`."""
    cancelled, cancel = socket.socketpair()
    with cancelled, cancel:
        request = HostRequest(settings=settings)
        connection = connect_or_start(data_dir, environment, request, cancelled=cancelled, until=until)
    with closing(connection):
        calls = ToolCalls(connection, until=until)
        calls.initialize(name)
        yield calls
