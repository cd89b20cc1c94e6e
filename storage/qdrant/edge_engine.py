"""Shards, points, filters and queries in the words of Qdrant Edge 0.9.0, and work on a copy of the index in a child
process: graphs for search, or new files without deleted points.

Nothing but this module, `edge` and `bm25` knows that package. It holds the GIL in every call, and
`optimize` for 40,000 points is one of 20 s, so that runs in another process.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import qdrant_edge as qe

from madeleine import operating_system
from madeleine.memory.errors import IndexNeedsRebuild, IndexUnavailable
from madeleine.memory.index import IndexPoint
from madeleine.storage.qdrant import schema
from madeleine.storage.qdrant.queries import IndexPointFilter, IndexPointQuery
from madeleine.storage.resources import INDEX_DISK_RESERVE_BYTES, has_disk_space

PointChange = tuple[str, "qe.Point | None"]
"""(id, the point as it is to be, None to delete it)."""

_RANKING_FEATURES_PAYLOAD_SELECTOR = qe.PayloadSelector.Include(list(schema.RANKING_FEATURE_FIELDS))
_SAMPLE_POINTS_PER_SHARD_CHECK = 200
"""Points that are read when a shard is checked."""
_POINTS_PER_REWRITE_BATCH = 500
_SEARCH_THREADS_PER_SHARD = 1
"""The caller's own thread then searches. By default eight take turns, on two processors, too: of 10,000 memories a
query by words takes 0.9 ms of processor time and not 0.5, and while a text is embedded 2.2 ms by the clock and not 0.7,
as the other thread waits for a processor."""
_EXIT_DONE, _EXIT_NOTHING_TO_DO = 0, 3

RenewShard = Callable[[str], int]
"""`optimize_shard_files` or `rewrite_shard_files`: takes the shard's path, returns the exit code."""


@contextmanager
def translating_index_engine_errors(error_type: type[IndexUnavailable]) -> Iterator[None]:
    """Translates the engine's errors to `error_type`."""
    try:
        yield
    except IndexUnavailable:
        raise
    except Exception as error:
        raise error_type(f"The index's engine failed: {error}") from error
    except BaseException as error:
        # A Rust panic derives from BaseException, and the package exports no name for it.
        if type(error).__name__ != "PanicException":
            raise
        raise error_type(f"The index's engine panicked: {error}") from error


def create_empty_shard(path: Path, dim: int, kilobytes: int) -> qe.EdgeShard:
    """An empty one. `kilobytes` of vectors are searched without a graph."""
    path.mkdir(mode=0o700)
    config = _shard_config(
        dim,
        hnsw_config=qe.HnswIndexConfig(
            m=schema.HNSW_EDGES_IN_GLOBAL_GRAPH,
            payload_m=schema.HNSW_EDGES_IN_BEING_GRAPH,
            ef_construct=schema.HNSW_EF_CONSTRUCT,
            full_scan_threshold=kilobytes,
            max_indexing_threads=1,
        ),
        optimizers=qe.EdgeOptimizersConfig(indexing_threshold=kilobytes),
        wal_enabled=False,  # the ledger's marks tell what is to be indexed again (ADR 92)
    )
    shard = qe.EdgeShard.create(str(path), config)
    for name in schema.KEYWORD_INDEXED_FIELDS:
        tenant = name == schema.BEING_FIELD
        # A graph for each value of status or category would be built as well, and none is searched.
        params = qe.KeywordIndexParams(is_tenant=tenant, enable_hnsw=tenant)
        shard.update(qe.UpdateOperation.create_field_index(name, params))
    times = qe.IntegerIndexParams(lookup=False, range=True, enable_hnsw=False)
    for name in schema.TIME_INDEXED_FIELDS:
        shard.update(qe.UpdateOperation.create_field_index(name, times))
    return shard


def _shard_config(dim: int, **parameters: Any) -> qe.EdgeConfig:
    """`parameters`: those that a shard on disk keeps as they were when it was created."""
    half = qe.VectorStorageDatatype.Float16
    return qe.EdgeConfig(
        vectors={schema.DENSE_VECTOR_NAME: qe.EdgeVectorParams(dim, qe.Distance.Cosine, datatype=half)},
        sparse_vectors={schema.BM25_VECTOR_NAME: qe.EdgeSparseVectorParams(modifier=qe.Modifier.Idf)},
        max_search_threads=_SEARCH_THREADS_PER_SHARD,
        **parameters,
    )


