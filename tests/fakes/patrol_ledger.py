"""A patrol's ledger in dictionaries: `PatrolLedger` without a journal."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from madeleine.memory.errors import CannotUndo
from madeleine.memory.language_model import ModelCallCost
from madeleine.memory.model import (
    BeingId,
    Cluster,
    ClusterId,
    ContentHash,
    EmbeddingModelName,
    Memory,
    MemoryId,
    Note,
    NoteId,
    RunId,
    Scope,
    Vector,
)
from madeleine.memory.patrol_records import (
    ClusterMemoryCounts,
    DecisionRequestId,
    DiaryEntry,
    MemoryFieldsForPatrol,
    PatrolChanges,
    PatrolRun,
    PatrolRunState,
    PatrolUndoResult,
    StoredDecisionRequest,
    ThoughtsForNextSession,
    UnsummarisedSession,
)
from madeleine.memory.rules.dynamics.importance import status_from_decayed_importance
from madeleine.memory.rules.dynamics.truth import memories_after_supersession
from madeleine.patrol.deciding.consolidate import MERGED_MEMORY_FIELDS
from madeleine.patrol.ports import PatrolMemoryReader
from madeleine.patrol.unit_of_work import patrol_fields_from_memory
from tests.doubles import ADA, NOW


@dataclass
class PatrolState:
    memories: dict[MemoryId, Memory]
    clusters: dict[ClusterId, Cluster]
    notes: dict[NoteId, Note]
    runs: dict[RunId, PatrolRun] = field(default_factory=dict)
    diary: dict[str, DiaryEntry] = field(default_factory=dict)
    thoughts: ThoughtsForNextSession = field(default_factory=ThoughtsForNextSession)
    offers: dict[DecisionRequestId, StoredDecisionRequest] = field(default_factory=dict)
    offered_at: dict[str, datetime] = field(default_factory=dict)
    """Topic → when a request about it was last made."""
    aged_at: datetime | None = None
    declined: dict[str, int] = field(default_factory=dict)
    last_numbers: Counter[BeingId] = field(default_factory=Counter)
    """Shared by copies: what is rolled back does not give a number back."""

    def numbered(self, memory: Memory) -> Memory:
        self.last_numbers[memory.being_id] += 1
        return replace(memory, number=self.last_numbers[memory.being_id])

    def copy(self) -> PatrolState:
        return PatrolState(
            dict(self.memories),
            dict(self.clusters),
            dict(self.notes),
            dict(self.runs),
            dict(self.diary),
            self.thoughts,
            dict(self.offers),
            dict(self.offered_at),
            self.aged_at,
            dict(self.declined),
            self.last_numbers,
        )


class FakePatrolTransaction:
    """`PatrolTransaction` over dictionaries, for the one being of its scope. Without a journal."""

    def __init__(
        self,
        scope: Scope,
        state: PatrolState,
        vectors: dict[tuple[str, str], Vector],
        mark: Callable[[Sequence[MemoryId]], None] = lambda ids: None,
    ) -> None:
        self.applied: list[PatrolChanges] = []
        self._mark = mark
        self._being = scope.being_id
        self._state = state
        self._vectors = vectors

    def _own(self) -> list[Memory]:
        return [memory for memory in self._state.memories.values() if memory.being_id == self._being]

    async def last_erasure_number(self) -> int:
        return 0

    async def unclustered_memory_states(self, *, limit: int) -> list[MemoryFieldsForPatrol]:
        return [patrol_fields_from_memory(m) for m in self._own() if m.cluster_id is None and m.status != "dead"][
            :limit
        ]

    async def memory_states_with_outdated_status(self) -> list[MemoryFieldsForPatrol]:
        return [patrol_fields_from_memory(m) for m in self._own() if status_from_decayed_importance(m) != m.status]

    async def recalled_dead_memory_states(self) -> list[MemoryFieldsForPatrol]:
        return [patrol_fields_from_memory(m) for m in self._own() if m.status == "dead" and m.reactivation_count > 0]

    async def states_of_cluster_members(self, *cluster_ids: ClusterId) -> list[MemoryFieldsForPatrol]:
        return [patrol_fields_from_memory(m) for m in self._own() if m.cluster_id in cluster_ids]

    async def memory_states(self, ids: Sequence[MemoryId]) -> list[MemoryFieldsForPatrol]:
        return [patrol_fields_from_memory(memory) for memory in await self.memories_with_ids(ids)]

    async def memory_counts_of_each_cluster(self, ids: Sequence[ClusterId] | None = None) -> list[ClusterMemoryCounts]:
        found = []
        for cluster_id in dict.fromkeys(m.cluster_id for m in self._own() if m.cluster_id is not None):
            if ids is not None and cluster_id not in ids:
                continue
            of = [m for m in self._own() if m.cluster_id == cluster_id]
            number = Counter(m.status for m in of)
            found.append(
                ClusterMemoryCounts(
                    cluster_id=cluster_id,
                    active=number["active"],
                    dying=number["dying"],
                    dead=number["dead"],
                    unconsolidated=sum(m.status == "dying" or (m.status == "active" and m.fresh) for m in of),
                )
            )
        return found

    async def clusters(self, ids: Sequence[ClusterId] | None = None) -> list[Cluster]:
        own = [c for c in self._state.clusters.values() if c.being_id == self._being]
        return own if ids is None else [c for c in own if c.id in ids]

    async def cached_vectors_by_hash(
        self, model: EmbeddingModelName, hashes: Sequence[ContentHash]
    ) -> dict[ContentHash, Vector]:
        return {hash_: self._vectors[model, hash_] for hash_ in hashes if (model, hash_) in self._vectors}

    async def memories_with_ids(self, ids: Sequence[MemoryId]) -> list[Memory]:
        found = (self._state.memories.get(id_) for id_ in dict.fromkeys(ids))
        return [memory for memory in found if memory is not None and memory.being_id == self._being]

    async def memories_stored_since(self, moment: datetime | None, *, limit: int) -> list[Memory]:
        since = [
            m
            for m in self._own()
            if not m.compression_source and m.truth == "current" and (moment is None or m.created_at > moment)
        ]
        return since[-limit:]

    async def unsummarised_sessions(self) -> list[UnsummarisedSession]:
        number = Counter(m.provenance.session_id for m in self._own() if _of_a_session(m))
        summarised = {m.provenance.session_id for m in self._own() if m.compressed}
        return [
            UnsummarisedSession(session_id=id_, memories=count)
            for id_, count in number.items()
            if count > 1 or id_ not in summarised
        ]

    async def summarisable_session_memories(self, session_id: str) -> list[Memory]:
        return [m for m in self._own() if _of_a_session(m) and m.provenance.session_id == session_id]

    async def dying_episodes_to_join(self, *, max_chars: int, limit: int) -> list[Memory]:
        faded = [
            m for m in self._own() if _of_a_session(m) and m.status == "dying" and len(m.scene.action) <= max_chars
        ]
        return [m for m in faded if not m.lesson and m.may_supersede is None][:limit]

    async def dying_memories(self, *, limit: int) -> list[Memory]:
        dying = [m for m in self._own() if m.status == "dying" and not m.compressed]
        return sorted(dying, key=lambda m: m.happened_at)[:limit]

    async def unreadable_notes(self) -> list[Note]:
        return [n for n in self._state.notes.values() if n.being_id == self._being and n.state == "parse_failed"]

    async def all_memory_ids_that_may_supersede(self) -> list[MemoryId]:
        current = {m.id for m in self._own() if m.truth == "current"}
        told = [m for m in self._own() if m.truth != "retracted" and m.status != "dead" and not m.compressed]
        newer = [m for m in told if m.may_supersede in current]
        return [m.id for m in sorted(newer, key=lambda m: m.happened_at)]

    async def source_ids_of_summaries(self, ids: Sequence[MemoryId]) -> list[MemoryId]:
        found = set(ids)
        while more := {m.id for m in self._own() if m.absorbed_into in found} - found:
            found |= more
        return [m.id for m in self._own() if m.compressed_into in found]

    async def last_aged_at(self) -> datetime | None:
        return self._state.aged_at

    async def last_diary_entry(self) -> DiaryEntry | None:
        return max(self._state.diary.values(), key=lambda entry: entry.written_at, default=None)

    async def thoughts_for_next_session(self) -> ThoughtsForNextSession:
        return self._state.thoughts

    async def decision_requests_with_ids(self, ids: Sequence[DecisionRequestId]) -> list[StoredDecisionRequest]:
        return [self._state.offers[id_] for id_ in ids if id_ in self._state.offers]

    async def cluster_size_by_declined_topic(self) -> dict[str, int]:
        return dict(self._state.declined)

    async def open_decision_requests(self) -> list[StoredDecisionRequest]:
        return [one for one in self._state.offers.values() if one.decided_by is None]

    async def topics_offered_since(self, moment: datetime) -> dict[str, datetime]:
        return {topic: at for topic, at in self._state.offered_at.items() if at >= moment}

    async def age_active_memories(self, run: RunId) -> int:
        begun = self._state.runs.get(run)
        self._state.aged_at = begun.started if begun else self._state.aged_at
        active = [memory for memory in self._own() if memory.status == "active"]
        self._state.memories |= {m.id: replace(m, session_count=m.session_count + 1) for m in active}
        return len(active)

    async def apply_changes(self, changes: PatrolChanges, *, run: RunId, step: str) -> None:
        self.applied.append(changes)
        self._vectors |= {(str(changes.model), hash_): vector for hash_, vector in changes.vectors.items()}
        state = self._state
        state.clusters |= {one.id: one for one in changes.clusters if self._may_write(state.clusters.get(one.id))}
        for id_ in changes.removed_clusters:
            if self._may_write(state.clusters.get(id_)):
                state.clusters.pop(id_, None)
        state.notes |= {note.id: note for note in changes.notes if self._may_write(state.notes.get(note.id))}
        memories = state.memories
        before = {one.id: one for one in self._own()}
        memories |= {memory.id: state.numbered(memory) for memory in changes.new_memories}
        for s in changes.states:
            if s.id in before:
                memories[s.id] = replace(
                    memories[s.id],
                    importance=s.importance,
                    status=s.status,
                    fresh=s.fresh,
                    pinned=s.pinned,
                    cluster_id=s.cluster_id,
                    absorbed_into=s.absorbed_into,
                    session_count=s.session_count,
                    reactivation_count=s.reactivation_count,
                    kept_until=s.kept_until,
                    may_supersede=s.may_supersede,
                )
        for memory in changes.rewritten_memories:
            merged = {name: getattr(memory, name) for name in MERGED_MEMORY_FIELDS}
            memories[memory.id] = replace(memories[memory.id], **merged)
        for source, summary in changes.compressed.items():
            memories[source] = replace(memories[source], compressed=summary is not None, compressed_into=summary)
        for act in changes.superseded:
            after = memories_after_supersession(memories[act.old], memories[act.new], act.since, act.at)
            memories |= {one.id: one for one in after}
        self._mark([one.id for one in self._own() if _in_index(one) != _in_index(before.get(one.id))])
        if changes.diary:
            state.diary[changes.diary.date] = changes.diary
        state.thoughts = changes.thoughts or state.thoughts
        state.declined |= changes.declined
        for offer in changes.decided_request_ids:
            state.offers[offer] = replace(state.offers[offer], decided_by=run, body={})

    def _may_write(self, known: Cluster | Note | None) -> bool:
        return known is None or known.being_id == self._being


def _in_index(memory: Memory | None) -> tuple[object, ...]:
    """What of it a patrol changes in the index."""
    return (memory.status, memory.cluster_id, memory.scene.when, memory.compressed, memory.truth) if memory else ()


def _of_a_session(memory: Memory) -> bool:
    told = memory.category == "episodic" and memory.provenance.session_id != ""
    told = told and memory.truth == "current" and memory.valid_from is None
    told = told and not memory.lesson and memory.may_supersede is None
    return told and not memory.compressed and not memory.pinned and memory.status != "dead"


class FakePatrolLedger:
    """`PatrolLedger` over dictionaries; a transaction that fails changes nothing."""

    def __init__(self) -> None:
        self.state = PatrolState({}, {}, {})
        self.costs: list[tuple[RunId, ModelCallCost]] = []
        self.cached: dict[tuple[str, str], Vector] = {}
        """(model, content hash) → vector"""
        self.marks: list[tuple[int, MemoryId]] = []
        """Pending for the index."""
        self._last_mark = 0

    def mark(self, ids: Iterable[MemoryId]) -> None:
        for id_ in ids:
            self._last_mark += 1
            self.marks.append((self._last_mark, id_))

    def put(self, memory: Memory, vector: Vector | None = None, *, model: str = "words") -> Memory:
        self.state.memories[memory.id] = memory
        if vector is not None:
            self.cached[model, memory.content_hash] = vector
        return memory

    def put_cluster(
        self,
        name: str,
        parent: Cluster | None = None,
        vector: Vector | None = None,
        *,
        model: str = "words",
        scope: Scope = ADA,
    ) -> Cluster:
        """A root if it has no parent."""
        id_ = ClusterId(str(uuid.uuid4()))
        cluster = Cluster(
            id=id_,
            being_id=scope.being_id,
            name=name,
            parent_id=parent.id if parent else id_,
            is_root=parent is None,
            vector=vector,
            model=EmbeddingModelName(model) if vector is not None else None,
        )
        self.state.clusters[id_] = cluster
        return cluster

    def put_note(self, content: str, *, type_: str = "scene", scope: Scope = ADA) -> Note:
        id_ = NoteId(str(uuid.uuid4()))
        note = Note(id=id_, being_id=scope.being_id, type=type_, content=content, created_at=NOW)
        self.state.notes[id_] = note
        return note

    def memory(self, memory: Memory) -> Memory:
        """As it is now."""
        return self.state.memories[memory.id]

    def cluster(self, name: str) -> Cluster:
        [found] = [cluster for cluster in self.state.clusters.values() if cluster.name == name]
        return found

    async def unread_notes(self, scope: Scope, *, type: str) -> list[Note]:
        own = [one for one in self.state.notes.values() if one.being_id == scope.being_id]
        unread = [one for one in own if one.type == type and one.state == "unread"]
        return sorted(unread, key=lambda note: note.created_at)

    async def cache_vectors(self, model: EmbeddingModelName, vectors: Mapping[ContentHash, Vector]) -> None:
        for hash_, vector in vectors.items():
            self.cached.setdefault((model, hash_), vector)
        told = {hash_ for hash_, vector in vectors.items() if vector.size}
        self.mark(one.id for one in self.state.memories.values() if one.content_hash in told)

    async def cached_vectors_by_hash(
        self, model: EmbeddingModelName, hashes: Sequence[ContentHash]
    ) -> dict[ContentHash, Vector]:
        return {hash_: self.cached[model, hash_] for hash_ in hashes if (model, hash_) in self.cached}

    @asynccontextmanager
    async def patrol_transaction(self, scope: Scope) -> AsyncIterator[FakePatrolTransaction]:
        working = self.state.copy()
        yield FakePatrolTransaction(scope, working, self.cached, self.mark)
        self.state = working

    def memory_reader_for_patrol(self, scope: Scope) -> PatrolMemoryReader:
        return FakePatrolTransaction(scope, self.state, self.cached, self.mark)

    async def store_decision_requests_unless_erased(
        self, scope: Scope, offered: Sequence[StoredDecisionRequest], *, at: datetime, at_erasure_count: int
    ) -> bool:
        self.state.offers |= {one.id: one for one in offered}
        self.state.offered_at |= {one.topic: at for one in offered}
        return True

    @asynccontextmanager
    async def patrol_lock(self, scope: Scope, *, wait: bool = True) -> AsyncIterator[bool]:
        yield True

    async def begin_run(self, scope: Scope, run: RunId, started: datetime) -> None:
        self.state.runs[run] = PatrolRun(
            id=run, being_id=scope.being_id, started=started, finished=started, state="running", report={}
        )

    async def finish_run(self, scope: Scope, run: RunId, finished: datetime, report: Mapping[str, Any]) -> None:
        begun = self.state.runs[run]
        self.state.runs[run] = replace(begun, finished=finished, state="finished", report=report)

    async def prune_journal(self, scope: Scope, *, undoable_runs: int) -> None:
        finished = [
            run for run in self.state.runs.values() if run.being_id == scope.being_id and run.state == "finished"
        ]
        for run in sorted(finished, key=lambda run: run.started)[:-undoable_runs]:
            self.state.runs[run.id] = replace(run, state="pruned")

    async def runs(self, scope: Scope, *, limit: int) -> list[PatrolRun]:
        return [run for run in reversed(self.state.runs.values()) if run.being_id == scope.being_id][:limit]

    async def unfinished_runs(self) -> list[PatrolRun]:
        return [run for run in self.state.runs.values() if run.state == "running"]

    async def undo_run(
        self, scope: Scope, run: RunId, *, at: datetime, state: PatrolRunState = "undone"
    ) -> PatrolUndoResult:
        raise CannotUndo("Nothing is journalled here.")

    async def record_cost(self, scope: Scope, run: RunId, spent: ModelCallCost, *, at: datetime) -> None:
        self.costs.append((run, spent))
