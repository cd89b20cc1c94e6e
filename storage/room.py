"""Room on the disk. The last of it is kept free.

The index's engine writes through mapped files: where no page can be had for one, the kernel ends the process (SIGBUS),
and no error is ever raised. SQLite says that the disk is full, and goes on. So the index stops to write while there is
still room for what it has begun, and the ledger stops to take in what could not be indexed before that.
"""

from __future__ import annotations

from pathlib import Path
from shutil import disk_usage

from madeleine.memory.errors import StorageFull

MEGABYTE = 1024 * 1024
INDEX_RESERVE_BYTES = 32 * MEGABYTE
"""What a flush writes at most: segments and log of the embedded index take some 25 MB for the first memory, and grow by
files of 2 MB."""
LEDGER_RESERVE_BYTES = 2 * INDEX_RESERVE_BYTES


def has_room(directory: Path, wanted: int) -> bool:
    return disk_usage(directory).free >= wanted


def require_room(directory: Path, wanted: int) -> None:
    """Raises `StorageFull` if less than `wanted` bytes are free."""
    free = disk_usage(directory).free
    if free < wanted:
        raise StorageFull(
            f"The disk is full: {free // MEGABYTE} MB are left of the {wanted // MEGABYTE} MB that are kept free, so "
            "that nothing is lost. Nothing was stored: free some space and try again."
        )
