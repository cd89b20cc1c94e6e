"""The index inside this process, on Qdrant Edge 0.9.0. Nothing but this module and `words` knows that package.

Qdrant Edge holds the GIL in every call (measured: no other thread runs during a query, an update, a flush or an
`optimize`, which for 40,000 points is 20 s). So a thread would not keep the event loop free, only add 0.1 ms. Hence:
- queries (about 1 ms) are made on the loop, updates too, in slices with a turn of the loop between;
- files are listed, copied and synced in a thread of our own, which also orders that work;
- `optimize` runs in another process, on a copy. Writes go to the live index and are noted down; when the copy is
  done they are repeated on it, and it takes the live one's place. So no file of a live index is ever dropped;
- a deleted point stays in the engine's log, its payload pages and its mapped segments. So `scrub` works in the same
  way: the other process writes every living point into new files.

On disk: `index.json`, the manifest, names the directory ("generation") that is the index; any other is a leftover.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import UUID, uuid4

import qdrant_edge as qe

from madeleine.memory.candidates import CandidatePool, CandidateQuery, IndexPoint, PendingVector
from madeleine.memory.errors import IndexNeedsRebuild, IndexUnavailable, StorageFull
from madeleine.memory.model import BeingId, MemoryId, Status, Vector
from madeleine.memory.scope import Scope
from madeleine.storage.allocator import give_back
from madeleine.storage.qdrant import asks
from madeleine.storage.qdrant import words as encoder
from madeleine.storage.qdrant.asks import Ask, Hit, Hits, Statistics, weights_in
from madeleine.storage.qdrant.copying import copy_tree
from madeleine.storage.qdrant.filters import Where, memories_of
from madeleine.storage.qdrant.manifest import Manifest
from madeleine.storage.qdrant.schema import (
    BEING,
    BM25,
    DENSE,
    HNSW_BEING_EDGES,
    HNSW_EF_CONSTRUCT,
    HNSW_GRAPH_EDGES,
    KEYWORD_FIELDS,
    SCAN_BELOW,
    TIME,
    TRAITS,
    Fingerprint,
    features,
    payload,
)
from madeleine.storage.room import FOR_INDEX, has_room, require_room

_SLICE = 64
"""Points an update: 2 to 3 ms."""
_PAGE = 500
_NEAREST_EF = 128
_DRIFT = 0.01
_TRAITS = qe.PayloadSelector.Include(list(TRAITS))
_GENERATION = "generation-"
_OPENING = "opening"
_FLUSHING = "flushing"
_DONE, _NOTHING_TO_DO = 0, 3

_T = TypeVar("_T")
_Change = tuple[str, "qe.Point | None"]
"""(id, the point as it is to be, None to delete it)."""


@dataclass(slots=True)
class _Known:
    """Statistics of a being, remembered until there were more writes than one for a hundred memories: in a store of
    less than a hundred the figures are always exact, in a larger one they lag by at most 0.01 in the logarithm."""

    documents: int
    statistics: Statistics
    writes: int = 0


class EdgeIndex:
    """`memory.ports.Index`. For one process and one event loop: a second opener gets `IndexUnavailable`."""

    def __init__(self, directory: Path, fingerprint: Fingerprint, generation: str, shard: qe.EdgeShard) -> None:
        self._directory = directory
        self._fingerprint = fingerprint
        self._generation = generation
        self._shard = shard
        self._closed = False
        self._writing = asyncio.Lock()
        self._disk = ThreadPoolExecutor(max_workers=1, thread_name_prefix="index-disk")
        self._known: dict[BeingId, _Known] = {}
        self._unrepeated: dict[str, qe.Point | None] | None = None
        self._renewing = asyncio.Lock()
        self._builder: asyncio.subprocess.Process | None = None
        self._stopped = False

    @classmethod
    async def open(cls, directory: Path, fingerprint: Fingerprint) -> EdgeIndex:
        """Opens what is there, or makes an empty index where there is nothing.

        Raises `IndexNeedsRebuild` if it must be made anew, `IndexUnavailable` if another process has it open.
        """
        return await asyncio.to_thread(_open, cls, directory, fingerprint, SCAN_BELOW)

    @classmethod
    async def create_anew(cls, directory: Path, fingerprint: Fingerprint, *, scan_below: int = SCAN_BELOW) -> EdgeIndex:
        """Removes whatever is there; never opens it."""
        return await asyncio.to_thread(_create, cls, directory, fingerprint, scan_below)

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        await self._change(points, lambda point: (point.memory.id, _edge_point(point)))

    async def delete(self, ids: Sequence[MemoryId]) -> None:
        await self._change(ids, lambda id: (id, None))

    async def candidates(self, scope: Scope, query: CandidateQuery, vector: PendingVector) -> CandidatePool:
        return await asks.candidates(self._answers, self._statistics_of(scope), scope, query, vector)

    async def nearest(
        self, scope: Scope, vector: Vector, *, limit: int, statuses: Sequence[Status]
    ) -> list[tuple[MemoryId, float]]:
        where = Where(being=scope.being_id, statuses=tuple(statuses))
        [hits] = await self._answers([Ask(where=where, limit=limit, vector=vector, ef=_NEAREST_EF)])
        return [(hit.id, hit.score) for hit in hits]

    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]:
        return await asks.idf_of_words(self._answers, self._statistics_of(scope), scope, words)

    async def count(self) -> int:
        with _engine_errors(IndexUnavailable):
            return self._shard.count(qe.CountRequest())

    async def flush(self) -> None:
        async with self._writing:
            await self._on_disk(self._settle)

    async def optimize(self) -> bool:
        if self._renewing.locked() or self._closed or not has_room(self._directory, FOR_INDEX):
            return False
        async with self._renewing:
            return await self._renew(optimize_files, only_if=_may_be_optimized)

    async def scrub(self) -> None:
        self._stop_builder()  # an optimization would have to be done again anyway
        async with self._renewing:
            if not await self._renew(rewrite_files):
                raise IndexUnavailable("The index was closed, or stopped, before it was written anew.")

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._stop_builder()
        async with self._writing:
            await self._on_disk(self._end)

    # --- engine -----------------------------------------------------------------------------------------------

    async def _change(self, items: Sequence[_T], change_of: Callable[[_T], _Change]) -> None:
        """In order, also among concurrent callers."""
        async with self._writing:
            for start in range(0, len(items), _SLICE):
                _require_room(self._directory)
                part = [change_of(item) for item in items[start : start + _SLICE]]
                _apply(self._shard, part)
                for known in self._known.values():
                    known.writes += len(part)
                if self._unrepeated is not None:
                    self._unrepeated.update(part)
                await asyncio.sleep(0)

    async def _answers(self, asks: Sequence[Ask]) -> list[Hits]:
        filters: dict[int, qe.Filter] = {}

        def edge_filter(where: Where) -> qe.Filter:
            # Built once for all queries of a batch.
            if id(where) not in filters:
                filters[id(where)] = _filter(where)
            return filters[id(where)]

        with _engine_errors(IndexUnavailable):
            batch = qe.QueryBatchRequest([_request(ask, edge_filter) for ask in asks])
            answers = self._shard.query_batch(batch)
            return [[_hit(point, ask) for point in points] for ask, points in zip(asks, answers, strict=True)]

    def _statistics_of(self, scope: Scope) -> Statistics:
        known = self._known.get(scope.being_id)
        if known is None or known.writes > known.documents * _DRIFT:
            where = _filter(memories_of(scope, vector=BM25))
            with _engine_errors(IndexUnavailable):
                documents = self._shard.count(qe.CountRequest(filter=where))
            known = self._known[scope.being_id] = _Known(documents, Statistics(partial(_ready, documents)))
        return known.statistics

    # --- disk -------------------------------------------------------------------------------------------------

    async def _on_disk(self, work: Callable[..., None], *arguments: Any) -> None:
        """A cancelled caller waits for the end of what was begun, so that no other work on the files overlaps it."""
        begun = asyncio.get_running_loop().run_in_executor(self._disk, work, *arguments)
        try:
            await asyncio.shield(begun)
        except asyncio.CancelledError:
            await asyncio.wait([begun])
            raise

    def _settle(self) -> None:
        self._write_out(self._shard, self._generation)

    def _end(self) -> None:
        if not has_room(self._directory, FOR_INDEX):
            # Closing would write, too: what is not on disk yet is made good from the ledger's marks.
            return
        try:
            self._settle()
        finally:
            self._shard.close()

    def _write_out(self, shard: qe.EdgeShard, generation: str) -> None:
        """Everything to disk, and the manifest after it; the manifest makes `generation` the index."""
        marker = self._directory / _FLUSHING
        _require_room(self._directory)
        with _engine_errors(IndexUnavailable):
            marker.touch()
            shard.flush()
            Manifest.survey(self._directory, self._fingerprint.to_json(), generation).write(self._directory)
            marker.unlink()

    def _switch_to(self, shard: qe.EdgeShard, generation: str) -> None:
        # In this order a failure or a crash leaves the old generation as the index.
        self._write_out(shard, generation)
        old, old_generation = self._shard, self._generation
        self._shard, self._generation = shard, generation
        old.close()
        _remove(self._directory / old_generation)

    async def _renew(
        self, build: Callable[[str], int], *, only_if: Callable[[Path, int], bool] = lambda generation, dim: True
    ) -> bool:
        """Have `build` done to a copy, which then takes the live index's place. False if it did not come to that."""
        self._stopped = False
        copy = f"{_GENERATION}{uuid4().hex}"
        try:
            async with self._writing:
                if self._closed:
                    return False
                await self._on_disk(self._settle)
                if not only_if(self._directory / self._generation, self._fingerprint.dim):
                    return False
                await self._on_disk(copy_tree, self._directory / self._generation, self._directory / copy)
                self._unrepeated = {}
            if not await self._build(build, self._directory / copy):
                return False
            async with self._writing:
                await self._replace_live_by(copy)
            return copy == self._generation
        finally:
            self._unrepeated = None
            await self._on_disk(self._remove_leftovers)
            # Two indexes and the writes between them were held for a while. Without this each renewal would leave the
            # process larger: their gaps stay its own, 30 of 240 MB after 17,000 memories.
            await self._on_disk(give_back)

    def _remove_leftovers(self) -> None:
        for leftover in _generations(self._directory):
            if leftover.name != self._generation:
                _remove(leftover)

    def _stop_builder(self) -> None:
        self._stopped = True
        if self._builder is not None:
            with suppress(ProcessLookupError):
                self._builder.kill()

    async def _build(self, build: Callable[[str], int], copy: Path) -> bool:
        if self._stopped:
            return False
        # The child is told where to import from, as this process may have been started in any way.
        code = f"import sys; sys.path[:] = {sys.path!r}; from madeleine.storage.qdrant.edge import {build.__name__}; "
        code += f"sys.exit({build.__name__}({str(copy)!r}))"
        self._builder = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            outcome = await self._builder.wait()
        finally:
            if self._builder.returncode is None:
                self._builder.kill()
                await self._builder.wait()
            self._builder = None
        if outcome not in (_DONE, _NOTHING_TO_DO) and not self._stopped:
            raise IndexUnavailable(f"Renewing the index ended with code {outcome}; it goes on as it is.")
        return outcome == _DONE and not self._stopped

    async def _replace_live_by(self, copy: str) -> None:
        if self._closed:
            return
        with _engine_errors(IndexUnavailable):
            shard = qe.EdgeShard.load(str(self._directory / copy))
        try:
            missed = list((self._unrepeated or {}).items())
            for start in range(0, len(missed), _SLICE):
                _apply(shard, missed[start : start + _SLICE])
                await asyncio.sleep(0)
            await self._on_disk(self._switch_to, shard, copy)
        finally:
            if self._shard is not shard:
                shard.close()


