"""The use case of the archive: find in it, bring back, say what a group was about (spec O8)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime

from madeleine.memory.embedding import Embedder, embed_with_cache
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import MEMORY_CATEGORIES, ORGANISATION_BEING_ID, BeingId, Memory, MemoryId, Scope
from madeleine.memory.retention.ports import ArchiveLedger, ArchiveQuery, RetentionLedger
from madeleine.memory.retention.values import (
    MAX_ARCHIVE_GROUP_SUMMARY_CHARS,
    ArchivalIndexEntry,
    ArchivedMemory,
    ArchiveGroup,
    ArchiveGroupId,
    ListedArchiveGroup,
    groups_to_archive,
)
from madeleine.memory.rules.archiving.retention import (
    EMPTY_ENDED_SESSION_OR_PROJECT,
    EndedSessionOrProject,
    RetentionConfig,
    RetentionRule,
    archive_reason_by_memory_id,
)
from madeleine.memory.rules.storing.secrets import RedactText, redact_secrets

MAX_MEMORIES_RESTORED_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredMemories:
    """`memories`: all that came back, those that the named ones depend on as well. `missing`: ids of nothing that is
    archived."""

    memories: tuple[Memory, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class MemoryArchive:
    """The use case. `write_lock` is the one of `StoreScenes`; `update_index` takes what came back into the index."""

    ledger: ArchiveLedger
    retention: RetentionLedger
    embedder: Embedder
    write_lock: asyncio.Lock
    _: KW_ONLY
    now: Callable[[], datetime]
    update_index: Callable[[], Awaitable[object]]
    config: RetentionConfig = field(default_factory=RetentionConfig)
    redact: RedactText = redact_secrets

    async def groups_due_for_archiving(
        self, scope: Scope, ended: EndedSessionOrProject = EMPTY_ENDED_SESSION_OR_PROJECT
    ) -> list[ArchiveGroup]:
        """What the next enforcement of the rules would archive; with `ended`, what goes now that it has. Nothing is
        changed."""
        reads = self.retention.retention_reader(scope)
        if scope.being_id == ORGANISATION_BEING_ID or (
            ended != EMPTY_ENDED_SESSION_OR_PROJECT and not await reads.has_memories_kept_for_session_or_project()
        ):
            return []
        going = archive_reason_by_memory_id(
            await reads.retention_facts_of_all_memories(), self.config, scope.being_id, self.now(), ended
        )
        return groups_to_archive(await reads.memories_with_ids(list(going)), going)

    def retention_rules_of_being(self, being: BeingId) -> list[RetentionRule]:
        """Those in force for a being, of each category."""
        return [self.config.rule_for_being_and_category(being, category) for category in MEMORY_CATEGORIES]

    async def archived_memories_with_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> list[ArchivedMemory]:
        """Of the memories that are archived."""
        return await self.ledger.archived_memories_with_ids(scope, ids)

    async def search_archived(self, scope: Scope, query: ArchiveQuery) -> list[ArchivedMemory]:
        return await self.ledger.search_archived(scope, query)

    async def groups(self, scope: Scope, *, limit: int = 20) -> list[ListedArchiveGroup]:
        return await self.ledger.groups(scope, limit=limit)

    async def archival_index(self, scope: Scope, ids: Sequence[MemoryId] = ()) -> list[ArchivalIndexEntry]:
        return await self.ledger.archival_index(scope, ids)

    async def restore(self, scope: Scope, ids: Sequence[str]) -> RestoredMemories:
        """Bring memories back exactly as they were, recallable at once; not stopped by a caller that goes away. Raises
        `InvalidInput` for too many, `StorageError`."""
        if len(ids) > MAX_MEMORIES_RESTORED_AT_ONCE:
            raise InvalidInput(
                f"At most {MAX_MEMORIES_RESTORED_AT_ONCE} memories come back at once. Nothing was restored."
            )
        return await asyncio.shield(self._restore(scope, list(dict.fromkeys(ids))))

    async def _restore(self, scope: Scope, ids: Sequence[str]) -> RestoredMemories:
        entries = await self.ledger.archived_memories_with_ids(scope, ids)
        known = {id_ for entry in entries for id_ in (entry.id, entry.memory.id)}
        async with self.write_lock:
            restored = await self.ledger.restore(scope, ids, at=self.now())
        embedded = await embed_with_cache(self.embedder, self.ledger, [one.embedded_text for one in restored])
        # After the commit: a text that no memory has keeps no vector. Without a model the background does it later.
        await self.ledger.cache_vectors(self.embedder.model_name, embedded.vectors)
        if restored:
            await self.update_index()
        return RestoredMemories(memories=tuple(restored), missing=tuple(id_ for id_ in ids if id_ not in known))

    async def set_group_summary(self, scope: Scope, group: ArchiveGroupId, text: str) -> None:
        """Put a summary by the calling agent in place of the extracts that the archive tells of a group (ruling 10).
        Raises `InvalidInput`."""
        summary = self.redact(text.strip()).text
        if not summary or len(summary) > MAX_ARCHIVE_GROUP_SUMMARY_CHARS:
            raise InvalidInput(f"A summary has 1 to {MAX_ARCHIVE_GROUP_SUMMARY_CHARS} characters. Nothing was changed.")
        if not await self.ledger.store_group_summary(scope, group, summary):
            raise InvalidInput(f"The archive has no group {group!r}. Nothing was changed: list the groups.")
