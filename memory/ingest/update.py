"""Changing what is remembered, by the one whose memory it is. What was before is kept, and never recalled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from madeleine.memory.errors import EmbeddingUnavailable, InvalidInput
from madeleine.memory.ingest.pointing import index_now, index_points
from madeleine.memory.ingest.ports import StoreIndex, UpdateLedger
from madeleine.memory.ingest.redaction import Cleaning
from madeleine.memory.model import ContentHash, Memory, MemoryChanges, MemoryId, Vector
from madeleine.memory.ports import Embedder
from madeleine.memory.rules.dynamics.revision import changed
from madeleine.memory.rules.storing.secrets import Redact, redacted
from madeleine.memory.scope import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """`changes`: what is different now. `unembedded`: why it is found by its words only, for now. `redacted`: the
    secrets that were taken out of what was given, by kind."""

    memory: Memory
    changes: MemoryChanges
    unembedded: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict)


class UpdateMemory:
    """The use case. A dead memory can be changed too; it stays dead, and is recalled no sooner for it."""

    def __init__(
        self,
        ledger: UpdateLedger,
        index: StoreIndex,
        embedder: Embedder,
        turn: asyncio.Lock,
        *,
        now: Callable[[], datetime],
        wrote: Callable[[], None] = lambda: None,
        redact: Redact = redacted,
    ) -> None:
        """`turn` is the one that `StoreScenes` takes; `wrote` is called after a commit, and must not block."""
        self._ledger = ledger
        self._index = index
        self._embedder = embedder
        self._turn = turn
        self._now = now
        self._wrote = wrote
        self._redact = redact

    async def __call__(self, scope: Scope, memory_id: MemoryId, changes: MemoryChanges) -> Updated:
        """Secrets in the new text and themes are redacted first. Raises `InvalidInput` if this being has no such
        memory, `StorageError`."""
        cleaning = Cleaning(self._redact)
        changes = replace(
            changes,
            text=None if changes.text is None else cleaning.text(changes.text),
            themes=None if changes.themes is None else cleaning.texts(changes.themes),
        )
        found = await self._ledger.memories(scope, [memory_id])
        if not found:
            raise _unknown(memory_id)
        vectors, unembedded = await self._embed(changed(found[0], changes), anew=changes.text is not None)
        updated = await asyncio.shield(self._in_turn(scope, memory_id, changes, vectors, unembedded))
        return replace(updated, redacted=cleaning.found)

    async def _embed(self, to_be: Memory, *, anew: bool) -> tuple[dict[ContentHash, Vector], str]:
        """The vector of its text, known or new; else why there is none."""
        vectors = await self._ledger.vectors(self._embedder.model, [to_be.content_hash])
        if vectors or not anew:
            return vectors, ""
        try:
            [row] = await self._embedder.embed([to_be.embed_text])
        except EmbeddingUnavailable as error:
            return {}, str(error)
        return {to_be.content_hash: row}, ""

    async def _in_turn(
        self,
        scope: Scope,
        memory_id: MemoryId,
        changes: MemoryChanges,
        vectors: dict[ContentHash, Vector],
        unembedded: str,
    ) -> Updated:
        async with self._turn:
            found = await self._ledger.change(
                scope, memory_id, changes, at=self._now(), model=self._embedder.model, vectors=vectors
            )
            if found is None:  # forgotten while its text was embedded
                raise _unknown(memory_id)
            memory, done = found
            if done != MemoryChanges():
                self._wrote()
                await index_now(self._index, await index_points([memory], vectors, self._embedder))
        return Updated(memory=memory, changes=done, unembedded=unembedded if done.text is not None else "")


def _unknown(memory_id: MemoryId) -> InvalidInput:
    return InvalidInput(
        f"There is no memory {memory_id!r}. Nothing was changed: take an id that recall or search_memory returned."
    )
