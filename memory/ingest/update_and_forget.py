"""Change a memory, whose earlier version is kept and never recalled; and forget memories on purpose (rulings 11, 25).

Forgetting is the only way in which anything is ever erased, and then everywhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime

from madeleine.memory.chat import MessageId
from madeleine.memory.embedding import Embedder, EmbeddingOutcome, embed_with_cache
from madeleine.memory.errors import IndexUnavailable, InvalidInput
from madeleine.memory.index import IndexForStoringMemories
from madeleine.memory.ingest.erased_bytes import MAX_SCRUB_WAIT_SECONDS, ErasedBytesScrubber
from madeleine.memory.ingest.index_keeper import IndexKeeper, index_points_from_memories, try_to_index_committed_points
from madeleine.memory.ingest.ports import ForgetLedger, UpdateMemoryLedger
from madeleine.memory.model import Memory, MemoryChanges, MemoryId, Scope
from madeleine.memory.rules.dynamics.revision import memory_after_changes
from madeleine.memory.rules.storing.secrets import CountingRedactor, RedactText, redact_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateOutcome:
    """`changes`: the fields that were different. `embedding_error`: why the memory is found by its words only, for now.
    `redacted`: number of secrets removed, by kind."""

    memory: Memory
    changes: MemoryChanges
    embedding_error: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class UpdateMemory:
    """The use case. A dead memory can be changed too; it stays dead.

    `write_lock` is shared with `StoreScenes`. `on_commit` is called after a commit; it must not block.
    """

    ledger: UpdateMemoryLedger
    index: IndexForStoringMemories
    embedder: Embedder
    write_lock: asyncio.Lock
    _: KW_ONLY
    now: Callable[[], datetime]
    on_commit: Callable[[], None] = lambda: None
    redact: RedactText = redact_secrets

    async def __call__(self, scope: Scope, memory_id: MemoryId, changes: MemoryChanges) -> UpdateOutcome:
        """Redact secrets in the new text and themes, then change the memory. Raises `InvalidInput` if this being has no
        such memory, or its date cannot be corrected, `StorageError`."""
        redaction = CountingRedactor(self.redact)
        changes = redaction.redact_fields(changes, "text", "themes")
        return replace(
            await self.update_with_already_redacted_texts(scope, memory_id, changes), redacted=redaction.found
        )

    async def update_with_already_redacted_texts(
        self, scope: Scope, memory_id: MemoryId, changes: MemoryChanges
    ) -> UpdateOutcome:
        """Update with texts that the caller has redacted."""
        memories = await self.ledger.memories_with_ids(scope, [memory_id])
        if not memories:
            raise _unknown_memory_error(memory_id)
        if changes.when is not None:
            require_memory_with_correctable_date(memories[0])
        memory = memory_after_changes(memories[0], changes)
        if (
            changes.text is None and changes.when is None
        ):  # a vector that the memory lacks is filled in by the background
            embedded = EmbeddingOutcome(
                await self.ledger.cached_vectors_by_hash(self.embedder.model_name, [memory.content_hash])
            )
        else:
            embedded = await embed_with_cache(self.embedder, self.ledger, [memory.embedded_text])
        return await asyncio.shield(self._commit(scope, memory_id, changes, embedded))

    async def undo_last_update(self, scope: Scope, memory_id: MemoryId) -> UpdateOutcome | None:
        """Give the memory back what it had before its last update, which is an update itself: undone again, it is as it
        was. None if it was never updated. Raises as an update does."""
        revisions = await self.ledger.revision_history(scope, [memory_id])
        return (
            await self.update_with_already_redacted_texts(scope, memory_id, revisions[-1].before) if revisions else None
        )

    async def _commit(
        self, scope: Scope, memory_id: MemoryId, changes: MemoryChanges, embedded: EmbeddingOutcome
    ) -> UpdateOutcome:
        async with self.write_lock:
            result = await self.ledger.change_memory(
                scope, memory_id, changes, at=self.now(), model=self.embedder.model_name, vectors=embedded.vectors
            )
            if result is None:  # forgotten while its text was embedded
                raise _unknown_memory_error(memory_id)
            memory, applied = result
            if applied != MemoryChanges():
                self.on_commit()
                await try_to_index_committed_points(
                    self.index, await index_points_from_memories([memory], embedded.vectors, self.embedder)
                )
        return UpdateOutcome(
            memory=memory,
            changes=applied,
            embedding_error=embedded.error_text if (applied.text, applied.when) != (None, None) else "",
        )


def require_memory_with_correctable_date(memory: Memory) -> None:
    """Raise `InvalidInput` for a date that says more than when it happened."""
    if any(not isinstance(entry, str) for entry in memory.scene.when):
        raise InvalidInput(
            f"Memory {memory.short_id} tells a timeline, which when cannot replace. Nothing was changed."
        )
    is_beginning = memory.valid_from == memory.happened_at  # else it is the day of an event to come
    if (memory.valid_from is not None and is_beginning) or memory.valid_until is not None:
        raise InvalidInput(
            f"The date of {memory.short_id} says when one version took the place of another. Nothing was changed: undo "
            "that, then supersede again with the right when."
        )


def _unknown_memory_error(memory_id: MemoryId) -> InvalidInput:
    return InvalidInput(
        f"There is no memory {memory_id!r}. Nothing was changed: take an id that recall or search_memory returned."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetOutcome:
    """`erased`: ids that no answer shows any more. `missing`: ids of no memory or message of this being. `related`:
    memories that stay (`ErasureResult`). `diary_entries`, `messages`: how many were removed with them.
    `bytes_scrubbed`: whether the files hold nothing of it any more; if not yet, they will within `promised_seconds`.
    `current_again`: as in `ErasureResult`. `copies`: files that were made before and may still hold what was erased
    (ruling 25)."""

    erased: tuple[MemoryId | MessageId, ...]
    missing: tuple[MemoryId | MessageId, ...]
    related: tuple[MemoryId, ...]
    bytes_scrubbed: bool
    promised_seconds: float
    diary_entries: int = 0
    messages: int = 0
    current_again: tuple[MemoryId, ...] = ()
    copies: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ForgetMemories:
    """The use case (ruling 25): gone from every answer at once, from the bytes on disk within the time that `scrubber`
    promises. Forgetting the same again finds nothing.

    `write_lock` is shared with `StoreScenes`, so that nothing is stored or reinforced between the two steps.
    """

    ledger: ForgetLedger
    keeper: IndexKeeper
    scrubber: ErasedBytesScrubber
    write_lock: asyncio.Lock
    _: KW_ONLY
    now: Callable[[], datetime]
    is_copy_there: Callable[[str], bool] = lambda path: True
    """Whether an export or a backup is still where it was written."""

    async def __call__(self, scope: Scope, ids: Sequence[MemoryId | MessageId], *, wait: bool = False) -> ForgetOutcome:
        """Erase the memories and messages, and the messages that the memories rest on. Not stopped by a caller that
        goes away. `wait`: until the bytes are gone from the disk, for at most `MAX_SCRUB_WAIT_SECONDS`.

        Raises `StorageError`; nothing is erased then.
        """
        return await asyncio.shield(self._forget(scope, list(dict.fromkeys(ids)), wait=wait))

    async def _forget(self, scope: Scope, ids: Sequence[MemoryId | MessageId], *, wait: bool) -> ForgetOutcome:
        async with self.write_lock:
            erased = await self.ledger.forget(scope, ids, at=self.now())
            # A memory that the ledger lacks is in no answer, and the scrubber removes it again.
            with suppress(IndexUnavailable):
                await self.keeper.remove_memories(erased.erased_ids)
        gone = {*erased.erased_ids, *erased.message_ids}
        bytes_scrubbed = not gone
        if wait:
            bytes_scrubbed = await self.scrubber.request_and_wait(within_seconds=MAX_SCRUB_WAIT_SECONDS)
        elif gone:
            self.scrubber.request()
        return ForgetOutcome(
            erased=tuple(id_ for id_ in ids if id_ in gone),
            missing=tuple(id_ for id_ in ids if id_ not in gone),
            related=erased.related_ids,
            bytes_scrubbed=bytes_scrubbed,
            promised_seconds=self.scrubber.promised_seconds,
            diary_entries=erased.diary_entries,
            messages=len(erased.message_ids),
            current_again=erased.current_again_ids,
            copies=tuple(path for path in erased.copies if self.is_copy_there(path)),
        )
