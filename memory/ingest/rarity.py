"""How rare words are in what a being remembers, looked up once for many texts."""

from __future__ import annotations

from collections.abc import Sequence

from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.index import WordStatistics
from madeleine.memory.model import BeingId, Scope
from madeleine.memory.rules.storing.salience import MIN_MEMORIES_FOR_RARITY, rarity, telling_words

ABSENT_TERM = "qxzjvkwqxz"
"""A word that no memory has: the greatest IDF there is."""
MAX_DRIFT = 0.2
"""By which the greatest IDF may have grown before all are looked up again: by a fifth more memories."""
WORDS_PER_QUERY = 64
"""Words a question: each is a query, and the index answers no other meanwhile."""
MAX_CACHED_WORDS = 20_000
"""Held for a being, the only one: texts are ingested one being at a time."""


class Rarity:
    def __init__(self, statistics: WordStatistics) -> None:
        self._statistics = statistics
        self._being: BeingId | None = None
        self._absent_term_idf = 0.0
        self._idf: dict[str, float] = {}

    async def of(self, scope: Scope, texts: Sequence[str]) -> list[float]:
        """In [0, 1], of each text; 0 for all while the index cannot answer."""
        words = [telling_words(text) for text in texts]
        try:
            [absent_term_idf] = await self._statistics.idf(scope, [ABSENT_TERM])
            if absent_term_idf < MIN_MEMORIES_FOR_RARITY:
                return [0.0] * len(texts)
            idf = await self._look_up(scope, {word for some in words for word in some}, absent_term_idf)
        except IndexUnavailable:
            return [0.0] * len(texts)
        return [rarity([idf[word] for word in some], absent_term_idf=absent_term_idf) for some in words]

    async def _look_up(self, scope: Scope, words: set[str], absent_term_idf: float) -> dict[str, float]:
        if (
            self._being != scope.being_id
            or abs(absent_term_idf - self._absent_term_idf) > MAX_DRIFT
            or len(self._idf) > MAX_CACHED_WORDS
        ):
            self._being, self._absent_term_idf, self._idf = scope.being_id, absent_term_idf, {}
        known = self._idf
        missing = sorted(words - known.keys())
        for start in range(0, len(missing), WORDS_PER_QUERY):
            some = missing[start : start + WORDS_PER_QUERY]
            known.update(zip(some, await self._statistics.idf(scope, some), strict=True))
        return known
