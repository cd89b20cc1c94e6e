"""Work on a copy of an embedded index, in a child process: graphs for search, or new files without deleted points.

Qdrant Edge holds the GIL in every call, and `optimize` for 40,000 points is one of 20 s. So it runs in another process.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import qdrant_edge as qe

from madeleine.memory.errors import IndexUnavailable
from madeleine.storage.qdrant.edge_engine import create_shard
from madeleine.storage.qdrant.schema import DENSE
from madeleine.storage.room import INDEX_RESERVE_BYTES, has_room

_PAGE = 500
_DONE, _NOTHING_TO_DO = 0, 3

Work = Callable[[str], int]
"""`optimize_files` or `rewrite_files`: takes the shard's path, returns the exit code."""


class Builder:
    """Runs one child process at a time."""

    def __init__(self) -> None:
        self.process: asyncio.subprocess.Process | None = None
        self.stopped = False
        """Set by `stop`; whoever begins a renewal clears it."""

    def stop(self) -> None:
        self.stopped = True
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()

    async def run(self, work: Work, path: Path) -> bool:
        """True if the shard at `path` was changed to the end. Raises `IndexUnavailable` if the process failed."""
        if self.stopped:
            return False
        # The child is told where to import from, as this process may have been started in any way.
        code = f"import sys; sys.path[:] = {sys.path!r}; from {work.__module__} import {work.__name__}; "
        code += f"sys.exit({work.__name__}({str(path)!r}))"
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            outcome = await self.process.wait()
        finally:
            if self.process.returncode is None:
                self.process.kill()
                await self.process.wait()
            self.process = None
        if outcome not in (_DONE, _NOTHING_TO_DO) and not self.stopped:
            raise IndexUnavailable(f"Renewing the index ended with code {outcome}; it goes on as it is.")
        return outcome == _DONE and not self.stopped


def may_be_optimized(generation: Path, dim: int) -> bool:
    """Whether a copy is worth its time, and has room: enough points, new or changed, are outside the graph.

    The engine's API does not tell how many, its files of versions do: 8 bytes a point.
    """
    config = json.loads((generation / "edge_config.json").read_bytes())
    threshold_points: float = config["optimizers"]["indexing_threshold"] * 1024 / (dim * 4)
    unindexed = sum(path.stat().st_size // 8 for path in generation.glob("segments/*/mutable_id_tracker.versions"))
    if unindexed <= threshold_points:
        return False
    size = sum(path.stat().st_size for path in generation.rglob("*") if path.is_file())
    return has_room(generation, 2 * size + INDEX_RESERVE_BYTES)


# --- in the child process ---------------------------------------------------------------------------------------


def optimize_files(path: str) -> int:
    """Build the graphs of the shard at `path`, at low priority."""
    if hasattr(os, "nice"):
        os.nice(10)
    shard = qe.EdgeShard.load(path)
    changed = shard.optimize()
    shard.close()
    return _DONE if changed else _NOTHING_TO_DO


def rewrite_files(path: str) -> int:
    """Write the points of the shard at `path` into new files, which take the place of the old. Without graphs;
    `optimize` builds those when there is time."""
    old = qe.EdgeShard.load(path)
    config = json.loads((Path(path) / "edge_config.json").read_bytes())
    new_path = Path(f"{path}-anew")
    new = create_shard(new_path, config["vectors"][DENSE]["size"], config["optimizers"]["indexing_threshold"])
    offset: Any = None
    while True:
        request = qe.ScrollRequest(offset=offset, limit=_PAGE, with_payload=True, with_vector=True)
        records, offset = old.scroll(request)
        points = [qe.Point(record.id, cast(Any, record.vector) or {}, record.payload) for record in records]
        if points:
            new.update(qe.UpdateOperation.upsert_points(points))
        if offset is None:
            break
    new.flush()
    new.close()
    old.close()
    shutil.rmtree(path)
    new_path.rename(path)
    return _DONE
