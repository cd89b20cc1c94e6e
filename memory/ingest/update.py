"""Change a memory. Its earlier version is kept, and never recalled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime

from madeleine.memory.embedding import EmbeddedTexts, Embedder, embed_cached
from madeleine.memory.errors import InvalidInput
from madeleine.memory.index import StoreIndex
from madeleine.memory.ingest.index_keeper import index_now, index_points
from madeleine.memory.ingest.ports import UpdateLedger
from madeleine.memory.model import Memory, MemoryChanges, MemoryId, Scope
from madeleine.memory.rules.dynamics.revision import changed_memory
from madeleine.memory.rules.storing.secrets import Redact, Redaction, redact_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """`changes`: the fields that were different. `unembedded`: why the memory is found by its words only, for now.
    `redacted`: number of secrets removed, by kind."""

    memory: Memory
    changes: MemoryChanges
    unembedded: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class UpdateMemory:
    """The use case. A dead memory can be changed too; it stays dead.

    `write_lock` is shared with `StoreScenes`. `on_commit` is called after a commit; it must not block.
    """

    ledger: UpdateLedger
    index: StoreIndex
    embedder: Embedder
    write_lock: asyncio.Lock
    _: KW_ONLY
    now: Callable[[], datetime]
    on_commit: Callable[[], None] = lambda: None
    redact: Redact = redact_secrets

    async def __call__(self, scope: Scope, memory_id: MemoryId, changes: MemoryChanges) -> Updated:
        """Redact secrets in the new text and themes, then change the memory. Raises `InvalidInput` if this being has no
        such memory, `StorageError`."""
        redaction = Redaction(self.redact)
        changes = replace(
            changes,
            text=None if changes.text is None else redaction.text(changes.text),
            themes=None if changes.themes is None else redaction.texts(changes.themes),
        )
        return replace(await self.update_redacted(scope, memory_id, changes), redacted=redaction.found)

    async def update_redacted(self, scope: Scope, memory_id: MemoryId, changes: MemoryChanges) -> Updated:
        """Update with texts that the caller has redacted."""
        memories = await self.ledger.memories(scope, [memory_id])
        if not memories:
            raise _unknown(memory_id)
        memory = changed_memory(memories[0], changes)
        if changes.text is None:  # a vector that the memory lacks is filled in by the background
            embedded = EmbeddedTexts(await self.ledger.vectors(self.embedder.model, [memory.content_hash]))
        else:
            embedded = await embed_cached(self.embedder, self.ledger, [memory.embed_text])
        return await asyncio.shield(self._commit(scope, memory_id, changes, embedded))

    async def _commit(
        self, scope: Scope, memory_id: MemoryId, changes: MemoryChanges, embedded: EmbeddedTexts
    ) -> Updated:
        async with self.write_lock:
            result = await self.ledger.change(
                scope, memory_id, changes, at=self.now(), model=self.embedder.model, vectors=embedded.vectors
            )
            if result is None:  # forgotten while its text was embedded
                raise _unknown(memory_id)
            memory, applied = result
            if applied != MemoryChanges():
                self.on_commit()
                await index_now(self.index, await index_points([memory], embedded.vectors, self.embedder))
        return Updated(
            memory=memory, changes=applied, unembedded=embedded.unavailable if applied.text is not None else ""
        )


def _unknown(memory_id: MemoryId) -> InvalidInput:
    return InvalidInput(
        f"There is no memory {memory_id!r}. Nothing was changed: take an id that recall or search_memory returned."
    )
