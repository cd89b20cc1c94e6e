"""A ledger in dictionaries: what use cases that store, change, recall, browse and index need, without a file.

It passes the same suites as SQLite (`tests/contracts/test_in_memory_ledger.py`). It forgets nothing and keeps no
journal: tests of those use the real one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from madeleine.memory.errors import CannotUndo, InvalidInput, KeyConflict, StorageError
from madeleine.memory.index import MemoryRankingState
from madeleine.memory.ingest.ports import CommittedMemories, IdempotencyKeyOutcome, NoTruthChangeToUndo, StoreBatch
from madeleine.memory.model import (
    LIVING_STATUSES,
    Cluster,
    ClusterId,
    ContentHash,
    EmbeddingModelName,
    Emotion,
    EmotionVector,
    Memory,
    MemoryChanges,
    MemoryId,
    MemoryStatus,
    MemoryValuesBeforeChange,
    Note,
    Scope,
    Vector,
)
from madeleine.memory.patrol_records import PatrolRun
from madeleine.memory.recall.ports import ClusterWithMemoryCounts, MemoryReactivation, PossibleNewerVersionPair
from madeleine.memory.rules.dynamics.revision import (
    changes_without_unchanged_fields,
    memory_after_changes,
    memory_values_before_change,
)
from madeleine.memory.rules.dynamics.truth import (
    FIELD_VALUES_MARKING_VERSION_AS_UNDONE,
    MEMORY_TRUTH_FIELDS,
    TruthChangeOutcome,
    memories_after_retraction,
    memories_after_supersession,
)
from madeleine.memory.rules.storing.retelling import memory_after_retelling
from madeleine.memory.short_ids import IdKind
from madeleine.storage.sql.database.mapping import microseconds_from_moment
from tests.fakes.search import InMemorySearch
from tests.fakes.store import Store


def _is_retold(memory: Memory, earlier: Memory) -> bool:
    return memory.scene.action.lower() == earlier.scene.action.lower()


class InMemoryMemories:
    """`StoreScenesLedger`, `UpdateMemoryLedger`, `RetractionAndUndoLedger`, `RecallLedger`, `BrowseLedger`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def version(self) -> int | None:
        return None

    async def memories_with_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]:
        own = {one.id: one for one in self._store.own(scope)}
        return [own[id_] for id_ in dict.fromkeys(ids) if id_ in own]

    async def cached_vectors_by_hash(
        self, model: EmbeddingModelName, hashes: Sequence[ContentHash]
    ) -> dict[ContentHash, Vector]:
        return {hash_: self._store.vectors[model, hash_] for hash_ in hashes if (model, hash_) in self._store.vectors}

    # --- storing

    async def idempotency_key_outcomes(self, scope: Scope, keys: Sequence[str]) -> dict[str, IdempotencyKeyOutcome]:
        outcomes = {
            one.key: IdempotencyKeyOutcome(one.id, self._first_text(one), "stored") for one in self._store.own(scope)
        }
        outcomes |= {
            one.key: IdempotencyKeyOutcome(one.memory_id, one.text, "reinforced")
            for by, one in self._store.reinforcements
            if by.being_id == scope.being_id
        }
        return {key: outcomes[key] for key in keys if key in outcomes}

    def _first_text(self, memory: Memory) -> str:
        texts = [one.before.text for one in self._store.revisions if one.memory_id == memory.id and one.before.text]
        return texts[0] if texts else memory.scene.action

    async def ids_with_content_hash(self, scope: Scope, hash_: ContentHash) -> list[MemoryId]:
        own = self._store.own(scope)
        alike = [one for one in own if one.content_hash == hash_]
        held = [one for one in alike if one.status != "dead" and one.truth == "current"]
        gone = [one for one in alike if one.truth != "current" or one.absorbed_into is not None]
        return [one.id for one in (*held, *gone)][:5]

    async def next_turn_numbers(self, scope: Scope, sessions: Sequence[str]) -> dict[str, int]:
        own = self._store.own(scope)
        return {
            session: max((one.turn + 1 for one in own if one.provenance.session_id == session), default=0)
            for session in sessions
            if session
        }

    async def commit_store_batch(self, scope: Scope, batch: StoreBatch) -> CommittedMemories:
        memories = dict(self._store.memories)
        given = [*(one.key for one in batch.new), *(one.key for one in batch.reinforcements)]
        keys = [key for key in given if key is not None]
        taken = await self.idempotency_key_outcomes(scope, keys)
        for position, key in enumerate(keys):
            if key in taken or key in keys[:position]:
                raise KeyConflict(key)
        for one in batch.new:
            if one.being_id != scope.being_id or one.id in memories:
                raise InvalidInput("A memory can only be stored once, for the being that the connection serves.")
            memories[one.id] = self._store.patrols.state.numbered(one)
        grown: list[MemoryId] = []
        for again in batch.reinforcements:
            known = memories.get(again.memory_id)
            if known is None or known.being_id != scope.being_id:
                raise StorageError(f"There is no memory {again.memory_id} to reinforce.")
            memories[known.id] = memory_after_retelling(known, again)
            grown += [known.id] if memories[known.id].themes != known.themes else []
        concerned = [id_ for act in batch.supersessions for id_ in (act.old, act.new)]
        for act in batch.supersessions:
            if act.old not in memories or memories[act.old].being_id != scope.being_id:
                raise InvalidInput(f"There is no memory {act.old!r}.")
            before = {id_: memories[id_] for id_ in (act.old, act.new)}
            after = {
                one.id: one for one in memories_after_supersession(before[act.old], before[act.new], act.since, act.at)
            }
            if act.makes_new:
                before[act.new] = replace(before[act.new], **FIELD_VALUES_MARKING_VERSION_AS_UNDONE)
            memories |= after
            self._store.acts.append(("supersede", before, after))
        self._store.patrols.state.memories = memories
        for hash_, vector in batch.vectors.items():
            self._store.vectors.setdefault((batch.model, hash_), vector)
        self._store.reinforcements += [(scope, one) for one in batch.reinforcements]
        self._store.links |= {(message, id_) for id_, messages in batch.sources.items() for message in messages}
        self._store.patrols.mark([*(one.id for one in batch.new), *grown, *concerned])
        return CommittedMemories(
            [memories[one.id] for one in batch.new], await self.memories_with_ids(scope, concerned)
        )

    async def retract(
        self, scope: Scope, memory_id: MemoryId, reason: str, *, at: datetime
    ) -> TruthChangeOutcome | None:
        known = await self.memories_with_ids(scope, [memory_id])
        if not known:
            return None
        predecessors = [one for one in self._store.own(scope) if one.superseded_by == memory_id]
        after = {one.id: one for one in memories_after_retraction(known[0], predecessors, reason)}
        self._store.acts.append(("retract", {id_: self._store.memories[id_] for id_ in after}, after))
        self._store.memories.update(after)
        self._store.patrols.mark(after)
        return TruthChangeOutcome(kind="retract", changed=tuple(await self.memories_with_ids(scope, list(after))))

    async def planned_successors_of_memory(self, scope: Scope, memory_id: MemoryId) -> list[Memory]:
        living = (one for one in self._store.own(scope) if one.status in LIVING_STATUSES and one.truth == "current")
        plans = [one for one in living if one.may_supersede == memory_id and one.valid_from is not None]
        return sorted(plans, key=lambda one: one.number)

    async def undo_last_truth_change(
        self, scope: Scope, memory_id: MemoryId, *, at: datetime
    ) -> TruthChangeOutcome | None:
        if not await self.memories_with_ids(scope, [memory_id]):
            return None
        acts = [act for act in self._store.acts if memory_id in act[1]]
        if not acts:
            raise NoTruthChangeToUndo(f"Memory {memory_id!r} was neither superseded nor retracted.")
        kind, before, after = acts[-1]
        restored: dict[MemoryId, Memory] = {}
        for id_, one in after.items():
            changed = [name for name in MEMORY_TRUTH_FIELDS if getattr(one, name) != getattr(before[id_], name)]
            now = self._store.memories[id_]
            if any(getattr(now, name) != getattr(one, name) for name in changed):
                raise CannotUndo(f"Memory {id_!r} was superseded or retracted again since then: undo that first.")
            restored[id_] = replace(now, **{name: getattr(before[id_], name) for name in changed})
        self._store.memories.update(restored)
        self._store.acts.remove(acts[-1])
        self._store.patrols.mark(after)
        return TruthChangeOutcome(kind=kind, changed=tuple(await self.memories_with_ids(scope, list(after))))

    async def current_version_id_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, MemoryId]:
        own = {one.id: one for one in self._store.own(scope)}
        current = {id_: id_ for id_ in ids if id_ in own}
        for id_ in current:
            while later := own[current[id_]].superseded_by or own[current[id_]].absorbed_into:
                current[id_] = later
        return current

    async def all_versions_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Memory]]:
        own = {one.id: one for one in self._store.own(scope)}
        ends = await self.current_version_id_by_memory_id(scope, list(own))
        asked = await self.current_version_id_by_memory_id(scope, ids)
        told = {id_: end for id_, end in ends.items() if own[id_].absorbed_into is None}
        versions = {id_: [own[one] for one, last in told.items() if last == end] for id_, end in asked.items()}
        for chain in versions.values():
            chain.sort(key=lambda one: (one.valid_until is None, one.valid_until or one.created_at))
        return versions

    async def passage_ids_by_summary_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[MemoryId]]:
        passages: dict[MemoryId, list[MemoryId]] = {}
        for one in self._store.own(scope):
            if one.compression_source and one.compressed_into is not None and one.compressed_into in ids:
                passages.setdefault(one.compressed_into, []).append(one.id)
        return passages

    async def possible_newer_version_pairs(
        self, scope: Scope, ids: Sequence[MemoryId]
    ) -> list[PossibleNewerVersionPair]:
        asked = set(ids)
        own = self._store.own(scope)
        living = [one for one in own if one.status in LIVING_STATUSES and one.truth == "current" and not one.compressed]
        resembling = [
            PossibleNewerVersionPair(one.id, one.resembles, is_proposed=False)
            for one in living
            if one.resembles in asked
        ]
        known = {one.id: one for one in own}
        proposing = [one for one in own if one.status in LIVING_STATUSES and one.truth != "retracted"]
        found: dict[tuple[MemoryId, MemoryId], None] = {}
        links = [(one.id, old) for one in proposing if (old := one.may_supersede) is not None and old in asked]
        while links:
            newer, older = links.pop()
            if (newer, older) not in found:
                found[newer, older] = None
                links += [(one.id, newer) for one in proposing if one.may_supersede == newer]
                links += [(one, older) for one in [known[newer].superseded_by] if one is not None]
        current = {one.id for one in living}
        told = [(one, known[one.resembles]) for one in living if one.id in ids and one.resembles in known]
        again = [(one, earlier.id) for one, earlier in told if earlier.superseded_by and _is_retold(one, earlier)]
        latest = await self.current_version_id_by_memory_id(scope, [id_ for _, id_ in again])
        return [
            *(PossibleNewerVersionPair(newer, older, is_proposed=True) for newer, older in found if newer in current),
            *resembling,
            *(
                PossibleNewerVersionPair(latest[id_], one.id, is_proposed=True, has_superseded_text=True)
                for one, id_ in again
                if latest[id_] != one.id and known[latest[id_]] in living
            ),
        ]

    # --- changing

    async def change_memory(
        self,
        scope: Scope,
        memory_id: MemoryId,
        changes: MemoryChanges,
        *,
        at: datetime,
        model: EmbeddingModelName,
        vectors: Mapping[ContentHash, Vector],
    ) -> tuple[Memory, MemoryChanges] | None:
        memories = await self.memories_with_ids(scope, [memory_id])
        if not memories:
            return None
        [old] = memories
        done = changes_without_unchanged_fields(old, changes)
        if done == MemoryChanges():
            return old, done
        new = memory_after_changes(old, done)
        if new.content_hash != old.content_hash:
            for one in self._store.own(scope):
                if one.resembles == new.id:
                    self._store.memories[one.id] = replace(one, resembles=None)
        if done.text is not None:
            new = replace(new, corrected_at=at)
        self._store.memories[new.id] = new
        self._store.vectors.update({(model, h): v for h, v in vectors.items() if h == new.content_hash})
        if all(one.content_hash != old.content_hash for one in self._store.memories.values()):
            for key in [key for key in self._store.vectors if key[1] == old.content_hash]:
                del self._store.vectors[key]
        self._store.revisions.append(memory_values_before_change(old, done, at=at, client=scope.client))
        self._store.patrols.mark([new.id])
        return new, done

    # --- recalling

    async def preferences(
        self, scope: Scope, *, matching_ids: Sequence[MemoryId], limit: int, include_standing: bool
    ) -> list[Memory]:
        enabled = {
            one.id: one
            for one in reversed(self._store.own(scope))
            if one.category == "procedural" and one.id not in self._store.disabled_preferences
        }
        preferences = [enabled.pop(id_) for id_ in matching_ids if id_ in enabled]
        if include_standing:
            standing = (one for one in enabled.values() if one.status != "dead" and one.truth == "current")
            preferences += sorted(standing, key=lambda one: (-one.importance, -one.created_at.timestamp()))
        return preferences[:limit]

    async def has_dead_memories(self, scope: Scope) -> bool:
        return any(one.status == "dead" for one in self._store.own(scope))

    async def ranking_state_by_memory_id(
        self, scope: Scope, ids: Sequence[MemoryId]
    ) -> dict[MemoryId, MemoryRankingState]:
        return {
            one.id: MemoryRankingState(
                importance=one.importance,
                happened_at=one.happened_at,
                last_active=max(at for at in (one.created_at, one.last_activated, one.last_accessed) if at),
                access_count=one.access_count,
            )
            for one in await self.memories_with_ids(scope, ids)
        }

    # --- browsing

    async def revision_history(self, scope: Scope, ids: Sequence[MemoryId]) -> list[MemoryValuesBeforeChange]:
        own = {one.id for one in await self.memories_with_ids(scope, ids)}
        return [one for one in self._store.revisions if one.memory_id in own]

    async def memories_of_cluster(
        self, scope: Scope, cluster_id: ClusterId, *, limit: int, after: str | None
    ) -> list[Memory] | None:
        members = [one for one in self._store.own(scope) if one.cluster_id == cluster_id]
        members.sort(key=lambda one: (-microseconds_from_moment(one.happened_at), one.id))
        known = self._store.patrols.state.clusters.get(cluster_id)
        if not members and (known is None or known.being_id != scope.being_id):
            return None
        if after is not None:
            places = [place + 1 for place, one in enumerate(members) if one.id == after]
            members = members[places[0] :] if places else []
        return members[:limit]

    async def feelings_of_clustered_memories(
        self, scope: Scope
    ) -> list[tuple[ClusterId, tuple[Emotion, ...], EmotionVector | None]]:
        return [
            (one.cluster_id, one.emotions, one.emotion)
            for one in self._store.own(scope)
            if one.cluster_id and one.status == "active" and (one.emotions or one.emotion)
        ]

    async def clusters_with_memory_counts(self, scope: Scope) -> list[ClusterWithMemoryCounts]:
        clusters = self._store.patrols.state.clusters
        own = [one for one in clusters.values() if one.being_id == scope.being_id]

        def number(id_: ClusterId, status: MemoryStatus) -> int:
            return sum(one.cluster_id == id_ and one.status == status for one in self._store.own(scope))

        summaries = [
            ClusterWithMemoryCounts(
                id=one.id,
                name=one.name,
                parent=clusters[one.parent_id].name if one.parent_id in clusters else "",
                is_root=one.is_root,
                active=number(one.id, "active"),
                dying=number(one.id, "dying"),
                dead=number(one.id, "dead"),
            )
            for one in own
        ]
        return sorted(summaries, key=lambda one: (not one.is_root, -one.active, one.name, one.id))


