"""One process owns a data directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from madeleine.memory.errors import StorageBusy, StorageError
from madeleine.server import __version__
from madeleine.server.wiring.privacy import tighten

LOCK = "owner.lock"
ABOUT = "owner.json"


@contextmanager
def own(data_dir: Path) -> Iterator[None]:
    """Hold the directory's lock; the operating system frees it when the process ends, however it ends.

    Raises `StorageBusy` if another process holds it, `StorageError` if the directory cannot be used.
    """
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(data_dir / LOCK, timeout=0, mode=0o600)
        lock.acquire()
    except Timeout as error:
        raise StorageBusy(
            f"The memory in {data_dir} is in use by another Madeleine{_holder(data_dir)}. "
            "End that one (madeleine stop), or give this one a directory of its own with MADELEINE_DATA_DIR."
        ) from error
    except OSError as error:
        raise StorageError(
            f"{data_dir} cannot be used: {error}. Set MADELEINE_DATA_DIR to a writable directory."
        ) from error
    try:
        with suppress(OSError):  # it only tells who holds the lock: a full disk must not keep the memory shut
            (data_dir / ABOUT).write_text(json.dumps({"pid": os.getpid(), "version": __version__}), encoding="utf-8")
        tighten(data_dir)
        yield
    finally:
        with suppress(OSError):
            (data_dir / ABOUT).unlink(missing_ok=True)
        lock.release()


def _holder(data_dir: Path) -> str:
    try:
        about = json.loads((data_dir / ABOUT).read_text(encoding="utf-8"))
        return f" (process {int(about['pid'])})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
