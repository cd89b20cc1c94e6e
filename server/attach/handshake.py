"""The first line each way between a client and the host. After it, MCP: one JSON-RPC message a line."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from madeleine.memory.errors import ServerUnavailable

PROTOCOL = 1
"""Of these two lines and what they promise. The higher one wins: a host of a lower one is replaced, a client of a
lower one is told to be updated."""
LONGEST_REQUEST = 64 * 1024
"""Bytes."""
HANDSHAKE_SECONDS = 30.0


class HostRefused(ServerUnavailable):
    """The host refuses to serve, or cannot be started. `usage`: the caller has to change something. `protocol` is the
    host's."""

    def __init__(self, message: str, *, usage: bool = False, protocol: int = PROTOCOL) -> None:
        super().__init__(message)
        self.usage = usage
        self.protocol = protocol


class NoHost(Exception):
    """Nothing answers, or it is not a host, or it went away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRequest:
    """`settings`: as in the environment, without the prefix, in lower case: being, toolsets, read_only and all others,
    the key of a language model among them. `session`: the same at each connection of one forwarder.

    `want`: "serve" tools, "status" or "stop", which every host knows, or "watch" the being's patrols, whose events the
    host sends as one JSON object a line behind its reply. A host refuses what it does not know; the first ones hung up.
    """

    want: str = "serve"
    protocol: int = PROTOCOL
    version: str = ""
    token: str = field(default="", repr=False)
    session: str = ""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def line(self) -> bytes:
        return _line(asdict(self))


def parse_request(line: bytes) -> HostRequest:
    """Fields of a later protocol are ignored. Raises `ValueError`, `KeyError`, `TypeError` for anything else."""
    request = json.loads(line)["madeleine"]
    settings, protocol = request.get("settings", {}), request["protocol"]
    if not isinstance(protocol, int) or not isinstance(settings, dict):
        raise ValueError("not a request to a host")  # noqa: TRY004
    return HostRequest(
        protocol=protocol,
        settings={str(name): str(value) for name, value in settings.items()},
        want=str(request["want"]),
        **{name: str(request.get(name, "")) for name in ("version", "token", "session")},
    )


def encode_reply(**content: Any) -> bytes:
    """`ok` or `error` (and `usage`); always the protocol, the version and the process id of the host."""
    return _line({"protocol": PROTOCOL} | content)


def exchange_handshake(
    link: socket.socket,
    request: HostRequest,
    *,
    cancelled: socket.socket | None = None,
    seconds: float = HANDSHAKE_SECONDS,
) -> tuple[dict[str, Any], bytes]:
    """Send the request; the host's reply, and the bytes that came behind it. Raises `HostRefused`, and `NoHost` if
    there is none within `seconds`, or `cancelled` becomes readable before."""
    until = time.monotonic() + seconds
    watched = [link] if cancelled is None else [link, cancelled]
    received = b""
    try:
        link.settimeout(HANDSHAKE_SECONDS)
        link.sendall(request.line())
        while b"\n" not in received:
            ready = select.select(watched, [], [], max(0.0, until - time.monotonic()))[0]
            if link not in ready:
                raise NoHost("it does not answer")
            if len(received) > LONGEST_REQUEST or not (more := link.recv(LONGEST_REQUEST)):
                raise NoHost("it went away")
            received += more
        line, _, behind = received.partition(b"\n")
        reply = json.loads(line)["madeleine"]
        link.settimeout(None)
        if "error" in reply:
            usage, protocol = bool(reply.get("usage")), int(reply["protocol"])
            raise HostRefused(str(reply["error"]), usage=usage, protocol=protocol)
        return reply, behind
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoHost(str(error)) from error


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps({"madeleine": content}, separators=(",", ":")).encode() + b"\n"