class InMemoryIndexSource:
    """`IndexingLedger`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.cached_vectors_by_hash = InMemoryMemories(store).cached_vectors_by_hash

    async def pending_index_marks_with_memory_ids(self, *, limit: int) -> list[tuple[int, MemoryId]]:
        return self._store.patrols.marks[:limit]

    async def clear_pending_index_marks(self, marks: Sequence[int]) -> None:
        self._store.patrols.marks = [one for one in self._store.patrols.marks if one[0] not in marks]

    async def clear_pending_index_marks_of_memories(self, ids: Sequence[MemoryId], *, up_to: int) -> None:
        marks = self._store.patrols.marks
        self._store.patrols.marks = [one for one in marks if one[1] not in ids or one[0] > up_to]

    async def last_index_mark(self) -> int:
        return max((mark for mark, _ in self._store.patrols.marks), default=0)

    async def memories_of_any_being(self, ids: Sequence[MemoryId]) -> list[Memory]:
        return [self._store.memories[id_] for id_ in dict.fromkeys(ids) if id_ in self._store.memories]

    async def memories_after_id(self, *, after: MemoryId | None, limit: int) -> list[Memory]:
        later = [id_ for id_ in sorted(self._store.memories) if after is None or id_ > after]
        return [self._store.memories[id_] for id_ in later[:limit]]

    async def count_memories(self) -> int:
        return len(self._store.memories)

    async def cache_vectors_of_texts_in_memories(
        self, model: EmbeddingModelName, vectors: Mapping[ContentHash, Vector], *, mark: bool = True
    ) -> None:
        held = {one.content_hash for one in self._store.memories.values()}
        await self._store.patrols.cache_vectors(model, {hash_: one for hash_, one in vectors.items() if hash_ in held})

    async def memories_not_embedded_by_model(self, model: EmbeddingModelName, *, limit: int) -> list[Memory]:
        everything = self._store.memories.values()
        return [one for one in everything if (model, one.content_hash) not in self._store.vectors][:limit]

    async def drop_vectors_of_replaced_model(
        self, model: EmbeddingModelName, *, successor: EmbeddingModelName, limit: int
    ) -> int:
        kept = self._store.patrols.state.clusters
        kept |= {id_: replace(one, model=successor) for id_, one in kept.items() if one.model == model}
        retired = [key for key in self._store.vectors if key[0] == model][:limit]
        for key in retired:
            del self._store.vectors[key]
        return len(retired)

    async def setting(self, name: str) -> Any:
        return self._store.settings.get(name)

    async def set_setting(self, name: str, value: Any) -> None:
        self._store.settings[name] = value


class InMemoryShortIds:
    """`ShortIdLedger`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def memory_id_by_number(self, scope: Scope, numbers: Sequence[int]) -> dict[int, MemoryId]:
        return {one.number: one.id for one in self._store.own(scope) if one.number in numbers}

    async def number_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, int]:
        return {one.id: one.number for one in self._store.own(scope) if one.id in ids}

    async def ids_beginning_with_any(self, scope: Scope, kind: IdKind, beginnings: Sequence[str]) -> list[str]:
        state = self._store.patrols.state
        of_kind: dict[str, Iterable[Memory | Cluster | Note | PatrolRun]] = {
            "memory": state.memories.values(),
            "cluster": state.clusters.values(),
            "note": state.notes.values(),
            "run": state.runs.values(),
        }
        own = [one.id for one in of_kind[kind] if one.being_id == scope.being_id]
        return [id_ for id_ in own if id_.startswith(tuple(beginnings))]


