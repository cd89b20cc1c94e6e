"""The index on a Qdrant server, or for tests in qdrant-client's local mode (`":memory:"`).

Same schema, same queries and same terms as the embedded one, so the same ranking. qdrant-client takes 1.2 s to import:
import this module only where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from uuid import UUID

from httpx import HTTPError
from qdrant_client import AsyncQdrantClient
from qdrant_client import models as qm
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException

from madeleine.memory.errors import IndexNeedsRebuild, IndexUnavailable
from madeleine.memory.index import IndexPoint
from madeleine.memory.model import MemoryId, Scope
from madeleine.storage.qdrant import schema
from madeleine.storage.qdrant.point_contents import index_point_content_from_engine_point
from madeleine.storage.qdrant.queries import HybridIndex, IdfByTerm, IndexPointFilter, IndexPointHit, IndexPointQuery

_REQUEST_TIMEOUT_SECONDS = 10


class QdrantServerIndex(HybridIndex):
    """`memory.index.Index` on one collection. A server minds its own disk: `flush` and `optimize_if_worthwhile` do
    nothing."""

    def __init__(self, client: AsyncQdrantClient, collection: str, *, local: bool) -> None:
        self._client = client
        self._collection = collection
        # Local mode warns of payload indexes and search parameters, which it has no use for.
        self._local = local

    @classmethod
    async def open(
        cls, location: str, fingerprint: schema.IndexFingerprint, *, collection: str = "madeleine", reset: bool = False
    ) -> QdrantServerIndex:
        """`location` is a URL, or a directory or `":memory:"` for local mode. Creates the collection if there is none;
        with `reset` also if there is one, which is dropped.

        Raises `IndexNeedsRebuild` if it was made with another fingerprint, `IndexUnavailable` if the server does not
        answer.
        """
        async with AsyncExitStack() as closed_on_error:
            with _translating_client_errors():
                client = _connect_client(location)
                closed_on_error.push_async_callback(client.close)
                index = cls(client, collection, local="://" not in location)
                if reset:
                    await client.delete_collection(collection)
                if not await client.collection_exists(collection):
                    await index._create(fingerprint)
                metadata = (await client.get_collection(collection)).config.metadata or {}
                if metadata.get("fingerprint") != fingerprint.to_json():
                    raise IndexNeedsRebuild("The collection was made with another model or schema.")
            closed_on_error.pop_all()
        return index

    @classmethod
    async def drop(cls, location: str, collection: str) -> None:
        """Remove the collection, if there is one. Raises `IndexUnavailable`."""
        with _translating_client_errors():
            client = _connect_client(location)
            try:
                await client.delete_collection(collection)
            finally:
                await client.close()

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        if points:
            with _translating_client_errors():
                await self._client.upsert(
                    self._collection, [_to_qdrant_point_struct(point) for point in points], wait=True
                )

    async def delete(self, ids: Sequence[MemoryId]) -> None:
        if ids:
            with _translating_client_errors():
                await self._client.delete(self._collection, list(ids), wait=True)

    async def count(self) -> int:
        with _translating_client_errors():
            return (await self._client.count(self._collection, exact=True)).count

    async def scrub_deleted_bytes(self) -> None:
        """Nothing to do: a server drops what was deleted when it next optimises its segments."""

    async def flush(self) -> None:
        """Nothing to do: an upsert is answered when it is in the server's log."""

    async def optimize_if_worthwhile(self) -> bool:
        return False

    async def close(self) -> None:
        with _translating_client_errors():
            await self._client.close()

    async def _create(self, fingerprint: schema.IndexFingerprint) -> None:
        await self._client.create_collection(
            self._collection,
            vectors_config={
                schema.DENSE_VECTOR_NAME: qm.VectorParams(
                    size=fingerprint.dim, distance=qm.Distance.COSINE, datatype=qm.Datatype.FLOAT16
                )
            },
            sparse_vectors_config={schema.BM25_VECTOR_NAME: qm.SparseVectorParams(modifier=qm.Modifier.IDF)},
            hnsw_config=qm.HnswConfigDiff(
                m=schema.HNSW_EDGES_IN_GLOBAL_GRAPH,
                payload_m=schema.HNSW_EDGES_IN_BEING_GRAPH,
                ef_construct=schema.HNSW_EF_CONSTRUCT,
            ),
            metadata={"fingerprint": fingerprint.to_json()},
        )
        if self._local:
            return
        for name in schema.KEYWORD_INDEXED_FIELDS:
            tenant = name == schema.BEING_FIELD
            keywords = qm.KeywordIndexParams(type=qm.KeywordIndexType.KEYWORD, is_tenant=tenant, enable_hnsw=tenant)
            await self._client.create_payload_index(self._collection, name, keywords)
        times = qm.IntegerIndexParams(type=qm.IntegerIndexType.INTEGER, lookup=False, range=True, enable_hnsw=False)
        for name in schema.TIME_INDEXED_FIELDS:
            await self._client.create_payload_index(self._collection, name, times)

    async def _run_queries(self, queries: Sequence[IndexPointQuery]) -> list[list[IndexPointHit]]:
        with _translating_client_errors():
            requests = [_to_qdrant_server_query_request(query, local=self._local) for query in queries]
            answers = zip(queries, await self._client.query_batch_points(self._collection, requests), strict=True)
            return [[_hit_from_scored_point(point, query) for point in answer.points] for query, answer in answers]

    def _cached_idf_by_term(self, scope: Scope) -> IdfByTerm:
        return {}  # not remembered: another server may write to the same collection

    async def _count_memories_with_words(self, scope: Scope) -> int:
        with _translating_client_errors():
            mine = IndexPointFilter(being=scope.being_id, project=scope.project, vector_name=schema.BM25_VECTOR_NAME)
            return (
                await self._client.count(self._collection, count_filter=_to_qdrant_server_filter(mine), exact=True)
            ).count


