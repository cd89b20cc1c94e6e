"""Statistics of a being's memories for scoring new texts (spec L1, step 4): mean vector and rarity of words."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.index import NONSENSE_WORD_FOR_MAX_IDF, WordIdfSource
from madeleine.memory.ingest.ports import BeingCentroidSourceLedger
from madeleine.memory.model import BeingId, EmbeddingModelName, Scope, Vector
from madeleine.memory.rules.storing.chunk_scoring import (
    MIN_ABSENT_TERM_IDF_TO_SCORE_RARITY,
    distinct_words_for_rarity_score,
    mean_word_rarity,
)
from madeleine.memory.vector_space import VectorSpace

CENTROID_VECTORS_PER_PAGE = 2_000
"""Vectors read at a time: 3 MB of 384 dimensions."""
MAX_CACHED_CENTROID_SUMS = 256
"""Beings whose sums are cached; the least recently used is dropped."""
MAX_IDF_GROWTH_BEFORE_RELOAD = 0.2
"""Growth of the greatest IDF after which all words are looked up again: a fifth more memories."""
WORDS_PER_IDF_QUERY = 64
"""Words a query: the index answers nobody else meanwhile."""
MAX_CACHED_WORD_IDFS = 20_000
"""Words of the one being whose IDF is cached: texts are ingested one being at a time."""


@dataclass(frozen=True, slots=True)
class _VectorSumUpToMemory:
    """`last_memory`: the number of the last memory in the sum. `last_audit`: the end of the audit at that time."""

    total: NDArray[np.float64] | float = 0.0
    last_memory: int = 0
    last_audit: int = 0


class BeingCentroids:
    """Mean vectors of beings, kept up at the cost of what is new.

    The sum of a being's vectors is cached. Each call adds the memories that were stored since the last call. If a
    memory was changed, forgotten or tended by a patrol meanwhile, the sum is computed anew. So it is always that of the
    being's living memories, whoever stored them, and right after a restart.
    """

    def __init__(self, source: BeingCentroidSourceLedger, embedder: Embedder) -> None:
        self._source = source
        self._embedder = embedder
        self._sums: OrderedDict[tuple[BeingId, EmbeddingModelName], _VectorSumUpToMemory] = OrderedDict()
        self._locks: WeakValueDictionary[BeingId, asyncio.Lock] = WeakValueDictionary()

    async def centroid(self, scope: Scope) -> Vector | None:
        """float32, unit length, of centred vectors; None without an embedded memory."""
        # Serialised per being: a waiting caller continues from the sum of the previous one.
        async with self._locks.setdefault(scope.being_id, asyncio.Lock()):
            return await self._updated_centroid(scope)

    async def _updated_centroid(self, scope: Scope) -> Vector | None:
        model, space = self._embedder.model_name, self._embedder.vector_space
        key = scope.being_id, model
        cached = self._sums.get(key, _VectorSumUpToMemory())
        last_audit, was_invalidated = await self._source.last_audit_number_and_whether_changed(
            scope, after=cached.last_audit
        )
        if was_invalidated:
            cached = _VectorSumUpToMemory()
        total, last_summed = cached.total, cached.last_memory
        later: list[Vector] = []
        complete = True
        last_read = last_summed
        while page := await self._source.memory_sequence_numbers_and_vectors_after(
            scope, model, after=last_read, limit=CENTROID_VECTORS_PER_PAGE
        ):
            in_order: list[Vector] = []
            for number, vector in page:
                # Up to the first without a vector: those behind it are read again, until it has a vector.
                complete = complete and vector is not None
                last_summed = number if complete else last_summed
                if vector is not None:
                    (in_order if complete else later).append(vector)
            total = total + _sum_of_centred_vectors(in_order, space)
            last_read = page[-1][0]
        self._sums[key] = _VectorSumUpToMemory(total, last_summed, last_audit)
        self._sums.move_to_end(key)
        if len(self._sums) > MAX_CACHED_CENTROID_SUMS:
            self._sums.popitem(last=False)
        total = total + _sum_of_centred_vectors(later, space)
        norm = float(np.linalg.norm(total))
        return np.asarray(total / norm, np.float32) if norm > 0 else None


def _sum_of_centred_vectors(vectors: Sequence[Vector], space: VectorSpace) -> NDArray[np.float64] | float:
    return np.sum(space.centred_by_language(np.stack(vectors)), axis=0, dtype=np.float64) if vectors else 0.0


class TextRarityScorer:
    """Rarity of words among a being's memories. Each word is looked up once for many texts."""

    def __init__(self, statistics: WordIdfSource) -> None:
        self._statistics = statistics
        self._being: BeingId | None = None
        self._absent_term_idf = 0.0
        self._idf: dict[str, float] = {}

    async def rarities(self, scope: Scope, texts: Sequence[str]) -> list[float]:
        """In [0, 1], of each text; 0 for all while the index is unavailable."""
        words = [distinct_words_for_rarity_score(text) for text in texts]
        try:
            [absent_term_idf] = await self._statistics.idf(scope, [NONSENSE_WORD_FOR_MAX_IDF])
            if absent_term_idf < MIN_ABSENT_TERM_IDF_TO_SCORE_RARITY:
                return [0.0] * len(texts)
            idf = await self._look_up_word_idfs(scope, set().union(*words), absent_term_idf)
        except IndexUnavailable:
            return [0.0] * len(texts)
        return [mean_word_rarity([idf[word] for word in of_text], absent_term_idf=absent_term_idf) for of_text in words]

    async def _look_up_word_idfs(self, scope: Scope, words: set[str], absent_term_idf: float) -> dict[str, float]:
        drifted = abs(absent_term_idf - self._absent_term_idf) > MAX_IDF_GROWTH_BEFORE_RELOAD
        if self._being != scope.being_id or drifted or len(self._idf) > MAX_CACHED_WORD_IDFS:
            self._being, self._absent_term_idf, self._idf = scope.being_id, absent_term_idf, {}
        cached = self._idf  # a call for another being may replace it meanwhile
        missing = sorted(words - cached.keys())
        for start in range(0, len(missing), WORDS_PER_IDF_QUERY):
            batch = missing[start : start + WORDS_PER_IDF_QUERY]
            cached.update(zip(batch, await self._statistics.idf(scope, batch), strict=True))
        return cached
