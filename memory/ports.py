"""What the use cases need of the world: a narrow protocol for each need. Adapters in `storage` and `inference`.

All methods are scoped: an adapter never returns or changes another being's rows, whatever ids it is given;
an id of another being is treated like one that does not exist.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.chat import MessageId
from madeleine.memory.model import (
    BeingId,
    Category,
    Changes,
    ClusterId,
    ContentHash,
    Emotion,
    Memory,
    MemoryId,
    ModelName,
    Note,
    Provenance,
    Revision,
    Status,
    Vector,
)
from madeleine.memory.rules.ranking.signals import Signals
from madeleine.memory.scope import Scope

# --- models -----------------------------------------------------------------------------------------------------


class Embedder(Protocol):
    """Text to vectors, and to tokens. One call is one batch; work is done in a worker thread."""

    @property
    def model(self) -> ModelName: ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32, (n, dim), unit rows, in the order of `texts`. Raises `EmbeddingUnavailable`."""
        ...

    def coverage(self, text: str) -> float:
        """Share in [0, 1] of the letters of `text` in scripts that the model knows; 1 for a text without letters."""
        ...

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text by the model's own tokenizer; an upper estimate while the model cannot be had."""
        ...


# --- ledger -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinforcement:
    """A scene that was stored again (spec T6): counted on `memory_id`, its own words kept beside it."""

    memory_id: MemoryId
    text: str
    at: datetime
    tool: str
    client: str = ""
    session_id: str = ""
    key: str | None = None
    importance: float | None = None
    pinned: bool = False
    themes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreBatch:
    """One transaction of a store: all of it is durable when `commit` returns, or none is."""

    new: tuple[Memory, ...] = ()
    reinforcements: tuple[Reinforcement, ...] = ()
    model: ModelName
    vectors: Mapping[ContentHash, Vector]


@dataclass(frozen=True, slots=True)
class KeyedEarlier:
    """What an idempotency key has led to before: the memory, the words stored under the key, and how."""

    memory_id: MemoryId
    text: str
    status: Literal["stored", "reinforced"]


class StoreLedger(Protocol):
    async def memories(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]:
        """Those that exist, each once, in the order of `ids`."""
        ...

    async def keyed(self, scope: Scope, keys: Sequence[str]) -> dict[str, KeyedEarlier]: ...

    async def same_text(self, scope: Scope, hash_: ContentHash) -> list[MemoryId]:
        """Living memories with this very text to embed, oldest first, at most 5."""
        ...

    async def vectors(self, model: ModelName, hashes: Sequence[ContentHash]) -> dict[ContentHash, Vector]: ...

    async def turns(self, scope: Scope, sessions: Sequence[str]) -> dict[str, int]:
        """The turn that the next memory of each session has."""
        ...

    async def commit(self, scope: Scope, batch: StoreBatch) -> None:
        """Write memories, reinforcements, vectors and a pending index mark for each new memory, durably.

        A reinforcement adds 1 to `access_count`, sets `last_accessed`, raises `importance` to the greater,
        pins if asked, and adds new themes. Raises `KeyConflict` if a key is taken, `StorageFull`, `StorageError`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Erased:
    """`ids`: what is gone. `related`: memories that stay and were tied to them by a merge or a summary, so that they
    may tell the same: what was absorbed or summarised, and what has absorbed or summarises; and those that were drawn
    from messages that are gone. `diary_entries`: how many days' were removed, as they were written from them.
    `messages`: those that were named, and those that the memories were drawn from."""

    ids: tuple[MemoryId, ...] = ()
    related: tuple[MemoryId, ...] = ()
    diary_entries: int = 0
    messages: tuple[MessageId, ...] = ()


class ForgetLedger(Protocol):
    async def forget(self, scope: Scope, ids: Sequence[MemoryId | MessageId], *, at: datetime) -> Erased:
        """Erase those that exist and whatever else tells of them, durably, in one transaction: reinforcements, earlier
        versions, notes and messages they came from, vectors that no other memory has, their part in clusters, names,
        reports, diary, offers and the journal. What a summary that is forgotten stood for is recalled again. A message
        that is read again later does not come back.

        Leaves a mark for each, until their bytes are gone from the files too (`RemainsSource`).
        """
        ...


class RemainsSource(Protocol):
    """What was forgotten and may have left bytes in the files. Not scoped: it serves the store, not a caller."""

    async def remains(self) -> list[tuple[int, MemoryId]]:
        """(mark, memory), oldest first."""
        ...

    async def clear_remains(self, marks: Sequence[int]) -> None: ...

    async def scrub(self) -> None:
        """Returns when the ledger's files hold nothing that is not in its tables. Reads go on meanwhile, writes wait.

        Raises `StorageBusy`, `StorageFull`, `StorageError`; it can be tried again.
        """
        ...


class UpdateLedger(Protocol):
    async def memories(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]: ...

    async def vectors(self, model: ModelName, hashes: Sequence[ContentHash]) -> dict[ContentHash, Vector]: ...

    async def change(
        self,
        scope: Scope,
        memory_id: MemoryId,
        changes: Changes,
        *,
        at: datetime,
        model: ModelName,
        vectors: Mapping[ContentHash, Vector],
    ) -> tuple[Memory, Changes] | None:
        """Change it durably (`rules.dynamics.revision`), keep what it was, leave a pending index mark; of `vectors` the
        one of its new text is cached. The memory as it is now, and what of `changes` was different; None if there is
        no such memory."""
        ...


@dataclass(frozen=True, slots=True)
class Activation:
    """A memory was recalled: `times` is added to its reactivation count; a living one's clock is rewound (ruling 2)."""

    memory_id: MemoryId
    times: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What of a memory changes in the course of time. `last_active`: when it was last stored, told again or recalled;
    `access_count`: how often it was told again."""

    importance: float
    happened_at: datetime
    last_active: datetime
    access_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferring:
    """The preferences that are wanted beside memories (spec L2): `most` of them, those among `matching` first, in its
    order, then by importance, then the newest; only such as have all `themes`."""

    most: int
    matching: Sequence[MemoryId] = ()
    themes: tuple[str, ...] = ()


class RecallLedger(Protocol):
    async def memories(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]: ...

    async def with_preferences(
        self, scope: Scope, ids: Sequence[MemoryId], preferring: Preferring
    ) -> tuple[list[Memory], list[Memory]]:
        """The memories as `memories` gives them, and preferences: living procedural memories that were not switched off
        in the being's profile."""
        ...

    async def vitals(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, Vitals]: ...


