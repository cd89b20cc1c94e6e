"""Shards, points, filters and queries in the words of Qdrant Edge 0.9.0.

Nothing but this module, `edge`, `edge_renewal` and `bm25` knows that package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import qdrant_edge as qe

from madeleine.memory.errors import IndexNeedsRebuild, IndexUnavailable
from madeleine.memory.index import IndexPoint
from madeleine.memory.model import MemoryId
from madeleine.storage.qdrant import bm25, schema
from madeleine.storage.qdrant.queries import Hit, PointFilter, PointQuery, weights_in

Change = tuple[str, "qe.Point | None"]
"""(id, the point as it is to be, None to delete it)."""

_FEATURES = qe.PayloadSelector.Include(list(schema.FEATURES))
_SAMPLE = 200
"""Points that are read when a shard is checked."""


@contextmanager
def engine_errors(kind: type[IndexUnavailable]) -> Iterator[None]:
    """Translates the engine's errors to `kind`."""
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


def create_shard(path: Path, dim: int, kilobytes: int) -> qe.EdgeShard:
    """An empty one. `kilobytes` of vectors are searched without a graph."""
    path.mkdir(mode=0o700)
    config = qe.EdgeConfig(
        vectors={schema.DENSE: qe.EdgeVectorParams(dim, qe.Distance.Cosine)},
        sparse_vectors={schema.BM25: qe.EdgeSparseVectorParams(modifier=qe.Modifier.Idf)},
        hnsw_config=qe.HnswIndexConfig(
            m=schema.HNSW_GRAPH_EDGES,
            payload_m=schema.HNSW_BEING_EDGES,
            ef_construct=schema.HNSW_EF_CONSTRUCT,
            full_scan_threshold=kilobytes,
            max_indexing_threads=1,
        ),
        optimizers=qe.EdgeOptimizersConfig(indexing_threshold=kilobytes),
    )
    shard = qe.EdgeShard.create(str(path), config)
    for name in schema.KEYWORD_FIELDS:
        tenant = name == schema.BEING
        # A graph for each value of status or category would be built as well, and none is searched.
        params = qe.KeywordIndexParams(is_tenant=tenant, enable_hnsw=tenant)
        shard.update(qe.UpdateOperation.create_field_index(name, params))
    times = qe.IntegerIndexParams(lookup=False, range=True, enable_hnsw=False)
    shard.update(qe.UpdateOperation.create_field_index(schema.TIME, times))
    return shard


def load_checked(path: Path, dim: int) -> qe.EdgeShard:
    """Raises `IndexNeedsRebuild` if the shard does not load or contradicts itself."""
    with engine_errors(IndexNeedsRebuild):
        shard = qe.EdgeShard.load(str(path))
        try:
            _check(shard, dim)
        except BaseException:
            shard.close()
            raise
    return shard


def _check(shard: qe.EdgeShard, dim: int) -> None:
    """Makes the engine read every kind of file once, and compares its answers."""
    count = shard.count(qe.CountRequest())
    sample, _ = shard.scroll(qe.ScrollRequest(limit=_SAMPLE, with_payload=True, with_vector=True))
    nowhere = qe.CountRequest(filter=qe.Filter(must=[qe.IsEmptyCondition(schema.BEING)]))
    complete = len(sample) == min(count, _SAMPLE) and all(schema.BEING in (point.payload or {}) for point in sample)
    if not complete or shard.count(nowhere):
        raise IndexNeedsRebuild("The index contradicts itself: points without payload.")
    shard.query(qe.QueryRequest(limit=10, query=qe.Query.Nearest([1.0] + [0.0] * (dim - 1), using=schema.DENSE)))
    sparse = (vector for point in sample if isinstance(vector := _named(point.vector, schema.BM25), qe.SparseVector))
    if (some := next(sparse, None)) and (terms := some.indices):
        query = qe.Query.Nearest(qe.SparseVector(terms, [1.0] * len(terms)), using=schema.BM25)
        if not shard.query(qe.QueryRequest(limit=10, query=query)):
            raise IndexNeedsRebuild("The index contradicts itself: words that are not found.")


def edge_point(point: IndexPoint) -> qe.Point:
    vectors: dict[str, Any] = {}
    if point.vector is not None:
        vectors[schema.DENSE] = point.vector.tolist()
    indices, values = bm25.document_terms(point.words)
    # An empty sparse vector would count as a document in one kind of segment and not in the other.
    if indices:
        vectors[schema.BM25] = qe.SparseVector(indices, values)
    return qe.Point(UUID(point.memory.id), vectors, schema.payload(point))


def apply(shard: qe.EdgeShard, changes: Iterable[Change]) -> None:
    """The last change of each id counts, so upserts and deletions need no order among themselves."""
    last = dict(changes)
    points = [point for point in last.values() if point is not None]
    deleted: list[qe.PointId] = [UUID(id) for id, point in last.items() if point is None]
    with engine_errors(IndexUnavailable):
        if points:
            shard.update(qe.UpdateOperation.upsert_points(points))
        if deleted:
            shard.update(qe.UpdateOperation.delete_points(deleted))


def edge_filter(where: PointFilter) -> qe.Filter:
    must: list[Any] = [
        qe.FieldCondition(key=name, match=qe.MatchValue(values[0]) if len(values) == 1 else qe.MatchAny(list(values)))
        for name, values in where.fields()
    ]
    if where.keys is not None:
        must.append(qe.HasIdCondition({UUID(int=key) for key in where.keys}))
    if where.vector is not None:
        must.append(qe.HasVectorCondition(where.vector))
    return qe.Filter(must=must)


def edge_request(query: PointQuery, filter_of: Callable[[PointFilter], qe.Filter]) -> qe.QueryRequest:
    if query.vector is not None:
        nearest = qe.Query.Nearest(query.vector.tolist(), using=schema.DENSE)
        params = qe.SearchParams(exact=query.exact, hnsw_ef=query.ef)
    else:
        corpus = filter_of(query.corpus) if query.corpus is not None else None
        nearest = qe.Query.Nearest(qe.SparseVector(list(query.terms), [1.0] * len(query.terms)), using=schema.BM25)
        params = qe.SearchParams(idf=qe.IdfParams(corpus=corpus))
    return qe.QueryRequest(
        limit=query.limit,
        query=nearest,
        params=params,
        filter=filter_of(query.where),
        with_vector=[schema.BM25] if query.weights_of else None,
        with_payload=_FEATURES if query.features else None,
    )


def hit_of(point: qe.ScoredPoint, query: PointQuery) -> Hit:
    uuid = cast(UUID, point.id)
    id = MemoryId(str(uuid))
    if uuid.int in query.known or not (query.weights_of or query.features):
        return Hit(uuid.int, id, point.score)
    weights = weights_in(_named(point.vector, schema.BM25), query.weights_of)
    return Hit(uuid.int, id, point.score, weights, schema.features(point.payload or {}) if query.features else None)


def _named(vectors: Any, name: str) -> Any:
    return vectors.get(name) if isinstance(vectors, dict) else None
