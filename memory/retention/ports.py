"""What retention and the archive need of the ledger (spec O8)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from madeleine.memory.embedding import WritableVectorCache
from madeleine.memory.model import Memory, MemoryId, RunId, Scope
from madeleine.memory.retention.values import (
    ArchivalIndexEntry,
    ArchivedMemory,
    ArchiveGroup,
    ArchiveGroupId,
    ListedArchiveGroup,
)
from madeleine.memory.rules.archiving.retention import MemoryRetentionFacts


class RetentionReader(Protocol):
    """One being's memories, by what decides whether their time is over."""

    async def retention_facts_of_all_memories(self) -> list[MemoryRetentionFacts]:
        """Of all its memories, in the order of their arrival."""

    async def has_memories_kept_for_session_or_project(self) -> bool:
        """Whether any memory is kept for a session or a project only."""

    async def memories_with_ids(self, ids: Sequence[MemoryId]) -> list[Memory]: ...

    async def last_retention_run_time(self) -> datetime | None:
        """When a patrol last enforced the rules."""


class RetentionArchivingTransaction(RetentionReader, Protocol):
    async def archive(self, groups: Sequence[ArchiveGroup], *, run: RunId, at: datetime) -> list[MemoryId]:
        """Move the memories, with all that is kept of each, to the archive; ids of those that were there. Undone with
        the run."""

    async def record_retention_run(self, at: datetime) -> None:
        """Kept also where the run is undone: what somebody brought back does not go again the same day."""


class RetentionLedger(Protocol):
    def retention_reader(self, scope: Scope) -> RetentionReader: ...

    def retention_transaction(self, scope: Scope) -> AbstractAsyncContextManager[RetentionArchivingTransaction]:
        """Commits on a normal exit, else rolls back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveQuery:
    """`terms`: folded words and phrases; without any all entries. `position`: number of entries to skip."""

    terms: tuple[str, ...] = ()
    mode: Literal["or", "and"] = "or"
    limit: int = 20
    position: int = 0


class ArchiveLedger(WritableVectorCache, Protocol):
    async def search_archived(self, scope: Scope, query: ArchiveQuery) -> list[ArchivedMemory]:
        """Entries that the scope's project may see, the latest event first."""

    async def archived_memories_with_ids(self, scope: Scope, ids: Sequence[str]) -> list[ArchivedMemory]:
        """By the ids of memories or of entries, in the order of `ids`."""

    async def groups(self, scope: Scope, *, limit: int) -> list[ListedArchiveGroup]:
        """The latest first."""

    async def archival_index(self, scope: Scope, ids: Sequence[MemoryId] = ()) -> list[ArchivalIndexEntry]:
        """Of these memories; without any of all that are archived, by number."""

    async def restore(self, scope: Scope, ids: Sequence[str], *, at: datetime) -> list[Memory]:
        """Bring back the memories of these ids, of memories or entries, exactly as they were, with those that they
        depend on: survivors, summaries and the other versions of a chain. Leaves index marks. Durably, in one
        transaction; ids that are not archived are ignored."""

    async def store_group_summary(self, scope: Scope, group: ArchiveGroupId, digest: str) -> bool:
        """Replace what the archive tells of a group by a summary. False if there is no such group."""
