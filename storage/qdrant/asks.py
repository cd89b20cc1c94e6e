"""How a question becomes two batches of engine queries, and their answers a pool.

Both adapters go through here, so they rank alike; they only put an `Ask` to their engine.

The engine tells a sum over terms, `Pool` wants its parts. The weights stand in the candidates' sparse vectors, which
come with the hybrid query. BM25's score of a single term in a document is idf × weight, so a query for that term alone,
with the best document's vector, gives the idf. The second batch fetches the cosines of the candidates that the words
brought.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

import numpy as np

from memory.model import MemoryId, Vector
from memory.ports import Pool, Question
from memory.scope import Scope
from storage.qdrant.filters import Where, asked_for, memories_of
from storage.qdrant.words import Terms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ask:
    """One query. With both `vector` and `terms` it is a hybrid one: the best `depth` of each, fused by weighted RRF."""

    where: Where
    limit: int
    vector: Vector | None = None
    terms: Terms | None = None
    corpus: Where | None = None
    """The points that IDF is taken over."""
    depth: int = 0
    exact: bool = False
    ef: int | None = None
    weigh: tuple[int, ...] = ()
    """Terms whose stored weights are wanted with each hit."""


Hit = tuple[UUID, float, Sequence[float]]
"""(the point's id, its score, the weights of `Ask.weigh`, 0 for a term it has not). A plain tuple, for there are some
300 in an answer."""
Hits = Sequence[Hit]


def idf_asks(scope: Scope, terms: Sequence[int]) -> list[Ask]:
    """One per term, for the best document of it."""
    mine = memories_of(scope)
    return [Ask(where=mine, limit=1, terms=([term], [1.0]), corpus=mine, weigh=(term,)) for term in terms]


def idf_of(hits: Hits) -> float | None:
    """The answer to one of `idf_asks`; None for a term that is nowhere."""
    return hits[0][1] / hits[0][2][0] if hits else None


def unseen_idf(documents: int) -> float:
    """Of a term with document frequency 0 among `documents`."""
    return math.log(1 + (documents + 0.5) / 0.5)


class Sparse(Protocol):
    """A sparse vector of either engine."""

    @property
    def indices(self) -> list[int]: ...

    @property
    def values(self) -> list[float]: ...


def weights_in(vector: Sparse | None, terms: Sequence[int]) -> list[float]:
    """The weights of `terms` in a sparse vector. Its properties are read once, for Edge copies them at each reading."""
    if vector is None or not frozenset(terms).intersection(indices := vector.indices):
        return [0.0] * len(terms)
    values = vector.values
    return [values[indices.index(term)] if term in indices else 0.0 for term in terms]


def telling(terms: Sequence[int], known: Sequence[float | None], bridges: frozenset[int]) -> list[int]:
    """Positions of the terms that count, given what is known of their IDF.

    A bridge joins the end of one word to the beginning of the next: that no memory holds it says nothing about the
    words, and must not make the question look like one about something else.
    """
    return [
        at for at, (term, idf) in enumerate(zip(terms, known, strict=True)) if idf is not None or term not in bridges
    ]


def candidates_ask(scope: Scope, question: Question, terms: Terms) -> Ask | None:
    """None if there is nothing to look for."""
    sought = terms if terms[0] else None
    if question.vector is None and sought is None:
        return None
    both = question.vector is not None and sought is not None
    return Ask(
        where=asked_for(scope, question),
        limit=2 * question.depth if both else question.depth,
        vector=question.vector,
        terms=sought,
        corpus=memories_of(scope),
        depth=question.depth,
        ef=2 * question.depth,
        weigh=tuple(terms[0]),
    )


def in_order(found: Hits) -> Hits:
    """Best first, equals by id: an engine gives equal fused scores, which are common, in any order."""
    return sorted(found, key=lambda hit: (-round(hit[1], 6), hit[0].int))


def cosine_asks(question: Question, found: Hits) -> list[Ask]:
    """One for the cosines of `found`, none if the question has no vector."""
    if question.vector is None:
        return []
    only = Where(keys=[hit[0] for hit in found])
    return [Ask(where=only, limit=len(found), vector=question.vector, exact=True)]


def pool_of(found: Hits, kept: Sequence[int], idf: Sequence[float], cosines: Sequence[Hits]) -> Pool:
    """`found` with the weights of all terms, of which those at the positions `kept` count, with their `idf`; `cosines`
    is the answer to `cosine_asks`."""
    weights = np.asarray([hit[2] for hit in found], np.float32).reshape(len(found), -1)
    cosine = np.zeros(len(found), np.float32)
    if cosines:
        # By `int`, for UUID's own hash and comparison are Python code.
        rows = {hit[0].int: row for row, hit in enumerate(found)}
        for hit in cosines[0]:
            cosine[rows[hit[0].int]] = hit[1]
    ids = tuple(MemoryId(str(hit[0])) for hit in found)
    return Pool(ids, cosine, weights[:, list(kept)], np.asarray(idf, np.float32))


EMPTY_POOL = Pool((), np.zeros(0, np.float32), np.zeros((0, 0), np.float32), np.zeros(0, np.float32))
