"""What a patrol needs of the ledger (spec P6 to P8, L3, O10; rulings 10 and 11). Scoped as `memory.ports` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NewType, Protocol

from madeleine.memory.language import Spent
from madeleine.memory.model import (
    BeingId,
    Cluster,
    ClusterId,
    ContentHash,
    Memory,
    MemoryId,
    ModelName,
    Note,
    RunId,
    Status,
    Vector,
)
from madeleine.memory.scope import Scope

OfferId = NewType("OfferId", str)
RunState = Literal["running", "finished", "undone", "rolled_back", "unjournalled"]
"""`unjournalled`: from before there was a journal; it stands, and cannot be undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A memory as the patrol sees it."""

    id: MemoryId
    content_hash: ContentHash
    importance: float
    status: Status
    fresh: bool
    pinned: bool
    cluster_id: ClusterId | None
    absorbed_into: MemoryId | None
    session_count: int
    reactivation_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCount:
    """How many of its memories are what; `unsettled`: fresh active or dying ones, which ❹ looks at."""

    cluster_id: ClusterId
    active: int
    dying: int
    dead: int
    unsettled: int

    @property
    def all(self) -> int:
        return self.active + self.dying + self.dead


@dataclass(frozen=True, slots=True, kw_only=True)
class DiaryEntry:
    """One a day (spec P8). `date` is ISO; `sources`: the memories that it was written from; `written_at`: when the last
    memory that was looked at was stored."""

    date: str
    text: str
    sources: tuple[MemoryId, ...]
    written_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Thoughts:
    """think_md (spec P8): what the being noticed or wants to remember for the next session."""

    points: tuple[str, ...] = ()
    sources: tuple[MemoryId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOffer:
    """What was handed out to be decided (ruling 10). `topic` says what it is about; `settled_by`: the run that applied
    a decision, and the body is empty then."""

    id: OfferId
    topic: str
    body: Mapping[str, Any]
    settled_by: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolChanges:
    """What a step changes, applied in one transaction and journalled with what was before (ruling 11). Every changed
    subject, retold or new memory leaves a pending index mark if what the index holds of it differs."""

    new: tuple[Memory, ...] = ()
    notes: tuple[Note, ...] = ()
    subjects: tuple[Subject, ...] = ()
    """The changed ones, as they are to be."""
    retold: tuple[Memory, ...] = ()
    """Of these the timeline is to be as it is here (❹)."""
    compressed: Mapping[MemoryId, MemoryId | None] = field(default_factory=dict)
    """Which summary tells of each (spec L3); None for one that is to speak for itself again."""
    clusters: tuple[Cluster, ...] = ()
    """New or changed."""
    removed_clusters: tuple[ClusterId, ...] = ()
    diary: DiaryEntry | None = None
    thoughts: Thoughts | None = None
    settled: tuple[OfferId, ...] = ()
    model: ModelName | None = None
    vectors: Mapping[ContentHash, Vector] = field(default_factory=dict)
    """Of texts that are new by it, to be cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCount:
    """A session that was not summarised: its episodic memories that are neither dead nor pinned (spec L3)."""

    session_id: str
    memories: int


