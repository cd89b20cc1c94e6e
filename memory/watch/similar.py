"""The memories that a text may be quoting: those nearest to it in words and in meaning, dead ones too."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import EmbeddingUnavailable
from madeleine.memory.index import CandidatePool, CandidateQuery, PendingVector
from madeleine.memory.model import Memory, Scope, Status, Vector
from madeleine.memory.recall.ports import RecallLedger

ALL_STATUSES: tuple[Status, ...] = ("active", "dying", "dead")
BY_WORDS = 40
"""A long message may quote many memories, each with few of its words."""
BY_MEANING = 20
_READ = 8_000
"""Characters of a text by which memories are looked up."""


class CandidateIndex(Protocol):
    async def candidates(self, scope: Scope, query: CandidateQuery, vector: PendingVector) -> CandidatePool: ...


@dataclass(frozen=True, slots=True)
class SimilarMemory:
    """`cosine`: 0 where there are no vectors."""

    memory: Memory
    cosine: float


class SimilarMemories:
    """Looking leaves no trace: nothing comes to mind by it."""

    def __init__(self, ledger: RecallLedger, index: CandidateIndex, embedder: Embedder) -> None:
        self._ledger = ledger
        self._index = index
        self._embedder = embedder

    async def near(self, scope: Scope, texts: Sequence[str]) -> list[list[SimilarMemory]]:
        """For each text. By words alone while the embedding model is away. Raises `IndexUnavailable`."""
        if not texts:
            return []
        texts = [text[:_READ] for text in texts]
        vectors: list[Vector | None] = [None] * len(texts)
        with suppress(EmbeddingUnavailable):
            vectors = list(await self._embedder.embed(texts))
        return [await self._near(scope, text, vector) for text, vector in zip(texts, vectors, strict=True)]

    async def _near(self, scope: Scope, text: str, vector: Vector | None) -> list[SimilarMemory]:
        async def given() -> Vector | None:
            return vector

        query = CandidateQuery(words=text, statuses=ALL_STATUSES, sparse_limit=BY_WORDS, dense_limit=BY_MEANING)
        pool = await self._index.candidates(scope, query, given)
        cosines = dict(zip(pool.ids, map(float, pool.cosine), strict=True))
        return [SimilarMemory(one, cosines[one.id]) for one in await self._ledger.memories(scope, pool.ids)]
