"""The ledger: every need of `memory.ports` that SQL serves, behind one object."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from madeleine.memory.audit import AuditEntry, AuditQuery
from madeleine.memory.candidates import RankingState
from madeleine.memory.chat import ChatSession, Message, MessageId, UnwatchedSession
from madeleine.memory.ingest.ports import Erased, KeyOutcome, StoreBatch
from madeleine.memory.keyword_search import KeywordQuery, SearchHit, SearchSource, Tag, TagMatches, TagQuery
from madeleine.memory.language import Spent
from madeleine.memory.model import (
    ClusterId,
    ContentHash,
    Memory,
    MemoryChanges,
    MemoryId,
    ModelName,
    Note,
    NoteId,
    Revision,
    RunId,
    Vector,
)
from madeleine.memory.patrol_records import (
    DiaryEntry,
    PatrolRun,
    RecentActivity,
    RunState,
    StoredDecisionRequest,
    Thoughts,
    UndoResult,
)
from madeleine.memory.profile import ProfileEntry
from madeleine.memory.recall.ports import ClusterSummary, PreferenceQuery
from madeleine.memory.scope import Scope
from madeleine.storage.sql import search
from madeleine.storage.sql.conversations import chat, ingested, notes
from madeleine.storage.sql.database.engine import Database, open_database
from madeleine.storage.sql.erasing import memories as forgetting
from madeleine.storage.sql.memories import (
    centroid,
    clusters,
    embeddings,
    memories,
    pending,
    recalled,
    recent,
    revisions,
)
from madeleine.storage.sql.memories.activations import Activations
from madeleine.storage.sql.operations import audit, profile, settings
from madeleine.storage.sql.patrols import beings, costs, diary, offers, runs, undo
from madeleine.storage.sql.patrols.patrol import SqlPatrol, SqlPatrolReads


@asynccontextmanager
async def open_ledger(path: Path) -> AsyncIterator[Ledger]:
    """Raises `StorageError` if the file cannot be used, or was written by a newer version."""
    async with open_database(path) as database, Activations(database) as activations:
        yield Ledger(database, activations)


class Ledger:
    """What it does is said by the ports; how, by the module of each concern."""

    def __init__(self, database: Database, activations: Activations) -> None:
        self._database = database
        self.activations = activations

    # memories

    async def memories(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]:
        return await memories.by_ids(self._database, scope, ids)

    async def with_preferences(
        self, scope: Scope, ids: Sequence[MemoryId], preference_query: PreferenceQuery
    ) -> tuple[list[Memory], list[Memory]]:
        return await recalled.with_preferences(self._database, scope, ids, preference_query)

    async def ranking_states(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, RankingState]:
        return await recalled.ranking_states(self._database, scope, ids)

    async def keyed(self, scope: Scope, keys: Sequence[str]) -> dict[str, KeyOutcome]:
        return await memories.keyed(self._database, scope, keys)

    async def same_text(self, scope: Scope, hash_: ContentHash) -> list[MemoryId]:
        return await memories.same_text(self._database, scope, hash_)

    async def turns(self, scope: Scope, sessions: Sequence[str]) -> dict[str, int]:
        return await memories.turns(self._database, scope, sessions)

    async def commit(self, scope: Scope, batch: StoreBatch) -> None:
        await memories.commit(self._database, scope, batch)

    async def change(
        self,
        scope: Scope,
        memory_id: MemoryId,
        changes: MemoryChanges,
        *,
        at: datetime,
        model: ModelName,
        vectors: Mapping[ContentHash, Vector],
    ) -> tuple[Memory, MemoryChanges] | None:
        return await revisions.change(self._database, scope, memory_id, changes, at=at, model=model, vectors=vectors)

    async def revisions(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Revision]:
        return await revisions.of(self._database, scope, ids)

    async def forget(self, scope: Scope, ids: Sequence[MemoryId | MessageId], *, at: datetime) -> Erased:
        return await forgetting.forget(self._database, scope, ids, at=at)

    async def any_memories(self, ids: Sequence[MemoryId]) -> list[Memory]:
        return await memories.any_by_ids(self._database, ids)

    async def all_memories(self, *, after: MemoryId | None, limit: int) -> list[Memory]:
        return await memories.page(self._database, after, limit)

    async def count_memories(self) -> int:
        return await memories.count(self._database)

    # search and clusters

    async def search(self, scope: Scope, query: KeywordQuery) -> list[SearchHit]:
        return await search.search(self._database, scope, query)

    async def themes_beside(self, scope: Scope, tags: Sequence[Tag], *, recent: int) -> list[tuple[str, ...]]:
        return await search.tagged.themes_beside(self._database, scope, tags, recent)

    async def tagged(self, scope: Scope, query: TagQuery) -> list[TagMatches]:
        return await search.matches(self._database, scope, query)

    async def hits(self, scope: Scope, wanted: Sequence[tuple[SearchSource, str]]) -> list[SearchHit]:
        return await search.hits(self._database, scope, wanted)

    async def cluster_memories(
        self, scope: Scope, cluster_id: ClusterId, *, limit: int, after: str | None
    ) -> list[Memory] | None:
        return await clusters.members(self._database, scope, cluster_id, limit, after)

    async def cluster_summaries(self, scope: Scope) -> list[ClusterSummary]:
        return await clusters.summaries(self._database, scope)

    # profile, and what a context reads

    async def profile(self, scope: Scope) -> list[ProfileEntry]:
        return await profile.all_of(self._database, scope)

    async def write_entry(self, scope: Scope, entry: ProfileEntry) -> MemoryId | None:
        return await profile.write(self._database, scope, entry)

    async def remove_entry(self, scope: Scope, entry: ProfileEntry, *, at: datetime) -> bool:
        return await profile.remove(self._database, scope, entry, at)

    async def open_notes(self, scope: Scope, *, limit: int) -> list[Note]:
        return await notes.open_(self._database, scope, limit)

    async def close_note(self, scope: Scope, note_id: NoteId, *, at: datetime, remove: bool = False) -> bool:
        return await notes.close(self._database, scope, note_id, at, remove=remove)

    async def thoughts(self, scope: Scope) -> Thoughts:
        return await diary.thoughts(self._database, scope)

    async def diary_since(self, scope: Scope, date: str, *, limit: int) -> list[DiaryEntry]:
        return await diary.since(self._database, scope, date, limit)

    async def recently_activated(self, scope: Scope, *, limit: int) -> list[Memory]:
        return await recent.recently_activated(self._database, scope, limit)

    # notes and the patrol

    async def add_note(self, scope: Scope, note: Note) -> None:
        await notes.add(self._database, scope, note)

    async def unread_notes(self, scope: Scope, *, type: str) -> list[Note]:
        return await notes.unread(self._database, scope, type)

    @asynccontextmanager
    async def patrol(self, scope: Scope) -> AsyncIterator[SqlPatrol]:
        async with self._database.transaction(grows=True) as transaction:
            yield SqlPatrol(transaction, scope)

    def patrol_reads(self, scope: Scope) -> SqlPatrolReads:
        return SqlPatrolReads(self._database, scope)

    async def store_requests(self, scope: Scope, offered: Sequence[StoredDecisionRequest], *, at: datetime) -> None:
        await offers.keep(self._database, scope, offered, at)

    async def begin_run(self, scope: Scope, run: RunId, started: datetime) -> None:
        await runs.begin(self._database, scope, run, started)

    async def finish_run(self, scope: Scope, run: RunId, finished: datetime, report: Mapping[str, Any]) -> None:
        await runs.finish(self._database, scope, run, finished, report)

    async def runs(self, scope: Scope, *, limit: int) -> list[PatrolRun]:
        return await runs.latest(self._database, scope, limit)

    async def unfinished_runs(self) -> list[PatrolRun]:
        return await runs.unfinished(self._database)

    async def undo(self, scope: Scope, run: RunId, *, at: datetime, state: RunState = "undone") -> UndoResult:
        return await undo.undo(self._database, scope, run, at=at, state=state)

    async def recent_activity(self) -> list[RecentActivity]:
        return await beings.recent_activity(self._database)

    async def record_cost(self, scope: Scope, run: RunId, spent: Spent, *, at: datetime) -> None:
        await costs.record(self._database, scope, run, spent, at)

    async def tokens_since(self, purpose: str, since: datetime) -> int:
        return await costs.tokens_since(self._database, purpose, since)

    # conversations

    async def append(
        self,
        scope: Scope,
        session_id: str,
        messages: Sequence[Message],
        *,
        keys: Sequence[str | None],
        title: str = "",
        interface: str = "",
        watched: bool = False,
    ) -> list[MessageId]:
        return await chat.append(
            self._database, scope, session_id, messages, keys, title=title, interface=interface, watched=watched
        )

    async def link(self, scope: Scope, told: Mapping[MemoryId, Sequence[MessageId]]) -> None:
        await chat.link(self._database, scope, told)

    async def messages(self, scope: Scope, ids: Sequence[MessageId]) -> list[Message]:
        return await chat.by_ids(self._database, scope, ids)

    async def keyed_messages(self, scope: Scope, session_id: str, keys: Sequence[str]) -> dict[str, Message]:
        return await chat.keyed(self._database, scope, session_id, keys)

    async def last_key(self, scope: Scope, session_id: str) -> str | None:
        return await chat.last_key(self._database, scope, session_id)

    async def recent_messages(
        self, scope: Scope, *, limit: int, session_id: str | None = None, other_than: str | None = None
    ) -> list[Message]:
        return await chat.recent(self._database, scope, limit=limit, session_id=session_id, other_than=other_than)

    async def sessions(self, scope: Scope, *, limit: int) -> list[ChatSession]:
        return await chat.latest_sessions(self._database, scope, limit)

    async def unwatched_sessions(self, *, now: datetime, limit: int) -> list[UnwatchedSession]:
        return await chat.unwatched_sessions(self._database, now, limit)

    async def messages_of(self, scope: Scope, session_id: str, *, start: int, end: int) -> list[Message]:
        return await chat.between(self._database, scope, session_id, start, end)

    async def mark_watched(self, scope: Scope, session_id: str, *, up_to: int) -> None:
        await chat.mark_watched(self._database, scope, session_id, up_to)

    async def record_watch_failure(self, scope: Scope, session_id: str, *, next_try: datetime) -> None:
        await chat.record_watch_failure(self._database, scope, session_id, next_try)

    async def postpone_watch(self, scope: Scope, session_id: str, *, next_try: datetime) -> None:
        await chat.postpone_watch(self._database, scope, session_id, next_try)

    async def messages_with_memories(self, scope: Scope, ids: Sequence[MessageId]) -> set[MessageId]:
        return await chat.messages_with_memories(self._database, scope, ids)

    # what is poured in

    async def outcome(self, scope: Scope, key: str) -> dict[str, Any] | None:
        return await ingested.outcome(self._database, scope, key)

    async def keep_outcome(self, scope: Scope, key: str, outcome: Mapping[str, Any], *, at: datetime) -> None:
        await ingested.keep(self._database, scope, key, outcome, at=at)

    async def last_upset(self, scope: Scope, *, after: int) -> tuple[int, bool]:
        return await centroid.last_upset(self._database, scope, after)

    async def stored_after(
        self, scope: Scope, model: ModelName, *, after: int, limit: int
    ) -> list[tuple[int, Vector | None]]:
        return await centroid.stored_after(self._database, scope, model, after, limit)

    # audit

    async def audit(self, query: AuditQuery) -> list[AuditEntry]:
        return await audit.last(self._database, query)

    async def audit_missing(self) -> int:
        return await audit.missing(self._database)

    # vectors

    async def vectors(self, model: ModelName, hashes: Sequence[ContentHash]) -> dict[ContentHash, Vector]:
        return await embeddings.by_hashes(self._database, model, hashes)

    async def add_vectors(self, model: ModelName, vectors: Mapping[ContentHash, Vector]) -> None:
        await embeddings.add(self._database, model, vectors)

    async def add_missing_vectors(self, model: ModelName, vectors: Mapping[ContentHash, Vector]) -> None:
        await embeddings.add_missing(self._database, model, vectors)

    async def without_vector(self, model: ModelName, *, limit: int) -> list[Memory]:
        return await embeddings.memories_without(self._database, model, limit)

    # pending index marks

    async def pending(self, *, limit: int) -> list[tuple[int, MemoryId]]:
        return await pending.oldest(self._database, limit)

    async def clear_marks(self, marks: Sequence[int]) -> None:
        await pending.clear(self._database, marks)

    async def clear_marks_of(self, ids: Sequence[MemoryId], *, up_to: int) -> None:
        await pending.clear_of(self._database, ids, up_to)

    async def last_mark(self) -> int:
        return await pending.last(self._database)

    # what is forgotten

    async def pending_scrubs(self) -> list[tuple[int, MemoryId]]:
        return await forgetting.marks(self._database)

    async def clear_scrubs(self, marks: Sequence[int]) -> None:
        await forgetting.clear(self._database, marks)

    async def scrub(self) -> None:
        await self._database.scrub()

    # the store itself

    async def setting(self, name: str) -> Any:
        return await settings.read(self._database, name)

    async def set_setting(self, name: str, value: Any) -> None:
        await settings.write(self._database, name, value)

    async def checkpoint(self) -> None:
        """Move the write-ahead log into the database file; worth doing after a bulk import."""
        await self._database.checkpoint()
