"""Storing scenes (spec T4, T6, ruling 1): embed, decide, one transaction, index. Stored means recallable."""

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

from madeleine.memory.candidates import IndexPoint
from madeleine.memory.embedding import Embedded, embed_cached
from madeleine.memory.errors import IndexUnavailable, InvalidInput, KeyConflict
from madeleine.memory.ingest.indexing import index_now, index_points
from madeleine.memory.ingest.ports import KeyOutcome, Reinforcement, StoreBatch, StoreIndex, StoreLedger
from madeleine.memory.ingest.redaction import Redaction
from madeleine.memory.model import (
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
from madeleine.memory.ports import Embedder
from madeleine.memory.rules.storing.likeness import RESEMBLES, SAME, same_facts
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets
from madeleine.memory.scope import Scope

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
    before for the same text, and nothing was done again. `unembedded`: why it is found by its words only, for now.
    `redacted`: the secrets that were taken out of what was given, by kind."""

    memory: Memory
    status: Literal["stored", "reinforced"]
    repeated: bool = False
    unembedded: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict)

    @property
    def resembles(self) -> MemoryId | None:
        """Of one that was stored: the nearest that says much the same, and was not taken for the same."""
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
        wrote: Callable[[], None] = lambda: None,
        redact: Redact = redact_secrets,
        turn: asyncio.Lock | None = None,
    ) -> None:
        """`wrote` is called after each commit that leaves index marks; it must not block. `turn` is shared with others
        who change memories, so that none goes away between a decision and its commit."""
        self._ledger = ledger
        self._index = index
        self._embedder = embedder
        self._now = now
        self._wrote = wrote
        self._redact = redact
        self._one_at_a_time = turn or asyncio.Lock()

    async def __call__(
        self,
        scope: Scope,
        scenes: Sequence[NewScene],
        *,
        vectors: Mapping[ContentHash, Vector] | None = None,
        permit: Callable[[MemoryId], None] = lambda _: None,
    ) -> list[Stored]:
        """Store all or none, in one transaction; answers in the order of `scenes`. `vectors`: of those that the caller
        has embedded already. `permit` is called with each earlier memory that says the same, before anything is
        written; if it raises, nothing is.

        Secrets in them are redacted before anything else is done. Raises `KeyConflict` if a key was used for another
        text, `InvalidInput` if one is a secret, `StorageFull` and `StorageError`.
        """
        now = self._now()
        cleaned = [redact_scene(scene, self._redact) for scene in scenes]
        drafts = [_Draft(scene, draft(scope, scene, now)) for scene, _ in cleaned]
        texts = [one.memory.embed_text for one in drafts]
        embedded = await embed_cached(self._embedder, self._ledger, texts, vectors)
        # Before the turn is taken: the model may be busy, and nobody's store should wait for that.
        points = await index_points([one.memory for one in drafts], embedded.vectors, self._embedder)
        for one, point in zip(drafts, points, strict=True):
            one.point = point
        # A client that goes away does not stop what it has asked for half-way between ledger and index.
        answers = await asyncio.shield(self._in_turn(scope, drafts, embedded, permit))
        return [replace(one, redacted=found) for one, (_, found) in zip(answers, cleaned, strict=True)]

    async def _in_turn(
        self, scope: Scope, drafts: Sequence[_Draft], embedded: Embedded, permit: Callable[[MemoryId], None]
    ) -> list[Stored]:
        async with self._one_at_a_time:
            return await self._commit(scope, drafts, embedded, permit)

    async def _commit(
        self, scope: Scope, drafts: Sequence[_Draft], embedded: Embedded, permit: Callable[[MemoryId], None]
    ) -> list[Stored]:
        earlier = await self._ledger.keyed(scope, [one.new.key for one in drafts if one.new.key is not None])
        turns = await self._ledger.turns(scope, [one.new.session_id for one in drafts])
        decisions: list[Memory | MemoryId | KeyOutcome] = []
        fresh = _Fresh(len(drafts))
        for one in drafts:
            key, text = one.new.key, one.memory.scene.action
            decided: Memory | MemoryId | KeyOutcome
            if key is not None and (known := earlier.get(key)):
                if known.text != text:
                    raise KeyConflict(key)
                decided = known
            else:
                same, resembles = await self._compare(scope, one, fresh)
                if same is None:
                    one.take_place(turns, resembles)
                    fresh.add(one)
                else:
                    permit(same)
                decided = same or one.memory
                if key is not None:
                    earlier[key] = _keyed(decided, text)
            decisions.append(decided)
        again = [
            reinforcement(scope, one.new, decided, one.memory)
            for one, decided in zip(drafts, decisions, strict=True)
            if isinstance(decided, str)
        ]
        batch = StoreBatch(
            new=tuple(one.memory for one in fresh.drafts),
            reinforcements=tuple(again),
            model=self._embedder.model,
            vectors={one.hash: embedded.vectors[one.hash] for one in fresh.drafts if one.hash in embedded.vectors},
        )
        if batch.new or batch.reinforcements:
            await self._ledger.commit(scope, batch)
        if any(one.themes for one in again):
            self._wrote()
        if points := [one.point for one in fresh.drafts if one.point is not None]:
            self._wrote()
            await index_now(self._index, points)
        return await self._answers(scope, decisions, embedded.unavailable)

    async def _compare(
        self, scope: Scope, one: _Draft, fresh: _Fresh
    ) -> tuple[MemoryId, None] | tuple[None, MemoryId | None]:
        """The one that says the same as the new one: its very text, or cosine ≥ 0.92, and no fact differs. Else the
        nearest of those that say much the same (spec T6)."""
        found = list(fresh.alike(one))
        for other, cosine in found:
            if cosine >= SAME and same_facts(one.memory, other):
                return other.id, None
        near = dict(await self._near(scope, one.legible)) if one.legible is not None else {}
        same_text = await self._ledger.same_text(scope, one.hash)
        near |= dict.fromkeys(same_text, 1.0)
        candidates = await self._ledger.memories(scope, [*same_text, *near]) if near else []
        alive = [(other, near[other.id]) for other in candidates if other.status in LIVING and not other.compressed]
        for other, cosine in alive:
            if cosine >= SAME and same_facts(one.memory, other):
                return other.id, None
        nearest = max([*alive, *found], key=lambda alike: alike[1], default=None)
        return None, nearest[0].id if nearest else None

    async def _near(self, scope: Scope, vector: Vector) -> list[tuple[MemoryId, float]]:
        try:
            near = await self._index.nearest(scope, vector, limit=NEIGHBOURS, statuses=LIVING)
        except IndexUnavailable as error:
            logger.warning("no look for duplicates: %s", error)
            return []
        return [(id_, cosine) for id_, cosine in near if cosine >= RESEMBLES]

    async def _answers(
        self, scope: Scope, decisions: Sequence[Memory | MemoryId | KeyOutcome], unembedded: str
    ) -> list[Stored]:
        ids = [d if isinstance(d, str) else d.memory_id for d in decisions if not isinstance(d, Memory)]
        known = {memory.id: memory for memory in await self._ledger.memories(scope, ids)} if ids else {}
        answers: list[Stored] = []
        for decided in decisions:
            if isinstance(decided, Memory):
                answers.append(Stored(memory=decided, status="stored", unembedded=unembedded))
            elif isinstance(decided, KeyOutcome):
                answers.append(Stored(memory=known[decided.memory_id], status=decided.status, repeated=True))
            else:
                answers.append(Stored(memory=known[decided], status="reinforced"))
        return answers


def redact_scene(new: NewScene, redact: Redact) -> tuple[NewScene, Mapping[str, int]]:
    """The scene without the secrets in it, and how many of each kind there were.

    A key is refused instead: cleaned it would be the same as another one's.
    """
    if new.key is not None and (kinds := redact(new.key).found):
        raise InvalidInput(f"key: looks like a secret ({', '.join(kinds)}). Nothing was stored: use another key.")
    cleaning = Redaction(redact)
    cleaned = replace(
        new,
        scene=cleaning.scene(new.scene),
        feeling=cleaning.text(new.feeling),
        lesson=cleaning.text(new.lesson),
        themes=cleaning.texts(new.themes),
        session_id=cleaning.text(new.session_id),
    )
    return cleaned, cleaning.found


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


class _Draft:
    """A new scene on its way to be a memory."""

    def __init__(self, new: NewScene, memory: Memory) -> None:
        self.new = new
        self.memory = memory
        self.hash = memory.content_hash
        self.point: IndexPoint | None = None

    def take_place(self, turns: dict[str, int], resembles: MemoryId | None) -> None:
        """It becomes the next memory of its session, beside the one that it resembles."""
        self.memory = replace(self.memory, resembles=resembles)
        session = self.new.session_id
        if session:
            self.memory = replace(self.memory, turn=turns[session])
            turns[session] += 1
        if self.point is not None:
            self.point = replace(self.point, memory=self.memory)

    @property
    def legible(self) -> Vector | None:
        """None for a vector that says nothing, which is not in the index either."""
        return self.point.vector if self.point else None


class _Fresh:
    """What of a batch becomes memories, so far, and which of it a further scene is like."""

    def __init__(self, most: int) -> None:
        self.drafts: list[_Draft] = []
        self._most = most
        self._by_hash: dict[ContentHash, Memory] = {}
        self._embedded: list[Memory] = []
        self._rows: NDArray[np.float32] | None = None

    def add(self, one: _Draft) -> None:
        self.drafts.append(one)
        self._by_hash.setdefault(one.hash, one.memory)
        if one.legible is not None:
            if self._rows is None:
                self._rows = np.empty((self._most, len(one.legible)), np.float32)
            self._rows[len(self._embedded)] = one.legible
            self._embedded.append(one.memory)

    def alike(self, one: _Draft) -> Iterator[tuple[Memory, float]]:
        """The one with the same text, then those at cosine ≥ 0.8, nearest first; each with its cosine."""
        if one.hash in self._by_hash:
            yield self._by_hash[one.hash], 1.0
        if one.legible is not None and self._rows is not None:
            cosines = self._rows[: len(self._embedded)] @ one.legible
            for position in sorted(np.flatnonzero(cosines >= RESEMBLES), key=lambda at: -float(cosines[at])):
                yield self._embedded[position], float(cosines[position])


def _keyed(decided: Memory | MemoryId, text: str) -> KeyOutcome:
    if isinstance(decided, Memory):
        return KeyOutcome(decided.id, text, "stored")
    return KeyOutcome(decided, text, "reinforced")
