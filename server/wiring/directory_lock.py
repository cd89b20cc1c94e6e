"""One process owns a data directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from madeleine.memory.errors import StorageBusy, StorageError
from madeleine.server import __version__
from madeleine.server.attach.lock import hold
from madeleine.server.wiring.privacy import tighten

LOCK = "owner.lock"
ABOUT = "owner.json"


@contextmanager
def own_directory(data_dir: Path) -> Iterator[None]:
    """Hold the directory's lock; the operating system frees it when the process ends, however it ends.

    Raises `StorageBusy` if another process holds it, `StorageError` if the directory cannot be used.
    """
    with ExitStack() as stack:
        try:
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            acquired = stack.enter_context(hold(data_dir / LOCK))
        except OSError as error:
            raise StorageError(
                f"{data_dir} cannot be used: {error}. Set MADELEINE_DATA_DIR to a writable directory."
            ) from error
        if not acquired:
            raise StorageBusy(
                f"The memory in {data_dir} is in use by another Madeleine{_holder(data_dir)}. "
                "End that one (madeleine stop), or give this one a directory of its own with MADELEINE_DATA_DIR."
            )
        try:
            with suppress(OSError):  # for information only: a full disk must not keep the memory shut
                about = {"pid": os.getpid(), "version": __version__}
                (data_dir / ABOUT).write_text(json.dumps(about), encoding="utf-8")
            tighten(data_dir)
            yield
        finally:
            with suppress(OSError):
                (data_dir / ABOUT).unlink(missing_ok=True)


def _holder(data_dir: Path) -> str:
    try:
        about = json.loads((data_dir / ABOUT).read_text(encoding="utf-8"))
        return f" (process {int(about['pid'])})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
