"""Standard input and output beside a socket, watched by one selector."""

from __future__ import annotations

import os
import select
import selectors
import socket
import threading
from contextlib import suppress

CHUNK = 64 * 1024
PIPE_BUF = 4096
"""Bytes that a pipe which is ready takes without blocking."""


class Source:
    """A descriptor to read from. What a selector cannot watch, a file, or any on Windows, is read by a thread."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pumped: socket.socket | None = None
        if _needs_pump(fd):
            self._pumped, other = socket.socketpair()
            threading.Thread(target=self._pump, args=(other,), name="stdin", daemon=True).start()

    def fileno(self) -> int:
        return self._pumped.fileno() if self._pumped else self._fd

    def read(self) -> bytes:
        """What there is; b"" at the end."""
        try:
            return self._pumped.recv(CHUNK) if self._pumped else os.read(self._fd, CHUNK)
        except ConnectionError:
            return b""

    def _pump(self, other: socket.socket) -> None:
        with suppress(OSError), other:
            while got := os.read(self._fd, CHUNK):
                other.sendall(got)


class Sink:
    """A descriptor to write to, without ever waiting for a reader that does not read; `waiting` holds what is left."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.waiting = bytearray()
        # Where nobody can tell whether it takes more, writing waits.
        self.watched = hasattr(select, "poll") and not _needs_pump(fd, selectors.EVENT_WRITE)

    def fileno(self) -> int:
        return self._fd

    def write(self, data: bytes) -> None:
        """Raises `BrokenPipeError` when nobody reads any more."""
        self.waiting += data
        self.flush()

    def flush(self) -> None:
        while self.waiting and (not self.watched or takes_now(self._fd)):
            del self.waiting[: os.write(self._fd, self.waiting[:PIPE_BUF])]


def takes_now(fd: int) -> bool:
    """Whether a write needs not wait. False on Windows, where nobody can tell."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(0))


def _needs_pump(fd: int, events: int = selectors.EVENT_READ) -> bool:
    with selectors.DefaultSelector() as selector:
        try:
            selector.register(fd, events)
            selector.select(0)
        except (OSError, ValueError):
            return True
    return False