class InMemoryNotes:
    """`NoteRecorder`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add_note(self, scope: Scope, note: Note) -> None:
        if note.being_id != scope.being_id:
            raise InvalidInput("A note can only be left for the being that the connection serves.")
        self._store.patrols.state.notes[note.id] = note


class InMemoryActivations:
    """`ReactivationRecorder` that writes at once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add_reactivations(self, scope: Scope, activations: Sequence[MemoryReactivation]) -> None:
        if not scope.count_activations:
            return
        own = {one.id: one for one in self._store.own(scope)}
        for one in activations:
            if memory := own.get(one.memory_id):
                own[memory.id] = self._store.memories[memory.id] = replace(
                    memory,
                    reactivation_count=memory.reactivation_count + one.times,
                    last_activated=max(one.at, memory.last_activated or one.at),
                    session_count=memory.session_count if memory.status == "dead" else 0,
                )

    async def flush(self) -> None:
        return None


class InMemoryLedger:
    """The repositories of one ledger, as `storage.sql.ledger.LedgerRepositories` bundles them."""

    def __init__(self) -> None:
        store = Store()
        self.activations = InMemoryActivations(store)
        self.memories = self.recall = InMemoryMemories(store)
        self.index_source = InMemoryIndexSource(store)
        self.short_ids = InMemoryShortIds(store)
        self.search = InMemorySearch(store)
        self.context = InMemoryNotes(store)
        self.patrols = store.patrols
        self.disabled_preferences = store.disabled_preferences

    def remove(self, ids: Sequence[MemoryId]) -> None:
        """As if they were forgotten after the index had taken them in."""
        for id_ in ids:
            del self.patrols.state.memories[id_]
