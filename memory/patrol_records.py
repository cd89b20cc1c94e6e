"""What a patrol reads, changes and leaves behind (spec P6 to P8, L3, O10; rulings 10 and 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NewType

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

DecisionRequestId = NewType("DecisionRequestId", str)


RunState = Literal["running", "finished", "undone", "rolled_back", "unjournalled"]
"""`unjournalled`: from before there was a journal; it stands, and cannot be undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
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
class ClusterCounts:
    """How many of its memories are what; `unconsolidated`: fresh active or dying ones, which ❹ looks at."""

    cluster_id: ClusterId
    active: int
    dying: int
    dead: int
    unconsolidated: int

    @property
    def total(self) -> int:
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
class StoredDecisionRequest:
    """What was handed out to be decided (ruling 10). `topic` says what it is about; `decided_by`: the run that applied
    a decision, and the body is empty then."""

    id: DecisionRequestId
    topic: str
    body: Mapping[str, Any]
    decided_by: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolChanges:
    """What a step changes, applied in one transaction and journalled with what was before (ruling 11). Every changed
    subject, retold or new memory leaves a pending index mark if what the index holds of it differs."""

    new: tuple[Memory, ...] = ()
    notes: tuple[Note, ...] = ()
    states: tuple[MemoryState, ...] = ()
    """The changed ones, as they are to be."""
    rewritten: tuple[Memory, ...] = ()
    """Of these the timeline is to be as it is here (❹)."""
    compressed: Mapping[MemoryId, MemoryId | None] = field(default_factory=dict)
    """Which summary tells of each (spec L3); None for one that is to speak for itself again."""
    clusters: tuple[Cluster, ...] = ()
    """New or changed."""
    removed_clusters: tuple[ClusterId, ...] = ()
    diary: DiaryEntry | None = None
    thoughts: Thoughts | None = None
    decided: tuple[DecisionRequestId, ...] = ()
    model: ModelName | None = None
    vectors: Mapping[ContentHash, Vector] = field(default_factory=dict)
    """Of texts that are new by it, to be cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCount:
    """A session that was not summarised: its episodic memories that are neither dead nor pinned (spec L3)."""

    session_id: str
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolRun:
    """A patrol as the ledger keeps it. `finished` equals `started` while it is running."""

    id: RunId
    being_id: BeingId
    started: datetime
    finished: datetime
    state: RunState
    report: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult:
    """What was put back, by kind; `removed`: memories that the run had made, gone from the ledger, not yet from the
    index."""

    counts: Mapping[str, int]
    removed: tuple[MemoryId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentActivity:
    """What has come to a being since its last patrol began, at the least one thing. `stored`: new memories and notes.
    `first` and `latest`: when something was stored or recalled."""

    being_id: BeingId
    stored: int
    first: datetime
    latest: datetime
