"""The index on a Qdrant server, or for tests in qdrant-client's local mode (`":memory:"`).

Same schema, same queries (`asks`) and same terms (`words`) as the embedded one, so the same ranking.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from madeleine.memory.candidates import CandidatePool, CandidateQuery, IndexPoint, PendingVector
from madeleine.memory.errors import IndexNeedsRebuild, IndexUnavailable
from madeleine.memory.model import MemoryId, Status, Vector
from madeleine.memory.scope import Scope
from madeleine.storage.qdrant import asks
from madeleine.storage.qdrant import words as encoder
from madeleine.storage.qdrant.asks import Ask, Hit, Hits, Statistics, weights_in
from madeleine.storage.qdrant.filters import Where, memories_of
from madeleine.storage.qdrant.schema import (
    BEING,
    BM25,
    DENSE,
    HNSW_BEING_EDGES,
    HNSW_EF_CONSTRUCT,
    HNSW_GRAPH_EDGES,
    KEYWORD_FIELDS,
    TIME,
    TRAITS,
    Fingerprint,
    features,
    payload,
)

if TYPE_CHECKING:  # qdrant-client takes 1.2 s to import
    from qdrant_client import AsyncQdrantClient
    from qdrant_client import models as qm

_TIMEOUT_SECONDS = 10
_NEAREST_EF = 128


class ServerIndex:
    """`memory.ports.Index` on one collection. A server minds its own disk: `flush` and `optimize` do nothing."""

    def __init__(self, client: AsyncQdrantClient, collection: str, *, local: bool) -> None:
        self._client = client
        self._collection = collection
        # Local mode warns of payload indexes and search parameters, which it has no use for.
        self._local = local

    @classmethod
    async def open(
        cls, location: str, fingerprint: Fingerprint, *, collection: str = "madeleine", api_key: str | None = None
    ) -> ServerIndex:
        """`location` is a URL, or a directory or `":memory:"` for local mode. Creates the collection if there is none.

        Raises `IndexNeedsRebuild` if it was made with another fingerprint, `IndexUnavailable` if the server does not
        answer.
        """
        index = cls(_connect(location, api_key), collection, local="://" not in location)
        async with index._closed_on_failure():
            if not await index._client.collection_exists(collection):
                await index._create(fingerprint)
            made_with = await index._fingerprint()
        if made_with != fingerprint.to_json():
            await index.close()
            raise IndexNeedsRebuild("The collection was made with another model or schema.")
        return index

    @classmethod
    async def create_anew(
        cls, location: str, fingerprint: Fingerprint, *, collection: str = "madeleine", api_key: str | None = None
    ) -> ServerIndex:
        index = cls(_connect(location, api_key), collection, local="://" not in location)
        async with index._closed_on_failure():
            await index._client.delete_collection(collection)
            await index._create(fingerprint)
        return index

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        if points:
            with _client_errors():
                await self._client.upsert(self._collection, [_point(point) for point in points], wait=True)

    async def delete(self, ids: Sequence[MemoryId]) -> None:
        if ids:
            with _client_errors():
                await self._client.delete(self._collection, list(ids), wait=True)

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
        with _client_errors():
            return (await self._client.count(self._collection, exact=True)).count

    async def scrub(self) -> None:
        """Nothing to do: a server drops what was deleted when it next optimises its segments."""

    async def flush(self) -> None:
        """Nothing to do: an upsert is answered when it is in the server's log."""

    async def optimize(self) -> bool:
        return False

    async def close(self) -> None:
        with _client_errors():
            await self._client.close()

    @asynccontextmanager
    async def _closed_on_failure(self) -> AsyncIterator[None]:
        try:
            with _client_errors():
                yield
        except BaseException:
            await self._client.close()
            raise

    async def _create(self, fingerprint: Fingerprint) -> None:
        from qdrant_client import models as qm

        await self._client.create_collection(
            self._collection,
            vectors_config={DENSE: qm.VectorParams(size=fingerprint.dim, distance=qm.Distance.COSINE)},
            sparse_vectors_config={BM25: qm.SparseVectorParams(modifier=qm.Modifier.IDF)},
            hnsw_config=qm.HnswConfigDiff(
                m=HNSW_GRAPH_EDGES, payload_m=HNSW_BEING_EDGES, ef_construct=HNSW_EF_CONSTRUCT
            ),
            metadata={"fingerprint": fingerprint.to_json()},
        )
        if self._local:
            return
        for name in KEYWORD_FIELDS:
            tenant = name == BEING
            schema = qm.KeywordIndexParams(type=qm.KeywordIndexType.KEYWORD, is_tenant=tenant, enable_hnsw=tenant)
            await self._client.create_payload_index(self._collection, name, schema)
        times = qm.IntegerIndexParams(type=qm.IntegerIndexType.INTEGER, lookup=False, range=True, enable_hnsw=False)
        await self._client.create_payload_index(self._collection, TIME, times)

    async def _fingerprint(self) -> Any:
        config = (await self._client.get_collection(self._collection)).config
        return (config.metadata or {}).get("fingerprint")

    async def _answers(self, asks: Sequence[Ask]) -> list[Hits]:
        with _client_errors():
            requests = [_request(ask, local=self._local) for ask in asks]
            answers = await self._client.query_batch_points(self._collection, requests)
            return [[_hit(point, ask) for point in got.points] for ask, got in zip(asks, answers, strict=True)]

    def _statistics_of(self, scope: Scope) -> Statistics:
        # Not remembered: another server may write to the same collection.
        return Statistics(partial(self._documents_of, scope))

    async def _documents_of(self, scope: Scope) -> int:
        with _client_errors():
            where = _filter(memories_of(scope, vector=BM25))
            return (await self._client.count(self._collection, count_filter=where, exact=True)).count


