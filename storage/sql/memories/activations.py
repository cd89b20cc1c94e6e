"""Reactivations and the audit of recalls, written off the request path (spec P9 to P11, O4, ruling 2)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import bindparam, func, update

from madeleine.memory.audit import AuditEntry
from madeleine.memory.errors import MadeleineError, StorageFull
from madeleine.memory.model import Scope
from madeleine.memory.recall.ports import MemoryReactivation
from madeleine.storage.sql.administration import append_audit_entries
from madeleine.storage.sql.database.dialect import sql_greatest
from madeleine.storage.sql.database.engine import Database, run_to_end_despite_cancellation
from madeleine.storage.sql.database.mapping import microseconds_from_moment
from madeleine.storage.sql.database.memory_rows import SINCE_COLUMN_VALUE_AFTER_RECALL
from madeleine.storage.sql.database.tables import memories_table

_log = logging.getLogger(__name__)

REACTIVATION_BATCH_DELAY_SECONDS = 1.0
"""Time from the first record of a batch to its write: a burst of recalls is one transaction."""
MAX_REACTIVATION_RETRY_PAUSE_SECONDS = 30.0
"""The longest pause between attempts while the disk is full."""

_m = memories_table.c
_UPDATE_REACTIVATED_MEMORY = (
    update(memories_table)
    .where(_m.id == bindparam("target"), _m.being_id == bindparam("being"))
    .values(
        reactivation_count=_m.reactivation_count + bindparam("times"),
        last_activated=sql_greatest(func.coalesce(_m.last_activated, bindparam("at")), bindparam("at")),
        since=SINCE_COLUMN_VALUE_AFTER_RECALL,
    )
)


class ReactivationAndAuditWriter:
    """`ReactivationRecorder` and `AuditEntryRecorder`. An async context manager: its task writes while it is open, and
    leaving it writes what is pending."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._activations: list[dict[str, Any]] = []
        self._audit_entries: list[AuditEntry] = []
        self._has_pending = asyncio.Event()
        self._write_lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def add_reactivations(self, scope: Scope, activations: Sequence[MemoryReactivation]) -> None:
        if scope.count_activations and activations:
            being = scope.being_id
            self._activations += [
                {
                    "target": recalled.memory_id,
                    "being": being,
                    "times": recalled.times,
                    "at": microseconds_from_moment(recalled.at),
                }
                for recalled in activations
            ]
            self._has_pending.set()

    def add_audit_entry(self, entry: AuditEntry) -> None:
        self._audit_entries.append(entry)
        self._has_pending.set()

    async def flush(self) -> None:
        """Raises `StorageError` if writing fails; the records stay pending and are retried."""
        async with self._write_lock:
            # Not cancelled midway: after half a write it would not be known whether to count again.
            await run_to_end_despite_cancellation(self._write())

    async def __aenter__(self) -> ReactivationAndAuditWriter:
        self._task = asyncio.create_task(self._write_in_batches(), name="activations")
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
                "writing %d reactivations and %d audit entries before closing failed",
                len(self._activations),
                len(self._audit_entries),
            )

    async def _write_in_batches(self) -> None:
        pause = REACTIVATION_BATCH_DELAY_SECONDS
        while True:
            await self._has_pending.wait()
            await asyncio.sleep(pause)
            try:
                await self.flush()
                pause = REACTIVATION_BATCH_DELAY_SECONDS
            except Exception as error:  # of any kind: the records are kept, and nothing else would write them
                pause = min(max(2 * pause, 1.0), MAX_REACTIVATION_RETRY_PAUSE_SECONDS)
                is_full = isinstance(error, StorageFull)
                level = logging.WARNING if is_full else logging.ERROR
                message = "writing reactivations failed (%s); retrying in %.0f s"
                _log.log(level, message, error, pause, exc_info=not is_full)

    async def _write(self) -> None:
        activations, self._activations = self._activations, []
        entries, self._audit_entries = self._audit_entries, []
        self._has_pending.clear()
        if not activations and not entries:
            return
        try:
            async with self._database.transaction() as transaction:
                await transaction.execute_many(_UPDATE_REACTIVATED_MEMORY, activations)
                await append_audit_entries(transaction, entries)
        except BaseException:
            self._activations[:0] = activations
            self._audit_entries[:0] = entries
            self._has_pending.set()
            raise
