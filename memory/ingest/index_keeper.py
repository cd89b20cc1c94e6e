"""Keep the index equal to the ledger: work off marks, fill in vectors, rebuild (design: truth and index)."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from madeleine.memory.embedding import (
    Embedder,
    VectorByContentHash,
    cached_vectors_of_any_precision,
    embed_with_cache,
    model_name_of_piece_vectors,
)
from madeleine.memory.errors import IndexNeedsRebuild, IndexUnavailable
from madeleine.memory.index import Index, IndexForStoringMemories, IndexPoint
from madeleine.memory.ingest.ports import IndexingLedger
from madeleine.memory.model import ContentHash, Memory, MemoryId, Vector, model_name_in_both_precisions
from madeleine.memory.rules.prompting import all_text_recall_may_return
from madeleine.memory.text.pieces import split_into_text_pieces
from madeleine.memory.text.terms import bm25_text_of_memory
from madeleine.memory.vector_space import MIN_LEGIBILITY_OF_EMBEDDED_TEXT

logger = logging.getLogger(__name__)

INDEXING_BATCH_MEMORIES = 500
BACKGROUND_EMBED_BATCH_TEXTS = 32
"""Texts that the background embeds at once: a recall that comes meanwhile waits for at most one batch."""
PIECE_EMBEDDING_BATCH_TEXTS = 16

ReportIndexedMemoryIds = Callable[[Iterable[MemoryId]], None]
ReportRebuildProgress = Callable[[int, int], Awaitable[None]]
"""(done, total)"""


@dataclass(frozen=True, eq=False)
class EmbedderAndIndex:
    """A model, and the index of its vectors."""

    embedder: Embedder
    index: Index


@dataclass(eq=False)
class IndexKeeper:
    """One keeper an index; its work is done one piece at a time."""

    source: IndexingLedger
    index: Index
    embedder: Embedder
    successor: EmbedderAndIndex | None = field(default=None, init=False)
    """Another model's index, which is filled while this one serves; kept up like it."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _indexed: set[MemoryId] = field(default_factory=set, init=False)
    """New memories that the index has, and whose first mark is pending."""
    _mark_readings: int = field(default=0, init=False)

    def callback_for_newly_indexed_memories(self) -> ReportIndexedMemoryIds:
        """To be called before a commit. The function that it returns takes the new memories that are in the index
        after it: their marks ask for nothing more. None are remembered if marks were read meanwhile: theirs may be
        among those.
        """
        begun_at = self._mark_readings

        def add_indexed(ids: Iterable[MemoryId]) -> None:
            if self._mark_readings == begun_at:
                self._indexed.update(ids)

        return add_indexed

    @asynccontextmanager
    async def pause_index_changes(self) -> AsyncIterator[None]:
        """The index is not changed by the keeper meanwhile."""
        async with self._lock:
            yield

    async def index_marked_memories(self) -> int:
        """Index all memories that are marked by now, make them durable, clear the marks. Returns the number of
        memories. Those that are marked meanwhile may be without end, and others wait for the keeper."""
        async with self._lock:
            done = 0
            last = await self.source.last_index_mark()
            while marks := await self.source.pending_index_marks_with_memory_ids(limit=INDEXING_BATCH_MEMORIES):
                if marks[0][0] > last:
                    break
                self._mark_readings += 1
                mark_counts = Counter(id_ for _, id_ in marks)
                done_before = {id_ for id_, count in mark_counts.items() if count == 1 and id_ in self._indexed}
                self._indexed.difference_update(mark_counts)
                ids = list(mark_counts)
                await self._index_memories(await self.source.memories_of_any_being(ids), ids, done_before)
                # Only what is on disk in the index may lose its mark.
                for index in self._serving_and_successor_indexes:
                    await index.flush()
                await self.source.clear_pending_index_marks([mark for mark, _ in marks])
                done += len(ids)
            return done

    async def remove_memories(self, ids: Sequence[MemoryId]) -> None:
        """Remove memories that the ledger no longer has; those that it has again, restored, stay. Waits for its turn:
        memories that are being indexed were read while these existed, and must not be added afterwards."""
        async with self._lock:
            self._indexed.difference_update(ids)
            kept = {memory.id for memory in await self.source.memories_of_any_being(ids)}
            await self._delete_from_all_indexes([id_ for id_ in ids if id_ not in kept])

    async def embed_memories_without_vector(self) -> int:
        """Embed memories that were stored while the model was unavailable, or embedded in another precision, whose
        vectors are then dropped. Returns their number. Raises `EmbeddingUnavailable`."""
        done = 0
        while count := await self._embed_batch(self.embedder):
            done += count
            await self.index_marked_memories()
        model, *replaced = model_name_in_both_precisions(self.embedder.model_name)
        for old in (*replaced, *map(model_name_of_piece_vectors, replaced)):
            while count := await self.source.drop_vectors_of_replaced_model(
                old, successor=model, limit=INDEXING_BATCH_MEMORIES
            ):
                logger.info("%d texts are embedded with %s; their vectors of %s are dropped", count, model, old)
        return done

    async def embed_missing_pieces(self) -> int:
        """Embed the pieces of memories whose pieces are not embedded yet. An index has them after
        `index_marked_memories`. Returns the number of memories that have any. Raises `EmbeddingUnavailable`."""
        done, size = 0, PIECE_EMBEDDING_BATCH_TEXTS
        model = model_name_of_piece_vectors(self.embedder.model_name)
        while memories := await self.source.memories_not_embedded_by_model(model, limit=INDEXING_BATCH_MEMORIES):
            pieces = await self._pieces_of_legible_texts(memories)
            whole = {hash_: np.zeros(0, np.float32) for hash_, texts in pieces.items() if not texts}
            await self.source.cache_vectors_of_texts_in_memories(model, whole)
            several = [hash_ for hash_ in pieces if hash_ not in whole]
            for start in range(0, len(several), size):
                vectors = await self._concatenated_piece_vectors(
                    {hash_: pieces[hash_] for hash_ in several[start : start + size]}
                )
                if model != model_name_of_piece_vectors(
                    self.embedder.model_name
                ):  # switched meanwhile: these may be vectors of either
                    return done
                await self.source.cache_vectors_of_texts_in_memories(model, vectors)
            done += sum(memory.content_hash not in whole for memory in memories)
        return done

    async def _pieces_of_legible_texts(self, memories: Sequence[Memory]) -> dict[ContentHash, list[str]]:
        """Of each text, none for one that the model cannot read."""
        hashes = [memory.content_hash for memory in memories]
        whole = await cached_vectors_of_any_precision(self.source, self.embedder.model_name, hashes)
        return {
            hash_: split_into_text_pieces(memory.scene.action)
            if self._is_text_legible_to_model(whole.get(hash_))
            else []
            for hash_, memory in zip(hashes, memories, strict=True)
        }

    async def _concatenated_piece_vectors(
        self, pieces: Mapping[ContentHash, Sequence[str]]
    ) -> dict[ContentHash, Vector]:
        """Of each text those of its pieces, one behind the other."""
        texts = list(dict.fromkeys(text for of_memory in pieces.values() for text in of_memory))
        rows = dict(zip(texts, await self.embedder.embed(texts), strict=True))
        return {hash_: np.concatenate([rows[text] for text in of_memory]) for hash_, of_memory in pieces.items()}

    def _is_text_legible_to_model(self, vector: Vector | None) -> bool:
        return (
            vector is None
            or self.embedder.vector_space.legibility_of_text_behind_vector(vector) >= MIN_LEGIBILITY_OF_EMBEDDED_TEXT
        )

    async def embed_next_batch_with_new_model(self, embedder: Embedder) -> int:
        """Embed the next texts that another model has not embedded, for an index that does not serve yet: marked, once
        that index is being kept up. Returns their number, 0 if none is left. Raises `EmbeddingUnavailable`."""
        return await self._embed_batch(embedder, mark=self.successor is not None)

    async def _embed_batch(self, embedder: Embedder, *, mark: bool = True) -> int:
        model = embedder.model_name
        memories = await self.source.memories_not_embedded_by_model(model, limit=BACKGROUND_EMBED_BATCH_TEXTS)
        if not memories:
            return 0
        embedded = await embed_with_cache(embedder, self.source, [memory.embedded_text for memory in memories])
        if embedded.error:
            raise embedded.error
        if embedder.model_name == model:  # else it was switched meanwhile, and these may be vectors of either
            await self.source.cache_vectors_of_texts_in_memories(model, embedded.vectors, mark=mark)
        return len(memories)

    async def fill_successor_index(self) -> None:
        """Bring all memories into the successor's empty index, and make it durable. What is changed meanwhile is
        marked, and reaches both."""
        after: MemoryId | None = None
        page: Sequence[Memory] = ()
        while after is None or page:
            # A page at a time: what is marked meanwhile is not to be overwritten by what was read before.
            async with self._lock:
                assert self.successor is not None
                page = await self.source.memories_after_id(after=after, limit=INDEXING_BATCH_MEMORIES)
                await self._upsert_memories_into_index(self.successor, page)
            if not page:
                break
            after = page[-1].id
        await self.index_marked_memories()

    async def require_all_memories_indexed(self) -> None:
        """Raises `IndexNeedsRebuild` if the index does not hold as many memories as the ledger."""
        while (indexed := await self.index.count()) != (kept := await self.source.count_memories()):
            if not await self.index_marked_memories():  # else another server has stored some meanwhile
                raise IndexNeedsRebuild(f"the index holds {indexed} memories, the ledger {kept}")

    async def rebuild(self, progress: ReportRebuildProgress | None = None) -> int:
        """Fill an empty index from the ledger and its cached vectors. Returns the number of memories."""
        async with self._lock:
            self._mark_readings += 1
            self._indexed.clear()
            total = await self.source.count_memories()
            last_index_mark = await self.source.last_index_mark()
            after: MemoryId | None = None
            done = 0
            while page := await self.source.memories_after_id(after=after, limit=INDEXING_BATCH_MEMORIES):
                await self._index_memories(page, [])
                await self.source.clear_pending_index_marks_of_memories(
                    [memory.id for memory in page], up_to=last_index_mark
                )
                after = page[-1].id
                done += len(page)
                if progress:
                    await progress(done, total)
            await self.index.flush()
        return done

    async def _index_memories(
        self, memories: Sequence[Memory], ids: Sequence[MemoryId], done_before: Set[MemoryId] = frozenset()
    ) -> None:
        """`done_before`: new memories that the serving index has already. It has none of their pieces yet, which are
        known where another memory had the same text: such a memory is indexed again."""
        known_pieces = await self._cached_piece_vectors(
            self.embedder, [memory for memory in memories if memory.id in done_before]
        )
        serving = [memory for memory in memories if memory.id not in done_before or memory.content_hash in known_pieces]
        await self._upsert_memories_into_index(EmbedderAndIndex(self.embedder, self.index), serving)
        if self.successor:
            await self._upsert_memories_into_index(self.successor, memories)
        known = {memory.id for memory in memories}
        if gone := [id_ for id_ in ids if id_ not in known]:
            await self._delete_from_all_indexes(gone)

    async def _upsert_memories_into_index(self, target: EmbedderAndIndex, memories: Sequence[Memory]) -> None:
        hashes = [memory.content_hash for memory in memories]
        vectors = await cached_vectors_of_any_precision(self.source, target.embedder.model_name, hashes)
        pieces = await self._cached_piece_vectors(target.embedder, memories)
        points = await index_points_from_memories(memories, vectors, target.embedder)
        await target.index.upsert(
            [
                replace(point, pieces=_split_concatenated_piece_vectors(flat, point.vector))
                if point.vector is not None and (flat := pieces.get(point.memory.content_hash)) is not None
                else point
                for point in points
            ]
        )

    async def _cached_piece_vectors(self, embedder: Embedder, memories: Sequence[Memory]) -> VectorByContentHash:
        """Of each text that has pieces, their vectors one behind the other."""
        hashes = [memory.content_hash for memory in memories]
        vectors = await self.source.cached_vectors_by_hash(model_name_of_piece_vectors(embedder.model_name), hashes)
        return {hash_: flat for hash_, flat in vectors.items() if flat.size}

    async def _delete_from_all_indexes(self, ids: Sequence[MemoryId]) -> None:
        for index in self._serving_and_successor_indexes:
            await index.delete(ids)

    @property
    def _serving_and_successor_indexes(self) -> list[Index]:
        return [self.index, *([self.successor.index] if self.successor else [])]


