"""Connections to the host of a data directory, which is started if there is none, and its end.

A connection begins with one line each way: request and reply. After them, MCP: one JSON-RPC message a line.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from madeleine import operating_system
from madeleine.memory.errors import ServerUnavailable
from madeleine.server import EXIT_USAGE, __version__
from madeleine.server.attach.endpoint import (
    UntrustedDirectory,
    host_address,
    host_pid,
    is_host_locked,
    socket_connected_to_host,
)

HOST_PROTOCOL_VERSION = 1
"""Version of the two lines and what they promise. The higher one wins: a host of a lower one is replaced, a client of a
lower one is told to be updated."""
MAX_HOST_HANDSHAKE_BYTES = 64 * 1024
HOST_HANDSHAKE_TIMEOUT_SECONDS = 30.0
MAX_HOST_START_OR_STOP_SECONDS = 60.0
"""Between the first try and the host's answer; a busy machine takes long to import."""
HOST_POLL_SECONDS = 0.02
HOST_LOG_FILE = "madeleine.log"
MAX_FAILED_START_OUTPUT_BYTES = 4_000
"""Shown of what a host printed that failed to start."""


class HostRefused(ServerUnavailable):
    """The host refuses to serve, or cannot be started. `usage`: the caller has to change something. `protocol` is the
    host's."""

    def __init__(self, message: str, *, usage: bool = False, protocol: int = HOST_PROTOCOL_VERSION) -> None:
        super().__init__(message)
        self.usage = usage
        self.protocol = protocol


class HostUnavailable(Exception):
    """Nothing answers, or it is not a host, or it went away."""


class ConnectingToHostCancelled(Exception):
    """The caller needs no host any more."""


# --- request and reply --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HostHandshakeRequest:
    """`settings`: as in the environment, without the prefix, in lower case: being, toolsets, read_only and all others,
    the key of a language model among them. `session`: the same at each connection of one forwarder.

    `requested_service`: "serve" tools, "status" or "stop", which every host knows, "watch" the being's patrols, whose
    events the host sends as one JSON object a line behind its reply, "run" a command with `arguments`, whose progress
    and result it sends likewise, or the "page", whose link it sends likewise and which it serves until the client
    leaves. A host refuses what it does not know.
    """

    requested_service: str = "serve"
    protocol: int = HOST_PROTOCOL_VERSION
    version: str = __version__
    token: str = field(default="", repr=False)
    session: str = ""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    arguments: Mapping[str, str] = field(default_factory=dict)

    def json_line(self) -> bytes:
        return _encode_handshake_line(
            {"want" if name == "requested_service" else name: value for name, value in asdict(self).items()}
        )


def parse_host_handshake_request(line: bytes) -> HostHandshakeRequest:
    """Fields of a later protocol are ignored. Raises `ValueError`, `KeyError`, `TypeError` for anything else."""
    try:
        request = json.loads(line)["madeleine"]
    except RecursionError as error:
        raise ValueError(str(error)) from error
    settings, arguments, protocol = request.get("settings", {}), request.get("arguments", {}), request["protocol"]
    if not isinstance(protocol, int) or not isinstance(settings, dict) or not isinstance(arguments, dict):
        raise ValueError("not a request to a host")  # noqa: TRY004
    return HostHandshakeRequest(
        protocol=protocol,
        settings={str(name): str(value) for name, value in settings.items()},
        arguments={str(name): str(value) for name, value in arguments.items()},
        requested_service=str(request["want"]),
        **{name: str(request.get(name, "")) for name in ("version", "token", "session")},
    )


def encode_host_handshake_reply(**content: Any) -> bytes:
    """`ok` or `error` (and `usage`); always the protocol, the version and the process id of the host."""
    return _encode_handshake_line(
        {"protocol": HOST_PROTOCOL_VERSION, "version": __version__, "pid": os.getpid()} | content
    )