def optimize_files(path: str) -> int:
    """In the child process: builds the graphs of the shard at `path`, at low priority."""
    if hasattr(os, "nice"):
        os.nice(10)
    shard = qe.EdgeShard.load(path)
    done = shard.optimize()
    shard.close()
    return _DONE if done else _NOTHING_TO_DO


def rewrite_files(path: str) -> int:
    """In the child process: writes the points of the shard at `path` into new files, which take the place of the old.
    Without graphs; `optimize` builds those when there is time."""
    old = qe.EdgeShard.load(path)
    config = json.loads((Path(path) / "edge_config.json").read_bytes())
    anew = Path(f"{path}-anew")
    new = _empty_shard(anew, config["vectors"][DENSE]["size"], config["optimizers"]["indexing_threshold"])
    offset: Any = None
    while True:
        request = qe.ScrollRequest(offset=offset, limit=_PAGE, with_payload=True, with_vector=True)
        records, offset = old.scroll(request)
        points = [qe.Point(one.id, cast(Any, one.vector) or {}, one.payload) for one in records]
        if points:
            new.update(qe.UpdateOperation.upsert_points(points))
        if offset is None:
            break
    new.flush()
    new.close()
    old.close()
    shutil.rmtree(path)
    anew.rename(path)
    return _DONE


