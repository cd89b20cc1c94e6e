"""What the organisation's memory needs of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from madeleine.memory.model import KnowledgeKind, Memory, MemoryId, Scope


class KnowledgeLedger(Protocol):
    async def knowledge(self, kinds: Sequence[KnowledgeKind], *, current: bool, limit: int) -> list[Memory]:
        """What all share, of these kinds, the newest first; superseded and retracted ones too unless `current`."""

    async def all_versions(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Memory]]:
        """As `RecallLedger.all_versions`."""
