"""What a patrol needs of the ledger (spec P6; rulings 10 and 11)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from madeleine.memory.model import ContentHash, ModelName, Note, RunId, Scope, Vector
from madeleine.memory.patrol_records import RunState, StoredDecisionRequest, UndoResult
from madeleine.storage.sql.conversations.context import unread_notes
from madeleine.storage.sql.memories.index_source import cache_vectors_and_mark, cached_vectors
from madeleine.storage.sql.patrols import offers, undo
from madeleine.storage.sql.patrols.patrol import PatrolReader, PatrolWriter
from madeleine.storage.sql.patrols.runs import RunRepository


class PatrolRepository(RunRepository):
    """`PatrolLedger`."""

    async def unread_notes(self, scope: Scope, *, type: str) -> list[Note]:
        return await unread_notes(self._database, scope, type)

    async def vectors(self, model: ModelName, hashes: Sequence[ContentHash]) -> dict[ContentHash, Vector]:
        return await cached_vectors(self._database, model, hashes)

    async def add_vectors(self, model: ModelName, vectors: Mapping[ContentHash, Vector]) -> None:
        await cache_vectors_and_mark(self._database, model, vectors)

    @asynccontextmanager
    async def patrol(self, scope: Scope) -> AsyncIterator[PatrolWriter]:
        async with self._database.transaction(grows=True) as transaction:
            yield PatrolWriter(transaction, scope)

    def patrol_reads(self, scope: Scope) -> PatrolReader:
        return PatrolReader(self._database, scope)

    async def store_requests(
        self, scope: Scope, offered: Sequence[StoredDecisionRequest], *, at: datetime, read_at_erasure: int
    ) -> bool:
        return await offers.store_requests(self._database, scope, offered, at, read_at_erasure)

    async def undo(self, scope: Scope, run: RunId, *, at: datetime, state: RunState = "undone") -> UndoResult:
        return await undo.undo(self._database, scope, run, at=at, state=state)
