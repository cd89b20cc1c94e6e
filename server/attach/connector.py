"""To the host of a data directory, which is started where there is none."""

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
from madeleine.server.attach.address import LOCK, UntrustedDirectory, connect_socket, find_address, host_pid
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

Link = tuple[socket.socket, bytes]
"""Connected, and what the host has sent behind its hello."""


class Ended(Exception):
    """The caller wants no host any more."""


def host_command(data_dir: Path) -> list[str]:
    # -P: the client's working directory may hold a `server` of its own, and is nobody's to run code from.
    return [sys.executable, "-P", "-m", "madeleine.server.host", str(data_dir)]


class HostConnector:
    """Connects as often as it is asked. Where the lock is free nobody is the host, and one is started."""

    def __init__(self, data_dir: Path, environment: Mapping[str, str], *, alarm: socket.socket) -> None:
        """`environment` of the host that is started; a readable `alarm` ends the waiting."""
        self._data_dir = data_dir
        self._environment = environment
        self._alarm = alarm
        self._started: subprocess.Popen[bytes] | None = None

    def connect(self, hello: HostRequest, *, until: float | None = None) -> Link:
        """`until`: by the monotonic clock. Raises `HostRefused` with what to tell the person, `Ended`."""
        self._make_directory()
        until = until or time.monotonic() + START_SECONDS
        while True:
            try:
                left = min(HANDSHAKE_SECONDS, max(0.0, until - time.monotonic()))
                link, rest, _ = connect_to_host(self._data_dir, hello, alarm=self._alarm, seconds=left)
                self._let_go()
                return link, rest
            except HostRefused as no:
                if no.protocol >= PROTOCOL:
                    raise
                # An older installation's host makes room; its other clients are told to be updated.
                stop_host(self._data_dir, hello.version)
            except NoHost:
                pass
            self._start_if_there_is_none()
            if time.monotonic() > until:
                raise HostRefused(no_answer_message(self._data_dir))
            self._pause()

    def _pause(self) -> None:
        if select.select([self._alarm], [], [], POLL_SECONDS)[0]:
            raise Ended

    def _make_directory(self) -> None:
        try:
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_held(self._data_dir / LOCK)
        except OSError as error:
            raise HostRefused(
                f"{self._data_dir} cannot be used: {error}. Set MADELEINE_DATA_DIR to a writable directory.", usage=True
            ) from error

    def _start_if_there_is_none(self) -> None:
        if self._started is not None:
            self._look_after(self._started)
        if self._started is None and not is_held(self._data_dir / LOCK):
            self._started = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        """In a session of its own, so that what ends the client's terminal or group does not end it."""
        detached: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            detached = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
        return subprocess.Popen(
            host_command(self._data_dir),
            cwd=self._data_dir,
            env=dict(self._environment) | {"MADELEINE_DATA_DIR": str(self._data_dir)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **detached,
        )

    def _look_after(self, process: subprocess.Popen[bytes]) -> None:
        """What it said before its end is why it could not serve. It has ended with 0 if another was faster; one
        that was killed has nothing to say, and another is tried."""
        if process.poll() is None:
            return
        self._started = None
        assert process.stdout is not None
        with process.stdout:
            said = process.stdout.read()[-4000:].decode(errors="replace").strip()
        if process.returncode > 0:
            reason = said.removeprefix("madeleine: ") or f"Madeleine's process ended with {process.returncode}."
            raise HostRefused(reason, usage=process.returncode == EXIT_USAGE)

    def _let_go(self) -> None:
        """Let go of a host that was started and serves. A thread waits for its end, so that it leaves no zombie."""
        if self._started is not None:
            assert self._started.stdout is not None
            self._started.stdout.close()
            threading.Thread(target=self._started.wait, name="host", daemon=True).start()
            self._started = None


def connect_to_host(
    data_dir: Path, hello: HostRequest, *, alarm: socket.socket | None = None, seconds: float = HANDSHAKE_SECONDS
) -> tuple[socket.socket, bytes, dict[str, Any]]:
    """Link and reply of the host that there is. Raises `HostRefused`, `NoHost`."""
    try:
        address = find_address(data_dir)
        # Another program may have got a dead host's port: it is told nothing.
        if address.port and not is_held(data_dir / LOCK):
            raise NoHost("nobody holds the lock")
        link = connect_socket(address)
    except UntrustedDirectory as error:
        raise HostRefused(str(error), usage=True) from error
    except OSError as error:
        raise NoHost(str(error)) from error
    try:
        content, rest = exchange_handshake(link, replace(hello, token=address.token), alarm=alarm, seconds=seconds)
    except BaseException:
        link.close()
        raise
    return link, rest, content


def query_host(data_dir: Path, hello: HostRequest) -> dict[str, Any]:
    """The reply alone. Raises as `connect_to_host` does."""
    link, _, content = connect_to_host(data_dir, hello)
    link.close()
    return content


def stop_host(data_dir: Path, version: str) -> bool:
    """End the host, if there is one; it finishes what it has begun. Whether there was one.

    Raises `HostRefused` if it does not end.
    """
    pid = host_pid(data_dir)
    try:
        pid = int(query_host(data_dir, HostRequest(want="stop", version=version))["pid"])
    except NoHost:  # or it has closed its door, and is at its end
        if not host_is_running(data_dir):
            return False
    until = time.monotonic() + START_SECONDS
    # A client that goes on may start the next one at once: that is another process.
    while host_is_running(data_dir) and host_pid(data_dir) in (pid, 0):
        if time.monotonic() > until:
            raise HostRefused(no_answer_message(data_dir))
        time.sleep(POLL_SECONDS)
    return True


def host_is_running(data_dir: Path) -> bool:
    """Whether a process is the host, answering or not."""
    try:
        return is_held(data_dir / LOCK)
    except OSError:
        return False


def no_answer_message(data_dir: Path) -> str:
    pid = host_pid(data_dir)
    return (
        f"The process of the memory in {data_dir} ({f'id {pid}' if pid else 'its id is not known'}) does not answer. "
        f"Look into {data_dir / LOG}, or kill it: nothing acknowledged is lost by that."
    )
