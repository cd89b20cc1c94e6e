"""What storing, changing and forgetting need of the ledger and the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from madeleine.memory.chat import MessageId
from madeleine.memory.embedding import VectorCache
from madeleine.memory.errors import CannotUndo
from madeleine.memory.lessons.values import Lesson
from madeleine.memory.model import (
    ContentHash,
    EmbeddingModelName,
    Memory,
    MemoryChanges,
    MemoryId,
    MemoryValuesBeforeChange,
    Note,
    Scope,
    Vector,
)
from madeleine.memory.rules.dynamics.truth import Supersession, TruthChangeOutcome
from madeleine.memory.rules.storing.retelling import MemoryRetelling


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreBatch:
    """One transaction of a store: all of it is durable when `commit` returns, or none is."""

    new: tuple[Memory, ...] = ()
    reinforcements: tuple[MemoryRetelling, ...] = ()
    supersessions: tuple[Supersession, ...] = ()
    sources: Mapping[MemoryId, Sequence[MessageId]] = field(default_factory=dict)
    """The messages that memories were drawn from, new ones or reinforced ones."""
    lessons: Mapping[MemoryId, Lesson] = field(default_factory=dict)
    """By memory, new ones or reinforced ones; a memory that has one keeps it."""
    model: EmbeddingModelName
    vectors: Mapping[ContentHash, Vector]
    import_id: str = ""
    """Of the import that the memories and reinforcements are remembered for; "" for a store."""


@dataclass(frozen=True, slots=True)
class CommittedMemories:
    """`new`: the new memories with their numbers, which no memory of the being had before. `changed`: the memories that
    the supersessions concern, new ones among them, as they are."""

    new: Sequence[Memory]
    changed: Sequence[Memory] = ()


@dataclass(frozen=True, slots=True)
class IdempotencyKeyOutcome:
    """What an idempotency key has led to before: the memory, the words stored under the key, and how."""

    memory_id: MemoryId
    text: str
    status: Literal["stored", "reinforced"]


class MemoryAndIdempotencyKeyReader(Protocol):
    async def memories_with_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]:
        """Those that exist, each once, in the order of `ids`."""

    async def idempotency_key_outcomes(self, scope: Scope, keys: Sequence[str]) -> dict[str, IdempotencyKeyOutcome]:
        """The outcome of each key that was used before."""


class StoreScenesLedger(MemoryAndIdempotencyKeyReader, VectorCache, Protocol):
    def version(self) -> int | None:
        """The same number as long as memories read are as they were. None where that cannot be told."""

    async def ids_with_content_hash(self, scope: Scope, hash_: ContentHash) -> list[MemoryId]:
        """Memories with this very text to embed, at most 5: first the living, current ones, oldest first, then those
        that are not true any more or were absorbed."""

    async def current_version_id_by_memory_id(
        self, scope: Scope, ids: Sequence[MemoryId]
    ) -> Mapping[MemoryId, MemoryId]:
        """As `RecallLedger.current_version_id_by_memory_id`."""

    async def next_turn_numbers(self, scope: Scope, sessions: Sequence[str]) -> dict[str, int]:
        """The turn that the next memory of each session has."""

    async def commit_store_batch(self, scope: Scope, batch: StoreBatch) -> CommittedMemories:
        """Write memories, reinforcements, vectors and a pending index mark for each new memory, durably.

        A reinforcement changes its memory as `memory_after_retelling` says; what is searched of that memory leaves an
        index mark, too. Links memories to their sources. Raises `KeyConflict` if a key is taken,
        `SourcesForgotten` if a source is gone, `NotCurrent` if a memory to
        supersede is not current, `InvalidInput` if there is none, `StorageFull`, `StorageError`.
        """


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """`erased_ids`: what is gone. `related_ids`: memories that stay and were tied to them by a merge or a summary, so
    that they may tell the same: what was absorbed or summarised, and what has absorbed or summarises; and those that
    were drawn from messages that are gone. `diary_entries`: how many days' were removed, being written from them.
    `message_ids`: those that were named, and those that the memories were drawn from. `current_again_ids`: those that
    an erased memory had superseded, with no version after it. `copies`: exports and backups that may hold it."""

    erased_ids: tuple[MemoryId, ...] = ()
    related_ids: tuple[MemoryId, ...] = ()
    diary_entries: int = 0
    message_ids: tuple[MessageId, ...] = ()
    current_again_ids: tuple[MemoryId, ...] = ()
    copies: tuple[str, ...] = ()


class ForgetLedger(Protocol):
    async def forget(self, scope: Scope, ids: Sequence[MemoryId | MessageId], *, at: datetime) -> ErasureResult:
        """Erase those that exist and whatever else tells of them, durably, in one transaction: reinforcements, earlier
        versions, notes and messages they came from, vectors that no other memory has, their part in clusters, names,
        reports, diary, offers and the journal. What a summary that is forgotten stood for is recalled again. A message
        that is read again later does not come back.

        Leaves a mark for each, until their bytes are gone from the files too (`ErasedBytesLedger`).
        """


@dataclass(frozen=True, slots=True)
class ScrubBacklog:
    """`pending`: number of erased entries whose bytes may still be in the files. `since`: when the first of them was
    erased; None without any."""

    pending: int
    since: datetime | None


class ErasedBytesLedger(Protocol):
    """What was forgotten and may have left bytes in the files. Not scoped: it serves the store, not a caller."""

    async def pending_scrub_marks_with_memory_ids(self) -> list[tuple[int, MemoryId]]:
        """(mark, memory), oldest first."""

    async def read_scrub_backlog(self) -> ScrubBacklog: ...

    async def clear_scrub_marks(self, marks: Sequence[int]) -> None: ...

    async def scrub_deleted_bytes(self) -> None:
        """Returns when the ledger's files hold nothing that is not in its tables. Reads go on meanwhile, writes wait.

        Raises `StorageBusy`, `StorageFull`, `StorageError`; it can be tried again.
        """


class NoTruthChangeToUndo(CannotUndo):
    """No act has concerned the memory. Not the same as an act on which a later one stands."""


class RetractionAndUndoLedger(Protocol):
    """Acts that change what is true, each journalled and undone by one call (ruling 14)."""

    async def retract(
        self, scope: Scope, memory_id: MemoryId, reason: str, *, at: datetime
    ) -> TruthChangeOutcome | None:
        """None if there is no such memory. Raises `NotCurrent` if it is retracted already."""

    async def undo_last_truth_change(
        self, scope: Scope, memory_id: MemoryId, *, at: datetime
    ) -> TruthChangeOutcome | None:
        """Take back the last act that concerned the memory: all that this act has changed. None if there is no such
        memory. Raises `NoTruthChangeToUndo`, and `CannotUndo` if a later act stands on it."""

    async def planned_successors_of_memory(self, scope: Scope, memory_id: MemoryId) -> list[Memory]:
        """Current memories that were said to take its place from a day on, the one told last behind."""

    async def revision_history(self, scope: Scope, ids: Sequence[MemoryId]) -> list[MemoryValuesBeforeChange]:
        """What the memories said before each change, oldest first."""


class UpdateMemoryLedger(VectorCache, Protocol):
    async def memories_with_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]: ...

    async def revision_history(self, scope: Scope, ids: Sequence[MemoryId]) -> list[MemoryValuesBeforeChange]:
        """What the memories said before each change, oldest first."""

    async def change_memory(
        self,
        scope: Scope,
        memory_id: MemoryId,
        changes: MemoryChanges,
        *,
        at: datetime,
        model: EmbeddingModelName,
        vectors: Mapping[ContentHash, Vector],
    ) -> tuple[Memory, MemoryChanges] | None:
        """Change it durably (`rules.dynamics.revision`), keep what it was, leave a pending index mark; of `vectors` the
        one of its new text is cached. The memory as it is now, and what of `changes` was different; None if there is
        no such memory."""


class NoteRecorder(Protocol):
    async def add_note(self, scope: Scope, note: Note) -> None: ...


class IndexingLedger(VectorCache, Protocol):
    """What keeps the index equal to the ledger. Not scoped: it serves the store, not a caller."""

    async def pending_index_marks_with_memory_ids(self, *, limit: int) -> list[tuple[int, MemoryId]]:
        """(mark, memory), oldest first."""

    async def clear_pending_index_marks(self, marks: Sequence[int]) -> None: ...

    async def clear_pending_index_marks_of_memories(self, ids: Sequence[MemoryId], *, up_to: int) -> None:
        """Clear the marks `<= up_to` of these memories."""

    async def last_index_mark(self) -> int: ...

    async def memories_of_any_being(self, ids: Sequence[MemoryId]) -> list[Memory]:
        """By id, whosever they are."""

    async def memories_after_id(self, *, after: MemoryId | None, limit: int) -> list[Memory]:
        """Every memory of every being in order of id, a page at a time."""

    async def count_memories(self) -> int: ...

    async def cache_vectors_of_texts_in_memories(
        self, model: EmbeddingModelName, vectors: Mapping[ContentHash, Vector], *, mark: bool = True
    ) -> None:
        """Those of texts that a memory has; with `mark` leaves a mark for each such memory but for an empty vector."""

    async def memories_not_embedded_by_model(self, model: EmbeddingModelName, *, limit: int) -> list[Memory]:
        """Memories whose text has no cached vector of this model."""

    async def drop_vectors_of_replaced_model(
        self, model: EmbeddingModelName, *, successor: EmbeddingModelName, limit: int
    ) -> int:
        """Drop up to `limit` cached vectors of a model; the clusters that it was the model of become the successor's.
        Returns the number of vectors."""


class IngestLedger(MemoryAndIdempotencyKeyReader, VectorCache, Protocol):
    async def earlier_ingest_outcome(self, scope: Scope, key: str) -> dict[str, Any] | None:
        """The outcome of the text with this key; None until the text is ingested to the end."""

    async def record_ingest_outcome(self, scope: Scope, key: str, outcome: Mapping[str, Any], *, at: datetime) -> None:
        """Durably; the first outcome of a key stays."""


class BeingCentroidSourceLedger(Protocol):
    """Vectors from which the mean of a being's memories is computed."""

    async def last_audit_number_and_whether_changed(self, scope: Scope, *, after: int) -> tuple[int, bool]:
        """The number of the last audit entry, and whether since `after` any of the being's memories were changed,
        forgotten or tended by a patrol."""

    async def memory_sequence_numbers_and_vectors_after(
        self, scope: Scope, model: EmbeddingModelName, *, after: int, limit: int
    ) -> list[tuple[int, Vector | None]]:
        """(number, vector) of the being's living memories with greater numbers, in order; None for a memory that has
        not been embedded."""
