"""Keeps the index equal to the ledger: works off marks, fills in vectors, rebuilds (design: truth and index)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from madeleine.memory.embedding import Embedder, embed_cached
from madeleine.memory.errors import IndexNeedsRebuild
from madeleine.memory.index import Index
from madeleine.memory.ingest.indexing import index_points
from madeleine.memory.ingest.ports import IndexSource
from madeleine.memory.model import Memory, MemoryId

logger = logging.getLogger(__name__)

PAGE_SIZE = 500
EMBED_BATCH_SIZE = 32
"""Texts embedded in one go in the background: a recall that comes in between waits for at most one such page."""

Progress = Callable[[int, int], Awaitable[None]]
"""(done, total)"""


class IndexKeeper:
    """One keeper an index; its work is done one piece at a time."""

    def __init__(self, source: IndexSource, index: Index, embedder: Embedder) -> None:
        self._source = source
        self._index = index
        self._embedder = embedder
        self._one_at_a_time = asyncio.Lock()

    async def catch_up(self, *, to_now: bool = False) -> int:
        """Bring what is marked into the index, make it durable, clear the marks. The number of memories brought in.
        `to_now`: not what is marked meanwhile, which may be without end."""
        async with self._one_at_a_time:
            done = 0
            last = await self._source.last_mark() if to_now else None
            while marks := await self._source.pending(limit=PAGE_SIZE):
                if last is not None and marks[0][0] > last:
                    break
                ids = list(dict.fromkeys(id_ for _, id_ in marks))
                await self._bring_in(await self._source.any_memories(ids), ids)
                # Only what is on disk in the index may lose its mark.
                await self._index.flush()
                await self._source.clear_marks([mark for mark, _ in marks])
                done += len(ids)
            return done

    async def remove_memories(self, ids: Sequence[MemoryId]) -> None:
        """Of memories that the ledger has no more. In turn: what is being brought in now was read while they were
        there, and must not come after."""
        async with self._one_at_a_time:
            await self._index.delete(ids)

    async def embed_missing(self) -> int:
        """Embed memories that were stored while the model could not be had. Raises `EmbeddingUnavailable`."""
        done = 0
        while memories := await self._source.without_vector(self._embedder.model, limit=EMBED_BATCH_SIZE):
            embedded = await embed_cached(self._embedder, self._source, [memory.embed_text for memory in memories])
            if embedded.error:
                raise embedded.error
            await self._source.add_missing_vectors(self._embedder.model, embedded.vectors)
            done += len(memories)
            await self.catch_up()
        return done

    async def require_complete(self) -> None:
        """Raises `IndexNeedsRebuild` if the index does not hold as many memories as the ledger."""
        indexed, kept = await self._index.count(), await self._source.count_memories()
        if indexed != kept:
            raise IndexNeedsRebuild(f"the index holds {indexed} memories, the ledger {kept}")

    async def rebuild(self, progress: Progress | None = None) -> int:
        """Fill an empty index from the ledger and its cached vectors. The number of memories."""
        async with self._one_at_a_time:
            total = await self._source.count_memories()
            last_mark = await self._source.last_mark()
            after: MemoryId | None = None
            done = 0
            while page := await self._source.all_memories(after=after, limit=PAGE_SIZE):
                await self._bring_in(page, [])
                await self._source.clear_marks_of([memory.id for memory in page], up_to=last_mark)
                after = page[-1].id
                done += len(page)
                if progress:
                    await progress(done, total)
            await self._index.flush()
        return done

    async def _bring_in(self, memories: Sequence[Memory], ids: Sequence[MemoryId]) -> None:
        vectors = await self._source.vectors(self._embedder.model, [memory.content_hash for memory in memories])
        await self._index.upsert(await index_points(memories, vectors, self._embedder))
        known = {memory.id for memory in memories}
        if gone := [id_ for id_ in ids if id_ not in known]:
            await self._index.delete(gone)