def _split_concatenated_piece_vectors(flat: Vector, whole: Vector) -> Sequence[Vector]:
    return list(flat.reshape(-1, len(whole)))


async def count_tokens_for_index(memories: Sequence[Memory], embedder: Embedder) -> list[int]:
    """What recalling each of the memories costs at most."""
    return await embedder.count_tokens([all_text_recall_may_return(memory) for memory in memories])


async def index_points_from_memories(
    memories: Sequence[Memory],
    vectors: Mapping[ContentHash, Vector],
    embedder: Embedder,
    tokens: Sequence[int] | None = None,
) -> list[IndexPoint]:
    """Memories as points of the index, without a vector where the model cannot read the text: such vectors lie close to
    everything. `tokens`: of `count_tokens_for_index`, if they are known."""
    if tokens is None:
        tokens = await count_tokens_for_index(memories, embedder)
    space = embedder.vector_space
    of_memories = [vectors.get(memory.content_hash) for memory in memories]
    return [
        IndexPoint(
            memory=memory,
            words=bm25_text_of_memory(memory),
            vector=vector
            if vector is not None and space.legibility_of_text_behind_vector(vector) >= MIN_LEGIBILITY_OF_EMBEDDED_TEXT
            else None,
            tokens=count,
        )
        for memory, vector, count in zip(memories, of_memories, tokens, strict=True)
    ]


async def try_to_index_committed_points(index: IndexForStoringMemories, points: Sequence[IndexPoint]) -> bool:
    """Index points after their commit. The pending marks stay until the index is on disk; after a failure, when this
    returns False, the keeper indexes them again."""
    try:
        await index.upsert(points)
    except IndexUnavailable as error:
        logger.warning("indexing is postponed: %s", error)
        return False
    return True
