"""Space on the disk, of which the last is kept free, and memory of the process that nobody uses any more.

The index's engine writes through mapped files: where no page can be had for one, the kernel ends the process (SIGBUS),
and no error is ever raised. SQLite says that the disk is full, and goes on. So the index stops to write while there is
still space for what it has begun, and the ledger stops to take in what could not be indexed before that.

glibc gives threads that ask for memory at the same time heaps of their own ("arenas"), up to eight a processor, and
what is free in one is of no use to the others. A server has a dozen threads (each connection to SQLite is one), of
which the GIL lets few ask at once. And what is free in the midst of a heap it keeps, until it is told to look. When
10 MB (17,000 memories) were ingested, the model left out, 45 of 258 MB were such gaps at the end.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from shutil import disk_usage

from madeleine import operating_system
from madeleine.memory.errors import MadeleineError, StorageFull

MEGABYTE = 1024 * 1024
INDEX_DISK_RESERVE_BYTES = 32 * MEGABYTE
"""What a flush writes at most: segments and log of the embedded index take some 25 MB for the first memory, and grow by
files of 2 MB."""
LEDGER_DISK_RESERVE_BYTES = 2 * INDEX_DISK_RESERVE_BYTES
MAX_MALLOC_ARENAS = 2
_MALLOPT_ARENA_MAX_PARAMETER = -8
"""As glibc's malloc.h has it."""

# A C library of another make has neither `mallopt` nor `malloc_trim`.
_libc = ctypes.CDLL(None) if operating_system.has_glibc_allocator() else None


def free_disk_bytes(directory: Path) -> int:
    return disk_usage(directory).free


def has_disk_space(directory: Path, needed_bytes: int) -> bool:
    return free_disk_bytes(directory) >= needed_bytes


def require_disk_space(directory: Path, reserve_bytes: int, error: type[MadeleineError] = StorageFull) -> None:
    """Raises `error` if less than `reserve_bytes` are free."""
    free = free_disk_bytes(directory)
    if free < reserve_bytes:
        raise error(
            f"The disk is full: {free // MEGABYTE} MB are left of the {reserve_bytes // MEGABYTE} MB that are kept "
            "free, so that nothing is lost. Nothing was stored: free some space and try again."
        )


def limit_malloc_arenas() -> None:
    """For the rest of the process. Arenas that it already has stay."""
    if mallopt := getattr(_libc, "mallopt", None):
        mallopt(_MALLOPT_ARENA_MAX_PARAMETER, MAX_MALLOC_ARENAS)


def return_unused_process_memory() -> None:
    """Give unused memory back to the system, after much was freed at once: some milliseconds, without the GIL."""
    if malloc_trim := getattr(_libc, "malloc_trim", None):
        malloc_trim(0)
