"""Changing a memory. Its earlier version is kept, and never recalled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from madeleine.memory.embedding import Embedded, Embedder, embed_cached
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.indexing import index_now, index_points
from madeleine.memory.ingest.ports import StoreIndex, UpdateLedger
from madeleine.memory.ingest.redaction import Redaction
from madeleine.memory.model import Memory, MemoryChanges, MemoryId, Scope
from madeleine.memory.rules.dynamics.revision import changed
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """`changes`: the fields that were different. `unembedded`: why the memory is found by its words only, for now.
    `redacted`: secrets that were taken out, by kind."""

    memory: Memory
    changes: MemoryChanges
    unembedded: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict)


class UpdateMemory:
    """The use case. A dead memory can be changed too; it stays dead."""

    def __init__(
        self,
        ledger: UpdateLedger,
        index: StoreIndex,
        embedder: Embedder,
        write_lock: asyncio.Lock,
        *,
        now: Callable[[], datetime],
        on_commit: Callable[[], None] = lambda: None,
        redact: Redact = redact_secrets,
    ) -> None:
        """`write_lock`: shared with `StoreScenes`. `on_commit` is called after a commit; it must not block."""
        self._ledger = ledger
        self._index = index
        self._embedder = embedder
        self._write_lock = write_lock
        self._now = now
        self._on_commit = on_commit
        self._redact = redact

    async def __call__(self, scope: Scope, memory_id: MemoryId, changes: MemoryChanges) -> Updated:
        """Secrets in the new text and themes are redacted first. Raises `InvalidInput` if this being has no such
        memory, `StorageError`."""
        redaction = Redaction(self._redact)
        changes = replace(
            changes,
            text=None if changes.text is None else redaction.text(changes.text),
            themes=None if changes.themes is None else redaction.texts(changes.themes),
        )
        memories = await self._ledger.memories(scope, [memory_id])
        if not memories:
            raise _unknown(memory_id)
        embedded = await self._embed(changed(memories[0], changes), new_text=changes.text is not None)
        updated = await asyncio.shield(self._commit(scope, memory_id, changes, embedded))
        return replace(updated, redacted=redaction.found)

    async def _embed(self, memory: Memory, *, new_text: bool) -> Embedded:
        """A memory whose text stays is not embedded here: a vector that it lacks is filled in by the background."""
        if new_text:
            return await embed_cached(self._embedder, self._ledger, [memory.embed_text])
        return Embedded(await self._ledger.vectors(self._embedder.model, [memory.content_hash]))

    async def _commit(self, scope: Scope, memory_id: MemoryId, changes: MemoryChanges, embedded: Embedded) -> Updated:
        async with self._write_lock:
            result = await self._ledger.change(
                scope, memory_id, changes, at=self._now(), model=self._embedder.model, vectors=embedded.vectors
            )
            if result is None:  # forgotten while its text was embedded
                raise _unknown(memory_id)
            memory, made = result
            if made != MemoryChanges():
                self._on_commit()
                await index_now(self._index, await index_points([memory], embedded.vectors, self._embedder))
        return Updated(memory=memory, changes=made, unembedded=embedded.unavailable if made.text is not None else "")


def _unknown(memory_id: MemoryId) -> InvalidInput:
    return InvalidInput(
        f"There is no memory {memory_id!r}. Nothing was changed: take an id that recall or search_memory returned."
    )
