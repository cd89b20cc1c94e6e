"""Storing scenes (spec T4, T6, ruling 1): redact, embed, decide, one transaction, index. Stored means recallable."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.embedding import Embedded, Embedder, embed_cached
from madeleine.memory.errors import IndexUnavailable, KeyConflict
from madeleine.memory.index import IndexPoint
from madeleine.memory.ingest.indexing import index_now, index_points
from madeleine.memory.ingest.ports import KeyOutcome, Reinforcement, StoreBatch, StoreIndex, StoreLedger
from madeleine.memory.ingest.redaction import Redaction, refuse_secret
from madeleine.memory.model import (
    LIVING,
    Category,
    ContentHash,
    Emotion,
    Memory,
    MemoryId,
    Provenance,
    Scene,
    Scope,
    Vector,
    happened_at,
)
from madeleine.memory.rules.storing.likeness import RESEMBLING_COSINE, SAME_COSINE, same_facts
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets

logger = logging.getLogger(__name__)

SIMILAR_CANDIDATES = 5
"""The nearest memories looked at for one that says the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewScene:
    """A scene to store. `importance` None means 0.5 for a new memory, unchanged for a reinforced one."""

    scene: Scene
    feeling: str = ""
    category: Category = "episodic"
    importance: float | None = None
    emotions: tuple[Emotion, ...] = ()
    lesson: str = ""
    themes: tuple[str, ...] = ()
    session_id: str = ""
    pinned: bool = False
    key: str | None = None
    tool: str = "store"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """`status` reinforced: an earlier memory says the same and was counted once more. `repeated`: the key was used
    before for the same text, and nothing was done. `unembedded`: why the memory is found by its words only, for now.
    `redacted`: secrets that were taken out, by kind."""

    memory: Memory
    status: Literal["stored", "reinforced"]
    repeated: bool = False
    unembedded: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict)

    @property
    def resembles(self) -> MemoryId | None:
        """The nearest memory that says much the same, of a scene that was stored beside it."""
        return self.memory.resembles if self.status == "stored" else None


