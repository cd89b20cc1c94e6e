"""Points and queries for the tests of an index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from uuid import UUID

import numpy as np
import pytest

from madeleine.memory.index import CandidatePool, CandidateQuery, IndexPoint, RecallIndex
from madeleine.memory.model import (
    LIVING_STATUSES,
    BeingId,
    Category,
    ClusterId,
    EmbeddingModelName,
    Memory,
    MemoryId,
    MemoryStatus,
    Provenance,
    Scene,
    Scope,
    Vector,
)
from madeleine.storage.qdrant import bm25
from madeleine.storage.qdrant.schema import IndexFingerprint

DIM = 8
FINGERPRINT = IndexFingerprint(model=EmbeddingModelName("tests"), dim=DIM)
COSINE_TOLERANCE = 1e-3
"""Vectors of the index are of half precision; those of the fewest dimensions lose most."""
ADA = Scope(BeingId("ada"))
BOB = Scope(BeingId("bob"))
MOMENT = datetime(2025, 3, 1, 12, tzinfo=UTC)
VOCABULARY = (
    "harbor violin orchard lantern glacier saffron compass meadow thunder velvet anchor cinnamon falcon ivory juniper "
    "kettle ladder marble nectar opal pepper quartz ribbon spruce timber umbrella walnut yarrow zephyr bridge".split()
)


def memory_id(number: int) -> MemoryId:
    return MemoryId(str(UUID(int=number)))


def unit(*values: float) -> Vector:
    vector = np.zeros(DIM, dtype=np.float32)
    vector[: len(values)] = values
    return vector / np.float32(np.linalg.norm(vector))


def point(
    number: int,
    words: str,
    vector: Vector | None = None,
    *,
    scope: Scope = ADA,
    status: MemoryStatus = "active",
    category: Category = "episodic",
    cluster: str | None = None,
    themes: tuple[str, ...] = (),
    happened_at: datetime = MOMENT,
    compressed: bool = False,
) -> IndexPoint:
    memory = Memory(
        id=memory_id(number),
        being_id=scope.being_id,
        scene=Scene(action=words),
        provenance=Provenance(tool="store"),
        created_at=MOMENT,
        happened_at=happened_at,
        compressed=compressed,
        status=status,
        category=category,
        cluster_id=None if cluster is None else ClusterId(cluster),
        themes=themes,
    )
    return IndexPoint(memory=memory, words=words, vector=vector, tokens=number)


def random_points(count: int, *, seed: int, scope: Scope = ADA, start: int = 1) -> list[IndexPoint]:
    """Each of another length, so that no two have equal BM25 scores."""
    random = Random(seed)
    lengths = random.sample(range(3, count + 3), count)
    return [
        point(
            start + number,
            " ".join(random.choices(VOCABULARY, k=lengths[number])),
            unit(*(random.gauss(0, 1) for _ in range(DIM))),
            scope=scope,
        )
        for number in range(count)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorQuery(CandidateQuery):
    """With the vector that an index is given when it asks for it."""

    vector: Vector | None


def index_query(words: str = "", vector: Vector | None = None, depth: int = 100) -> VectorQuery:
    return VectorQuery(words=words, vector=vector, statuses=LIVING_STATUSES, sparse_limit=depth, dense_limit=depth)


async def candidates(index: RecallIndex, scope: Scope, question: VectorQuery) -> CandidatePool:
    async def vector() -> Vector | None:
        return question.vector

    return await index.candidates(scope, question, vector)


def expected_idf(word: str, points: Sequence[IndexPoint]) -> float:
    [term] = bm25.query_term_ids(word)
    documents = [ids for point in points if (ids := bm25.document_term_ids_and_weights(point.words)[0])]
    having = sum(term in ids for ids in documents)
    return math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))


def assert_scores_are_true(pool: CandidatePool, question: VectorQuery, points: Sequence[IndexPoint]) -> None:
    """Every cosine, weight and IDF of `pool` equals what the formulas give over `points`, all of one being."""
    by_id = {point.memory.id: point for point in points}
    terms = bm25.query_term_ids(question.words)
    documents = {id: dict(zip(*bm25.document_term_ids_and_weights(by_id[id].words), strict=True)) for id in by_id}
    filled = [document for document in documents.values() if document]
    for column, term in enumerate(terms):
        having = sum(term in document for document in filled)
        assert pool.idf[column] == pytest.approx(math.log(1 + (len(filled) - having + 0.5) / (having + 0.5)), rel=1e-4)
    for row, id in enumerate(pool.ids):
        vector = by_id[id].vector
        cosine = 0.0 if vector is None or question.vector is None else float(vector @ question.vector)
        assert pool.cosine[row] == pytest.approx(cosine, abs=COSINE_TOLERANCE)
        weights = [documents[id].get(term, 0.0) for term in terms]
        assert pool.weights[row].tolist() == pytest.approx(weights, rel=1e-4)