class PatrolReads(Protocol):
    """What a step looks at: never all of a being's memories, but those that something is to be done about."""

    async def homeless(self, *, limit: int) -> list[Subject]:
        """Living memories without a cluster, in the order of their arrival."""
        ...

    async def fading(self) -> list[Subject]:
        """Living memories whose status `memory.rules.dynamics.decay.flagged` changes."""
        ...

    async def recalled_dead(self) -> list[Subject]:
        """Dead ones that were recalled since they died."""
        ...

    async def members(self, *cluster_ids: ClusterId) -> list[Subject]:
        """Of these clusters, in the order of their arrival, dead ones too."""
        ...

    async def subjects(self, ids: Sequence[MemoryId]) -> list[Subject]:
        """Those that exist, each once, in the order of `ids`."""
        ...

    async def cluster_counts(self, ids: Sequence[ClusterId] | None = None) -> list[ClusterCount]:
        """Of clusters that have memories: of all, or of those of `ids`."""
        ...

    async def clusters(self, ids: Sequence[ClusterId] | None = None) -> list[Cluster]:
        """All of them, or those of `ids` that there are."""
        ...

    async def vectors(self, model: ModelName, hashes: Sequence[ContentHash]) -> dict[ContentHash, Vector]: ...

    async def memories(self, ids: Sequence[MemoryId]) -> list[Memory]: ...

    async def stored_since(self, moment: datetime | None, *, limit: int) -> list[Memory]:
        """The latest of those stored after it, oldest first; summaries left out."""
        ...

    async def sessions(self) -> list[SessionCount]:
        """Those not yet summarised, oldest first."""
        ...

    async def session_memories(self, session_id: str) -> list[Memory]:
        """Its episodic memories that are neither dead nor pinned nor summarised, oldest first."""
        ...

    async def summarised_by(self, ids: Sequence[MemoryId]) -> list[MemoryId]:
        """The memories that these, or what these have absorbed, stand for as summaries."""
        ...

    async def last_diary(self) -> DiaryEntry | None: ...

    async def thoughts(self) -> Thoughts: ...

    async def offers(self, ids: Sequence[OfferId]) -> list[KeptOffer]: ...

    async def open_offers(self) -> list[KeptOffer]:
        """Those that nobody has settled, the oldest first."""
        ...


class PatrolTransaction(PatrolReads, Protocol):
    """The writer, held from reading the state to committing the changes; no model is called meanwhile."""

    async def tick(self, run: RunId) -> int:
        """❷ One more cycle for every active memory, journalled; how many they are."""
        ...

    async def apply(self, changes: PatrolChanges, *, run: RunId, step: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A patrol as the ledger keeps it. `finished` equals `started` while it is running."""

    id: RunId
    being_id: BeingId
    started: datetime
    finished: datetime
    state: RunState
    report: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What was put back, by kind; `removed`: memories that the run had made, gone from the ledger, not yet from the
    index."""

    counts: Mapping[str, int]
    removed: tuple[MemoryId, ...] = ()


class PatrolLedger(Protocol):
    async def unread_notes(self, scope: Scope, *, type: str) -> list[Note]: ...

    async def add_vectors(self, model: ModelName, vectors: Mapping[ContentHash, Vector]) -> None: ...

    async def vectors(self, model: ModelName, hashes: Sequence[ContentHash]) -> dict[ContentHash, Vector]: ...

    def patrol(self, scope: Scope) -> AbstractAsyncContextManager[PatrolTransaction]:
        """Commits when left without an exception, else rolls back."""
        ...

    def patrol_view(self, scope: Scope) -> PatrolReads:
        """For what is prepared before the writer is taken: each read sees the last commit."""
        ...

    async def keep_offers(self, scope: Scope, offered: Sequence[KeptOffer], *, at: datetime) -> None:
        """Drops those that nobody has settled in a fortnight."""
        ...

    async def begin_run(self, scope: Scope, run: RunId, started: datetime) -> None: ...

    async def finish_run(self, scope: Scope, run: RunId, finished: datetime, report: Mapping[str, Any]) -> None: ...

    async def runs(self, scope: Scope, *, limit: int) -> list[Run]:
        """The latest first."""
        ...

    async def unfinished_runs(self) -> list[Run]:
        """Of all beings: their process died."""
        ...

    async def undo(self, scope: Scope, run: RunId, *, at: datetime, state: RunState = "undone") -> Undone:
        """Put back what the run changed, in one transaction; fields that were changed since by anything else than a
        patrol stay as they are. Raises `CannotUndo`, and nothing is changed then."""
        ...

    async def record_cost(self, scope: Scope, run: RunId, spent: Spent, *, at: datetime) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lately:
    """What has come to a being since its last patrol began, at the least one thing. `stored`: new memories and notes.
    `first` and `latest`: when something was stored or recalled."""

    being_id: BeingId
    stored: int
    first: datetime
    latest: datetime


class BeingsLedger(Protocol):
    async def lately(self) -> list[Lately]:
        """Of every being to whom something has come since its last patrol; one that was left alone is not among them.

        A patrol that was undone counts, for it would only do the same again; one that was rolled back, or that only
        carried out decisions, does not. What a patrol has written itself is nothing new. A recall counts if it brought
        back anything that is alive.
        """
        ...