def _encode_handshake_line(content: Mapping[str, Any]) -> bytes:
    return json.dumps({"madeleine": content}, separators=(",", ":")).encode() + b"\n"


def connect_to_host(
    data_dir: Path,
    request: HostHandshakeRequest,
    *,
    cancelled: socket.socket | None = None,
    seconds: float = HOST_HANDSHAKE_TIMEOUT_SECONDS,
) -> tuple[socket.socket, dict[str, Any]]:
    """Connect to the host if there is one; the connection, and the host's reply.

    Raises `HostRefused`; `HostUnavailable` if there is no reply within `seconds`, or `cancelled` becomes readable
    before."""
    try:
        address = host_address(data_dir)
        # Another program may have got a dead host's port: it must not see the token.
        if address.port and not is_host_locked(data_dir):
            raise HostUnavailable("nobody holds the lock")
        connection = socket_connected_to_host(address)
    except UntrustedDirectory as error:
        raise HostRefused(str(error), usage=True) from error
    except OSError as error:
        raise HostUnavailable(str(error)) from error
    try:
        return connection, _exchange_handshake(connection, replace(request, token=address.token), cancelled, seconds)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        connection.close()
        raise HostUnavailable(str(error)) from error
    except BaseException:
        connection.close()
        raise


def _exchange_handshake(
    connection: socket.socket, request: HostHandshakeRequest, cancelled: socket.socket | None, seconds: float
) -> dict[str, Any]:
    """Send the request; the host's reply. What comes behind it stays in the socket."""
    until = time.monotonic() + seconds
    connection.settimeout(HOST_HANDSHAKE_TIMEOUT_SECONDS)
    connection.sendall(request.json_line())
    watched = [connection] if cancelled is None else [connection, cancelled]
    line = b""
    while not line.endswith(b"\n"):
        if connection not in select.select(watched, [], [], max(0.0, until - time.monotonic()))[0]:
            raise HostUnavailable("it does not answer")
        waiting = connection.recv(MAX_HOST_HANDSHAKE_BYTES, socket.MSG_PEEK)
        if not waiting or len(line) > MAX_HOST_HANDSHAKE_BYTES:
            raise HostUnavailable("it went away")
        line += connection.recv(waiting.find(b"\n") + 1 or len(waiting))
    connection.settimeout(None)
    reply: dict[str, Any] = json.loads(line)["madeleine"]
    if "error" in reply:
        raise HostRefused(str(reply["error"]), usage=bool(reply.get("usage")), protocol=int(reply["protocol"]))
    return reply


def exchange_host_handshake_and_disconnect(data_dir: Path, requested_service: str) -> dict[str, Any]:
    """The host's reply alone. `requested_service` as in `HostHandshakeRequest`. Raises as `connect_to_host` does."""
    connection, reply = connect_to_host(data_dir, HostHandshakeRequest(requested_service=requested_service))
    connection.close()
    return reply


# --- start --------------------------------------------------------------------------------------------------------


