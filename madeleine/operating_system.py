"""What differs between operating systems: locks, sockets, pipes, signals, processes, permissions, files.

The one place that asks which system this is. Standard library only: what a client starts imports it. Tests set
`OPERATING_SYSTEM` to another system, and run what can be run of it here."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

OperatingSystem = Literal["linux", "macos", "windows"]
OPERATING_SYSTEM: OperatingSystem = (
    "windows" if sys.platform == "win32" else "macos" if sys.platform == "darwin" else "linux"
)
"""Any other Unix is taken for Linux."""
_DETACHED_PROCESS, _CREATE_NEW_PROCESS_GROUP = 0x00000008, 0x00000200
"""Of Windows."""


def is_windows() -> bool:
    return OPERATING_SYSTEM == "windows"


# --- locks ----------------------------------------------------------------------------------------------------------

if sys.platform == "win32":
    import msvcrt

    def lock_file(fd: int) -> None:
        """Raises `BlockingIOError` or `PermissionError` if another process holds the lock of the file."""
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def lock_file(fd: int) -> None:
        """Raises `BlockingIOError` or `PermissionError` if another process holds the lock of the file."""
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def try_to_hold_file_lock(path: Path) -> Iterator[bool]:
    """Hold the lock of a file; yields False if another process holds it. Raises `OSError` if the file cannot be used.

    The operating system frees the lock when the process ends, however it ends."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        try:
            lock_file(fd)
        except (BlockingIOError, PermissionError):
            yield False
        else:
            yield True
    finally:
        os.close(fd)


# --- sockets and pipes ----------------------------------------------------------------------------------------------


def has_unix_sockets() -> bool:
    """Python has none on Windows."""
    return not is_windows()


def can_watch_pipes() -> bool:
    """Whether `select` takes pipes; on Windows it takes sockets alone."""
    return not is_windows()


def raise_open_file_limit(most: int) -> int:
    """Raise this process's limit of open files to at most `most`, and return it. Windows has none."""
    if sys.platform == "win32" or is_windows():
        return most
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return min(wanted, most)
    with suppress(ValueError, OSError):  # macOS refuses more than its kernel allows, whatever the hard limit says
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


# --- signals and processes ------------------------------------------------------------------------------------------


def stop_signals() -> tuple[signal.Signals, ...]:
    """Signals that end a process in order; none on Windows, whose event loop takes none."""
    return () if is_windows() else (signal.SIGTERM, signal.SIGINT)


def options_of_detached_process() -> dict[str, Any]:
    """For `subprocess.Popen`: closing the client's terminal does not end the process."""
    if is_windows():
        return {"creationflags": _DETACHED_PROCESS | _CREATE_NEW_PROCESS_GROUP} if sys.platform == "win32" else {}
    return {"start_new_session": True}


def lower_priority() -> None:
    """Of this process, for the rest of its life. On Windows it stays."""
    if hasattr(os, "nice"):
        os.nice(10)


def executable_file_name(name: str) -> str:
    """The file name of an installed command."""
    return f"{name}.exe" if is_windows() else name


def has_glibc_allocator() -> bool:
    """Whether `mallopt` may be there."""
    return OPERATING_SYSTEM == "linux"


# --- files ----------------------------------------------------------------------------------------------------------


def system_has_permission_bits() -> bool:
    """Whether the mode of a file says who may read it. On Windows permissions are inherited from the folder."""
    return not is_windows()


def operating_system_user_id() -> int:
    """0 on Windows, which has none."""
    return 0 if sys.platform == "win32" else os.getuid()


def fsync_folder(folder: Path) -> None:
    """Return when new names in it are on disk, where a folder can be opened for that. Raises `OSError`."""
    if is_windows():
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def encoding_of_pipes() -> str | None:
    """The encoding that standard output needs where it is no terminal; None for its own. On Windows it is that of the
    country, in which other programs expect no JSON."""
    return "utf-8" if is_windows() else None
