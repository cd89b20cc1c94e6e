"""How a query becomes two batches of engine queries, and their answers a pool.

Both adapters go through here, so they rank alike; they only put an `Ask` to their engine.

The first batch looks up the words, while the model may still be at work on the vector; the second takes the vector's
nearest, and the cosines of what the words have found. The two are fused here, by the engine's own formula.

The engine returns a sum over terms; `CandidatePool` needs its parts. The weights are in the candidates' sparse vectors.
BM25's score of a single term in a document is idf × weight, so a query for that term alone, with the best document's
vector, gives the idf.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from madeleine.memory.candidates import CandidatePool, CandidateQuery, PendingVector, RankingFeatures
from madeleine.memory.model import MemoryId, Vector
from madeleine.memory.scope import Scope
from madeleine.storage.qdrant import words as encoder
from madeleine.storage.qdrant.filters import Where, asked_for, memories_of
from madeleine.storage.qdrant.schema import RRF_K, RRF_WEIGHTS
from madeleine.storage.qdrant.words import Terms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ask:
    """One query, by `vector` or by `terms`."""

    where: Where
    limit: int
    vector: Vector | None = None
    terms: Terms | None = None
    corpus: Where | None = None
    """The points that IDF is taken over."""
    exact: bool = False
    ef: int | None = None
    weigh: tuple[int, ...] = ()
    """Terms whose stored weights are wanted with each hit."""
    features: bool = False
    known: Collection[int] = ()
    """Hits of which neither weights nor features are wanted."""


class Hit(NamedTuple):
    key: int
    """The point's id; a UUID's own hash and comparison are Python code."""
    id: MemoryId
    score: float
    weights: Sequence[float] = ()
    features: RankingFeatures | None = None


Hits = Sequence[Hit]
Answers = Callable[[Sequence[Ask]], Awaitable[list[Hits]]]


class Sparse(Protocol):
    """A sparse vector of either engine."""

    @property
    def indices(self) -> list[int]: ...

    @property
    def values(self) -> list[float]: ...


def weights_in(vector: Sparse | None, terms: Sequence[int]) -> list[float]:
    """The weights of `terms` in a sparse vector, 0 for one that it has not. Its properties are read once, for Edge
    copies them at each reading."""
    if vector is None or not frozenset(terms).intersection(indices := vector.indices):
        return [0.0] * len(terms)
    values = vector.values
    return [values[indices.index(term)] if term in indices else 0.0 for term in terms]


class Statistics:
    """Of a being's memories: the IDF of the terms that were asked for. `documents` counts the memories with words; it
    is called when a term is asked for that none has."""

    def __init__(self, documents: Callable[[], Awaitable[int]]) -> None:
        self._documents = documents
        self._idf: dict[int, float | None] = {}

    def asks(self, scope: Scope, terms: Iterable[int]) -> dict[int, Ask]:
        """What is to be asked to know the IDF of `terms`: for each that is new the best document of it."""
        mine = memories_of(scope)
        return {
            term: Ask(where=mine, limit=1, terms=([term], [1.0]), corpus=mine, weigh=(term,))
            for term in terms
            if term not in self._idf
        }

    def learn(self, terms: Iterable[int], answers: Iterable[Hits]) -> None:
        """The answers to `asks`, in its order."""
        for term, hits in zip(terms, answers, strict=True):
            self._idf[term] = hits[0].score / hits[0].weights[0] if hits else None

    def is_anywhere(self, term: int) -> bool:
        return self._idf[term] is not None

    async def idf(self, terms: Sequence[int]) -> list[float]:
        """Of terms that were learnt; one that is nowhere has that of document frequency 0."""
        found = [self._idf[term] for term in terms]
        unseen = 0.0 if None not in found else math.log(1 + (await self._documents() + 0.5) / 0.5)
        return [unseen if idf is None else idf for idf in found]


async def idf_of_words(answers: Answers, statistics: Statistics, scope: Scope, words: Sequence[str]) -> list[float]:
    """Of each word the greatest of its terms; 0 for one without any."""
    terms = [encoder.query(word)[0] for word in words]
    new = statistics.asks(scope, (term for of_word in terms for term in of_word))
    if new:
        statistics.learn(new, await answers(list(new.values())))
    return [max(await statistics.idf(of_word), default=0.0) for of_word in terms]


async def candidates(
    answers: Answers, statistics: Statistics, scope: Scope, query: CandidateQuery, vector: PendingVector
) -> CandidatePool:
    terms = encoder.query(query.words)
    sparse_hits: Hits = ()
    if terms[0]:
        new = statistics.asks(scope, terms[0])
        sparse_hits, *best = await answers([_by_words(scope, query, terms), *new.values()])
        statistics.learn(new, best)
    dense_hits: Hits = ()
    cosines: dict[int, float] = {}
    if (aim := await vector()) is not None:
        sparse_keys = [hit.key for hit in sparse_hits]
        asks = [_by_meaning(scope, query, aim, terms, known=frozenset(sparse_keys))]
        if sparse_hits:
            asks.append(Ask(where=Where(keys=sparse_keys), limit=len(sparse_hits), vector=aim, exact=True))
        dense_hits, *more = await answers(asks)
        cosines = {hit.key: hit.score for hits in (dense_hits, *more) for hit in hits}
    found = _fused(dense_hits, sparse_hits)
    kept = _telling(terms[0], statistics, encoder.bridges(query.words))
    counted = [terms[0][at] for at in kept]
    numbers = encoder.numbers(query.words)
    return _pool(found, cosines, kept, await statistics.idf(counted), [term in numbers for term in counted])


def _by_words(scope: Scope, query: CandidateQuery, terms: Terms) -> Ask:
    return Ask(
        where=asked_for(scope, query),
        limit=query.sparse_limit,
        terms=terms,
        corpus=memories_of(scope),
        weigh=tuple(terms[0]),
        features=True,
    )


def _by_meaning(scope: Scope, query: CandidateQuery, vector: Vector, terms: Terms, *, known: Collection[int]) -> Ask:
    return Ask(
        where=asked_for(scope, query),
        limit=query.dense_limit,
        vector=vector,
        ef=2 * query.dense_limit,
        weigh=tuple(terms[0]),
        features=True,
        known=known,
    )


def _telling(terms: Sequence[int], statistics: Statistics, bridges: frozenset[int]) -> list[int]:
    """Positions of the terms that count.

    A bridge joins the end of one word to the beginning of the next: that no memory holds it says nothing about the
    words, and must not make the query look like one about something else.
    """
    return [at for at, term in enumerate(terms) if term not in bridges or statistics.is_anywhere(term)]


def _fused(dense_hits: Hits, sparse_hits: Hits) -> list[Hit]:
    """Weighted RRF as Qdrant has it (`schema.RRF_WEIGHTS`). Equals are in the order of their ids, in a channel too,
    where an engine gives them in any."""
    scores: dict[int, float] = {}
    hits: dict[int, Hit] = {}
    for channel, weight in zip((dense_hits, sparse_hits), RRF_WEIGHTS, strict=True):
        best_first = sorted(channel, key=lambda hit: (-round(hit.score, 6), hit.key))
        for position, hit in enumerate(best_first):
            scores[hit.key] = scores.get(hit.key, 0.0) + 1 / ((position + 1) / weight + RRF_K - 1)
            hits[hit.key] = hit
    return [hits[key] for key in sorted(scores, key=lambda key: (-scores[key], key))]


def _known(features: RankingFeatures | None) -> RankingFeatures:
    assert features is not None, "candidates are asked for with their features"
    return features


def _pool(
    found: Hits, cosines: Mapping[int, float], kept: Sequence[int], idf: Sequence[float], numbers: Sequence[bool]
) -> CandidatePool:
    """`found` with the weights of all terms, of which those at the positions `kept` count, with their `idf` and whether
    they are numbers; `cosines` are those of all that have a vector."""
    weights = [[hit.weights[at] for at in kept] for hit in found]
    return CandidatePool(
        ids=tuple(hit.id for hit in found),
        features=tuple(_known(hit.features) for hit in found),
        cosine=np.asarray([cosines.get(hit.key, 0.0) for hit in found], np.float32),
        weights=np.asarray(weights, np.float32).reshape(len(found), len(kept)),
        idf=np.asarray(idf, np.float32),
        numbers=np.asarray(numbers, np.bool_),
    )
