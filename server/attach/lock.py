"""A lock on a file, which the operating system frees when its process ends, however it ends.

Standard library only: a forwarder uses it at its start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def hold(path: Path) -> Iterator[bool]:
    """Hold the lock; yields False if another process holds it. Raises `OSError` if the file cannot be used."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        try:
            _lock(fd)
        except (BlockingIOError, PermissionError):
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def is_held(path: Path) -> bool:
    with hold(path) as acquired:
        return not acquired
