"""Whole memories by id or by cluster, dead ones included (spec P10)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import ClusterId, Memory, MemoryId, Revision, Scope
from madeleine.memory.recall.ports import ActivationLog, BrowseLedger, ClusterSummary
from madeleine.memory.recall.search import activation_of

FLUSH_TIMEOUT_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """`missing`: ids under which this being has no memory. `revisions`: earlier versions of the memories, oldest
    first."""

    memories: tuple[Memory, ...]
    revisions: tuple[Revision, ...] = ()
    missing: tuple[MemoryId, ...] = ()
    next_cursor: str = ""


@dataclass(frozen=True, eq=False)
class BrowseMemories:
    """The use case. Each living memory that is shown gets +1 reactivation, each dead one +2."""

    ledger: BrowseLedger
    activations: ActivationLog
    _: KW_ONLY
    now: Callable[[], datetime]

    async def by_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> MemoryPage:
        await self._flush_activations()
        memories = await self.ledger.memories(scope, list(dict.fromkeys(ids)))
        existing = {memory.id for memory in memories}
        missing = tuple(id_ for id_ in dict.fromkeys(ids) if id_ not in existing)
        return await self._page(scope, memories, missing=missing)

    async def by_cluster(self, scope: Scope, cluster_id: ClusterId, *, limit: int, cursor: str = "") -> MemoryPage:
        """Newest first. Raises `InvalidInput` for a cluster that does not exist."""
        await self._flush_activations()
        memories = await self.ledger.cluster_memories(scope, cluster_id, limit=limit + 1, after=cursor or None)
        if memories is None:
            raise InvalidInput(
                f"There is no cluster {cluster_id!r}. Call recall_memory without arguments for the list of clusters."
            )
        next_cursor = memories[limit - 1].id if len(memories) > limit else ""
        return await self._page(scope, memories[:limit], next_cursor=next_cursor)

    async def clusters(self, scope: Scope) -> list[ClusterSummary]:
        return await self.ledger.cluster_summaries(scope)

    async def _page(
        self, scope: Scope, memories: Sequence[Memory], *, missing: tuple[MemoryId, ...] = (), next_cursor: str = ""
    ) -> MemoryPage:
        now = self.now()
        self.activations.add(scope, [activation_of(memory.id, memory.status, now) for memory in memories])
        revisions = await self.ledger.revisions(scope, [memory.id for memory in memories])
        return MemoryPage(tuple(memories), tuple(revisions), missing, next_cursor)

    async def _flush_activations(self) -> None:
        """So that recalls just made are counted; bounded, so that no read waits for a busy writer."""
        flush = asyncio.ensure_future(self.activations.flush())
        flush.add_done_callback(_retrieve_exception)
        await asyncio.wait({flush}, timeout=FLUSH_TIMEOUT_SECONDS)


def _retrieve_exception(flush: asyncio.Future[None]) -> None:
    """A failure is not the reader's: the counts are kept, and their writer tries again and logs it."""
    if not flush.cancelled():
        flush.exception()