def connect_or_start_host(
    data_dir: Path,
    environment: Mapping[str, str],
    request: HostHandshakeRequest,
    *,
    cancelled: socket.socket,
    until: float | None = None,
) -> socket.socket:
    """Connect to the host; where nobody holds its lock, start one.

    `environment` is that of a host that is started. `cancelled` ends the waiting when it becomes readable. `until`: by
    the monotonic clock. Raises `HostRefused` with a message for the person, `ConnectingToHostCancelled`.
    """
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_host_locked(data_dir)
    except OSError as error:
        message = f"{data_dir} cannot be used: {error}. Set MADELEINE_DATA_DIR to a writable directory."
        raise HostRefused(message, usage=True) from error
    until = until or time.monotonic() + MAX_HOST_START_OR_STOP_SECONDS
    started: subprocess.Popen[bytes] | None = None
    try:
        while True:
            try:
                seconds = min(HOST_HANDSHAKE_TIMEOUT_SECONDS, max(0.0, until - time.monotonic()))
                connection, reply = connect_to_host(data_dir, request, cancelled=cancelled, seconds=seconds)
                _warn_if_host_version_differs(reply)
                return connection
            except HostRefused as refusal:
                if refusal.protocol >= HOST_PROTOCOL_VERSION:
                    raise
                # An older installation's host makes room; its other clients are told to be updated.
                stop_host(data_dir)
            except HostUnavailable:
                pass
            if started is not None and started.poll() is not None:
                _raise_if_host_start_failed(started)
                started = None
            if started is None and not is_host_locked(data_dir):
                started = _start_host_process(data_dir, environment)
            if time.monotonic() > until:
                raise HostRefused(hung_host_message(data_dir))
            if select.select([cancelled], [], [], HOST_POLL_SECONDS)[0]:
                raise ConnectingToHostCancelled
    finally:
        if started is not None:
            assert started.stdout is not None
            started.stdout.close()
            # A thread waits for its end, so that it leaves no zombie.
            threading.Thread(target=started.wait, name="host", daemon=True).start()


def _warn_if_host_version_differs(reply: Mapping[str, Any]) -> None:
    """After an update the old process goes on serving those that were connected to it."""
    if reply.get("version") != __version__:
        import logging  # otherwise not needed by a forwarder, which is to start fast

        logging.getLogger(__name__).warning(
            "the memory's process is Madeleine %s and this is %s: `madeleine stop` ends it, the next call starts this",
            reply.get("version"), __version__,
        )  # fmt: skip


def _start_host_process(data_dir: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the process in a session of its own, so that closing the client's terminal does not end it."""
    return subprocess.Popen(
        # -P: the working directory is nobody's to run code from.
        [sys.executable, "-P", "-m", "madeleine.server.host", str(data_dir)],
        cwd=data_dir,
        env=dict(environment) | {"MADELEINE_DATA_DIR": str(data_dir)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **operating_system.options_of_detached_process(),
    )


def _raise_if_host_start_failed(host: subprocess.Popen[bytes]) -> None:
    """Raises `HostRefused` with what the host printed, unless it ended with 0 (another host was faster) or was killed:
    then another is tried."""
    assert host.stdout is not None
    with host.stdout:
        output = host.stdout.read()[-MAX_FAILED_START_OUTPUT_BYTES:].decode(errors="replace").strip()
    if host.returncode > 0:
        reason = output.removeprefix("madeleine: ") or f"Madeleine's process ended with {host.returncode}."
        raise HostRefused(reason, usage=host.returncode == EXIT_USAGE)


# --- end ----------------------------------------------------------------------------------------------------------


def stop_host(data_dir: Path) -> bool:
    """End the host when it has finished what it has begun. False if there is none.

    Raises `HostRefused` if it does not end.
    """
    pid = host_pid(data_dir)
    try:
        pid = int(exchange_host_handshake_and_disconnect(data_dir, "stop")["pid"])
    except HostUnavailable:  # or it accepts no connections any more, and is about to end
        if not is_host_running(data_dir):
            return False
    until = time.monotonic() + MAX_HOST_START_OR_STOP_SECONDS
    # Another client may start the next host at once: that is another process.
    while is_host_running(data_dir) and host_pid(data_dir) in (pid, 0):
        if time.monotonic() > until:
            raise HostRefused(hung_host_message(data_dir))
        time.sleep(HOST_POLL_SECONDS)
    return True


def is_host_running(data_dir: Path) -> bool:
    """Return whether a process is the host, answering or not."""
    try:
        return is_host_locked(data_dir)
    except OSError:
        return False


def hung_host_message(data_dir: Path) -> str:
    pid = host_pid(data_dir)
    return (
        f"The process of the memory in {data_dir} ({f'id {pid}' if pid else 'its id is not known'}) does not answer. "
        f"Look into {data_dir / HOST_LOG_FILE}, or kill it: nothing acknowledged is lost by that."
    )
