"""Values that a patrol reads and writes (spec P6 to P8, L3, O10; rulings 10 and 11)."""

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
    EmbeddingModelName,
    Memory,
    MemoryId,
    MemoryStatus,
    Note,
    RunId,
    TruthStatus,
    Vector,
)
from madeleine.memory.rules.dynamics.truth import Supersession

DecisionRequestId = NewType("DecisionRequestId", str)


PatrolRunState = Literal["running", "finished", "undone", "rolled_back", "pruned", "unjournalled"]
"""`pruned`: finished, and too long ago to be undone; `unjournalled`: older than the journal, so it cannot be undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFieldsForPatrol:
    """The fields of a memory that a patrol changes or decides by."""

    id: MemoryId
    content_hash: ContentHash
    importance: float
    status: MemoryStatus
    fresh: bool
    pinned: bool
    cluster_id: ClusterId | None
    absorbed_into: MemoryId | None
    session_count: int
    reactivation_count: int
    kept_until: datetime | None = None
    truth: TruthStatus = "current"
    may_supersede: MemoryId | None = None

    @property
    def is_part_of_cluster_mean(self) -> bool:
        """Whether its vector is part of the mean of its cluster (spec P3, ruling 14)."""
        return self.status == "active" and self.truth == "current"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMemoryCounts:
    """Memories of a cluster by status; `unconsolidated`: fresh active or dying ones, the input of ❹."""

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
    """An entry of the diary, one a day (spec P8). `date` is ISO; `sources`: the memories that it was written from;
    `written_at`: when the last memory that it covers was stored."""

    date: str
    text: str
    sources: tuple[MemoryId, ...]
    written_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtsForNextSession:
    """think_md (spec P8): what the being noticed or wants to remember for the next session."""

    points: tuple[str, ...] = ()
    sources: tuple[MemoryId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDecisionRequest:
    """Offered to be decided (ruling 10). `topic` says what it is about; `decided_by`: the run that applied a decision;
    the body is empty then."""

    id: DecisionRequestId
    topic: str
    body: Mapping[str, Any]
    decided_by: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolChanges:
    """Changes of a step, applied in one transaction and journalled with the values before (ruling 11). Every changed,
    rewritten or new memory leaves a pending index mark if its fields in the index differ."""

    new_memories: tuple[Memory, ...] = ()
    notes: tuple[Note, ...] = ()
    states: tuple[MemoryFieldsForPatrol, ...] = ()
    """The changed ones, as they become."""
    rewritten_memories: tuple[Memory, ...] = ()
    """Survivors of merges, with what they have taken over (❹)."""
    compressed: Mapping[MemoryId, MemoryId | None] = field(default_factory=dict)
    """Memory to its summary (spec L3); None for one that is recalled by itself again."""
    superseded: tuple[Supersession, ...] = ()
    """Decisions that one memory has taken another's place (ruling 14)."""
    clusters: tuple[Cluster, ...] = ()
    """New or changed."""
    removed_clusters: tuple[ClusterId, ...] = ()
    diary: DiaryEntry | None = None
    thoughts: ThoughtsForNextSession | None = None
    decided_request_ids: tuple[DecisionRequestId, ...] = ()
    declined: Mapping[str, int] = field(default_factory=dict)
    """Topics that were declined, and how many memories their clusters had (ruling 20)."""
    model: EmbeddingModelName | None = None
    vectors: Mapping[ContentHash, Vector] = field(default_factory=dict)
    """Vectors of new texts, to be cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsummarisedSession:
    """A session not yet summarised; `memories`: its episodic ones that are neither dead nor pinned (spec L3)."""

    session_id: str
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolRun:
    """`finished` equals `started` while it is running."""

    id: RunId
    being_id: BeingId
    started: datetime
    finished: datetime
    state: PatrolRunState
    report: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolUndoResult:
    """Restored rows, by kind; `removed`: memories that the run had made, removed from the ledger, but not yet from the
    index."""

    counts: Mapping[str, int]
    removed: tuple[MemoryId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivitySinceLastPatrol:
    """Activity of a being since its last patrol began. `stored`: number of new memories and notes. `first` and
    `latest`: times of the first and the latest store or recall."""

    being_id: BeingId
    stored: int
    first: datetime
    latest: datetime