class StoreScenes:
    """The use case. One store at a time decides and commits, so that two equal scenes at once become one memory."""

    def __init__(
        self,
        ledger: StoreLedger,
        index: StoreIndex,
        embedder: Embedder,
        *,
        now: Callable[[], datetime],
        on_commit: Callable[[], None] = lambda: None,
        redact: Redact = redact_secrets,
        write_lock: asyncio.Lock | None = None,
    ) -> None:
        """`on_commit` is called after each commit that leaves index marks; it must not block. `write_lock` is shared
        with other use cases that change memories, so that none goes away between a decision and its commit."""
        self._ledger = ledger
        self._index = index
        self._embedder = embedder
        self._now = now
        self._on_commit = on_commit
        self._redact = redact
        self._write_lock = write_lock or asyncio.Lock()

    async def __call__(self, scope: Scope, scenes: Sequence[NewScene]) -> list[Stored]:
        """Redact and store all or none, in one transaction; answers in the order of `scenes`.

        Raises `KeyConflict` if a key was used for another text, `InvalidInput` if a key is a secret, `StorageFull` and
        `StorageError`.
        """
        redacted = [redact_scene(scene, self._redact) for scene in scenes]
        stored = await self.store_redacted(scope, [scene for scene, _ in redacted])
        return [replace(one, redacted=counts) for one, (_, counts) in zip(stored, redacted, strict=True)]

    async def store_redacted(
        self,
        scope: Scope,
        scenes: Sequence[NewScene],
        *,
        vectors: Mapping[ContentHash, Vector] | None = None,
        approve: Callable[[MemoryId], None] = lambda _: None,
    ) -> list[Stored]:
        """As a call, for callers that have redacted the scenes. `vectors`: of scenes that are embedded already.
        `approve` is called with each memory that is to be reinforced; if it raises, nothing is stored."""
        now = self._now()
        drafts = [_Draft(scene, new_memory(scope, scene, now)) for scene in scenes]
        texts = [draft.memory.embed_text for draft in drafts]
        embedded = await embed_cached(self._embedder, self._ledger, texts, vectors)
        # Before the lock is taken: the model may be busy, and nobody's store should wait for that.
        points = await index_points([draft.memory for draft in drafts], embedded.vectors, self._embedder)
        for draft, point in zip(drafts, points, strict=True):
            draft.point = point
        # A client that goes away does not stop what it has asked for half-way between ledger and index.
        return await asyncio.shield(self._commit(scope, drafts, embedded, approve))

    async def _commit(
        self, scope: Scope, drafts: Sequence[_Draft], embedded: Embedded, approve: Callable[[MemoryId], None]
    ) -> list[Stored]:
        async with self._write_lock:
            decisions, batch, reinforcements = await self._decide(scope, drafts, approve)
            new = [draft.memory for draft in batch.drafts]
            if new or reinforcements:
                hashes = {draft.hash for draft in batch.drafts}
                changes = StoreBatch(
                    new=tuple(new),
                    reinforcements=tuple(reinforcements),
                    model=self._embedder.model,
                    vectors={hash_: vector for hash_, vector in embedded.vectors.items() if hash_ in hashes},
                )
                await self._ledger.commit(scope, changes)
            if new or any(one.themes for one in reinforcements):
                self._on_commit()
            if points := [draft.point for draft in batch.drafts if draft.point is not None]:
                await index_now(self._index, points)
            return await self._answers(scope, decisions, {memory.id: memory for memory in new}, embedded.unavailable)

    async def _decide(
        self, scope: Scope, drafts: Sequence[_Draft], approve: Callable[[MemoryId], None]
    ) -> tuple[list[_Decision], _Batch, list[Reinforcement]]:
        """Which drafts become memories, and which reinforce one."""
        by_key = await self._ledger.keyed(scope, [draft.new.key for draft in drafts if draft.new.key is not None])
        turns = await self._ledger.turns(scope, [draft.new.session_id for draft in drafts])
        decisions: list[_Decision] = []
        batch = _Batch(len(drafts))
        reinforcements: list[Reinforcement] = []
        for draft in drafts:
            key, text = draft.new.key, draft.memory.scene.action
            if key is not None and (earlier := by_key.get(key)):
                if earlier.text != text:
                    raise KeyConflict(key)
                decisions.append(_Decision(earlier, repeated=True))
                continue
            same, resembles = await self._compare(scope, draft, batch)
            if same is None:
                draft.take_place(turns, resembles)
                batch.add(draft)
                outcome = KeyOutcome(draft.memory.id, text, "stored")
            else:
                approve(same)
                reinforcements.append(draft.as_reinforcement(same))
                outcome = KeyOutcome(same, text, "reinforced")
            decisions.append(_Decision(outcome))
            if key is not None:
                by_key[key] = outcome
        return decisions, batch, reinforcements

    async def _compare(
        self, scope: Scope, draft: _Draft, batch: _Batch
    ) -> tuple[MemoryId, None] | tuple[None, MemoryId | None]:
        """The memory that says the same: its very text, or cosine ≥ 0.92, and no fact differs. Else the nearest of
        those that say much the same (spec T6)."""
        in_batch = list(batch.similar_to(draft))
        for other, cosine in in_batch:
            if cosine >= SAME_COSINE and same_facts(draft.memory, other):
                return other.id, None
        near = dict(await self._near(scope, draft.vector)) if draft.vector is not None else {}
        same_text = await self._ledger.same_text(scope, draft.hash)
        near |= dict.fromkeys(same_text, 1.0)
        memories = await self._ledger.memories(scope, [*same_text, *near]) if near else []
        living = [(other, near[other.id]) for other in memories if other.status in LIVING and not other.compressed]
        for other, cosine in living:
            if cosine >= SAME_COSINE and same_facts(draft.memory, other):
                return other.id, None
        nearest = max([*living, *in_batch], key=lambda similar: similar[1], default=None)
        return None, nearest[0].id if nearest else None

    async def _near(self, scope: Scope, vector: Vector) -> list[tuple[MemoryId, float]]:
        try:
            near = await self._index.nearest(scope, vector, limit=SIMILAR_CANDIDATES, statuses=LIVING)
        except IndexUnavailable as error:
            logger.warning("storing without a search for duplicates: %s", error)
            return []
        return [(id_, cosine) for id_, cosine in near if cosine >= RESEMBLING_COSINE]

    async def _answers(
        self, scope: Scope, decisions: Sequence[_Decision], new: Mapping[MemoryId, Memory], unembedded: str
    ) -> list[Stored]:
        earlier = [one.outcome.memory_id for one in decisions if not one.is_new]
        known = {memory.id: memory for memory in await self._ledger.memories(scope, earlier)} if earlier else {}
        return [
            Stored(memory=new[one.outcome.memory_id], status="stored", unembedded=unembedded)
            if one.is_new
            else Stored(memory=known[one.outcome.memory_id], status=one.outcome.status, repeated=one.repeated)
            for one in decisions
        ]


