"""Storing scenes (spec T4, T6, ruling 1): redact, embed, decide, one transaction, index. Stored means recallable."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from typing import Literal

from madeleine.memory.chat import MessageId
from madeleine.memory.embedding import Embedder, EmbeddingOutcome, embed_with_cache
from madeleine.memory.errors import IndexUnavailable, InvalidInput, KeyConflict
from madeleine.memory.index import IndexPoint, WritableIndex
from madeleine.memory.ingest.index_keeper import IndexingReport, index_committed_points, index_points_from_memories
from madeleine.memory.ingest.ports import IdempotencyKeyOutcome, StoreBatch, StoreScenesLedger
from madeleine.memory.ingest.proposals import SupersededMemorySearch
from madeleine.memory.ingest.store_plan import MAX_DUPLICATE_CANDIDATES, StoreOutcome, StorePlan, have_same_words
from madeleine.memory.model import (
    LIVING_STATUSES,
    Category,
    ContentHash,
    Emotion,
    EmotionVector,
    Memory,
    MemoryId,
    Provenance,
    Scene,
    Scope,
    Vector,
    first_timeline_moment,
)
from madeleine.memory.rules.dynamics.truth import Supersession, is_planned_version, require_current
from madeleine.memory.rules.storing.likeness import DuplicateThresholds, memories_tell_same_facts
from madeleine.memory.rules.storing.retelling import Reinforcement, has_room_for_retelling, reinforcement_from_draft
from madeleine.memory.rules.storing.secrets import CountingRedactor, RedactText, redact_secrets, refuse_secret_argument
from madeleine.memory.rules.storing.similar_wording import resemblances_to_texts
from madeleine.memory.text.wording import differ_in_words

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewScene:
    """A scene to store. `importance` None means 0.5 for a new memory, unchanged for a reinforced one. `supersedes`: the
    memory that was true until the scene's first date, or until now; `is_update`: an update of that memory has made
    it, and it is retracted if the update is undone. `sources`: the messages that it was drawn from."""

    scene: Scene
    feeling: str = ""
    category: Category = "episodic"
    importance: float | None = None
    emotions: tuple[Emotion, ...] = ()
    emotion: EmotionVector | None = None
    lesson: str = ""
    themes: tuple[str, ...] = ()
    session_id: str = ""
    pinned: bool = False
    key: str | None = None
    tool: str = "store"
    supersedes: MemoryId | None = None
    is_update: bool = False
    sources: tuple[MessageId, ...] = ()
    distinct: bool = False
    """It says something else than any memory, however alike: store it beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSceneResult:
    """`status` reinforced: an earlier memory says the same and was counted once more. `repeated`: the key was used
    before for the same text, and nothing was done. `embedding_error`: why the memory is found by words only, for now.
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
    not_kept: str = ""
    resembled: Memory | None = None
    """The one that `resembles` names."""

    @property
    def resembles(self) -> MemoryId | None:
        """The nearest memory that says much the same, if the scene was stored beside it."""
        return self.memory.resembles if self.status == "stored" else None


_Draft = tuple[NewScene, IndexPoint]
"""A new scene, and the point of the memory that it may become."""


@dataclass(frozen=True, eq=False)
class StoreScenes:
    """The use case. One store at a time decides and commits, so that two equal scenes at once become one memory.

    `on_commit` is called after each commit that leaves index marks; it must not block. `begin_indexing`: of the keeper
    that works them off. `write_lock` is shared with other use cases that change memories, so that none goes away
    between a decision and its commit.
    """

    ledger: StoreScenesLedger
    index: WritableIndex
    embedder: Embedder
    _: KW_ONLY
    now: Callable[[], datetime]
    on_commit: Callable[[], None] = lambda: None
    begin_indexing: Callable[[], IndexingReport] = lambda: lambda _: None
    redact: RedactText = redact_secrets
    write_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    search_superseded: SupersededMemorySearch | None = None
    """None: no memory is proposed to be superseded."""
    thresholds: DuplicateThresholds = field(default_factory=DuplicateThresholds)

    async def __call__(self, scope: Scope, scenes: Sequence[NewScene]) -> list[StoredSceneResult]:
        """Redact and store all or none, in one transaction; answers in the order of `scenes`.

        Raises `KeyConflict` if a key was used for another text, `SourcesForgotten` if a source is gone, `InvalidInput`
        if a key is a secret, `StorageFull` and
        `StorageError`.
        """
        redacted = [redact_scene(scene, self.redact) for scene in scenes]
        stored = await self.store_redacted(scope, [scene for scene, _ in redacted])
        return [replace(answer, redacted=counts) for answer, (_, counts) in zip(stored, redacted, strict=True)]

    async def store_redacted(
        self,
        scope: Scope,
        scenes: Sequence[NewScene],
        *,
        vectors: Mapping[ContentHash, Vector] | None = None,
        approve: Callable[[MemoryId], None] = lambda _: None,
    ) -> list[StoredSceneResult]:
        """Store scenes that the caller has redacted. `vectors`: of texts that are embedded already. `approve` is called
        with each memory that is to be reinforced; if it raises, nothing is stored."""
        now = self.now()
        memories = [memory_from_new_scene(scope, scene, now) for scene in scenes]
        embedded = await embed_with_cache(
            self.embedder, self.ledger, [memory.embedded_text for memory in memories], vectors
        )
        # Before the lock is taken: the model may be busy, and nobody's store should wait for that.
        points = await index_points_from_memories(memories, embedded.vectors, self.embedder)
        drafts = list(zip(scenes, points, strict=True))
        # A client that goes away does not stop its store half-way between ledger and index.
        return await asyncio.shield(self._commit(scope, drafts, embedded, approve))

    async def _commit(
        self, scope: Scope, drafts: Sequence[_Draft], embedded: EmbeddingOutcome, approve: Callable[[MemoryId], None]
    ) -> list[StoredSceneResult]:
        async with self.write_lock:
            report_indexed = self.begin_indexing()
            plan = await self._plan(scope, drafts, approve)
            new = {point.memory.id: point.memory for point in plan.points}
            changed: dict[MemoryId, Memory] = {}
            if new or plan.reinforcements:
                hashes = {memory.content_hash for memory in new.values()}
                batch = StoreBatch(
                    new=tuple(new.values()),
                    reinforcements=tuple(plan.reinforcements),
                    supersessions=tuple(plan.supersessions),
                    sources=plan.sources,
                    model=self.embedder.model,
                    vectors={hash_: vector for hash_, vector in embedded.vectors.items() if hash_ in hashes},
                )
                committed = await self.ledger.commit(scope, batch)
                new = {memory.id: memory for memory in committed.new}
                changed = {memory.id: memory for memory in committed.changed}
            if new or changed or plan.changes_words:
                self.on_commit()
            fresh = [point for point in plan.points if point.memory.id not in changed]
            points = [*fresh, *await self._points_of(tuple(changed.values()))]
            if points and await index_committed_points(self.index, points):
                report_indexed(point.memory.id for point in fresh)
            answers = await self._answers(scope, plan.outcomes, new | changed, embedded.unavailable)
            return [
                replace(answer, superseded=changed.get(scene.supersedes))
                if scene.supersedes is not None and scene.supersedes in changed
                else replace(answer, may_supersede=plan.proposed.get(answer.memory.id))
                for answer, (scene, _) in zip(answers, drafts, strict=True)
            ]

    async def index_changed(self, memories: Sequence[Memory]) -> None:
        """Index memories whose state an act has changed, after its commit."""
        await index_committed_points(self.index, await self._points_of(memories))

    async def _points_of(self, memories: Sequence[Memory]) -> list[IndexPoint]:
        """Points of memories that an act has changed."""
        if not memories:
            return []
        hashes = [memory.content_hash for memory in memories]
        vectors = await self.ledger.vectors(self.embedder.model, hashes)
        return await index_points_from_memories(memories, vectors, self.embedder)

    async def _plan(self, scope: Scope, drafts: Sequence[_Draft], approve: Callable[[MemoryId], None]) -> StorePlan:
        """Decide which scenes become memories and which reinforce one."""
        by_key = await self.ledger.key_outcomes(scope, [scene.key for scene, _ in drafts if scene.key is not None])
        turns = await self.ledger.next_turns(scope, [scene.session_id for scene, _ in drafts])
        plan = StorePlan(len(drafts))
        for scene, point in drafts:
            key, text = scene.key, scene.scene.action
            if key is not None and (earlier := by_key.get(key)):
                if earlier.text != text:
                    raise KeyConflict(key)
                plan.outcomes.append((earlier, True))
                continue
            near = await self._near(scope, point)
            candidates = self._candidates(point, near, plan, scene)
            same = next((other for other, cosine in candidates if self._is_same(point, other, cosine, scene)), None)
            if same is None:
                resembles = await self._most_similar(point, [other for other, _ in candidates], plan)
                session_id = scene.session_id
                memory = replace(point.memory, resembles=resembles, turn=turns[session_id] if session_id else 0)
                planned = await self._superseded_later(scope, scene, memory)
                if before := planned or await self._proposed(scope, scene, point, near):
                    memory = replace(
                        memory, may_supersede=before.id, valid_from=memory.happened_at if planned else None
                    )
                    plan.proposed[memory.id] = before
                if session_id:
                    turns[session_id] += 1
                plan.add_point(replace(point, memory=memory))
                outcome = IdempotencyKeyOutcome(memory.id, text, "stored")
            else:
                approve(same.id)
                plan.reinforce(same, _reinforcement(same.id, scene, point.memory))
                outcome = IdempotencyKeyOutcome(same.id, text, "reinforced")
            if scene.supersedes is not None and not is_planned_version(point.memory, point.memory.created_at):
                plan.supersessions.append(_supersession(scene, outcome, point.memory))
            if scene.sources:
                plan.sources.setdefault(outcome.memory_id, []).extend(scene.sources)
            plan.outcomes.append((outcome, False))
            if key is not None:
                by_key[key] = outcome
        return plan

    @staticmethod
    def _candidates(
        point: IndexPoint, near: Sequence[tuple[Memory, float]], plan: StorePlan, new: NewScene
    ) -> list[tuple[Memory, float]]:
        """(memory, cosine) of those that may say the same or much the same (spec T6). What is not true any more is
        never told again; it is stored anew."""
        known = plan.similar_to(point) + [
            (other, cosine)
            for other, cosine in near
            if other.status in LIVING_STATUSES
            and not other.compressed
            and other.truth == "current"
            and other.id != new.supersedes
        ]
        return [(plan.retold.get(other.id, other), cosine) for other, cosine in known]

    async def _superseded_later(self, scope: Scope, scene: NewScene, memory: Memory) -> Memory | None:
        """What a plan is to supersede, which is true until then. Raises `InvalidInput`, `NotCurrent`."""
        if scene.supersedes is None or not is_planned_version(memory, memory.created_at):
            return None
        known = await self.ledger.memories(scope, [scene.supersedes])
        if not known:
            raise InvalidInput(f"There is no memory {scene.supersedes!r}. Nothing was stored.")
        require_current(known[0])
        return known[0]

    async def _proposed(
        self, scope: Scope, scene: NewScene, point: IndexPoint, near: Sequence[tuple[Memory, float]]
    ) -> Memory | None:
        if self.search_superseded is None or scene.supersedes is not None:
            return None
        return await self.search_superseded(scope, point.memory, near, is_read=point.vector is not None)

    def _is_same(self, point: IndexPoint, other: Memory, cosine: float, new: NewScene) -> bool:
        memory = point.memory
        near_enough = cosine >= self.thresholds.same or have_same_words(memory, other)
        return (
            not new.distinct
            and near_enough
            and memories_tell_same_facts(memory, other)
            and has_room_for_retelling(other, _reinforcement(other.id, new, memory))
        )

    async def _most_similar(self, point: IndexPoint, known: Sequence[Memory], plan: StorePlan) -> MemoryId | None:
        """The one that resembles the new one most, if it does so enough."""
        if not known:
            return None
        vectors, hashes = plan.vectors(), [other.content_hash for other in known]
        if point.vector is not None:
            missing = {*hashes} - vectors.keys()
            vectors |= await self.ledger.vectors(self.embedder.model, sorted(missing))
        cosines = self.embedder.space.readable_cosines(point.vector, [vectors.get(hash_) for hash_ in hashes])
        scores = resemblances_to_texts(point.memory.scene.action, [other.scene.action for other in known], cosines)
        best = max(range(len(known)), key=scores.__getitem__)
        return known[best].id if scores[best] >= self.thresholds.resembling else None

    async def _near(self, scope: Scope, point: IndexPoint) -> list[tuple[Memory, float]]:
        """(memory, cosine) of memories that may say the same: with the very text, the nearest, and those that share
        words; of these 1 where the model cannot read the text, for then the words alone decide, else 0."""
        same_text = await self.ledger.ids_with_text(scope, point.memory.content_hash)
        near: dict[MemoryId, float] = {}
        at_most, vector = MAX_DUPLICATE_CANDIDATES, point.vector
        try:
            words = point.memory.scene.action
            alike = await self.index.ids_sharing_words(scope, words, limit=at_most, statuses=LIVING_STATUSES)
            near = dict.fromkeys(alike, 1.0 if vector is None else 0.0)
            if vector is not None:
                near |= dict(await self.index.nearest(scope, vector, limit=at_most, statuses=LIVING_STATUSES))
        except IndexUnavailable as error:
            logger.warning("storing without a search for duplicates: %s", error)
        near |= dict.fromkeys(same_text, 1.0)
        return [(other, near[other.id]) for other in await self.ledger.memories(scope, list(near))] if near else []

    async def _answers(
        self, scope: Scope, outcomes: Sequence[StoreOutcome], new: Mapping[MemoryId, Memory], embedding_error: str
    ) -> list[StoredSceneResult]:
        earlier = [outcome.memory_id for outcome, repeated in outcomes if repeated or outcome.status == "reinforced"]
        known = {memory.id: memory for memory in await self.ledger.memories(scope, earlier)} if earlier else {}
        answers: list[StoredSceneResult] = []
        for outcome, repeated in outcomes:
            if outcome.status == "stored" and not repeated:
                answers.append(
                    StoredSceneResult(memory=new[outcome.memory_id], status="stored", embedding_error=embedding_error)
                )
                continue
            memory = known[outcome.memory_id]
            not_kept = outcome.text if not repeated and differ_in_words(outcome.text, memory.scene.action) else ""
            answers.append(
                StoredSceneResult(memory=memory, status=outcome.status, repeated=repeated, not_kept=not_kept)
            )
        named = [answer.resembles for answer in answers if answer.resembles]
        resembled = {memory.id: memory for memory in await self.ledger.memories(scope, named)} if named else {}
        return [
            replace(answer, resembled=resembled.get(answer.resembles)) if answer.resembles else answer
            for answer in answers
        ]


def redact_scene(new: NewScene, redact: RedactText) -> tuple[NewScene, Mapping[str, int]]:
    """The scene without secrets, and the number of secrets by kind.

    A secret in the key is refused: redacted, the key would be the same as another one.
    """
    refuse_secret_argument("key", new.key or "", redact)
    redaction = CountingRedactor(redact)
    redacted = redaction.fields(new, "feeling", "lesson", "themes", "session_id")
    return replace(redacted, scene=redaction.scene(new.scene)), redaction.found


def memory_from_new_scene(scope: Scope, new: NewScene, now: datetime) -> Memory:
    """A fresh, active memory without a cluster (ruling 1)."""
    return Memory(
        id=MemoryId(str(uuid.uuid4())),
        being_id=scope.being_id,
        scene=new.scene,
        feeling=new.feeling,
        importance=0.5 if new.importance is None else min(1.0, max(0.0, new.importance)),
        category=new.category,
        themes=new.themes,
        emotions=new.emotions,
        emotion=new.emotion,
        lesson=new.lesson,
        key=new.key,
        pinned=new.pinned,
        provenance=Provenance(tool=new.tool, client=scope.client, session_id=new.session_id),
        created_at=now,
        happened_at=first_timeline_moment(new.scene.when, now),
    )


def _reinforcement(of: MemoryId, scene: NewScene, draft: Memory) -> Reinforcement:
    """`draft`: the memory that the scene would have become."""
    importance = draft.importance if scene.importance is not None else None
    return reinforcement_from_draft(of, draft, importance=importance, key=scene.key)


def _supersession(scene: NewScene, outcome: IdempotencyKeyOutcome, draft: Memory) -> Supersession:
    """`draft`: the memory that the scene would have become."""
    return Supersession(
        old=scene.supersedes or MemoryId(""),
        new=outcome.memory_id,
        since=draft.happened_at,
        at=draft.created_at,
        tool=scene.tool,
        makes_new=scene.is_update and outcome.status == "stored",
    )
