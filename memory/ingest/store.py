"""Storing scenes (spec T4, T6, ruling 1): redact, embed, decide, one transaction, index. Stored means recallable."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import zip_longest
from typing import Literal

from madeleine.memory.embedding import Embedder, EmbeddingOutcome, embed_with_cache
from madeleine.memory.errors import KeyConflict
from madeleine.memory.index import IndexForStoringMemories, IndexPoint
from madeleine.memory.ingest.earlier_memories import (
    EarlierSimilarMemories,
    as_superseding_memory,
    find_absorber_or_outdated_duplicate,
    find_earlier_similar_memories,
    find_superseded_memory_with_same_text,
    id_of_most_similar_memory,
    load_vectors_by_memory_id,
    start_of_truth_before_supersession,
    with_cosines_to_vector,
)
from madeleine.memory.ingest.index_keeper import (
    ReportIndexedMemoryIds,
    index_points_from_memories,
    try_to_index_committed_points,
)
from madeleine.memory.ingest.new_scene import NewScene, memory_from_new_scene, redact_scene
from madeleine.memory.ingest.ports import IdempotencyKeyOutcome, StoreBatch, StoreScenesLedger
from madeleine.memory.ingest.proposals import SupersessionCandidateSearch
from madeleine.memory.ingest.read_ahead import PrefetchedForStore, StoreScenesPrefetcher
from madeleine.memory.ingest.store_plan import RepeatedOutdatedMemory, SceneDraft, StoreOutcomeWithRepeatFlag, StorePlan
from madeleine.memory.ingest.write_lock import WriteLock
from madeleine.memory.model import ContentHash, Memory, MemoryId, Scope, Vector, content_hash, embedded_text
from madeleine.memory.retention.levels import memory_with_level_and_project_of_scope
from madeleine.memory.rules.storing.likeness import DuplicateThresholds, new_memory_tells_nothing_beyond_old
from madeleine.memory.rules.storing.retelling import (
    MemoryRetelling,
    can_future_draft_retell_memory,
    has_room_for_retelling,
    retelling_record_of_existing_memory,
)
from madeleine.memory.rules.storing.secrets import RedactText, redact_secrets
from madeleine.memory.text.same_words import differ_only_in_case_or_punctuation

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSceneResult:
    """`status` reinforced: an earlier memory says the same and was counted once more. `repeated`: the key was used
    before for the same text, and nothing was stored. `embedding_error`: why the memory is found by words only, for now.
    `redacted`: number of secrets removed, by kind. `superseded`: the memory that was true until then, as it is.
    `not_kept`: the text of a scene that reinforced a memory in other words."""

    memory: Memory
    status: Literal["stored", "reinforced"]
    repeated: bool = False
    embedding_error: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict)
    superseded: Memory | None = None
    may_supersede: Memory | None = None
    """A current memory that may no longer be true now; nothing is done about it without an act (ruling 14)."""
    may_have_changed: Sequence[Memory] = ()
    """What the new memory, which tells of a change, may have changed, the likeliest first, where nothing is likely
    enough for `may_supersede` (ADR 74, 95)."""
    not_kept: str = ""
    resembled: Memory | None = None
    """The one that `resembles` names."""
    told_again: RepeatedOutdatedMemory | None = None
    """It says what is not true any more; what is true still comes first."""

    @property
    def resembled_memory_id(self) -> MemoryId | None:
        """The nearest memory that says much the same, if the scene was stored beside it."""
        return self.memory.resembles if self.status == "stored" else None


@dataclass(frozen=True, eq=False)
class StoreScenes:
    """The use case. One store at a time decides and commits, so that two equal scenes at once become one memory.

    `on_commit`: called after each commit that leaves index marks; must not block.
    `callback_for_newly_indexed_memories`: of the keeper. `write_lock`: shared with use cases that change memories, so
    that none goes away before the commit."""

    ledger: StoreScenesLedger
    index: IndexForStoringMemories
    embedder: Embedder
    _: KW_ONLY
    now: Callable[[], datetime]
    on_commit: Callable[[], None] = lambda: None
    callback_for_newly_indexed_memories: Callable[[], ReportIndexedMemoryIds] = lambda: lambda _: None
    redact: RedactText = redact_secrets
    write_lock: WriteLock = field(default_factory=WriteLock)
    search_superseded: SupersessionCandidateSearch | None = None
    """None: no memory is proposed to be superseded."""
    thresholds: DuplicateThresholds = field(default_factory=DuplicateThresholds)

    async def __call__(self, scope: Scope, scenes: Sequence[NewScene]) -> list[StoredSceneResult]:
        """Redact and store all or none, in one transaction; answers in the order of `scenes`.

        Raises `KeyConflict` if a key was used for another text, `SourcesForgotten` if a source is gone, `InvalidInput`
        if a key is a secret or the level keeps nothing, `StorageFull` and `StorageError`.
        """
        redacted = [redact_scene(scene, self.redact) for scene in scenes]
        stored = await self.store_already_redacted_scenes(scope, [scene for scene, _ in redacted])
        return [replace(answer, redacted=counts) for answer, (_, counts) in zip(stored, redacted, strict=True)]

    async def store_already_redacted_scenes(
        self,
        scope: Scope,
        scenes: Sequence[NewScene],
        *,
        vectors: Mapping[ContentHash, Vector] | None = None,
        approve: Callable[[MemoryId], None] = lambda _: None,
        import_id: str = "",
    ) -> list[StoredSceneResult]:
        """Store scenes that the caller has redacted. `vectors`: of texts that are embedded already. `approve` is called
        with each memory that is to be reinforced; if it raises, nothing is stored. `import_id`: as in `StoreBatch`."""
        now = self.now()
        versions = [
            await as_superseding_memory(self.ledger, scope, memory_from_new_scene(scope, scene, now), scene.supersedes)
            for scene in scenes
        ]
        versions = [
            (memory_with_level_and_project_of_scope(memory, scope, old), old, since) for memory, old, since in versions
        ]
        memories = [memory for memory, _, _ in versions]
        undated = {
            memory.id: embedded_text(replace(memory.scene, when=()), memory.feeling)
            for memory, scene in zip(memories, scenes, strict=True)
            if memory.scene.when and scene.supersedes is None and self.search_superseded and vectors is None
        }
        # Before the lock is taken: the model may be busy, and nobody's store should wait for that.
        async with self._prefetcher.prefetch_in_background(scope, memories) as reading:
            texts = [*(memory.embedded_text for memory in memories), *undated.values()]
            embedded = await embed_with_cache(self.embedder, self.ledger, texts, vectors)
            readings = await reading
        points = await index_points_from_memories(memories, embedded.vectors, self.embedder, readings.tokens)
        undated_vectors = {id_: embedded.vectors.get(content_hash(text)) for id_, text in undated.items()}
        drafts = [
            SceneDraft(scene, point, undated_vectors.get(point.memory.id), superseded, since)
            for scene, point, (_, superseded, since) in zip(scenes, points, versions, strict=True)
        ]
        # A client that goes away does not stop its store half-way between ledger and index.
        return await asyncio.shield(
            self._commit(scope, drafts, embedded, readings=readings, approve=approve, import_id=import_id)
        )

    async def _commit(
        self,
        scope: Scope,
        drafts: Sequence[SceneDraft],
        embedded: EmbeddingOutcome,
        *,
        readings: PrefetchedForStore,
        approve: Callable[[MemoryId], None],
        import_id: str,
    ) -> list[StoredSceneResult]:
        async with self.write_lock:
            report_indexed = self.callback_for_newly_indexed_memories()
            plan = await self._plan_store(scope, drafts, readings, approve)
            new = {point.memory.id: point.memory for point in plan.points}
            changed: dict[MemoryId, Memory] = {}
            if new or plan.reinforcements or plan.supersessions:
                hashes = {memory.content_hash for memory in new.values()}
                batch = StoreBatch(
                    new=tuple(new.values()),
                    reinforcements=tuple(plan.reinforcements),
                    supersessions=tuple(plan.supersessions),
                    sources=plan.sources,
                    lessons=plan.lessons,
                    model=self.embedder.model_name,
                    vectors={hash_: vector for hash_, vector in embedded.vectors.items() if hash_ in hashes},
                    import_id=import_id,
                )
                committed = await self.ledger.commit_store_batch(scope, batch)
                new = {memory.id: memory for memory in committed.new}
                changed = {memory.id: memory for memory in committed.changed}
            if new or changed or plan.changes_index:
                self.on_commit()
            fresh = [point for point in plan.points if point.memory.id not in changed]
            points = [*fresh, *await self._index_points_of_changed_memories(tuple(changed.values()))]
            if points and await try_to_index_committed_points(self.index, points):
                report_indexed(point.memory.id for point in fresh)
            # What the call itself has stored has its number now.
            proposed = {id_: new.get(older.id, older) for id_, older in plan.proposed.items()}
            possible = {id_: [new.get(older.id, older) for older in named] for id_, named in plan.possible.items()}
            answers = await self._build_store_results(
                scope, plan.outcomes, new | changed, plan.read, embedded.error_text
            )
            return [
                replace(
                    answer,
                    superseded=changed.get(scene.supersedes),
                    told_again=plan.told_again.get(answer.memory.id),
                )
                if scene.supersedes is not None and scene.supersedes in changed
                else replace(
                    answer,
                    may_supersede=proposed.get(answer.memory.id),
                    may_have_changed=possible.get(answer.memory.id, ()),
                    told_again=plan.told_again.get(answer.memory.id),
                )
                for answer, scene in zip(answers, (draft.scene for draft in drafts), strict=True)
            ]

    @cached_property
    def _prefetcher(self) -> StoreScenesPrefetcher:
        return StoreScenesPrefetcher(self.ledger, self.index, self.embedder, self.write_lock, self.search_superseded)

    async def index_changed_memories(self, memories: Sequence[Memory]) -> None:
        """Index memories whose state an act has changed, after its commit."""
        await try_to_index_committed_points(self.index, await self._index_points_of_changed_memories(memories))

    async def _index_points_of_changed_memories(self, memories: Sequence[Memory]) -> list[IndexPoint]:
        """Points of memories that an act has changed."""
        if not memories:
            return []
        hashes = [memory.content_hash for memory in memories]
        vectors = await self.ledger.cached_vectors_by_hash(self.embedder.model_name, hashes)
        return await index_points_from_memories(memories, vectors, self.embedder)

    async def _plan_store(
        self,
        scope: Scope,
        drafts: Sequence[SceneDraft],
        readings: PrefetchedForStore,
        approve: Callable[[MemoryId], None],
    ) -> StorePlan:
        """Decide which scenes become memories and which reinforce one."""
        sharing_words = self._prefetcher.still_valid_prefetched_readings(readings)
        scenes = [draft.scene for draft in drafts]
        by_key = await self.ledger.idempotency_key_outcomes(
            scope, [scene.key for scene in scenes if scene.key is not None]
        )
        turns = await self.ledger.next_turn_numbers(scope, [scene.session_id for scene in scenes])
        plan = StorePlan(len(drafts))
        for draft, sharing in zip_longest(drafts, sharing_words):
            scene, point = draft.scene, draft.point
            key, text = scene.key, scene.scene.action
            if key is not None and (before := by_key.get(key)):
                if before.text != text:
                    raise KeyConflict(key)
                plan.outcomes.append((before, True))
                plan.supersede(draft, before)  # an act that comes with the second telling
                continue
            earlier = await find_earlier_similar_memories(
                self.ledger, self.index, scope, point, plan, supersedes=scene.supersedes, sharing_words=sharing
            )
            plan.read |= {other.id: other for other, _ in earlier.near}
            first = await self._repeated_superseded_memory(scope, draft, earlier)
            told = first.earlier if first else await self._memory_to_reinforce_or_outdated_one(scope, draft, earlier)
            if isinstance(told, Memory):
                approve(told.id)
                plan.reinforce(told, _reinforcement_from_scene(told.id, scene, point.memory))
                outcome = IdempotencyKeyOutcome(told.id, text, "reinforced")
                if draft.memory_to_supersede_on_future_date:
                    plan.proposed[told.id] = draft.memory_to_supersede_on_future_date
                if first:
                    plan.told_again[told.id] = first
            else:
                memory = await self._new_memory_linked_to_earlier_ones(scope, draft, earlier, told, plan)
                if session_id := scene.session_id:
                    memory = replace(memory, turn=turns[session_id])
                    turns[session_id] += 1
                plan.add_index_point(replace(point, memory=memory))
                outcome = IdempotencyKeyOutcome(memory.id, text, "stored")
            plan.supersede(draft, outcome, since=start_of_truth_before_supersession(first.earlier) if first else None)
            plan.add_sources_and_lesson(outcome.memory_id, scene.sources, scene.learnt)
            plan.outcomes.append((outcome, False))
            if key is not None:
                by_key[key] = outcome
        return plan

    async def _repeated_superseded_memory(
        self, scope: Scope, draft: SceneDraft, earlier: EarlierSimilarMemories
    ) -> RepeatedOutdatedMemory | None:
        """What the scene became when it was first told, which was superseded since, and what is true now."""
        scene, memory = draft.scene, draft.point.memory
        if scene.distinct or scene.is_update or draft.since is None or draft.superseded is None:
            return None
        first = await find_superseded_memory_with_same_text(self.ledger, scope, memory, draft.superseded, earlier.near)
        has_room = first and has_room_for_retelling(
            first.earlier, _reinforcement_from_scene(first.earlier.id, scene, memory)
        )
        return first if has_room else None

    async def _memory_to_reinforce_or_outdated_one(
        self, scope: Scope, draft: SceneDraft, earlier: EarlierSimilarMemories
    ) -> Memory | RepeatedOutdatedMemory | None:
        """The memory that the scene reinforces, or what said the same and is not true any more."""
        scene, point = draft.scene, draft.point
        for other, cosine in earlier.candidates:
            if self._is_duplicate_to_reinforce(point, other, cosine, scene) and can_future_draft_retell_memory(
                other, point.memory
            ):
                return other
        if scene.supersedes is not None or scene.distinct:
            return None
        told = await find_absorber_or_outdated_duplicate(self.ledger, scope, point.memory, earlier.near)
        if isinstance(told, Memory):
            return (
                told if has_room_for_retelling(told, _reinforcement_from_scene(told.id, scene, point.memory)) else None
            )
        return told

    async def _new_memory_linked_to_earlier_ones(
        self,
        scope: Scope,
        draft: SceneDraft,
        earlier: EarlierSimilarMemories,
        told: RepeatedOutdatedMemory | None,
        plan: StorePlan,
    ) -> Memory:
        """The new memory with its links to earlier ones, of which the answer tells."""
        memory = draft.point.memory
        if told is not None:
            plan.told_again[memory.id] = told
            return replace(memory, resembles=told.earlier.id)
        others = [other for other, _ in earlier.candidates]
        is_readable, near = draft.point.vector is not None, earlier.near
        undated_vector = draft.undated_vector if is_readable else None
        compared = [*others, *(other for other, _ in near if undated_vector is not None)] if is_readable else []
        vectors = await load_vectors_by_memory_id(self.ledger, self.embedder, compared, earlier.vectors)
        space, least = self.embedder.vector_space, self.thresholds.resembling
        resembles = id_of_most_similar_memory(draft.point, others, vectors, space, resembling=least)
        before = draft.memory_to_supersede_on_future_date
        if before is None and self.search_superseded is not None and draft.scene.supersedes is None:
            together = plan.similar_planned_memories_true_earlier(draft.point, earlier.together)
            near = [*near, *together]
            if undated_vector is not None:
                near = with_cosines_to_vector(near, undated_vector, vectors)
            unindexed = {other.id for other, _ in together}
            found = await self.search_superseded(scope, memory, near, is_read=is_readable, unindexed=unindexed)
            plan.possible[memory.id] = found.possible
            before = found.proposed
            if found.likely and not resembles:
                resembles = found.likely.id
        memory = replace(memory, resembles=resembles)
        if before is None:
            return memory
        plan.proposed[memory.id] = before
        return replace(memory, may_supersede=before.id)

    def _is_duplicate_to_reinforce(self, point: IndexPoint, other: Memory, cosine: float, new: NewScene) -> bool:
        memory = point.memory
        near_enough = cosine >= self.thresholds.same or differ_only_in_case_or_punctuation(
            memory.scene.action, other.scene.action
        )
        return (
            not new.distinct
            and near_enough
            and new_memory_tells_nothing_beyond_old(memory, other)
            and has_room_for_retelling(other, _reinforcement_from_scene(other.id, new, memory))
        )

    async def _build_store_results(
        self,
        scope: Scope,
        outcomes: Sequence[StoreOutcomeWithRepeatFlag],
        stored_or_changed: Mapping[MemoryId, Memory],
        read_before: Mapping[MemoryId, Memory],
        embedding_error: str,
    ) -> list[StoredSceneResult]:
        earlier = [outcome.memory_id for outcome, repeated in outcomes if repeated or outcome.status == "reinforced"]
        known = {memory.id: memory for memory in await self.ledger.memories_with_ids(scope, earlier)} if earlier else {}
        answers: list[StoredSceneResult] = []
        for outcome, repeated in outcomes:
            if outcome.status == "stored" and not repeated:
                memory = stored_or_changed[outcome.memory_id]
                answers.append(StoredSceneResult(memory=memory, status="stored", embedding_error=embedding_error))
                continue
            memory = known[outcome.memory_id]
            not_kept = (
                outcome.text
                if not repeated and not differ_only_in_case_or_punctuation(outcome.text, memory.scene.action)
                else ""
            )
            answer = StoredSceneResult(memory=memory, status=outcome.status, repeated=repeated, not_kept=not_kept)
            answers.append(answer)
        known = {**read_before, **stored_or_changed, **known}
        named = [answer.resembled_memory_id for answer in answers if answer.resembled_memory_id]
        if unread := [id_ for id_ in named if id_ not in known]:
            known |= {memory.id: memory for memory in await self.ledger.memories_with_ids(scope, unread)}
        return [replace(answer, resembled=known.get(answer.resembled_memory_id or MemoryId(""))) for answer in answers]


def _reinforcement_from_scene(of: MemoryId, scene: NewScene, draft: Memory) -> MemoryRetelling:
    """`draft`: the memory that the scene would have become."""
    importance = draft.importance if scene.importance is not None else None
    return retelling_record_of_existing_memory(of, draft, importance=importance, key=scene.key)