def redact_scene(new: NewScene, redact: Redact) -> tuple[NewScene, Mapping[str, int]]:
    """The scene without secrets, and the number of secrets by kind.

    A secret in the key is refused: redacted, the key would be the same as another one.
    """
    refuse_secret("key", new.key or "", redact)
    redaction = Redaction(redact)
    redacted = replace(
        new,
        scene=redaction.scene(new.scene),
        feeling=redaction.text(new.feeling),
        lesson=redaction.text(new.lesson),
        themes=redaction.texts(new.themes),
        session_id=redaction.text(new.session_id),
    )
    return redacted, redaction.found


def new_memory(scope: Scope, new: NewScene, now: datetime) -> Memory:
    """Fresh, active, without a cluster (ruling 1)."""
    return Memory(
        id=MemoryId(str(uuid.uuid4())),
        being_id=scope.being_id,
        scene=new.scene,
        feeling=new.feeling,
        importance=0.5 if new.importance is None else min(1.0, max(0.0, new.importance)),
        category=new.category,
        themes=new.themes,
        emotions=new.emotions,
        lesson=new.lesson,
        key=new.key,
        pinned=new.pinned,
        provenance=Provenance(tool=new.tool, client=scope.client, session_id=new.session_id),
        created_at=now,
        happened_at=happened_at(new.scene.when, now),
    )


@dataclass(frozen=True, slots=True)
class _Decision:
    """`repeated`: the key was used before, and nothing is done."""

    outcome: KeyOutcome
    repeated: bool = False

    @property
    def is_new(self) -> bool:
        return self.outcome.status == "stored" and not self.repeated


class _Draft:
    """A new scene, and the memory that it may become."""

    def __init__(self, new: NewScene, memory: Memory) -> None:
        self.new = new
        self.memory = memory
        self.hash = memory.content_hash
        self.point: IndexPoint | None = None

    def take_place(self, turns: dict[str, int], resembles: MemoryId | None) -> None:
        """The next turn of its session, beside the memory that it resembles."""
        self.memory = replace(self.memory, resembles=resembles)
        session = self.new.session_id
        if session:
            self.memory = replace(self.memory, turn=turns[session])
            turns[session] += 1
        if self.point is not None:
            self.point = replace(self.point, memory=self.memory)

    def as_reinforcement(self, of: MemoryId) -> Reinforcement:
        return Reinforcement(
            memory_id=of,
            text=self.memory.scene.action,
            at=self.memory.created_at,
            tool=self.new.tool,
            client=self.memory.provenance.client,
            session_id=self.new.session_id,
            key=self.new.key,
            importance=self.memory.importance if self.new.importance is not None else None,
            pinned=self.new.pinned,
            themes=self.new.themes,
        )

    @property
    def vector(self) -> Vector | None:
        """None for an illegible text, too, which is not compared with others."""
        return self.point.vector if self.point else None


class _Batch:
    """The drafts of a call that become memories, so far."""

    def __init__(self, capacity: int) -> None:
        self.drafts: list[_Draft] = []
        self._capacity = capacity
        self._by_hash: dict[ContentHash, Memory] = {}
        self._embedded: list[Memory] = []
        self._rows: NDArray[np.float32] | None = None

    def add(self, draft: _Draft) -> None:
        self.drafts.append(draft)
        self._by_hash.setdefault(draft.hash, draft.memory)
        if draft.vector is not None:
            if self._rows is None:
                self._rows = np.empty((self._capacity, len(draft.vector)), np.float32)
            self._rows[len(self._embedded)] = draft.vector
            self._embedded.append(draft.memory)

    def similar_to(self, draft: _Draft) -> Iterator[tuple[Memory, float]]:
        """(memory, cosine): first the one with the same text, then those at cosine ≥ 0.8, nearest first."""
        if draft.hash in self._by_hash:
            yield self._by_hash[draft.hash], 1.0
        if draft.vector is not None and self._rows is not None:
            cosines = self._rows[: len(self._embedded)] @ draft.vector
            for position in sorted(np.flatnonzero(cosines >= RESEMBLING_COSINE), key=lambda at: -float(cosines[at])):
                yield self._embedded[position], float(cosines[position])
