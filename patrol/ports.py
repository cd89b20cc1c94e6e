"""Ports of the patrol to the ledger (spec P6 to P8; rulings 10 and 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol

from madeleine.memory import patrol_records as records
from madeleine.memory.embedding import VectorCache, WritableVectorCache
from madeleine.memory.language_model import ModelCostRecorder
from madeleine.memory.model import Cluster, ClusterId, Memory, MemoryId, Note, RunId, Scope


class PatrolMemoryReader(VectorCache, Protocol):
    """Reads of one being's memory: never all memories, but those that a step may change."""

    async def last_erasure_number(self) -> int:
        """A number that rises whenever something is forgotten."""

    async def unclustered_memory_states(self, *, limit: int) -> list[records.MemoryFieldsForPatrol]:
        """Living memories without a cluster, in the order of their arrival."""

    async def memory_states_with_outdated_status(self) -> list[records.MemoryFieldsForPatrol]:
        """Living memories whose status `memory.rules.dynamics.importance.status_from_decayed_importance` changes."""

    async def recalled_dead_memory_states(self) -> list[records.MemoryFieldsForPatrol]:
        """Dead ones that were recalled since they died."""

    async def states_of_cluster_members(self, *cluster_ids: ClusterId) -> list[records.MemoryFieldsForPatrol]:
        """Of these clusters, in the order of their arrival, dead ones included."""

    async def memory_states(self, ids: Sequence[MemoryId]) -> list[records.MemoryFieldsForPatrol]:
        """Those that exist, each once, in the order of `ids`."""

    async def memory_counts_of_each_cluster(
        self, ids: Sequence[ClusterId] | None = None
    ) -> list[records.ClusterMemoryCounts]:
        """Of all clusters that have memories, or of those of `ids`."""

    async def clusters(self, ids: Sequence[ClusterId] | None = None) -> list[Cluster]:
        """All, or those of `ids` that exist."""

    async def memories_with_ids(self, ids: Sequence[MemoryId]) -> list[Memory]: ...

    async def memories_stored_since(self, moment: datetime | None, *, limit: int) -> list[Memory]:
        """The latest `limit` stored after it, oldest first; without summaries and what is not true any more."""

    async def unsummarised_sessions(self) -> list[records.UnsummarisedSession]:
        """Those not yet summarised, oldest first; without those of which one memory alone is left beside a summary."""

    async def summarisable_session_memories(self, session_id: str) -> list[Memory]:
        """Its episodic memories that are neither dead nor pinned nor summarised, oldest first; without those that are
        not true any more, or have superseded others."""

    async def dying_episodes_to_join(self, *, max_chars: int, limit: int) -> list[Memory]:
        """Dying episodes of at most `max_chars` characters that nobody has decided about for
        `CYCLES_DYING_MEMORY_AWAITS_DECISION`, two or more of a session and a day, in the order in which they happened;
        without pinned and summarised ones, those with a lesson, and what is part of a chain or may become so."""

    async def dying_memories(self, *, limit: int) -> list[Memory]:
        """Those that no summary stands for, in the order in which they happened."""

    async def unreadable_notes(self) -> list[Note]:
        """Scene notes whose content could not be read, oldest first."""

    async def all_memory_ids_that_may_supersede(self) -> list[MemoryId]:
        """Living current memories that may supersede another current one, in the order in which they happened."""

    async def source_ids_of_summaries(self, ids: Sequence[MemoryId]) -> list[MemoryId]:
        """The memories that these, or memories that these have absorbed, summarise."""

    async def last_aged_at(self) -> datetime | None:
        """When the last run began that has aged the memories (❷) and was not undone."""

    async def last_diary_entry(self) -> records.DiaryEntry | None: ...

    async def thoughts_for_next_session(self) -> records.ThoughtsForNextSession: ...

    async def decision_requests_with_ids(
        self, ids: Sequence[records.DecisionRequestId]
    ) -> list[records.StoredDecisionRequest]: ...

    async def cluster_size_by_declined_topic(self) -> dict[str, int]:
        """Topics that were declined, and how many memories their clusters had at the last time."""

    async def open_decision_requests(self) -> list[records.StoredDecisionRequest]:
        """Those not yet decided, the oldest first."""

    async def topics_offered_since(self, moment: datetime) -> dict[str, datetime]:
        """Topics of the requests that were made at that moment or later, decided or not, and when the last of each was
        made."""


class PatrolTransaction(PatrolMemoryReader, Protocol):
    """Holds the writer from reading the state to committing the changes; no model is called meanwhile."""

    async def age_active_memories(self, run: RunId) -> int:
        """❷ Add one cycle for every active memory, journalled; return their number."""

    async def apply_changes(self, changes: records.PatrolChanges, *, run: RunId, step: str) -> None: ...


class PatrolLedger(WritableVectorCache, ModelCostRecorder, Protocol):
    def patrol_lock(self, scope: Scope, *, wait: bool = True) -> AbstractAsyncContextManager[bool]:
        """Keep the patrols of other servers off the being; True while that holds. Without `wait` False if another one
        holds it. Of a server that died it is free."""

    async def unread_notes(self, scope: Scope, *, type: str) -> list[Note]: ...

    def patrol_transaction(self, scope: Scope) -> AbstractAsyncContextManager[PatrolTransaction]:
        """Commits on a normal exit, else rolls back."""

    def memory_reader_for_patrol(self, scope: Scope) -> PatrolMemoryReader:
        """For preparation without the writer: each read sees the last commit."""

    async def store_decision_requests_unless_erased(
        self, scope: Scope, requests: Sequence[records.StoredDecisionRequest], *, at: datetime, at_erasure_count: int
    ) -> bool:
        """Store nothing and return False if anything was forgotten since `PatrolMemoryReader.last_erasure_number`
        returned `at_erasure_count`: a request may show it. Also deletes those that were not decided within a
        fortnight."""

    async def begin_run(self, scope: Scope, run: RunId, started: datetime) -> None: ...

    async def finish_run(self, scope: Scope, run: RunId, finished: datetime, report: Mapping[str, Any]) -> None: ...

    async def prune_journal(self, scope: Scope, *, undoable_runs: int) -> None:
        """Drop what undoing finished runs before the last `undoable_runs` would need; a text whose only copy it is
        stays (ruling 26). Their state is then `pruned`. Of many such runs, a part each time."""

    async def runs(self, scope: Scope, *, limit: int) -> list[records.PatrolRun]:
        """The latest first."""

    async def unfinished_runs(self) -> list[records.PatrolRun]:
        """Of all beings; their processes have died."""

    async def undo_run(
        self, scope: Scope, run: RunId, *, at: datetime, state: records.PatrolRunState = "undone"
    ) -> records.PatrolUndoResult:
        """Restore what the run changed, in one transaction; fields changed since by anything but a patrol stay as they
        are. Raises `CannotUndo`, and nothing is changed then."""