def _connect(location: str, api_key: str | None) -> AsyncQdrantClient:
    from qdrant_client import AsyncQdrantClient

    with _client_errors():
        if location == ":memory:":
            return AsyncQdrantClient(location)
        if "://" not in location:
            return AsyncQdrantClient(path=location)
        return AsyncQdrantClient(location, api_key=api_key, timeout=_TIMEOUT_SECONDS, check_compatibility=False)


def _point(point: IndexPoint) -> qm.PointStruct:
    from qdrant_client import models as qm

    vectors: dict[str, Any] = {}
    if point.vector is not None:
        vectors[DENSE] = point.vector.tolist()
    indices, values = encoder.document(point.words)
    if indices:
        vectors[BM25] = qm.SparseVector(indices=indices, values=values)
    return qm.PointStruct(id=point.memory.id, vector=vectors, payload=payload(point))


def _filter(where: Where) -> qm.Filter:
    from qdrant_client import models as qm

    must: list[qm.Condition] = [
        qm.FieldCondition(
            key=name, match=qm.MatchValue(value=values[0]) if len(values) == 1 else qm.MatchAny(any=list(values))
        )
        for name, values in where.fields()
    ]
    if where.keys is not None:
        must.append(qm.HasIdCondition(has_id=[str(UUID(int=key)) for key in where.keys]))
    if where.vector is not None:
        must.append(qm.HasVectorCondition(has_vector=where.vector))
    return qm.Filter(must=must)


def _request(ask: Ask, *, local: bool) -> qm.QueryRequest:
    from qdrant_client import models as qm

    query: Any
    params: qm.SearchParams | None
    if ask.vector is not None:
        using, query = DENSE, ask.vector.tolist()
        params = None if local else qm.SearchParams(exact=ask.exact, hnsw_ef=ask.ef)
    else:
        indices, values = ask.terms or ([], [])
        using, query = BM25, qm.SparseVector(indices=indices, values=values)
        corpus = qm.IdfCorpusParams(corpus=_filter(ask.corpus)) if ask.corpus is not None else None
        params = qm.SearchParams(idf=corpus)
    return qm.QueryRequest(
        query=query,
        using=using,
        params=params,
        filter=_filter(ask.where),
        limit=ask.limit,
        with_vector=[BM25] if ask.weigh else None,
        with_payload=list(TRAITS) if ask.features else None,
    )


def _hit(point: qm.ScoredPoint, ask: Ask) -> Hit:
    vector: Any = point.vector.get(BM25) if isinstance(point.vector, dict) else None
    return Hit(
        UUID(str(point.id)).int,
        MemoryId(str(point.id)),
        point.score,
        weights_in(vector, ask.weigh),
        features(point.payload or {}) if ask.features else None,
    )


@contextmanager
def _client_errors() -> Iterator[None]:
    from httpx import HTTPError
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ApiException

    try:
        yield
    except (QdrantException, ApiException, HTTPError, ValueError, RuntimeError, OSError) as error:
        raise IndexUnavailable(f"The Qdrant server did not answer as expected: {error}") from error
