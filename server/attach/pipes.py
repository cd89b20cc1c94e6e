"""Standard input and output beside a socket, watched by one selector."""

from __future__ import annotations

import os
import select
import selectors
import socket
import threading
from contextlib import suppress

from madeleine.server.attach.lines import CHUNK

PIPE_BUF = 4096
"""Bytes that a pipe which is ready takes without blocking."""


class InputPipe:
    """A descriptor to read from. One that a selector cannot watch (a file, anything on Windows) is read by a thread."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._relay: socket.socket | None = None
        if not _can_be_watched(fd, selectors.EVENT_READ):
            self._relay, writer = socket.socketpair()
            threading.Thread(target=self._copy, args=(writer,), name="stdin", daemon=True).start()

    def fileno(self) -> int:
        return self._relay.fileno() if self._relay else self._fd

    def read(self) -> bytes:
        """What there is; b"" at the end."""
        try:
            return self._relay.recv(CHUNK) if self._relay else os.read(self._fd, CHUNK)
        except ConnectionError:
            return b""

    def _copy(self, writer: socket.socket) -> None:
        with suppress(OSError), writer:
            while data := os.read(self._fd, CHUNK):
                writer.sendall(data)


class OutputPipe:
    """A descriptor to write to without waiting for a reader that does not read; `unsent` holds the rest."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.unsent = bytearray()
        # Where nobody can tell whether it takes more, writing waits.
        self.watched = hasattr(select, "poll") and _can_be_watched(fd, selectors.EVENT_WRITE)

    def fileno(self) -> int:
        return self._fd

    def write(self, data: bytes) -> None:
        """Raises `BrokenPipeError` when nobody reads any more."""
        self.unsent += data
        self.flush()

    def flush(self) -> None:
        while self.unsent and (not self.watched or is_writable(self._fd)):
            del self.unsent[: os.write(self._fd, self.unsent[:PIPE_BUF])]


def is_writable(fd: int) -> bool:
    """Whether a write does not block. False on Windows, where nobody can tell."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(0))


def _can_be_watched(fd: int, events: int) -> bool:
    with selectors.DefaultSelector() as selector:
        try:
            selector.register(fd, events)
            selector.select(0)
        except (OSError, ValueError):
            return False
    return True
