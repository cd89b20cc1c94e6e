"""Going back to memories by their ids or their cluster (spec P10): whole, dead ones too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import ClusterId, Memory, MemoryId, Revision
from madeleine.memory.recall.ports import Activation, ActivationLog, ClusterSummary, RevisitLedger
from madeleine.memory.recall.search import DEAD_HIT, LIVING_HIT
from madeleine.memory.scope import Scope

SETTLE_S = 0.2


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """`missing`: ids under which this being has no memory. `revisions`: what they were before they were changed, oldest
    first."""

    memories: tuple[Memory, ...]
    revisions: tuple[Revision, ...] = ()
    missing: tuple[MemoryId, ...] = ()
    next_cursor: str = ""


class BrowseMemories:
    """The use case. Each living memory that is shown gets +1 reactivation, each dead one +2."""

    def __init__(self, ledger: RevisitLedger, activations: ActivationLog, *, now: Callable[[], datetime]) -> None:
        self._ledger = ledger
        self._activations = activations
        self._now = now

    async def by_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> MemoryPage:
        wanted = list(dict.fromkeys(ids))
        await self._settle()
        memories = await self._ledger.memories(scope, wanted)
        self._activate(scope, memories)
        revisions = await self._ledger.revisions(scope, [memory.id for memory in memories])
        found = {memory.id for memory in memories}
        return MemoryPage(tuple(memories), tuple(revisions), missing=tuple(id_ for id_ in wanted if id_ not in found))

    async def by_cluster(self, scope: Scope, cluster_id: ClusterId, *, limit: int, cursor: str = "") -> MemoryPage:
        """Newest first. Raises `InvalidInput` for a cluster that does not exist."""
        await self._settle()
        found = await self._ledger.cluster_memories(scope, cluster_id, limit=limit + 1, after=cursor or None)
        if found is None:
            raise InvalidInput(
                f"There is no cluster {cluster_id!r}. Call recall_memory without arguments for the list of clusters."
            )
        memories = found[:limit]
        self._activate(scope, memories)
        revisions = await self._ledger.revisions(scope, [memory.id for memory in memories])
        next_cursor = memories[-1].id if len(found) > limit else ""
        return MemoryPage(tuple(memories), tuple(revisions), next_cursor=next_cursor)

    async def clusters(self, scope: Scope) -> list[ClusterSummary]:
        return await self._ledger.cluster_summaries(scope)

    async def _settle(self) -> None:
        """So that what was recalled just now is counted; but no read waits for a writer that is busy for longer."""
        settling = asyncio.ensure_future(self._activations.flush())
        settling.add_done_callback(_looked_at)
        await asyncio.wait({settling}, timeout=SETTLE_S)

    def _activate(self, scope: Scope, memories: Sequence[Memory]) -> None:
        now = self._now()
        self._activations.add(
            scope,
            [Activation(memory.id, DEAD_HIT if memory.status == "dead" else LIVING_HIT, now) for memory in memories],
        )


def _looked_at(settling: asyncio.Future[None]) -> None:
    """A failure is not this reader's: the counts are kept, and their writer tries again and logs it."""
    if not settling.cancelled():
        settling.exception()
