"""The first line each way between a forwarder and its host. After it, MCP: one JSON-RPC message a line."""

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
"""Of these two lines and what they promise. The higher one wins: a host of a lower one is replaced, a forwarder of a
lower one is told to be updated."""
LONGEST = 64 * 1024
"""Bytes of a hello, at most."""
HANDSHAKE_SECONDS = 30.0


class HostRefused(ServerUnavailable):
    """The host refuses to serve, or cannot be started. `usage`: the caller has to change something. `protocol` is the
    host's."""

    def __init__(self, message: str, *, usage: bool = False, protocol: int = PROTOCOL) -> None:
        super().__init__(message)
        self.usage = usage
        self.protocol = protocol


class NoHost(Exception):
    """What answered is not a host, or it went away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRequest:
    """`settings`: as in the environment, without the prefix, in lower case: being, toolsets, read_only and all others,
    the key of a language model among them. `session`: the same at each connection of one forwarder.

    `want`: "serve" tools, "status" or "stop", which every host knows, or "watch" the being's patrols, of which the host
    tells one JSON object a line behind its reply. A host that does not know one says so; the first ones hung up."""

    want: str = "serve"
    protocol: int = PROTOCOL
    version: str = ""
    token: str = field(default="", repr=False)
    session: str = ""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def line(self) -> bytes:
        return _line({"madeleine": asdict(self)})


def parse_request(line: bytes) -> HostRequest:
    """Raises `ValueError` for what is not one. Fields of a later protocol are let be."""
    found = json.loads(line)["madeleine"]
    settings = found.get("settings", {})
    want, protocol = found["want"], found["protocol"]
    if not isinstance(protocol, int) or not isinstance(settings, dict):
        raise ValueError("not a hello")  # noqa: TRY004
    return HostRequest(
        want=str(want),
        protocol=protocol,
        version=str(found.get("version", "")),
        token=str(found.get("token", "")),
        session=str(found.get("session", "")),
        settings={str(name): str(value) for name, value in settings.items()},
    )


def reply(**content: Any) -> bytes:
    """`ok` or `error` (and `usage`); always the protocol, the version and the process id of the host."""
    return _line({"madeleine": {"protocol": PROTOCOL} | content})


def exchange_handshake(
    link: socket.socket, hello: HostRequest, *, alarm: socket.socket | None = None, seconds: float = HANDSHAKE_SECONDS
) -> tuple[dict[str, Any], bytes]:
    """The host's reply, and what came behind it. Raises `HostRefused`, and `NoHost` if there is none within `seconds`,
    or `alarm` becomes readable before."""
    until = time.monotonic() + seconds
    watched = [link] if alarm is None else [link, alarm]
    got = b""
    try:
        link.settimeout(HANDSHAKE_SECONDS)
        link.sendall(hello.line())
        while b"\n" not in got:
            ready = select.select(watched, [], [], max(0.0, until - time.monotonic()))[0]
            if link not in ready:
                raise NoHost("it does not answer")
            if len(got) > LONGEST or not (more := link.recv(LONGEST)):
                raise NoHost("it went away")
            got += more
        line, _, rest = got.partition(b"\n")
        content = json.loads(line)["madeleine"]
        link.settimeout(None)
        if "error" in content:
            raise HostRefused(
                str(content["error"]), usage=bool(content.get("usage")), protocol=int(content["protocol"])
            )
        return content, rest
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoHost(str(error)) from error


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"
