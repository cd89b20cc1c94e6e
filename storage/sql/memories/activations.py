"""Reactivations and the audit of recalls, written off the request path (spec P9 to P11, O4, ruling 2)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import bindparam, func, update

from madeleine.memory.audit import AuditEntry
from madeleine.memory.errors import MadeleineError, StorageFull
from madeleine.memory.model import BeingId, MemoryId, Scope
from madeleine.memory.recall.ports import Activation
from madeleine.storage.sql.administration import append_audit
from madeleine.storage.sql.database.dialect import greatest
from madeleine.storage.sql.database.engine import Database, finish
from madeleine.storage.sql.database.mapping import to_micros
from madeleine.storage.sql.database.tables import memories
from madeleine.storage.sql.memories.clock import ACTIVATED

_log = logging.getLogger(__name__)

GATHER_SECONDS = 1.0
"""How long the first of a batch waits for more: a burst of recalls is one transaction."""
RETRY_SECONDS = 30.0
"""The longest pause between tries while the disk is full."""

_m = memories.c
_ACTIVATE = (
    update(memories)
    .where(_m.id == bindparam("target"), _m.being_id == bindparam("being"))
    .values(
        reactivation_count=_m.reactivation_count + bindparam("times"),
        last_activated=greatest(func.coalesce(_m.last_activated, bindparam("at")), bindparam("at")),
        since=ACTIVATED,
    )
)

_Queue = dict[tuple[BeingId, MemoryId], tuple[int, int]]


class Activations:
    """An async context manager: its task writes while it is open, and what is left is written on leaving."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: _Queue = {}
        self._entries: list[AuditEntry] = []
        self._some = asyncio.Event()
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def add(self, scope: Scope, activations: Sequence[Activation]) -> None:
        if not scope.count_activations:
            return
        for one in activations:
            self._count((scope.being_id, one.memory_id), one.times, to_micros(one.at))
        if activations:
            self._some.set()

    def record(self, entry: AuditEntry) -> None:
        self._entries.append(entry)
        self._some.set()

    async def flush(self) -> None:
        """Raises `StorageError` if it cannot be written now; it is kept, and tried again."""
        async with self._turn:
            # To its end: after half a write it would not be known whether to count again.
            await finish(self._write())

    async def __aenter__(self) -> Activations:
        self._task = asyncio.create_task(self._write_as_they_come(), name="activations")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        try:
            await self.flush()
        except MadeleineError:
            _log.exception(
                "%d reactivations and %d audit entries could not be written before closing",
                len(self._queue),
                len(self._entries),
            )

    async def _write_as_they_come(self) -> None:
        pause = GATHER_SECONDS
        while True:
            await self._some.wait()
            await asyncio.sleep(pause)
            try:
                await self.flush()
                pause = GATHER_SECONDS
            except StorageFull as error:
                pause = _longer(pause)
                _log.warning("reactivations wait for room on the disk; the next try is in %.0f s: %s", pause, error)
            except Exception:  # whatever it is: the counts are kept, and nobody else would write them
                pause = _longer(pause)
                _log.exception("reactivations could not be written; the next try is in %.0f s", pause)

    async def _write(self) -> None:
        batch, self._queue = self._queue, {}
        entries, self._entries = self._entries, []
        self._some.clear()
        if not batch and not entries:
            return
        try:
            async with self._database.transaction() as transaction:
                await transaction.run(_ACTIVATE, _rows(batch))
                await append_audit(transaction, entries)
        except BaseException:
            self._entries[:0] = entries
            for key, (times, at) in batch.items():
                self._count(key, times, at)
            self._some.set()
            raise

    def _count(self, key: tuple[BeingId, MemoryId], times: int, at: int) -> None:
        before, latest = self._queue.get(key, (0, at))
        self._queue[key] = (before + times, max(latest, at))


def _longer(pause: float) -> float:
    return min(max(2 * pause, 1.0), RETRY_SECONDS)


def _rows(batch: Mapping[tuple[BeingId, MemoryId], tuple[int, int]]) -> Iterator[dict[str, Any]]:
    for (being, memory_id), (times, at) in batch.items():
        yield {"target": memory_id, "being": being, "times": times, "at": at}
