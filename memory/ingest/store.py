"""Storing scenes (spec T4, T6, ruling 1): embed, decide, one transaction, index. Stored means recallable."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from memory.errors import EmbeddingUnavailable, IndexUnavailable, KeyConflict
from memory.ingest.pointing import index_points
from memory.model import (
    LIVING,
    Category,
    ContentHash,
    Emotion,
    Memory,
    MemoryId,
    Provenance,
    Scene,
    Vector,
    happened_at,
)
from memory.ports import Embedder, KeyedEarlier, Reinforcement, StoreBatch, StoreIndex, StoreLedger
from memory.rules.likeness import SAME, same_facts
from memory.scope import Scope

logger = logging.getLogger(__name__)

NEIGHBOURS = 5
"""The nearest memories looked at for one that says the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewScene:
    """What a caller wants kept. `importance` None means 0.5 for a new memory, unchanged for a reinforced one."""

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
    before for the same text, and nothing was done again. `unembedded`: why it is found by its words only, for now."""

    memory: Memory
    status: Literal["stored", "reinforced"]
    repeated: bool = False
    unembedded: str = ""


class StoreScenes:
    """The use case. One store at a time decides and commits, so that two equal scenes at once become one memory."""

    def __init__(
        self,
        ledger: StoreLedger,
        index: StoreIndex,
        embedder: Embedder,
        *,
        now: Callable[[], datetime],
        wrote: Callable[[], None] = lambda: None,
    ) -> None:
        """`wrote` is called after each commit that leaves index marks; it must not block."""
        self._ledger = ledger
        self._index = index
        self._embedder = embedder
        self._now = now
        self._wrote = wrote
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, scope: Scope, scenes: Sequence[NewScene]) -> list[Stored]:
        """Store all or none, in one transaction; answers in the order of `scenes`.

        Raises `KeyConflict` if a key was used for another text, `StorageFull` and `StorageError`.
        """
        drafts = [draft(scope, scene, self._now()) for scene in scenes]
        vectors, unembedded = await self._embed(drafts)
        # A client that goes away does not stop what it has asked for half-way between ledger and index.
        return await asyncio.shield(self._in_turn(scope, scenes, drafts, vectors, unembedded))

    async def _embed(self, drafts: Sequence[Memory]) -> tuple[dict[ContentHash, Vector], str]:
        texts = {memory.content_hash: memory.embed_text for memory in drafts}
        vectors = await self._ledger.vectors(self._embedder.model, list(texts))
        missing = [hash_ for hash_ in texts if hash_ not in vectors]
        if not missing:
            return vectors, ""
        try:
            rows = await self._embedder.embed([texts[hash_] for hash_ in missing])
        except EmbeddingUnavailable as error:
            return vectors, str(error)
        return vectors | dict(zip(missing, rows, strict=True)), ""

    async def _in_turn(
        self,
        scope: Scope,
        scenes: Sequence[NewScene],
        drafts: Sequence[Memory],
        vectors: dict[ContentHash, Vector],
        unembedded: str,
    ) -> list[Stored]:
        async with self._one_at_a_time:
            return await self._commit(scope, scenes, drafts, vectors, unembedded)

    async def _commit(
        self,
        scope: Scope,
        scenes: Sequence[NewScene],
        drafts: Sequence[Memory],
        vectors: dict[ContentHash, Vector],
        unembedded: str,
    ) -> list[Stored]:
        earlier = await self._ledger.keyed(scope, [scene.key for scene in scenes if scene.key is not None])
        decisions: list[Memory | MemoryId | KeyedEarlier] = []
        fresh: list[Memory] = []
        keys: dict[str, Memory] = {}
        for scene, memory in zip(scenes, drafts, strict=True):
            decided: Memory | MemoryId | KeyedEarlier
            if scene.key is not None and (known := earlier.get(scene.key)):
                if known.text != memory.scene.action:
                    raise KeyConflict(scene.key)
                decided = known
            elif scene.key is not None and (twin := keys.get(scene.key)):
                if twin.scene.action != memory.scene.action:
                    raise KeyConflict(scene.key)
                decided = KeyedEarlier(twin.id, twin.scene.action, "stored")
            else:
                decided = await self._same_as(scope, memory, vectors, fresh) or memory
                if scene.key is not None:
                    keys[scene.key] = memory
                if decided is memory:
                    fresh.append(memory)
            decisions.append(decided)
        again = [
            reinforcement(scope, scene, decided, memory)
            for scene, decided, memory in zip(scenes, decisions, drafts, strict=True)
            if isinstance(decided, str)
        ]
        batch = StoreBatch(
            new=tuple(fresh), reinforcements=tuple(again), model=self._embedder.model, vectors=_of(fresh, vectors)
        )
        if batch.new or batch.reinforcements:
            await self._ledger.commit(scope, batch)
        await self._index_now(fresh, vectors)
        return await self._answers(scope, decisions, unembedded)

    async def _same_as(
        self, scope: Scope, memory: Memory, vectors: dict[ContentHash, Vector], batch: Sequence[Memory]
    ) -> MemoryId | None:
        """One that says the same as the new one: its very text, or cosine ≥ 0.92, and no fact differs (spec T6)."""
        vector = vectors.get(memory.content_hash)
        for other in batch:
            if _alike(vector, vectors.get(other.content_hash), memory, other) and same_facts(memory, other):
                return other.id
        near = await self._near(scope, vector) if vector is not None else []
        same_text = await self._ledger.same_text(scope, memory.content_hash)
        candidates = await self._ledger.memories(scope, [*same_text, *near])
        return next((other.id for other in candidates if same_facts(memory, other)), None)

    async def _near(self, scope: Scope, vector: Vector) -> list[MemoryId]:
        try:
            near = await self._index.nearest(scope, vector, limit=NEIGHBOURS, statuses=LIVING)
        except IndexUnavailable as error:
            logger.warning("no look for duplicates: %s", error)
            return []
        return [id_ for id_, cosine in near if cosine >= SAME]

    async def _index_now(self, memories: Sequence[Memory], vectors: dict[ContentHash, Vector]) -> None:
        """The pending marks of the commit stay until the index is on disk; a failure here is made good from them."""
        if not memories:
            return
        self._wrote()
        try:
            await self._index.upsert(await index_points(memories, vectors, self._embedder))
        except IndexUnavailable as error:
            logger.warning("indexing is put off: %s", error)

    async def _answers(
        self, scope: Scope, decisions: Sequence[Memory | MemoryId | KeyedEarlier], unembedded: str
    ) -> list[Stored]:
        ids = [d if isinstance(d, str) else d.memory_id for d in decisions if not isinstance(d, Memory)]
        known = {memory.id: memory for memory in await self._ledger.memories(scope, ids)} if ids else {}
        answers: list[Stored] = []
        for decided in decisions:
            if isinstance(decided, Memory):
                answers.append(Stored(memory=decided, status="stored", unembedded=unembedded))
            elif isinstance(decided, KeyedEarlier):
                answers.append(Stored(memory=known[decided.memory_id], status=decided.status, repeated=True))
            else:
                answers.append(Stored(memory=known[decided], status="reinforced"))
        return answers


def draft(scope: Scope, new: NewScene, now: datetime) -> Memory:
    """The memory that the scene becomes if none says the same: fresh, active, without a cluster (ruling 1)."""
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


def reinforcement(scope: Scope, new: NewScene, of: MemoryId, draft: Memory) -> Reinforcement:
    return Reinforcement(
        memory_id=of,
        text=draft.scene.action,
        at=draft.created_at,
        tool=new.tool,
        client=scope.client,
        session_id=new.session_id,
        key=new.key,
        importance=draft.importance if new.importance is not None else None,
        pinned=new.pinned,
        themes=new.themes,
    )


def _of(memories: Sequence[Memory], vectors: dict[ContentHash, Vector]) -> dict[ContentHash, Vector]:
    hashes = {memory.content_hash for memory in memories}
    return {hash_: vector for hash_, vector in vectors.items() if hash_ in hashes}


def _alike(mine: Vector | None, theirs: Vector | None, new: Memory, old: Memory) -> bool:
    if new.content_hash == old.content_hash:
        return True
    return mine is not None and theirs is not None and float(np.dot(mine, theirs)) >= SAME
