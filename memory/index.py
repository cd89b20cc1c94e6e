"""The index: its points, queries to it, and the candidates that it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import Category, Emotion, EmotionVector, Memory, MemoryId, MemoryStatus, Scope, Vector


@dataclass(frozen=True, slots=True)
class MemoryWordingTraits:
    """Signals in the wording of a memory. `asks`: it ends with a question. `tells_when`: it mentions a day or a span of
    time. `prefers`: somebody mentions a preference. `first_person`: share in [0, 1] told by "I" or "we"."""

    asks: bool = False
    tells_when: bool = False
    prefers: bool = False
    first_person: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRankingState:
    """Values of a memory that ranking reads and that change over time. `last_active`: when it was last stored,
    reinforced or recalled; `access_count`: times reinforced."""

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
    """Tokens of all text that a recall may return of the memory (spec L2)."""
    pieces: Sequence[Vector] = ()
    """Of the pieces of its text (`memory.text.pieces`); none while they are not embedded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateQuery:
    """`words` is the query's text for BM25; the terms of `twice` count twice."""

    words: str
    twice: str = ""
    statuses: tuple[MemoryStatus, ...]
    categories: tuple[Category, ...] = ()
    themes: tuple[str, ...] = ()
    """Only memories with all of these, in whatever letter case."""
    since: datetime | None = None
    until: datetime | None = None
    """Only memories whose dates overlap with this time, to the second; both inclusive."""
    include_compressed: bool = False
    """Also living memories that a summary stands for (spec L3)."""
    as_of: datetime | None = None
    """Without memories that had neither happened nor been told by then, to the second; versions of a chain are all
    candidates."""
    sparse_limit: int = 100
    dense_limit: int = 50
    """Candidates from each channel."""


VersionChainPosition = Literal["only", "earlier", "last"]
"""A memory's place among the versions of what it says (ruling 14): an earlier one was superseded."""


@dataclass(frozen=True, slots=True)
class MemoryRankingFeatures:
    """Values of a candidate that ranking reads beside its scores; constant for a memory's text."""

    session_id: str
    """Of a turn of a conversation; "" for other memories."""
    turn: int
    """The memory's place in its session."""
    actors: tuple[str, ...]
    emotions: tuple[Emotion, ...]
    words: int
    """Words of the action."""
    tokens: int
    """Tokens of all text that a recall may return of the memory (spec L2)."""
    signals: MemoryWordingTraits = MemoryWordingTraits()
    may_supersede: MemoryId | None = None
    """The earlier memory that it was proposed to supersede; a decision may change it."""
    version: VersionChainPosition = "only"
    category: Category = "episodic"
    emotion: EmotionVector | None = None
    """As it was told."""


AwaitQueryVector: TypeAlias = "Callable[[], Awaitable[Vector | None]]"
"""Returns the query's vector; None while meaning-based recall is off. An index awaits it after the sparse search, so
that the model can work meanwhile."""


@dataclass(frozen=True, slots=True)
class CandidatePool:
    """Candidates by weighted RRF of the two channels, best first, with both scores for all of them.

    `cosine`: float32, (n,), 0 for a candidate without a vector. `weights`: float32, (n, terms), BM25's term-frequency
    factor of each query term in each candidate, 0 for absent terms. `idf`: float32, (terms,), over the being's own
    memories, absent terms included. BM25 is `weights @ idf`. `numbers`: bool, (terms,), true for numbers and dates.
    `words`: the query's content words that have terms; `holds`: bool, (n, words), those that each candidate holds;
    `unknown`: bool, (words,), those that none of the being's memories holds; `rarity`: float32, (words,), in [0, 1], of
    their IDF by the greatest there is. `memories`: how many the being has that have words. `pieces`: of each candidate
    int8, (pieces, dim), the vectors of the pieces of its text in whatever length; none where its text is one piece.
    """

    ids: tuple[MemoryId, ...]
    features: tuple[MemoryRankingFeatures, ...]
    cosine: NDArray[np.float32]
    weights: NDArray[np.float32]
    idf: NDArray[np.float32]
    numbers: NDArray[np.bool_]
    words: tuple[str, ...]
    holds: NDArray[np.bool_]
    unknown: NDArray[np.bool_]
    rarity: NDArray[np.float32]
    memories: int = 0
    pieces: tuple[NDArray[np.int8], ...] = ()

    def max_piece_cosines_in_candidate_order(self, vector: Vector, whole: NDArray[np.float32]) -> NDArray[np.float32]:
        """float32, (n,): the greatest cosine to `vector`, of length 1, of the pieces of each candidate; its `whole`
        where it has no pieces."""
        at = [position for position, pieces in enumerate(self.pieces) if len(pieces)]
        if not at:
            return whole
        rows = np.concatenate([self.pieces[position] for position in at]).astype(np.float32)
        cosines = rows @ vector / np.linalg.norm(rows, axis=1)
        begins = np.cumsum([0, *(len(self.pieces[position]) for position in at[:-1])])
        nearest = whole.copy()
        nearest[at] = np.maximum.reduceat(cosines, begins)
        return nearest

    @property
    def unknown_words(self) -> tuple[str, ...]:
        return tuple(word for word, unknown in zip(self.words, self.unknown, strict=True) if unknown)

    @property
    def bm25(self) -> NDArray[np.float32]:
        return (self.weights @ self.idf).astype(np.float32)


NONSENSE_WORD_FOR_MAX_IDF = "qxzjvkwqxz"
"""A word that no memory has: it has the greatest IDF."""


class WordIdfSource(Protocol):
    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]:
        """BM25's IDF of each word over the being's memories; 0 for stop words; the greatest for words that none has."""


class IndexForStoringMemories(Protocol):
    """The methods of the index that storing memories needs. `upsert` is idempotent and visible to the next query."""

    async def upsert(self, points: Sequence[IndexPoint]) -> None: ...

    async def nearest(
        self, scope: Scope, vector: Vector, *, limit: int, statuses: Sequence[MemoryStatus]
    ) -> list[tuple[MemoryId, float]]:
        """(id, cosine), nearest first."""

    async def living_ids_sharing_most_words(
        self, scope: Scope, words: str, *, limit: int, statuses: Sequence[MemoryStatus]
    ) -> list[MemoryId]:
        """Those that share the most telling words with the text, by BM25, best first."""


class RecallIndex(WordIdfSource, Protocol):
    async def candidates(self, scope: Scope, query: CandidateQuery, vector: AwaitQueryVector) -> CandidatePool: ...

    async def cosines(self, ids: Sequence[MemoryId], vector: Vector) -> NDArray[np.float32]:
        """float32, (n,): of each memory to `vector`, of any length; 0 for a memory without a vector."""


class Index(IndexForStoringMemories, RecallIndex, Protocol):
    """The derived index. It may be thrown away at any time."""

    async def delete(self, ids: Sequence[MemoryId]) -> None: ...

    async def count(self) -> int: ...

    async def scrub_deleted_bytes(self) -> None:
        """Returns when nothing of what was deleted or replaced before the call is left in the index's own files.
        Queries and upserts go on meanwhile. Raises `IndexUnavailable`; it can be tried again."""

    async def flush(self) -> None:
        """Returns when all upserts are on disk."""

    async def optimize_if_worthwhile(self) -> bool:
        """Build what makes search fast (HNSW). Queries and upserts go on meanwhile. True if anything was done."""

    async def close(self) -> None: ...