def _connect_client(location: str) -> AsyncQdrantClient:
    if location == ":memory:":
        return AsyncQdrantClient(location)
    if "://" not in location:
        return AsyncQdrantClient(path=location)
    return AsyncQdrantClient(location, timeout=_REQUEST_TIMEOUT_SECONDS, check_compatibility=False)


def _to_qdrant_point_struct(point: IndexPoint) -> qm.PointStruct:
    vectors = schema.named_vectors_of_index_point(point, qm.SparseVector)
    return qm.PointStruct(id=point.memory.id, vector=vectors, payload=schema.payload_of_index_point(point))


def _to_qdrant_server_filter(where: IndexPointFilter) -> qm.Filter:
    must: list[qm.Condition] = [
        qm.FieldCondition(
            key=name, match=qm.MatchValue(value=values[0]) if len(values) == 1 else qm.MatchAny(any=list(values))
        )
        for name, values in where.required_field_values()
    ]
    must += [qm.FieldCondition(key=name, range=qm.Range(**bounds)) for name, bounds in where.required_field_ranges()]
    if where.point_ids is not None:
        must.append(qm.HasIdCondition(has_id=[str(id_) for id_ in where.point_ids]))
    if where.vector_name is not None:
        must.append(qm.HasVectorCondition(has_vector=where.vector_name))
    must_not: list[qm.Condition] = [
        qm.FieldCondition(key=name, range=qm.Range(**bounds)) for name, bounds in where.excluded_field_ranges()
    ]
    return qm.Filter(must=must, must_not=must_not or None)


def _hit_from_scored_point(point: qm.ScoredPoint, query: IndexPointQuery) -> IndexPointHit:
    id_ = UUID(str(point.id))
    needs_content = query.with_content and id_.int not in query.known_keys
    return IndexPointHit(
        id_.int, id_, point.score, index_point_content_from_engine_point(id_, point) if needs_content else None
    )


def _to_qdrant_server_query_request(query: IndexPointQuery, *, local: bool) -> qm.QueryRequest:
    target, using = query.query_vector_and_name(qm.SparseVector)
    if query.vector is not None:
        params = None if local else qm.SearchParams(exact=query.exact, hnsw_ef=query.ef)
    else:
        corpus = (
            qm.IdfCorpusParams(corpus=_to_qdrant_server_filter(query.idf_corpus))
            if query.idf_corpus is not None
            else None
        )
        params = qm.SearchParams(idf=corpus)
    return qm.QueryRequest(
        query=target,
        using=using,
        params=params,
        filter=_to_qdrant_server_filter(query.where),
        limit=query.limit,
        with_vector=[schema.BM25_VECTOR_NAME] if query.with_content else None,
        with_payload=list(schema.RANKING_FEATURE_FIELDS) if query.with_content else None,
    )


@contextmanager
def _translating_client_errors() -> Iterator[None]:
    try:
        yield
    except IndexUnavailable:
        raise
    except (QdrantException, ApiException, HTTPError, ValueError, RuntimeError, OSError) as error:
        raise IndexUnavailable(f"The Qdrant server did not answer as expected: {error}") from error