class Reranker(Protocol):
    """A cross-encoder: reads the query and a text together (spec L2, step 4)."""

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the query, in [0, 1], in the order of `texts`. Within a few seconds: raises
        `RerankerUnavailable` if the model cannot be had, or takes longer."""
        ...


class ActivationLog(Protocol):
    """Reactivations are written in batches off the request path, and before a patrol reads the counts."""

    def add(self, scope: Scope, activations: Sequence[Activation]) -> None:
        """Nothing for a scope that does not count."""
        ...

    async def settle(self) -> None:
        """Returns when all that was added is in the ledger."""
        ...


AuditEvent = Literal[
    "store", "reinforce", "update", "forget", "observe", "note", "patrol", "recall", "reindex", "token", "profile",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what to which memories, when (spec O4, O10). Never a text, never a query.

    `being_id` is "" for what concerns all beings, `role` where the connection has none. `ids`: the memories, notes,
    messages and days of the diary that were written, shown or erased, the run of a patrol, the token. `seq` numbers the
    entries without a gap; 0 before it is written.
    """

    event: AuditEvent
    at: datetime
    being_id: BeingId
    client: str = ""
    role: str = ""
    tool: str = ""
    ids: tuple[str, ...] = ()
    seq: int = 0


class AuditLog(Protocol):
    """For what changes nothing that is stored: written in batches off the request path, at latest a second later. What
    changes something is audited by the ledger, in the transaction of the change."""

    def record(self, entry: AuditEntry) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """The last `limit` of all beings, unless one is named; `since` and `until` inclusive."""

    being_id: BeingId | None = None
    event: AuditEvent | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 100


class AuditReader(Protocol):
    async def audit(self, query: AuditQuery) -> list[AuditEntry]:
        """Oldest first."""
        ...

    async def audit_missing(self) -> int:
        """How many entries were removed from the file past the ledger."""
        ...


