"""The index inside this process, on Qdrant Edge 0.9.0.

Qdrant Edge holds the GIL in every call (measured: no other thread runs during a query, an update or a flush). So a
thread would not keep the event loop free, only add 0.1 ms. Hence:
- queries (about 1 ms) are made on the loop, updates too, in slices with a turn of the loop between;
- files are listed, copied and synced in a thread of our own, which also orders that work;
- `optimize_if_worthwhile` runs in another process, on a copy. Writes go to the live index and are recorded; when the
copy is done they are repeated on it, and it takes the live one's place. So no file of a live index is ever dropped;
- a deleted point stays in the engine's payload pages and its mapped segments. So `scrub_deleted_bytes`
  works in the same way: the other process writes every living point into new files.

On disk: `index.json`, the manifest, names the directory ("generation") that is the index; any other is a leftover. The
engine keeps no log: what was not flushed when a process was killed is indexed again from the ledger (ADR 92).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import qdrant_edge as qe

from madeleine.memory.errors import IndexNeedsRebuild, IndexUnavailable
from madeleine.memory.index import IndexPoint
from madeleine.memory.model import BeingId, MemoryId, Scope, Vector
from madeleine.storage.qdrant import edge_engine as engine
from madeleine.storage.qdrant import schema
from madeleine.storage.qdrant.edge_files import (
    INDEX_FLUSHING_MARKER_FILE,
    INDEX_OPENING_MARKER_FILE,
    IndexManifest,
    copy_index_to_temporary_folder,
    copy_sparse_tree,
    hold_index_lock,
    remove_index_files,
    remove_temporary_index_copies,
    require_index_disk_reserve,
)
from madeleine.storage.qdrant.point_contents import IndexPointContentCache
from madeleine.storage.qdrant.queries import HybridIndex, IdfByTerm, IndexPointFilter, IndexPointHit, IndexPointQuery
from madeleine.storage.qdrant.schema import BM25_VECTOR_NAME, MAX_FULL_SCAN_POINTS, IndexFingerprint
from madeleine.storage.resources import (
    INDEX_DISK_RESERVE_BYTES,
    has_disk_space,
    return_unused_process_memory,
)

logger = logging.getLogger(__name__)

_POINTS_PER_UPDATE = 64
"""Points an update: 2 to 3 ms."""
_MAX_WRITES_SHARE_FOR_CACHED_IDF = 0.01
_GENERATION_FOLDER_PREFIX = "generation-"


@dataclass(slots=True)
class _CachedIdfStatistics:
    """Of a being, remembered until there were more writes than one for a hundred memories: in a store of less than a
    hundred the figures are always exact, in a larger one they lag by at most 0.01 in the logarithm."""

    documents: int
    idf: IdfByTerm = field(default_factory=dict)
    writes: int = 0


class EmbeddedQdrantIndex(HybridIndex):
    """`memory.index.Index`. For one process and one event loop: a second opener gets `IndexUnavailable`."""

    _HOLDS_VECTORS_OF_HITS = True

    def __init__(self, directory: Path, fingerprint: IndexFingerprint, generation: str, shard: qe.EdgeShard) -> None:
        self._directory = directory
        self._fingerprint = fingerprint
        self._generation = generation
        self._shard = shard
        self._closed = self._close_has_begun = False
        self._writing = asyncio.Lock()
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="index-disk")
        self._statistics: dict[tuple[BeingId, str], _CachedIdfStatistics] = {}
        """By being and project."""
        self._contents = IndexPointContentCache()
        self._missed: dict[str, qe.Point | None] | None = None
        """Changes of the live index since it was copied; None while there is no copy."""
        self._temporary_copy: Path | None = None
        """Where the live index is while its own disk is full: a copy, whose changes are repeated on its own files when
        there is room again."""
        self._changed_in_temporary_copy: dict[str, qe.Point | None] = {}
        self._renewing = asyncio.Lock()
        self._builder = engine.ShardRenewalProcess()
        self._lock = ExitStack()
        """Closing it lets others open the index."""

    @classmethod
    async def open(cls, directory: Path, fingerprint: IndexFingerprint) -> EmbeddedQdrantIndex:
        """The index on disk, or a new empty one if there is none.

        Raises `IndexNeedsRebuild` if its files are damaged or were made with another fingerprint, `IndexUnavailable` if
        another process has it open.
        """
        return await asyncio.to_thread(_open_with_explained_errors, directory, cls._open, directory, fingerprint)

    @classmethod
    async def recreate(
        cls, directory: Path, fingerprint: IndexFingerprint, *, full_scan_points: int = MAX_FULL_SCAN_POINTS
    ) -> EmbeddedQdrantIndex:
        """Removes the index on disk without opening it, and creates an empty one."""
        return await asyncio.to_thread(
            _open_with_explained_errors,
            directory,
            cls._remove_and_create_empty_index,
            directory,
            fingerprint,
            full_scan_points,
        )

    @classmethod
    def _open(cls, directory: Path, fingerprint: IndexFingerprint) -> EmbeddedQdrantIndex:
        if not any(directory.glob("*")):
            return cls._remove_and_create_empty_index(directory, fingerprint, MAX_FULL_SCAN_POINTS)
        manifest = IndexManifest.read(directory)
        if manifest.fingerprint != fingerprint.to_json():
            raise IndexNeedsRebuild("The index was made with another model or schema.")
        marker = directory / INDEX_OPENING_MARKER_FILE
        if marker.exists():
            raise IndexNeedsRebuild("The process died while it opened the index.")
        if damage := manifest.find_damage(directory, died_flushing=(directory / INDEX_FLUSHING_MARKER_FILE).exists()):
            raise IndexNeedsRebuild(f"The index's files are damaged: {damage}.")
        remove_temporary_index_copies(directory)  # of a process that was killed
        if not has_disk_space(directory, INDEX_DISK_RESERVE_BYTES):  # loading writes
            return cls._open_temporary_copy(directory, fingerprint, manifest.generation)
        marker.touch()
        try:
            shard = engine.load_checked_shard(directory / manifest.generation, fingerprint.dim)
            index = cls(directory, fingerprint, manifest.generation, shard)
            index._flush_live()
        finally:
            marker.unlink()
        index._remove_other_generations()
        return index

    @classmethod
    def _open_temporary_copy(
        cls, directory: Path, fingerprint: IndexFingerprint, generation: str
    ) -> EmbeddedQdrantIndex:
        """Recalls go on, on a copy where there is room. Raises `IndexDiskFull` if there is none anywhere."""
        temporary_copy = copy_index_to_temporary_folder(directory, generation, reserve_bytes=INDEX_DISK_RESERVE_BYTES)
        if temporary_copy is None:
            require_index_disk_reserve(directory)
            raise IndexUnavailable("The disk was full when the index was opened. Try again.")
        try:
            shard = engine.load_checked_shard(temporary_copy, fingerprint.dim)
        except BaseException:
            remove_temporary_index_copies(directory)
            raise
        logger.warning("the disk is full: the index of %s is used from a copy in %s", directory, temporary_copy)
        index = cls(directory, fingerprint, generation, shard)
        index._temporary_copy = temporary_copy
        return index

    @classmethod
    def _remove_and_create_empty_index(
        cls, directory: Path, fingerprint: IndexFingerprint, full_scan_points: int
    ) -> EmbeddedQdrantIndex:
        remove_index_files(directory)
        generation = f"{_GENERATION_FOLDER_PREFIX}{uuid4().hex}"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_index_disk_reserve(directory)
        with engine.translating_index_engine_errors(IndexUnavailable):
            kilobytes = max(1, full_scan_points * fingerprint.dim * schema.VECTOR_COMPONENT_BYTES // 1024)
            shard = engine.create_empty_shard(directory / generation, fingerprint.dim, kilobytes)
        index = cls(directory, fingerprint, generation, shard)
        index._flush_live()
        return index

    # --- writing ----------------------------------------------------------------------------------------------

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        await self._apply_point_changes((point.memory.id, engine.to_qdrant_edge_point(point)) for point in points)

    async def delete(self, ids: Sequence[MemoryId]) -> None:
        await self._apply_point_changes((id, None) for id in ids)

    async def _apply_point_changes(self, changes: Iterator[engine.PointChange]) -> None:
        """In order, also among concurrent callers."""
        async with self._writing:
            while batch := list(islice(changes, _POINTS_PER_UPDATE)):
                require_index_disk_reserve(self._temporary_copy or self._directory)
                engine.apply_index_point_changes(self._shard, batch)
                self._contents.evict(id_ for id_, _ in batch)
                if self._temporary_copy is not None:
                    self._changed_in_temporary_copy.update(batch)
                for statistics in self._statistics.values():
                    statistics.writes += len(batch)
                if self._missed is not None:
                    self._missed.update(batch)
                await asyncio.sleep(0)

    # --- reading ----------------------------------------------------------------------------------------------

    async def count(self) -> int:
        with engine.translating_index_engine_errors(IndexUnavailable):
            return self._shard.count(qe.CountRequest())

    async def _run_queries(self, queries: Sequence[IndexPointQuery]) -> list[list[IndexPointHit]]:
        filter_of = cache(engine.to_qdrant_edge_filter)  # built once for all queries of a batch
        with engine.translating_index_engine_errors(IndexUnavailable):
            batch = qe.QueryBatchRequest([engine.to_qdrant_edge_query_request(query, filter_of) for query in queries])
            answers = self._shard.query_batch(batch)
            return [
                self._hits_from_scored_points(query, points) for query, points in zip(queries, answers, strict=True)
            ]

    def _hits_from_scored_points(self, query: IndexPointQuery, points: Sequence[qe.ScoredPoint]) -> list[IndexPointHit]:
        ids: list[Any] = [point.id for point in points]
        if not query.with_content:
            return [IndexPointHit(id_.int, id_, point.score) for id_, point in zip(ids, points, strict=True)]
        read = partial(engine.retrieve_index_points_from_shard, self._shard)
        hits = zip(ids, points, self._contents.contents_in_order_of_ids(ids, read), strict=True)
        return [IndexPointHit(id_.int, id_, point.score, content) for id_, point, content in hits]

    def _cosines_of_cached_points(self, keys: Sequence[int], vector: Vector) -> dict[int, float]:
        return self._contents.cosines_of_cached_points(keys, vector)

    def _point_id_of_memory(self, id_: MemoryId) -> UUID:
        return self._contents.point_id_of_memory(id_)

    async def _count_memories_with_words(self, scope: Scope) -> int:
        return self._statistics[scope.being_id, scope.project].documents

    def _cached_idf_by_term(self, scope: Scope) -> IdfByTerm:
        statistics = self._statistics.get((scope.being_id, scope.project))
        if statistics is None or statistics.writes > statistics.documents * _MAX_WRITES_SHARE_FOR_CACHED_IDF:
            mine = IndexPointFilter(being=scope.being_id, project=scope.project, vector_name=BM25_VECTOR_NAME)
            with engine.translating_index_engine_errors(IndexUnavailable):
                documents = self._shard.count(qe.CountRequest(filter=engine.to_qdrant_edge_filter(mine)))
            statistics = self._statistics[scope.being_id, scope.project] = _CachedIdfStatistics(documents)
        return statistics.idf

    # --- disk -------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        async with self._writing:
            await self._run_in_disk_thread(self._flush_live)

    async def close(self) -> None:
        self._closed = True
        self._builder.stop()
        async with self._writing:
            if not self._close_has_begun:  # a close that was cancelled while it waited is made good by the next
                self._close_has_begun = True
                await self._run_in_disk_thread(self._flush_and_close_shard)

    async def _run_in_disk_thread(self, work: Callable[..., None], *arguments: Any) -> None:
        """A cancelled caller waits for the end of what was begun, so that no other work on the files overlaps it."""
        begun = asyncio.get_running_loop().run_in_executor(self._disk, work, *arguments)
        try:
            await asyncio.shield(begun)
        except asyncio.CancelledError:
            await asyncio.wait([begun])
            raise

    def _flush_and_close_shard(self) -> None:
        if not has_disk_space(self._directory, INDEX_DISK_RESERVE_BYTES):
            # Closing would write, too: what is not on disk is made good from the ledger's marks. The lock stays with
            # the shard, which writes when it is collected.
            remove_temporary_index_copies(self._directory)
            return
        with self._lock:
            try:
                self._flush_live()
            finally:
                self._shard.close()

    def _flush_live(self) -> None:
        require_index_disk_reserve(self._directory)
        if self._temporary_copy is not None:
            self._return_from_temporary_copy()
        self._flush_shard_and_write_manifest(self._shard, self._generation)

    def _return_from_temporary_copy(self) -> None:
        shard = engine.load_checked_shard(self._directory / self._generation, self._fingerprint.dim)
        try:
            engine.apply_index_point_changes(shard, self._changed_in_temporary_copy.items())
        except BaseException:
            shard.close()
            raise
        old, self._shard = self._shard, shard
        self._temporary_copy, self._changed_in_temporary_copy = None, {}
        old.close()
        remove_temporary_index_copies(self._directory)
        logger.info("there is room again: the index is used from %s", self._directory)

    def _flush_shard_and_write_manifest(self, shard: qe.EdgeShard, generation: str) -> None:
        """Everything to disk, and the manifest after it; the manifest makes `generation` the index."""
        marker = self._directory / INDEX_FLUSHING_MARKER_FILE
        require_index_disk_reserve(self._directory)
        with engine.translating_index_engine_errors(IndexUnavailable):
            marker.touch()
            shard.flush()
            IndexManifest.of_files(self._directory, self._fingerprint.to_json(), generation).write(self._directory)
            marker.unlink()

    # --- renewal ----------------------------------------------------------------------------------------------

    async def optimize_if_worthwhile(self) -> bool:
        if self._renewing.locked() or self._closed or not has_disk_space(self._directory, INDEX_DISK_RESERVE_BYTES):
            return False
        async with self._renewing:
            return await self._replace_by_renewed_copy(
                engine.optimize_shard_files, only_if=engine.is_shard_worth_optimizing
            )

    async def scrub_deleted_bytes(self) -> None:
        self._builder.stop()  # an optimization would have to be done again anyway
        async with self._renewing:
            if not await self._replace_by_renewed_copy(engine.rewrite_shard_files):
                raise IndexUnavailable("The index was closed, or stopped, before it was written anew.")

    async def _replace_by_renewed_copy(
        self, work: engine.RenewShard, *, only_if: Callable[[Path, int], bool] | None = None
    ) -> bool:
        """Have `work` done to a copy, which then takes the live index's place. False if it did not come to that."""
        self._builder.stopped = False
        copy = f"{_GENERATION_FOLDER_PREFIX}{uuid4().hex}"
        try:
            async with self._writing:
                if self._closed:
                    return False
                await self._run_in_disk_thread(self._flush_live)
                if only_if and not only_if(self._directory / self._generation, self._fingerprint.dim):
                    return False
                await self._run_in_disk_thread(
                    copy_sparse_tree, self._directory / self._generation, self._directory / copy
                )
                self._missed = {}
            if not await self._builder.run(work, self._directory / copy):
                return False
            async with self._writing:
                await self._repeat_missed_changes_and_switch(copy)
            return copy == self._generation
        finally:
            self._missed = None
            await self._run_in_disk_thread(self._remove_other_generations)
            # Two indexes and the writes between them were held for a while. Without this each renewal would leave the
            # process larger: their gaps stay its own, 30 of 240 MB after 17,000 memories.
            await self._run_in_disk_thread(return_unused_process_memory)

    async def _repeat_missed_changes_and_switch(self, copy: str) -> None:
        if self._closed:
            return
        with engine.translating_index_engine_errors(IndexUnavailable):
            shard = qe.EdgeShard.load(str(self._directory / copy))
        try:
            missed = list((self._missed or {}).items())
            for start in range(0, len(missed), _POINTS_PER_UPDATE):
                engine.apply_index_point_changes(shard, missed[start : start + _POINTS_PER_UPDATE])
                await asyncio.sleep(0)
            await self._run_in_disk_thread(self._switch_to_generation, shard, copy)
        finally:
            if self._shard is not shard:
                shard.close()

    def _switch_to_generation(self, shard: qe.EdgeShard, generation: str) -> None:
        # In this order a failure or a crash leaves the old generation as the index.
        self._flush_shard_and_write_manifest(shard, generation)
        old, old_generation = self._shard, self._generation
        self._shard, self._generation = shard, generation
        old.close()
        remove_index_files(self._directory / old_generation)

    def _remove_other_generations(self) -> None:
        for leftover in self._directory.glob(f"{_GENERATION_FOLDER_PREFIX}*"):
            if leftover.name != self._generation:
                remove_index_files(leftover)


def _open_with_explained_errors(
    directory: Path, open_index: Callable[..., EmbeddedQdrantIndex], *arguments: Any
) -> EmbeddedQdrantIndex:
    """Holds the index's lock. `OSError` as `IndexUnavailable`, with the way out."""
    try:
        with hold_index_lock(directory) as lock:
            index = open_index(*arguments)
            index._lock = lock.pop_all()
            return index
    except OSError as error:
        raise IndexUnavailable(
            f"The index cannot be used ({error}). Check the permissions of {directory}, or move it away if it is no "
            "directory or not Madeleine's: it is built anew from the memory database, and nothing is lost."
        ) from error
