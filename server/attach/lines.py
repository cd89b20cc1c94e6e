"""Lines of a byte stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a JSON-RPC message, at most; a longer line is skipped and answered with an error."""
CHUNK = 64 * 1024


class ByteReader(Protocol):
    async def read(self, limit: int, /) -> bytes:
        """At most `limit` bytes, b"" at the end."""
        ...


class LineBuffer:
    """Collects bytes until a line is complete. Blank lines are left out."""

    def __init__(self, longest: int | None = None) -> None:
        """`longest`: bytes of a line; None for no limit."""
        self._longest = longest
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
            if self._skipping or self._too_long(len(line)):
                self._skipping = False
                lines.append(None)
            elif line.strip():
                lines.append(line)
        if self._too_long(len(self._buffer)):
            self._buffer.clear()
            self._skipping = True
        return lines

    def clear(self) -> None:
        self._buffer.clear()
        self._skipping = False

    def _too_long(self, size: int) -> bool:
        return self._longest is not None and size > self._longest


async def read_lines(source: ByteReader, longest: int = LONGEST_LINE) -> AsyncIterator[bytes | None]:
    """Each line as `LineBuffer` has it; the last one may have no end."""
    buffer = LineBuffer(longest)
    while chunk := await source.read(CHUNK):
        for line in buffer.feed(chunk):
            yield line
    for line in buffer.feed(b"\n"):
        yield line
