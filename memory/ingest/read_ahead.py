"""What a store reads while the model embeds its texts, on the other core: most of what it would else read afterwards,
when others wait for it (ADR 72)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.index import IndexForStoringMemories
from madeleine.memory.ingest.earlier_memories import WordSharingMemories, living_ids_sharing_most_words
from madeleine.memory.ingest.index_keeper import count_tokens_for_index
from madeleine.memory.ingest.ports import StoreScenesLedger
from madeleine.memory.ingest.proposals import SupersessionCandidateSearch
from madeleine.memory.ingest.write_lock import WriteLock
from madeleine.memory.model import Memory, Scope
from madeleine.memory.rules.storing.similar_wording import wording_resemblance_upper_bounds


@dataclass(frozen=True, slots=True)
class PrefetchedForStore:
    """For each of the new memories in order. `tokens`: as `index_points_from_memories` takes them. `sharing_words`:
    the ids hold for whoever has the write lock in that `turn`, the memories as long as the ledger has that
    `version`."""

    turn: int | None
    version: int | None
    sharing_words: Sequence[WordSharingMemories]
    tokens: Sequence[int]


@dataclass(frozen=True, eq=False)
class StoreScenesPrefetcher:
    """The readings of texts and the rarities of words are not handed on: they are remembered where they are made, so
    that to ask for them again costs nothing."""

    ledger: StoreScenesLedger
    index: IndexForStoringMemories
    embedder: Embedder
    write_lock: WriteLock
    search_superseded: SupersessionCandidateSearch | None

    @asynccontextmanager
    async def prefetch_in_background(
        self, scope: Scope, memories: Sequence[Memory]
    ) -> AsyncIterator[Awaitable[PrefetchedForStore]]:
        """Reading begins when the caller first waits for something else, and ends with the context."""
        reading = asyncio.create_task(self._prefetch_for_memories(scope, memories))
        try:
            yield reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _prefetch_for_memories(self, scope: Scope, memories: Sequence[Memory]) -> PrefetchedForStore:
        turn, version = self.write_lock.start_optimistic_read(), self.ledger.version()
        try:
            sharing_words = [await self._prefetch_word_sharing_memories(scope, memory) for memory in memories]
        except IndexUnavailable:  # the store itself says so, if it still is
            turn, sharing_words = None, []
        return PrefetchedForStore(turn, version, sharing_words, await count_tokens_for_index(memories, self.embedder))

    async def _prefetch_word_sharing_memories(self, scope: Scope, memory: Memory) -> WordSharingMemories:
        ids = await living_ids_sharing_most_words(self.index, scope, memory)
        others = await self.ledger.memories_with_ids(scope, ids) if ids else []
        wording_resemblance_upper_bounds(memory.scene.action, [other.scene.action for other in others])
        if self.search_superseded is not None:
            await self.search_superseded.prefetch_word_rarities(scope, memory, others)
        await asyncio.sleep(0)
        hashes = [other.content_hash for other in others]
        vectors = await self.ledger.cached_vectors_by_hash(self.embedder.model_name, hashes) if hashes else {}
        return WordSharingMemories(ids, {other.id: other for other in others}, vectors)

    def still_valid_prefetched_readings(self, readings: PrefetchedForStore) -> Sequence[WordSharingMemories]:
        """What need not be read again by the holder of the write lock."""
        if not self.write_lock.is_optimistic_read_valid(readings.turn):
            return []
        if readings.version is not None and readings.version == self.ledger.version():
            return readings.sharing_words
        return [one._replace(memories={}) for one in readings.sharing_words]
