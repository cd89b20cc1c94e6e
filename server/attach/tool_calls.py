"""Tool calls by a program that somebody waits for. The MCP SDK takes a second to import; this takes nothing."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from madeleine.memory.errors import ERROR_META_KEY, ConnectionLost, ServerError, error_from_json
from madeleine.server import __version__
from madeleine.server.attach.connector import HostHandshakeRequest, connect_or_start_host

MCP_VERSION_WITH_HANDSHAKE = "2025-11-25"
"""Version of MCP with the handshake that every host knows."""
CallToolAndWait = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""Takes a tool and its arguments; returns the structured answer, or raises the `MadeleineError` of the tool."""


def mcp_initialize_params(name: str) -> dict[str, Any]:
    """Parameters of the MCP handshake for a client that calls itself `name`."""
    client = {"name": name, "version": __version__}
    return {"protocolVersion": MCP_VERSION_WITH_HANDSHAKE, "capabilities": {}, "clientInfo": client}


def encode_json_rpc(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n"


def result_of_json_rpc_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a JSON-RPC answer. Raises `ServerError`."""
    if "error" in answer:
        raise ServerError(str(answer["error"].get("message")))
    result: dict[str, Any] = answer["result"]
    return result


def structured_content_of_tool_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """The structured content of a `tools/call` result. Raises the `MadeleineError` that the tool answered with."""
    if result.get("isError"):
        message = "".join(str(part.get("text", "")) for part in result.get("content", ()))
        raise error_from_json((result.get("_meta") or {}).get(ERROR_META_KEY), message)
    content = result.get("structuredContent")
    return content if isinstance(content, dict) else {}


class BlockingHostClient:
    """One connection to the host; one call at a time. It waits as long as the host does: the caller limits the time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._request_count = 0

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The structured answer. Raises the `MadeleineError` that the tool answered with, `ConnectionLost`."""
        return structured_content_of_tool_result(self._request("tools/call", {"name": tool, "arguments": arguments}))

    def initialize(self, name: str) -> None:
        self._request("initialize", mcp_initialize_params(name))
        self._send(method="notifications/initialized")

    def _request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result. Notifications and requests of the host's are skipped."""
        self._request_count += 1
        self._send(id=self._request_count, method=method, params=params)
        try:
            for line in self._lines:
                message = json.loads(line)
                if isinstance(message, dict) and message.get("id") == self._request_count and "method" not in message:
                    return result_of_json_rpc_answer(message)
        except OSError as error:
            raise ConnectionLost(str(error)) from error
        except ValueError as error:
            raise ConnectionLost("what answers is not the memory's process") from error
        raise ConnectionLost("the memory's process went away")

    def _send(self, **message: Any) -> None:
        try:
            self._connection.sendall(encode_json_rpc(**message))
        except OSError as error:
            raise ConnectionLost(str(error)) from error


@contextmanager
def open_blocking_host_client(
    data_dir: Path, environment: Mapping[str, str], settings: Mapping[str, str], *, name: str, until: float
) -> Iterator[BlockingHostClient]:
    """Connect, starting a host if there is none. `settings` as in `HostHandshakeRequest`. `until`, by the monotonic
    clock: when to give up connecting. Raises `ServerUnavailable`."""
    cancelled, cancel = socket.socketpair()
    with cancelled, cancel:
        request = HostHandshakeRequest(settings=settings)
        connection = connect_or_start_host(data_dir, environment, request, cancelled=cancelled, until=until)
    with closing(connection):
        calls = BlockingHostClient(connection)
        calls.initialize(name)
        yield calls
