"""Connections to the host of a data directory, which is started if there is none, and its end."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from madeleine.server import EXIT_USAGE
from madeleine.server.attach.address import HOST_LOCK_FILE, UntrustedDirectory, connect_socket, find_address, host_pid
from madeleine.server.attach.handshake import (
    HANDSHAKE_SECONDS,
    PROTOCOL,
    HostRefused,
    HostRequest,
    NoHost,
    exchange_handshake,
)
from madeleine.server.attach.lock import is_held

START_SECONDS = 60.0
"""From the first try to the host's answer; a machine that is busy takes long to import."""
POLL_SECONDS = 0.02
LOG = "madeleine.log"
OUTPUT_BYTES = 4_000
"""Of a host that failed to start, shown at most."""

Link = tuple[socket.socket, bytes]
"""Connected, and the bytes that the host has sent behind its reply."""


class ConnectCancelled(Exception):
    """The caller needs no host any more."""


def connect_or_start(
    data_dir: Path,
    environment: Mapping[str, str],
    request: HostRequest,
    *,
    cancelled: socket.socket,
    until: float | None = None,
) -> Link:
    """Connect to the host; where nobody holds its lock, start one.

    `environment` of a host that is started. `cancelled` ends the waiting when it becomes readable. `until`: by the
    monotonic clock. Raises `HostRefused` with a message for the person, `ConnectCancelled`.
    """
    _make_directory(data_dir)
    until = until or time.monotonic() + START_SECONDS
    started: subprocess.Popen[bytes] | None = None
    try:
        while True:
            try:
                seconds = min(HANDSHAKE_SECONDS, max(0.0, until - time.monotonic()))
                link, received, _ = connect_to_host(data_dir, request, cancelled=cancelled, seconds=seconds)
                return link, received
            except HostRefused as refusal:
                if refusal.protocol >= PROTOCOL:
                    raise
                # An older installation's host makes room; its other clients are told to be updated.
                stop_host(data_dir, request.version)
            except NoHost:
                pass
            if started is not None and started.poll() is not None:
                _check_exit(started)
                started = None
            if started is None and not is_held(data_dir / HOST_LOCK_FILE):
                started = _start_host(data_dir, environment)
            if time.monotonic() > until:
                raise HostRefused(no_answer_message(data_dir))
            if select.select([cancelled], [], [], POLL_SECONDS)[0]:
                raise ConnectCancelled
    finally:
        if started is not None:
            assert started.stdout is not None
            started.stdout.close()
            # A thread waits for its end, so that it leaves no zombie.
            threading.Thread(target=started.wait, name="host", daemon=True).start()


def _make_directory(data_dir: Path) -> None:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_held(data_dir / HOST_LOCK_FILE)
    except OSError as error:
        raise HostRefused(
            f"{data_dir} cannot be used: {error}. Set MADELEINE_DATA_DIR to a writable directory.", usage=True
        ) from error


def _start_host(data_dir: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """In a session of its own, so that what ends the client's terminal or group does not end it."""
    detached: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        detached = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    return subprocess.Popen(
        # -P: the working directory is nobody's to run code from.
        [sys.executable, "-P", "-m", "madeleine.server.host", str(data_dir)],
        cwd=data_dir,
        env=dict(environment) | {"MADELEINE_DATA_DIR": str(data_dir)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **detached,
    )


def _check_exit(host: subprocess.Popen[bytes]) -> None:
    """Raises `HostRefused` with what the host printed, unless it ended with 0 (another host was faster) or was killed:
    then another is tried."""
    assert host.stdout is not None
    with host.stdout:
        output = host.stdout.read()[-OUTPUT_BYTES:].decode(errors="replace").strip()
    if host.returncode > 0:
        reason = output.removeprefix("madeleine: ") or f"Madeleine's process ended with {host.returncode}."
        raise HostRefused(reason, usage=host.returncode == EXIT_USAGE)


def connect_to_host(
    data_dir: Path,
    request: HostRequest,
    *,
    cancelled: socket.socket | None = None,
    seconds: float = HANDSHAKE_SECONDS,
) -> tuple[socket.socket, bytes, dict[str, Any]]:
    """Connect to the host if there is one: its link, as in `Link`, and its reply. Raises `HostRefused`, `NoHost`."""
    try:
        address = find_address(data_dir)
        # Another program may have got a dead host's port: it must not see the token.
        if address.port and not is_held(data_dir / HOST_LOCK_FILE):
            raise NoHost("nobody holds the lock")
        link = connect_socket(address)
    except UntrustedDirectory as error:
        raise HostRefused(str(error), usage=True) from error
    except OSError as error:
        raise NoHost(str(error)) from error
    try:
        request = replace(request, token=address.token)
        reply, received = exchange_handshake(link, request, cancelled=cancelled, seconds=seconds)
    except BaseException:
        link.close()
        raise
    return link, received, reply


def query_host(data_dir: Path, request: HostRequest) -> dict[str, Any]:
    """The host's reply alone. Raises as `connect_to_host` does."""
    link, _, reply = connect_to_host(data_dir, request)
    link.close()
    return reply


def stop_host(data_dir: Path, version: str) -> bool:
    """End the host when it has finished what it has begun. False if there is none.

    Raises `HostRefused` if it does not end.
    """
    pid = host_pid(data_dir)
    try:
        pid = int(query_host(data_dir, HostRequest(want="stop", version=version))["pid"])
    except NoHost:  # or it accepts no connections any more, and is about to end
        if not host_is_running(data_dir):
            return False
    until = time.monotonic() + START_SECONDS
    # Another client may start the next host at once: that is another process.
    while host_is_running(data_dir) and host_pid(data_dir) in (pid, 0):
        if time.monotonic() > until:
            raise HostRefused(no_answer_message(data_dir))
        time.sleep(POLL_SECONDS)
    return True


def host_is_running(data_dir: Path) -> bool:
    """Whether a process is the host, answering or not."""
    try:
        return is_held(data_dir / HOST_LOCK_FILE)
    except OSError:
        return False


def no_answer_message(data_dir: Path) -> str:
    pid = host_pid(data_dir)
    return (
        f"The process of the memory in {data_dir} ({f'id {pid}' if pid else 'its id is not known'}) does not answer. "
        f"Look into {data_dir / LOG}, or kill it: nothing acknowledged is lost by that."
    )
