"""Index points, queries to the index, and the candidates that it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import Category, Emotion, Memory, MemoryId, Status, Vector


@dataclass(frozen=True, slots=True)
class WordingSignals:
    """`asks`: it ends with a question. `tells_when`: it speaks of a day or a span of time. `prefers`: somebody says
    what they prefer. `first_person`: the share to which it is told by "I" or "we"."""

    asks: bool = False
    tells_when: bool = False
    prefers: bool = False
    first_person: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingState:
    """What of a memory changes in the course of time. `last_active`: when it was last stored, told again or recalled;
    `access_count`: how often it was told again."""

    importance: float
    happened_at: datetime
    last_active: datetime
    access_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPoint:
    """A memory as the index holds it. `words` is the text for BM25 (`memory.text.terms`), `vector` None while
    the memory has not been embedded."""

    memory: Memory
    words: str
    vector: Vector | None
    tokens: int
    """Of all that a recall may say of the memory (spec L2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateQuery:
    """`words` is the query's text for BM25."""

    words: str
    statuses: tuple[Status, ...]
    categories: tuple[Category, ...] = ()
    themes: tuple[str, ...] = ()
    """Only memories with all of these, in whatever letter case."""
    sparse_limit: int = 100
    dense_limit: int = 50
    """Candidates from each channel."""


@dataclass(frozen=True, slots=True)
class RankingFeatures:
    """What ranking needs to know of a candidate beside its scores; it never changes."""

    session_id: str
    turn: int
    """Of the memory in its session."""
    actors: tuple[str, ...]
    emotions: tuple[Emotion, ...]
    words: int
    """Words of the action."""
    tokens: int
    """Of all that a recall may say of the memory (spec L2)."""
    signals: WordingSignals = WordingSignals()


PendingVector = Callable[[], Awaitable[Vector | None]]
"""Gives the question's vector, None when meaning-based recall is off. An index asks for it when it has looked up the
words, so that the model may work meanwhile."""


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """Candidates by weighted RRF of the two channels, best first, with both scores for all of them.

    `cosine`: float32, (n,), 0 for one without a vector. `weights`: float32, (n, terms), BM25's term-frequency part of
    each query term in each candidate, 0 where it has not the term. `idf`: float32, (terms,), over the being's own
    memories, also for terms that none of them has. BM25 is `weights @ idf`.
    """

    ids: tuple[MemoryId, ...]
    features: tuple[RankingFeatures, ...]
    cosine: NDArray[np.float32]
    weights: NDArray[np.float32]
    idf: NDArray[np.float32]
    numbers: NDArray[np.bool_]

    @property
    def bm25(self) -> NDArray[np.float32]:
        return (self.weights @ self.idf).astype(np.float32)
