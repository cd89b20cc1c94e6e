"""Calls of tools by a program that somebody waits for. The SDK's client takes a second to import; this takes none."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from madeleine.server.attach.connector import HostConnector
from madeleine.server.attach.handshake import HostRequest

PROTOCOL_VERSION = "2025-11-25"
"""Of MCP, with the handshake that every host knows."""
CHUNK = 64 * 1024


class Refused(Exception):
    """The host's own words on why a call was not carried out."""


class NoAnswer(Exception):
    """The host went away, or did not answer in time."""


class Calls:
    """One connection; a call at a time."""

    def __init__(self, link: socket.socket, rest: bytes, *, until: float) -> None:
        """`until`: by the monotonic clock; calls that are not answered by then raise `NoAnswer`."""
        self._link = link
        self._got = bytearray(rest)
        self._until = until
        self._calls = 0

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The structured answer. Raises `Refused`, `NoAnswer`."""
        self._calls += 1
        self._send(id=self._calls, method="tools/call", params={"name": tool, "arguments": arguments})
        answer = self._answer(self._calls)
        if "error" in answer:
            raise Refused(str(answer["error"].get("message")))
        result = answer["result"]
        if result.get("isError"):
            raise Refused("".join(str(part.get("text", "")) for part in result.get("content", ())))
        content = result.get("structuredContent")
        return content if isinstance(content, dict) else {}

    def shake_hands(self, name: str, version: str) -> None:
        about = {"name": name, "version": version}
        params = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": about}
        self._send(id=0, method="initialize", params=params)
        self._answer(0)
        self._send(method="notifications/initialized")

    def _send(self, **message: Any) -> None:
        try:
            self._link.settimeout(self._left())
            self._link.sendall(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        except OSError as error:
            raise NoAnswer(str(error)) from error

    def _answer(self, id_: int) -> dict[str, Any]:
        """Past whatever else the host says."""
        for line in self._lines():
            try:
                message = json.loads(line)
            except ValueError as error:
                raise NoAnswer("what answers is not the memory's process") from error
            if isinstance(message, dict) and message.get("id") == id_ and "method" not in message:
                return message
        raise NoAnswer("the memory's process went away")

    def _lines(self) -> Iterator[bytes]:
        while True:
            line, end, rest = self._got.partition(b"\n")
            if end:
                self._got = rest
                yield bytes(line)
                continue
            try:
                self._link.settimeout(self._left())
                more = self._link.recv(CHUNK)
            except OSError as error:
                raise NoAnswer("the memory's process did not answer in time") from error
            if not more:
                return
            self._got += more

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise NoAnswer("the memory's process did not answer in time")
        return left


@contextmanager
def host_tool_calls(
    data_dir: Path,
    environment: Mapping[str, str],
    settings: Mapping[str, str],
    *,
    name: str,
    version: str,
    until: float,
) -> Iterator[Calls]:
    """Connect, starting a host if there is none. `settings` as in `HostRequest`. Raises `HostRefused`, `NoAnswer`."""
    alarm, bell = socket.socketpair()
    with alarm, bell:
        hello = HostRequest(version=version, settings=settings)
        link, rest = HostConnector(data_dir, environment, alarm=alarm).connect(hello, until=until)
    with closing(link):
        calls = Calls(link, rest, until=until)
        calls.shake_hands(name, version)
        yield calls