SearchSource = Literal["memories", "diary", "chat", "notes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordQuery:
    """spec P11 and H1 to H4. `terms` are casefolded. `after` is the position of the last hit of the page before."""

    terms: tuple[str, ...]
    mode: Literal["or", "and"] = "or"
    themes: tuple[str, ...] = ()
    categories: tuple[Category, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    sources: tuple[SearchSource, ...] = ("memories", "diary", "chat", "notes")
    include_dead: bool = True
    include_compressed: bool = False
    limit: int = 10
    after: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """spec H3, with where it comes from. `position` orders hits: (microseconds since 1970, id), newest first. `snippet`
    is what is shown of the text, at most 400 characters, the place where the words were found: a ledger leaves it
    empty. The id of a diary entry is its date."""

    source: SearchSource
    id: str
    timestamp: datetime
    text: str
    stored_at: datetime
    provenance: Provenance
    actors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    status: Status | None = None
    snippet: str = ""
    position: tuple[int, str]


class SearchLedger(Protocol):
    async def search(self, scope: Scope, query: KeywordQuery) -> list[Hit]:
        """At most `query.limit`, newest first, equal times by id."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSummary:
    id: ClusterId
    name: str
    parent: str
    is_root: bool
    active: int
    dying: int
    dead: int


class RevisitLedger(Protocol):
    async def memories(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]: ...

    async def revisions(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Revision]:
        """What these memories were before each change, oldest first."""
        ...

    async def cluster_memories(
        self, scope: Scope, cluster_id: ClusterId, *, limit: int, after: str | None
    ) -> list[Memory] | None:
        """Newest first (`happened_at`, then id), dead ones too, those after the memory `after`.

        None if there is no such cluster.
        """
        ...

    async def cluster_summaries(self, scope: Scope) -> list[ClusterSummary]:
        """Roots first, then by the number of active memories, then by name."""
        ...


# --- notes ------------------------------------------------------------------------------------------------------


class NoteLedger(Protocol):
    async def add_note(self, scope: Scope, note: Note) -> None: ...


# --- index sync -------------------------------------------------------------------------------------------------


class IndexSource(Protocol):
    """What keeps the index equal to the ledger. Not scoped: it serves the store, not a caller."""

    async def pending(self, *, limit: int) -> list[tuple[int, MemoryId]]:
        """(mark, memory), oldest first."""
        ...

    async def clear_marks(self, marks: Sequence[int]) -> None: ...

    async def clear_marks_of(self, ids: Sequence[MemoryId], *, up_to: int) -> None:
        """Clear the marks `<= up_to` of these memories."""
        ...

    async def last_mark(self) -> int: ...

    async def any_memories(self, ids: Sequence[MemoryId]) -> list[Memory]:
        """By id, whosever they are."""
        ...

    async def all_memories(self, *, after: MemoryId | None, limit: int) -> list[Memory]:
        """Every memory of every being in order of id, a page at a time."""
        ...

    async def count_memories(self) -> int: ...

    async def vectors(self, model: ModelName, hashes: Sequence[ContentHash]) -> dict[ContentHash, Vector]: ...

    async def add_missing_vectors(self, model: ModelName, vectors: Mapping[ContentHash, Vector]) -> None:
        """Those of texts that a memory has; leaves a mark for each such memory."""
        ...

    async def without_vector(self, model: ModelName, *, limit: int) -> list[Memory]:
        """Memories whose text has no cached vector of this model."""
        ...

    async def setting(self, name: str) -> Any: ...

    async def set_setting(self, name: str, value: Any) -> None: ...


# --- index ------------------------------------------------------------------------------------------------------


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
class Question:
    """`words` is the query's text for BM25."""

    words: str
    statuses: tuple[Status, ...]
    categories: tuple[Category, ...] = ()
    themes: tuple[str, ...] = ()
    """Only memories with all of these, in whatever letter case."""
    by_words: int = 100
    by_meaning: int = 50
    """Candidates from each channel."""


@dataclass(frozen=True, slots=True)
class Traits:
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
    signals: Signals = Signals()


VectorToCome = Callable[[], Awaitable[Vector | None]]
"""Gives the question's vector, None when meaning-based recall is off. An index asks for it when it has looked up the
words, so that the model may work meanwhile."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Candidates by weighted RRF of the two channels, best first, with both scores for all of them.

    `cosine`: float32, (n,), 0 for one without a vector. `weights`: float32, (n, terms), BM25's term-frequency part of
    each query term in each candidate, 0 where it has not the term. `idf`: float32, (terms,), over the being's own
    memories, also for terms that none of them has. BM25 is `weights @ idf`.
    """

    ids: tuple[MemoryId, ...]
    traits: tuple[Traits, ...]
    cosine: NDArray[np.float32]
    weights: NDArray[np.float32]
    idf: NDArray[np.float32]
    numbers: NDArray[np.bool_]

    @property
    def bm25(self) -> NDArray[np.float32]:
        return (self.weights @ self.idf).astype(np.float32)


class Index(Protocol):
    """The derived index. It may be thrown away at any time. `upsert` is idempotent and visible to the next query."""

    async def upsert(self, points: Sequence[IndexPoint]) -> None: ...

    async def delete(self, ids: Sequence[MemoryId]) -> None: ...

    async def candidates(self, scope: Scope, question: Question, vector: VectorToCome) -> Pool: ...

    async def nearest(
        self, scope: Scope, vector: Vector, *, limit: int, statuses: Sequence[Status]
    ) -> list[tuple[MemoryId, float]]:
        """(id, cosine), nearest first."""
        ...

    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]:
        """BM25's IDF of each word over the being's memories; 0 for stop words; the greatest for words that none has."""
        ...

    async def count(self) -> int: ...

    async def scrub(self) -> None:
        """Returns when nothing of what was deleted or replaced before the call is left in the index's own files.
        Queries and upserts go on meanwhile. Raises `IndexUnavailable`; it can be tried again."""
        ...

    async def flush(self) -> None:
        """Returns when all upserts are on disk."""
        ...

    async def optimize(self) -> bool:
        """Build what makes search fast (HNSW). Queries and upserts go on meanwhile. True if anything was done."""
        ...

    async def close(self) -> None: ...


class StoreIndex(Protocol):
    """What a store needs of the index."""

    async def upsert(self, points: Sequence[IndexPoint]) -> None: ...

    async def nearest(
        self, scope: Scope, vector: Vector, *, limit: int, statuses: Sequence[Status]
    ) -> list[tuple[MemoryId, float]]: ...


class RecallIndex(Protocol):
    async def candidates(self, scope: Scope, question: Question, vector: VectorToCome) -> Pool: ...


class WordStatistics(Protocol):
    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]: ...


# --- chance -----------------------------------------------------------------------------------------------------


class RandomSource(Protocol):
    """`random.Random` is one."""

    def randrange(self, stop: int, /) -> int:
        """Uniform in [0, stop)."""
        ...