def load_checked_shard(path: Path, dim: int) -> qe.EdgeShard:
    """Raises `IndexNeedsRebuild` if the shard does not load or contradicts itself."""
    with translating_index_engine_errors(IndexNeedsRebuild):
        shard = qe.EdgeShard.load(str(path), _shard_config(dim))
        try:
            _check_shard(shard, dim)
        except BaseException:
            shard.close()
            raise
    return shard


def _check_shard(shard: qe.EdgeShard, dim: int) -> None:
    """Makes the engine read every kind of file once, and compares its answers."""
    count = shard.count(qe.CountRequest())
    sample, _ = shard.scroll(
        qe.ScrollRequest(limit=_SAMPLE_POINTS_PER_SHARD_CHECK, with_payload=True, with_vector=True)
    )
    nowhere = qe.CountRequest(filter=qe.Filter(must=[qe.IsEmptyCondition(schema.BEING_FIELD)]))
    complete = len(sample) == min(count, _SAMPLE_POINTS_PER_SHARD_CHECK) and all(
        schema.BEING_FIELD in (point.payload or {}) for point in sample
    )
    if not complete or shard.count(nowhere):
        raise IndexNeedsRebuild("The index contradicts itself: points without payload.")
    shard.query(
        qe.QueryRequest(limit=10, query=qe.Query.Nearest([1.0] + [0.0] * (dim - 1), using=schema.DENSE_VECTOR_NAME))
    )
    vectors = (point.vector.get(schema.BM25_VECTOR_NAME) for point in sample if isinstance(point.vector, dict))
    sparse_vector = next((vector for vector in vectors if isinstance(vector, qe.SparseVector)), None)
    if sparse_vector is not None and (terms := sparse_vector.indices):
        query = qe.Query.Nearest(qe.SparseVector(terms, [1.0] * len(terms)), using=schema.BM25_VECTOR_NAME)
        if not shard.query(qe.QueryRequest(limit=10, query=query)):
            raise IndexNeedsRebuild("The index contradicts itself: words that are not found.")


def to_qdrant_edge_point(point: IndexPoint) -> qe.Point:
    return qe.Point(
        UUID(point.memory.id),
        schema.named_vectors_of_index_point(point, qe.SparseVector),
        schema.payload_of_index_point(point),
    )


def apply_index_point_changes(shard: qe.EdgeShard, changes: Iterable[PointChange]) -> None:
    """The last change of each id counts, so upserts and deletions need no order among themselves."""
    last = dict(changes)
    points = [point for point in last.values() if point is not None]
    deleted: list[qe.PointId] = [UUID(id) for id, point in last.items() if point is None]
    with translating_index_engine_errors(IndexUnavailable):
        if points:
            shard.update(qe.UpdateOperation.upsert_points(points))
        if deleted:
            shard.update(qe.UpdateOperation.delete_points(deleted))


def to_qdrant_edge_filter(where: IndexPointFilter) -> qe.Filter:
    must: list[Any] = [
        qe.FieldCondition(key=name, match=qe.MatchValue(values[0]) if len(values) == 1 else qe.MatchAny(list(values)))
        for name, values in where.required_field_values()
    ]
    must += [
        qe.FieldCondition(key=name, range=qe.RangeFloat(**bounds)) for name, bounds in where.required_field_ranges()
    ]
    if where.point_ids is not None:
        must.append(qe.HasIdCondition({*where.point_ids}))
    if where.vector_name is not None:
        must.append(qe.HasVectorCondition(where.vector_name))
    must_not: list[Any] = [
        qe.FieldCondition(key=name, range=qe.RangeFloat(**bounds)) for name, bounds in where.excluded_field_ranges()
    ]
    return qe.Filter(must=must, must_not=must_not or None)


