"""What the organisation's memory needs of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from madeleine.memory.model import KnowledgeKind, Memory, MemoryId, Scope


class SharedKnowledgeReader(Protocol):
    async def knowledge_of_kinds(
        self, kinds: Sequence[KnowledgeKind], *, as_of: datetime | None = None, limit: int
    ) -> list[Memory]:
        """What all share and is true now, or was true then, of these kinds, the newest first."""

    async def all_versions_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Memory]]:
        """As `RecallLedger.all_versions_by_memory_id`."""
