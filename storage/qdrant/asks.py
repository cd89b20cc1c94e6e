"""How a question becomes two batches of engine queries, and their answers a pool.

Both adapters go through here, so they rank alike; they only put an `Ask` to their engine.

The engine tells a sum over terms, `Pool` wants its parts. BM25's score of a single term in a document is idf × weight,
so a query for that term alone gives both: idf from the best document's score and its stored weight (batch 1), and each
candidate's weight from its score and the idf (batch 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
    idf_of: int | None = None
    """A term: each hit's score is to be divided by the term's stored weight, which leaves the IDF."""


Hit = tuple[UUID, float]
"""(the point's id, its score). A plain tuple, for there are some 500 in an answer."""
Hits = Sequence[Hit]


def idf_asks(scope: Scope, terms: Sequence[int]) -> list[Ask]:
    """One per term, for the best document of it."""
    mine = memories_of(scope)
    return [Ask(where=mine, limit=1, terms=([term], [1.0]), corpus=mine, idf_of=term) for term in terms]


def idf_of(answers: Sequence[Hits], documents: int) -> list[float]:
    """Answers to `idf_asks`. A term that is nowhere has the IDF of document frequency 0 among `documents`."""
    unseen = math.log(1 + (documents + 0.5) / 0.5)
    return [hits[0][1] if hits else unseen for hits in answers]


def telling(terms: Sequence[int], best: Sequence[Hits], bridges: frozenset[int]) -> list[int]:
    """Positions of the terms that count, given the answers to `idf_asks`.

    A bridge joins the end of one word to the beginning of the next: that no memory holds it says nothing about the
    words, and must not make the question look like one about something else.
    """
    return [at for at, (term, hits) in enumerate(zip(terms, best, strict=True)) if hits or term not in bridges]


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
    )


def in_order(found: Hits) -> Hits:
    """Best first, equals by id: an engine gives equal fused scores, which are common, in any order."""
    return sorted(found, key=lambda hit: (-round(hit[1], 6), hit[0].int))


def score_asks(scope: Scope, question: Question, terms: Sequence[int], found: Hits) -> list[Ask]:
    """One per term, and one for the cosines if the question has a vector; only of `found`."""
    found_ones = Where(keys=[key for key, _ in found])
    mine = memories_of(scope)
    limit = len(found)
    asks = [Ask(where=found_ones, limit=limit, terms=([term], [1.0]), corpus=mine) for term in terms]
    if question.vector is not None:
        asks.append(Ask(where=found_ones, limit=limit, vector=question.vector, exact=True))
    return asks


def pool_of(found: Hits, idf: Sequence[float], answers: Sequence[Hits]) -> Pool:
    """`answers` are those to `score_asks`, in its order."""
    # By `int`, for UUID's own hash and comparison are Python code.
    rows = {key.int: row for row, (key, _) in enumerate(found)}
    scores = np.zeros((len(found), len(answers)), dtype=np.float32)
    for column, hits in enumerate(answers):
        scores[[rows[key.int] for key, _ in hits], column] = [score for _, score in hits]
    terms = len(idf)
    idf_ = np.asarray(idf, dtype=np.float32)
    cosine = scores[:, terms] if len(answers) > terms else np.zeros(len(found), dtype=np.float32)
    return Pool(tuple(MemoryId(str(key)) for key, _ in found), cosine, scores[:, :terms] / idf_, idf_)


EMPTY_POOL = pool_of((), (), ())
