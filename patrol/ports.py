"""What a patrol needs of the ledger (spec P6 to P8; rulings 10 and 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol

from madeleine.memory.language import Spent
from madeleine.memory.model import (
    Cluster,
    ClusterId,
    ContentHash,
    Memory,
    MemoryId,
    ModelName,
    Note,
    RunId,
    Vector,
)
from madeleine.memory.patrol_records import (
    ClusterCounts,
    DecisionRequestId,
    DiaryEntry,
    MemoryState,
    PatrolChanges,
    PatrolRun,
    RunState,
    SessionCount,
    StoredDecisionRequest,
    Thoughts,
    UndoResult,
)
from madeleine.memory.scope import Scope


class PatrolReads(Protocol):
    """What a step looks at: never all of a being's memories, but those that something is to be done about."""

    async def unclustered(self, *, limit: int) -> list[MemoryState]:
        """Living memories without a cluster, in the order of their arrival."""
        ...

    async def with_outdated_status(self) -> list[MemoryState]:
        """Living memories whose status `memory.rules.dynamics.decay.flagged` changes."""
        ...

    async def recalled_dead(self) -> list[MemoryState]:
        """Dead ones that were recalled since they died."""
        ...

    async def members(self, *cluster_ids: ClusterId) -> list[MemoryState]:
        """Of these clusters, in the order of their arrival, dead ones too."""
        ...

    async def states(self, ids: Sequence[MemoryId]) -> list[MemoryState]:
        """Those that exist, each once, in the order of `ids`."""
        ...

    async def cluster_counts(self, ids: Sequence[ClusterId] | None = None) -> list[ClusterCounts]:
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

    async def requests(self, ids: Sequence[DecisionRequestId]) -> list[StoredDecisionRequest]: ...

    async def open_requests(self) -> list[StoredDecisionRequest]:
        """Those that nobody has settled, the oldest first."""
        ...


class PatrolTransaction(PatrolReads, Protocol):
    """The writer, held from reading the state to committing the changes; no model is called meanwhile."""

    async def increment_session_counts(self, run: RunId) -> int:
        """❷ One more cycle for every active memory, journalled; how many they are."""
        ...

    async def apply(self, changes: PatrolChanges, *, run: RunId, step: str) -> None: ...


class PatrolLedger(Protocol):
    async def unread_notes(self, scope: Scope, *, type: str) -> list[Note]: ...

    async def add_vectors(self, model: ModelName, vectors: Mapping[ContentHash, Vector]) -> None: ...

    async def vectors(self, model: ModelName, hashes: Sequence[ContentHash]) -> dict[ContentHash, Vector]: ...

    def patrol(self, scope: Scope) -> AbstractAsyncContextManager[PatrolTransaction]:
        """Commits when left without an exception, else rolls back."""
        ...

    def patrol_reads(self, scope: Scope) -> PatrolReads:
        """For what is prepared before the writer is taken: each read sees the last commit."""
        ...

    async def store_requests(self, scope: Scope, offered: Sequence[StoredDecisionRequest], *, at: datetime) -> None:
        """Drops those that nobody has settled in a fortnight."""
        ...

    async def begin_run(self, scope: Scope, run: RunId, started: datetime) -> None: ...

    async def finish_run(self, scope: Scope, run: RunId, finished: datetime, report: Mapping[str, Any]) -> None: ...

    async def runs(self, scope: Scope, *, limit: int) -> list[PatrolRun]:
        """The latest first."""
        ...

    async def unfinished_runs(self) -> list[PatrolRun]:
        """Of all beings: their process died."""
        ...

    async def undo(self, scope: Scope, run: RunId, *, at: datetime, state: RunState = "undone") -> UndoResult:
        """Put back what the run changed, in one transaction; fields that were changed since by anything else than a
        patrol stay as they are. Raises `CannotUndo`, and nothing is changed then."""
        ...

    async def record_cost(self, scope: Scope, run: RunId, spent: Spent, *, at: datetime) -> None: ...
