"""What a store is about to commit: new memories, reinforcements and acts, decided one scene after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.chat import MessageId
from madeleine.memory.embedding import VectorByContentHash
from madeleine.memory.index import IndexPoint
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.ports import IdempotencyKeyOutcome
from madeleine.memory.lessons.values import Lesson
from madeleine.memory.model import Memory, MemoryId, Vector
from madeleine.memory.rules.dynamics.truth import Supersession
from madeleine.memory.rules.storing.retelling import MemoryRetelling, memory_after_retelling, retelling_changes_index
from madeleine.memory.rules.storing.statements import count_shared_content_words
from madeleine.memory.rules.storing.supersession import became_true_after
from madeleine.memory.text.same_words import wording_comparison_key

MAX_DUPLICATE_CANDIDATES = 15
"""Memories that are compared with a new scene: as many of the nearest, and of those that share words with it."""
MAX_UNEMBEDDED_SCENES_COMPARED_BY_WORDS = 500
"""Scenes of one call, the latest, whose words are compared where the model cannot read them."""
StoreOutcomeWithRepeatFlag = tuple[IdempotencyKeyOutcome, bool]
"""The outcome for a scene, and whether it is that of an earlier call with the same key."""


@dataclass(frozen=True, slots=True)
class RepeatedOutdatedMemory:
    """`earlier` said it word for word. `now`: what is true in its place; None for one that was retracted."""

    earlier: Memory
    now: Memory | None


class SceneDraft(NamedTuple):
    """A new scene, and the point of the memory that it may become. `undated_vector`: of its text without its date, to
    search what it may supersede; None if it has no date, or nothing is searched. `since`: when it supersedes
    `superseded`; None for a plan, and for what supersedes nothing."""

    scene: NewScene
    point: IndexPoint
    undated_vector: Vector | None
    superseded: Memory | None
    since: datetime | None

    @property
    def memory_to_supersede_on_future_date(self) -> Memory | None:
        return self.superseded if self.since is None else None


class StorePlan:
    """What a call stores, so far. `outcomes`: of each scene, in order."""

    def __init__(self, capacity: int) -> None:
        self.points: list[IndexPoint] = []
        self.reinforcements: list[MemoryRetelling] = []
        self.supersessions: list[Supersession] = []
        self.sources: dict[MemoryId, list[MessageId]] = {}
        self.lessons: dict[MemoryId, Lesson] = {}
        self.outcomes: list[StoreOutcomeWithRepeatFlag] = []
        self.proposed: dict[MemoryId, Memory] = {}
        """By the id of a memory: the one that it may supersede."""
        self.possible: dict[MemoryId, Sequence[Memory]] = {}
        """By the id of a memory that tells of a change: what it may have changed, not likely enough to be proposed."""
        self.told_again: dict[MemoryId, RepeatedOutdatedMemory] = {}
        self.read: dict[MemoryId, Memory] = {}
        """Memories that were looked at, as they were before the call."""
        self._capacity = capacity
        self.retold: dict[MemoryId, Memory] = {}
        """Memories that the call reinforces, as they will be."""
        self.changes_index = False
        """A reinforcement changes what the index holds of its memory."""
        self._by_words: dict[str, Memory] = {}
        self._unread: list[Memory] = []
        """Without a vector."""
        self._vectors: NDArray[np.float32] | None = None
        """(capacity, dim), in the order of `points`; zeros for a point without a vector."""

    def add_sources_and_lesson(self, memory_id: MemoryId, sources: Sequence[MessageId], learnt: Lesson | None) -> None:
        """What the memory rests on, and the lesson that it is of."""
        if sources:
            self.sources.setdefault(memory_id, []).extend(sources)
        if learnt is not None:
            self.lessons[memory_id] = learnt

    def reinforce(self, memory: Memory, reinforcement: MemoryRetelling) -> None:
        self.reinforcements.append(reinforcement)
        after = self.retold[memory.id] = memory_after_retelling(memory, reinforcement)
        self.changes_index |= retelling_changes_index(memory, after)

    def supersede(self, draft: SceneDraft, outcome: IdempotencyKeyOutcome, since: datetime | None = None) -> None:
        """The act that comes with a scene. Nothing for what supersedes nothing, and for an act that is told again.
        `since`: in place of the draft's."""
        scene, old = draft.scene, draft.superseded
        if not (scene.supersedes and draft.since) or (old is not None and old.superseded_by == outcome.memory_id):
            return
        act = Supersession(
            old=scene.supersedes,
            new=outcome.memory_id,
            since=since or draft.since,
            at=draft.point.memory.created_at,
            tool=scene.tool,
            makes_new=scene.is_update and outcome.status == "stored",
        )
        self.supersessions.append(act)

    def add_index_point(self, point: IndexPoint) -> None:
        if point.vector is None:
            self._unread.append(point.memory)
        else:
            if self._vectors is None:
                self._vectors = np.zeros((self._capacity, len(point.vector)), np.float32)
            self._vectors[len(self.points)] = point.vector
        self.points.append(point)
        self._by_words.setdefault(wording_comparison_key(point.memory.scene.action), point.memory)

    def vectors(self) -> VectorByContentHash:
        """Of the points that have one."""
        return {point.memory.content_hash: point.vector for point in self.points if point.vector is not None}

    def similar_memories_in_plan(self, point: IndexPoint) -> list[tuple[Memory, float]]:
        """(memory, cosine): first the memory with the same words, then the nearest."""
        similar = (
            {same.id: (same, 1.0)}
            if (same := self._by_words.get(wording_comparison_key(point.memory.scene.action)))
            else {}
        )
        if point.vector is not None and self._vectors is not None:
            cosines = self._vectors[: len(self.points)] @ point.vector
            for position in np.argsort(-cosines, kind="stable")[:MAX_DUPLICATE_CANDIDATES]:
                other = self.points[position].memory
                similar.setdefault(other.id, (other, float(cosines[position])))
        return list(similar.values())

    def similar_planned_memories_true_earlier(
        self, point: IndexPoint, similar: Sequence[tuple[Memory, float]]
    ) -> list[tuple[Memory, float]]:
        """(memory, cosine) of those that are true since an earlier time than the point's: of
        `similar_memories_in_plan`, or, where the model cannot read the text, of those that share the most words, with 1
        (the words alone decide)."""
        if point.vector is None:
            unread = self._unread[-MAX_UNEMBEDDED_SCENES_COMPARED_BY_WORDS:]
            shared = {
                other.id: count_shared_content_words(point.memory.scene.action, other.scene.action) for other in unread
            }
            most = sorted((other for other in unread if shared[other.id]), key=lambda other: -shared[other.id])
            similar = [(other, 1.0) for other in most[:MAX_DUPLICATE_CANDIDATES]]
        return [(other, cosine) for other, cosine in similar if became_true_after(point.memory, other)]

    def supersedes_memory_with_id(self, memory_id: MemoryId) -> bool:
        """By the call itself."""
        return any(act.old == memory_id for act in self.supersessions)