def to_qdrant_edge_query_request(
    query: IndexPointQuery, make_filter: Callable[[IndexPointFilter], qe.Filter]
) -> qe.QueryRequest:
    target, using = query.query_vector_and_name(qe.SparseVector)
    if query.vector is not None:
        params = qe.SearchParams(exact=query.exact, hnsw_ef=query.ef)
    else:
        corpus = make_filter(query.idf_corpus) if query.idf_corpus is not None else None
        params = qe.SearchParams(idf=qe.IdfParams(corpus=corpus))
    return qe.QueryRequest(
        limit=query.limit,
        query=qe.Query.Nearest(target, using=using),
        params=params,
        filter=make_filter(query.where),
    )


def retrieve_index_points_from_shard(shard: qe.EdgeShard, ids: Sequence[UUID]) -> list[qe.Record]:
    """What `point_contents.index_point_content_from_engine_point` reads, in any order."""
    vectors = [schema.BM25_VECTOR_NAME, schema.DENSE_VECTOR_NAME]
    return shard.retrieve([*ids], with_payload=_RANKING_FEATURES_PAYLOAD_SELECTOR, with_vector=vectors)


class ShardRenewalProcess:
    """Runs one child process at a time."""

    def __init__(self) -> None:
        self.process: asyncio.subprocess.Process | None = None
        self.stopped = False
        """Set by `stop`; whoever begins a renewal clears it."""

    def stop(self) -> None:
        self.stopped = True
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()

    async def run(self, work: RenewShard, path: Path) -> bool:
        """True if the shard at `path` was changed to the end. Raises `IndexUnavailable` if the process failed."""
        if self.stopped:
            return False
        # The child is told where to import from, as this process may have been started in any way.
        code = f"import sys; sys.path[:] = {sys.path!r}; from {work.__module__} import {work.__name__}; "
        code += f"sys.exit({work.__name__}({str(path)!r}))"
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            outcome = await self.process.wait()
        finally:
            if self.process.returncode is None:
                self.process.kill()
                await self.process.wait()
            self.process = None
        if outcome not in (_EXIT_DONE, _EXIT_NOTHING_TO_DO) and not self.stopped:
            raise IndexUnavailable(f"Renewing the index ended with code {outcome}; it goes on as it is.")
        return outcome == _EXIT_DONE and not self.stopped


def is_shard_worth_optimizing(generation: Path, dim: int) -> bool:
    """Whether a copy is worth its time, and has room: enough points, new or changed, are outside the graph.

    The engine's API does not tell how many, its files of versions do: 8 bytes a point.
    """
    config = json.loads((generation / "edge_config.json").read_bytes())
    threshold_points: float = config["optimizers"]["indexing_threshold"] * 1024 / (dim * schema.VECTOR_COMPONENT_BYTES)
    unindexed = sum(path.stat().st_size // 8 for path in generation.glob("segments/*/mutable_id_tracker.versions"))
    if unindexed <= threshold_points:
        return False
    size = sum(path.stat().st_size for path in generation.rglob("*") if path.is_file())
    return has_disk_space(generation, 2 * size + INDEX_DISK_RESERVE_BYTES)


# --- in the child process ---------------------------------------------------------------------------------------


def optimize_shard_files(path: str) -> int:
    """Build the graphs of the shard at `path`, at low priority."""
    operating_system.lower_priority()
    shard = qe.EdgeShard.load(path)
    changed = shard.optimize()
    shard.close()
    return _EXIT_DONE if changed else _EXIT_NOTHING_TO_DO


def rewrite_shard_files(path: str) -> int:
    """Write the points of the shard at `path` into new files, which take the place of the old. Without graphs;
    `optimize` builds those when there is time."""
    old = qe.EdgeShard.load(path)
    config = json.loads((Path(path) / "edge_config.json").read_bytes())
    new_path = Path(f"{path}-anew")
    new = create_empty_shard(
        new_path, config["vectors"][schema.DENSE_VECTOR_NAME]["size"], config["optimizers"]["indexing_threshold"]
    )
    offset: Any = None
    while True:
        request = qe.ScrollRequest(offset=offset, limit=_POINTS_PER_REWRITE_BATCH, with_payload=True, with_vector=True)
        records, offset = old.scroll(request)
        points = [qe.Point(record.id, cast(Any, record.vector) or {}, record.payload) for record in records]
        if points:
            new.update(qe.UpdateOperation.upsert_points(points))
        if offset is None:
            break
    new.flush()
    new.close()
    old.close()
    shutil.rmtree(path)
    new_path.rename(path)
    return _EXIT_DONE
