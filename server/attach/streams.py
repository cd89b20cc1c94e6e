"""Lines of a byte stream, and standard input and output as streams that `select` can watch."""

from __future__ import annotations

import math
import os
import select
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from madeleine import operating_system

MAX_JSON_RPC_LINE_BYTES = 16 * 1024 * 1024
"""Limit of a JSON-RPC message; a longer line is skipped and answered with an error."""
MAX_STREAM_READ_BYTES = 64 * 1024
"""Read at once, at most."""
PIPE_WRITE_CHUNK_BYTES = 4096
"""Bytes that a pipe which is ready takes without blocking."""


ReadBytes = Callable[[int], Awaitable[bytes]]
"""Takes a limit; returns at most that many bytes, b"" at the end."""


class LineBuffer:
    """Collects bytes until a line is complete. Blank lines are left out."""

    def __init__(self, max_bytes: float = math.inf) -> None:
        """`max_bytes`: of a line."""
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return the lines that `data` completes, without their ends; None for a line that was too long."""
        lines: list[bytes | None] = []
        searched = len(self._buffer)
        self._buffer += data
        while (end := self._buffer.find(b"\n", searched)) >= 0:
            line, searched = bytes(self._buffer[:end]), 0
            del self._buffer[: end + 1]
            if self._skipping or len(line) > self._max_bytes:
                self._skipping = False
                lines.append(None)
            elif line.strip():
                lines.append(line)
        if len(self._buffer) > self._max_bytes:
            self._buffer.clear()
            self._skipping = True
        return lines


async def read_lines_of_byte_stream(
    read: ReadBytes, max_bytes: int = MAX_JSON_RPC_LINE_BYTES
) -> AsyncIterator[bytes | None]:
    """Each line as `LineBuffer` has it; the last one may have no end."""
    buffer = LineBuffer(max_bytes)
    while chunk := await read(MAX_STREAM_READ_BYTES):
        for line in buffer.feed(chunk):
            yield line
    for line in buffer.feed(b"\n"):
        yield line


class PollableInputStream:
    """A descriptor to read from. On Windows, where only sockets can be watched, a thread reads it into one."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._relay: socket.socket | None = None
        if not operating_system.can_watch_pipes():
            self._relay, writer = socket.socketpair()
            threading.Thread(target=_copy_to_socket, args=(fd, writer), name="stdin", daemon=True).start()

    def fileno(self) -> int:
        return self._relay.fileno() if self._relay else self._fd

    def read(self) -> bytes:
        """The bytes that have arrived; b"" at the end."""
        try:
            return self._relay.recv(MAX_STREAM_READ_BYTES) if self._relay else os.read(self._fd, MAX_STREAM_READ_BYTES)
        except ConnectionError:
            return b""


def _copy_to_socket(fd: int, writer: socket.socket) -> None:
    with suppress(OSError), writer:
        while data := os.read(fd, MAX_STREAM_READ_BYTES):
            writer.sendall(data)


class NonblockingOutput:
    """A descriptor to write to without waiting for a reader that does not read; `unsent` holds the remaining bytes."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.unsent = bytearray()

    def fileno(self) -> int:
        return self._fd

    def write(self, data: bytes) -> None:
        """Raises `BrokenPipeError` when nobody reads any more."""
        self.unsent += data
        self.write_unsent_without_blocking()

    def write_unsent_without_blocking(self) -> None:
        # On Windows, where nobody can tell whether a pipe takes more, writing waits.
        while self.unsent and (not operating_system.can_watch_pipes() or can_write_without_blocking(self._fd)):
            del self.unsent[: os.write(self._fd, self.unsent[:PIPE_WRITE_CHUNK_BYTES])]


def can_write_without_blocking(fd: int) -> bool:
    """Return whether a write would not block. False on Windows, where nobody can tell."""
    return operating_system.can_watch_pipes() and bool(select.select([], [fd], [], 0)[1])