# --- opening ----------------------------------------------------------------------------------------------------


def _open(cls: type[EdgeIndex], directory: Path, fingerprint: Fingerprint, scan_below: int) -> EdgeIndex:
    if not Manifest.exists(directory) and not any(_generations(directory)):
        return _create(cls, directory, fingerprint, scan_below)
    manifest = Manifest.read(directory)
    if manifest.fingerprint != fingerprint.to_json():
        raise IndexNeedsRebuild("The index was made with another model or schema.")
    marker = directory / _OPENING
    if marker.exists():
        raise IndexNeedsRebuild("The process died while it opened the index.")
    if damage := manifest.damage(directory, flushing=(directory / _FLUSHING).exists()):
        raise IndexNeedsRebuild(f"The index's files are damaged: {damage}.")
    _require_room(directory)  # loading writes
    marker.touch()
    try:
        with _engine_errors(IndexNeedsRebuild):
            shard = qe.EdgeShard.load(str(directory / manifest.generation))
            try:
                _check(shard, fingerprint.dim)
            except BaseException:
                shard.close()
                raise
        index = cls(directory, fingerprint, manifest.generation, shard)
        index._settle()
    finally:
        marker.unlink()
    index._remove_leftovers()
    return index


def _create(cls: type[EdgeIndex], directory: Path, fingerprint: Fingerprint, scan_below: int) -> EdgeIndex:
    _remove(directory)
    generation = f"{_GENERATION}{uuid4().hex}"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_room(directory)
    with _engine_errors(IndexUnavailable):
        kilobytes = max(1, scan_below * fingerprint.dim * 4 // 1024)
        shard = _empty_shard(directory / generation, fingerprint.dim, kilobytes)
    index = cls(directory, fingerprint, generation, shard)
    index._settle()
    return index


def _empty_shard(path: Path, dim: int, kilobytes: int) -> qe.EdgeShard:
    """`kilobytes` of vectors are searched without a graph."""
    path.mkdir(mode=0o700)
    shard = qe.EdgeShard.create(str(path), _config(dim, kilobytes))
    for name in KEYWORD_FIELDS:
        tenant = name == BEING
        # A graph for each value of status or category would be built as well, and none is searched.
        params = qe.KeywordIndexParams(is_tenant=tenant, enable_hnsw=tenant)
        shard.update(qe.UpdateOperation.create_field_index(name, params))
    times = qe.IntegerIndexParams(lookup=False, range=True, enable_hnsw=False)
    shard.update(qe.UpdateOperation.create_field_index(TIME, times))
    return shard


def _config(dim: int, kilobytes: int) -> qe.EdgeConfig:
    return qe.EdgeConfig(
        vectors={DENSE: qe.EdgeVectorParams(dim, qe.Distance.Cosine)},
        sparse_vectors={BM25: qe.EdgeSparseVectorParams(modifier=qe.Modifier.Idf)},
        hnsw_config=qe.HnswIndexConfig(
            m=HNSW_GRAPH_EDGES,
            payload_m=HNSW_BEING_EDGES,
            ef_construct=HNSW_EF_CONSTRUCT,
            full_scan_threshold=kilobytes,
            max_indexing_threads=1,
        ),
        optimizers=qe.EdgeOptimizersConfig(indexing_threshold=kilobytes),
    )


def _check(shard: qe.EdgeShard, dim: int) -> None:
    """Makes the engine read every kind of file once. Raises `IndexNeedsRebuild` if its answers do not agree."""
    count = shard.count(qe.CountRequest())
    sample, _ = shard.scroll(qe.ScrollRequest(limit=200, with_payload=True, with_vector=True))
    nowhere = qe.CountRequest(filter=qe.Filter(must=[qe.IsEmptyCondition(BEING)]))
    if len(sample) != min(count, 200) or shard.count(nowhere) or any(BEING not in (p.payload or {}) for p in sample):
        raise IndexNeedsRebuild("The index contradicts itself: points without payload.")
    shard.query(qe.QueryRequest(limit=10, query=qe.Query.Nearest([1.0] + [0.0] * (dim - 1), using=DENSE)))
    terms = next((v.indices for p in sample if isinstance(v := _named(p.vector, BM25), qe.SparseVector)), None)
    if terms:
        sparse = qe.SparseVector(terms, [1.0] * len(terms))
        if not shard.query(qe.QueryRequest(limit=10, query=qe.Query.Nearest(sparse, using=BM25))):
            raise IndexNeedsRebuild("The index contradicts itself: words that are not found.")


def _generations(directory: Path) -> Iterator[Path]:
    return directory.glob(f"{_GENERATION}*")


def _remove(path: Path) -> None:
    # A builder whose parent was killed may still write there; what it leaves is removed at the next start.
    shutil.rmtree(path, ignore_errors=True)


def _require_room(directory: Path) -> None:
    """Raises `IndexUnavailable`: without room the engine would not fail but end the process."""
    try:
        require_room(directory, FOR_INDEX)
    except StorageFull as error:
        raise IndexUnavailable(str(error)) from error


def _room_for_copy(generation: Path) -> bool:
    size = sum(path.stat().st_size for path in generation.rglob("*") if path.is_file())
    return has_room(generation, 2 * size + FOR_INDEX)


def _may_be_optimized(generation: Path, dim: int) -> bool:
    return _worth_optimizing(generation, dim) and _room_for_copy(generation)


def _worth_optimizing(generation: Path, dim: int) -> bool:
    """Whether a copy is worth its time: enough points, new or changed, are outside the graph.

    The engine's API does not tell how many, its files of versions do: 8 bytes a point.
    """
    config = json.loads((generation / "edge_config.json").read_bytes())
    threshold_points: float = config["optimizers"]["indexing_threshold"] * 1024 / (dim * 4)
    waiting = sum(path.stat().st_size // 8 for path in generation.glob("segments/*/mutable_id_tracker.versions"))
    return waiting > threshold_points


# --- translation ------------------------------------------------------------------------------------------------


def _edge_point(point: IndexPoint) -> qe.Point:
    vectors: dict[str, Any] = {}
    if point.vector is not None:
        vectors[DENSE] = point.vector.tolist()
    indices, values = encoder.document(point.words)
    # An empty sparse vector would count as a document in one kind of segment and not in the other.
    if indices:
        vectors[BM25] = qe.SparseVector(indices, values)
    return qe.Point(UUID(point.memory.id), vectors, payload(point))


def _apply(shard: qe.EdgeShard, changes: Iterable[_Change]) -> None:
    """The last change of each id counts, so upserts and deletions need no order among themselves."""
    last: Mapping[str, qe.Point | None] = dict(changes)
    points = [point for point in last.values() if point is not None]
    gone: list[qe.PointId] = [UUID(id) for id, point in last.items() if point is None]
    with _engine_errors(IndexUnavailable):
        if points:
            shard.update(qe.UpdateOperation.upsert_points(points))
        if gone:
            shard.update(qe.UpdateOperation.delete_points(gone))


def _filter(where: Where) -> qe.Filter:
    must: list[Any] = [
        qe.FieldCondition(key=name, match=qe.MatchValue(values[0]) if len(values) == 1 else qe.MatchAny(list(values)))
        for name, values in where.fields()
    ]
    if where.keys is not None:
        must.append(qe.HasIdCondition({UUID(int=key) for key in where.keys}))
    if where.vector is not None:
        must.append(qe.HasVectorCondition(where.vector))
    return qe.Filter(must=must)


def _request(ask: Ask, edge_filter: Callable[[Where], qe.Filter]) -> qe.QueryRequest:
    if ask.vector is not None:
        query = qe.Query.Nearest(ask.vector.tolist(), using=DENSE)
        params = qe.SearchParams(exact=ask.exact, hnsw_ef=ask.ef)
    else:
        corpus = edge_filter(ask.corpus) if ask.corpus is not None else None
        query = qe.Query.Nearest(qe.SparseVector(*(ask.terms or ([], []))), using=BM25)
        params = qe.SearchParams(idf=qe.IdfParams(corpus=corpus))
    return qe.QueryRequest(
        limit=ask.limit,
        query=query,
        params=params,
        filter=edge_filter(ask.where),
        with_vector=[BM25] if ask.weigh else None,
        with_payload=_TRAITS if ask.features else None,
    )


def _hit(point: qe.ScoredPoint, ask: Ask) -> Hit:
    uuid = cast(UUID, point.id)
    id = MemoryId(str(uuid))
    if uuid.int in ask.known or not (ask.weigh or ask.features):
        return Hit(uuid.int, id, point.score)
    weights = weights_in(_named(point.vector, BM25), ask.weigh)
    return Hit(uuid.int, id, point.score, weights, features(point.payload or {}) if ask.features else None)


async def _ready(value: _T) -> _T:
    return value


def _named(vectors: Any, name: str) -> Any:
    return vectors.get(name) if isinstance(vectors, dict) else None


@contextmanager
def _engine_errors(kind: type[IndexUnavailable]) -> Iterator[None]:
    try:
        yield
    except IndexUnavailable:
        raise
    except Exception as error:
        # The lock on its log is how the engine tells that another process has the index.
        held = "WouldBlock" in str(error)
        raise (IndexUnavailable if held else kind)(f"The index's engine failed: {error}") from error
    except BaseException as error:
        # A Rust panic derives from BaseException, and the package exports no name for it.
        if type(error).__name__ != "PanicException":
            raise
        raise kind(f"The index's engine panicked: {error}") from error
