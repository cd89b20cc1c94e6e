"""Pouring a text in (spec L1): clean, cut, embed in one batch, score, drop what is worth little, route, store.

A text with a key is poured in once. Its chunks have keys of their own, made from it, so that after a crash in the
middle none is stored twice; and when all is done what came of it is noted down, and is the answer from then on. Of
what is forgotten later the answer says only that it is.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Protocol

from madeleine.memory.embedding import embed_cached
from madeleine.memory.errors import InvalidInput, KeyConflict
from madeleine.memory.ingest.centroid import Centroids
from madeleine.memory.ingest.ports import KeyOutcome
from madeleine.memory.ingest.rarity import Rarity
from madeleine.memory.ingest.redaction import Redaction
from madeleine.memory.ingest.store import NewScene, Stored, StoreScenes
from madeleine.memory.model import (
    BeingId,
    Category,
    ContentHash,
    Memory,
    MemoryId,
    ModelName,
    Scene,
    Vector,
    content_hash,
    embed_text,
)
from madeleine.memory.ports import Embedder
from madeleine.memory.rules.dynamics.importance import THRESHOLD, importance, novelty
from madeleine.memory.rules.storing.chunking import LIMITS, ChunkLimits, chunked
from madeleine.memory.rules.storing.routing import route
from madeleine.memory.rules.storing.salience import salience_signals
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets
from madeleine.memory.scope import Scope
from madeleine.memory.text.cleaning import cleaned
from madeleine.memory.text.cutting import last_cut
from madeleine.memory.text.reading import Reading

TOOL = "ingest"
SECTION_CHARS = 16_000
"""Of a longer text so much is cut into chunks at a time: 15 ms, after which the event loop has its turn."""

_Done = asyncio.Future[None]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestText:
    """`category`: of all its chunks, None to tell by what each says. `key`: idempotent; `when` and `actors`: of all."""

    text: str
    session_id: str = ""
    category: Category | None = None
    key: str | None = None
    when: str = ""
    actors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What became of the part of the cleaned text from `start`, of `length` signs without the space around it. Dropped:
    not worth keeping, and not stored. `id`, `category`: of the memory that it is, or that says the same. Forgotten:
    that memory is gone, and so is all that was known of the part. Length 0: where it was cannot be told any more."""

    start: int
    length: int
    status: Literal["stored", "reinforced", "dropped", "forgotten"]
    importance: float
    novelty: float
    salience: float
    id: MemoryId | None = None
    category: Category | None = None
    resembles: MemoryId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """`text`: as it was cut, cleaned and without secrets. `repeated`: the key was used before for the same text, and
    nothing was done again. `unembedded`: why it is found by its words only, for now."""

    text: str
    chunks: tuple[Chunk, ...]
    repeated: bool = False
    unembedded: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict)


class IngestLedger(Protocol):
    async def vectors(self, model: ModelName, hashes: Sequence[ContentHash]) -> dict[ContentHash, Vector]: ...

    async def keyed(self, scope: Scope, keys: Sequence[str]) -> dict[str, KeyOutcome]: ...

    async def memories(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]: ...

    async def outcome(self, scope: Scope, key: str) -> dict[str, Any] | None:
        """What came of the text with this key; None while it has not been poured in to the end."""
        ...

    async def keep_outcome(self, scope: Scope, key: str, outcome: Mapping[str, Any], *, at: datetime) -> None:
        """Durably; the first one stays."""
        ...


@dataclass(frozen=True, slots=True)
class _Scored:
    start: int
    scene: NewScene
    novelty: float
    salience: float
    importance: float


class Ingest:
    """The use case."""

    def __init__(
        self,
        ledger: IngestLedger,
        store: StoreScenes,
        embedder: Embedder,
        centroids: Centroids,
        rarity: Rarity,
        *,
        now: Callable[[], datetime],
        redact: Redact = redact_secrets,
        threshold: float = THRESHOLD,
        limits: ChunkLimits = LIMITS,
    ) -> None:
        self._ledger = ledger
        self._store = store
        self._embedder = embedder
        self._centroids = centroids
        self._rarity = rarity
        self._now = now
        self._redact = redact
        self._threshold = threshold
        self._limits = limits
        self._last: dict[tuple[BeingId, str], _Done] = {}

    async def __call__(self, scope: Scope, given: IngestText) -> Ingested:
        """All chunks that are worth it are stored, in one transaction; those of a session in the order in which its
        texts came, though they are embedded at the same time. Raises `KeyConflict` if the key was used for another
        text, `InvalidInput` if it is a secret, `StorageFull` and `StorageError`."""
        async with self._place_in(scope, given.session_id) as before:
            return await self._pour(scope, given, before)

    async def _pour(self, scope: Scope, given: IngestText, before: _Done | None) -> Ingested:
        cleaning = Redaction(self._redact)
        # Before it is cut: a secret may be longer than a chunk.
        text = await asyncio.to_thread(lambda: cleaning.text(cleaned(given.text)))
        self._refuse_secret(given.key)
        if given.key is not None and (earlier := await self._ledger.outcome(scope, given.key)):
            return await self._as_before(scope, given.key, text, earlier)
        chunks = [chunk async for chunk in self._chunks(text)]
        # In a thread: there may be thousands, at a millisecond each, and the event loop has other calls to answer.
        scenes = await asyncio.to_thread(_scenes, given, chunks)
        texts = [embed_text(one.scene, one.feeling) for one in scenes.values()]
        embedded = await embed_cached(self._embedder, self._ledger, texts)
        if before is not None:
            await asyncio.wait([before])
        scored = await self._score(scope, scenes, embedded.vectors)
        kept = [one for one in scored if one.importance >= self._threshold]
        kept += await self._kept_before(scope, [one for one in scored if one.importance < self._threshold])
        kept.sort(key=lambda one: one.start)
        stored = await self._store(scope, [one.scene for one in kept], vectors=embedded.vectors) if kept else []
        fate = {one.start: _kept(one, found) for one, found in zip(kept, stored, strict=True)}
        poured = Ingested(
            text=text,
            chunks=tuple(fate.get(one.start) or _dropped(one) for one in scored),
            unembedded=embedded.unavailable,
            redacted=cleaning.found,
        )
        if given.key is not None:
            await self._ledger.keep_outcome(scope, given.key, _to_json(poured), at=self._now())
        return poured

    async def _as_before(self, scope: Scope, key: str, text: str, outcome: Mapping[str, Any]) -> Ingested:
        chunks = tuple(Chunk(**one) for one in outcome["chunks"])
        if "digest" not in outcome:
            chunks = await self._what_is_left(scope, key, text, chunks)
        elif outcome["digest"] != _digest(text):
            raise KeyConflict(key)
        return Ingested(text=text, chunks=chunks, repeated=True, redacted=outcome["redacted"])

    async def _what_is_left(self, scope: Scope, key: str, text: str, chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
        """Some of it was forgotten since, and with that what the text was. The parts that are left can be held against
        this one by their keys."""
        ids = [chunk.id for chunk in chunks if chunk.id is not None]
        left = {memory.id for memory in await self._ledger.memories(scope, ids)}
        keys = [
            _key_of(key, position, text[chunk.start : chunk.start + chunk.length])
            for position, chunk in enumerate(chunks)
        ]
        known = await self._ledger.keyed(
            scope, [one for one, chunk in zip(keys, chunks, strict=True) if chunk.id in left]
        )
        if any(
            chunk.status == "stored" and chunk.id in left and one not in known
            for one, chunk in zip(keys, chunks, strict=True)
        ):
            raise KeyConflict(key)
        return tuple(
            chunk
            if one in known
            else _FORGOTTEN
            if chunk.id is not None and chunk.id not in left
            else replace(chunk, start=0, length=0)
            for one, chunk in zip(keys, chunks, strict=True)
        )

    @asynccontextmanager
    async def _place_in(self, scope: Scope, session_id: str) -> AsyncIterator[_Done | None]:
        """When all texts before are done with, whatever became of them; None if there is none under way."""
        if not session_id:
            yield None
            return
        session = scope.being_id, session_id
        before = self._last.get(session)
        done = self._last[session] = asyncio.get_running_loop().create_future()

        def end(_: object = None) -> None:
            done.set_result(None)
            if self._last[session] is done:
                del self._last[session]

        try:
            yield before
        finally:
            if before is None or before.done():
                end()
            else:
                # It has failed or was given up before its turn came: who waits for it waits for the one before.
                before.add_done_callback(end)

    def _refuse_secret(self, key: str | None) -> None:
        if key is not None and (kinds := self._redact(key).found):
            raise InvalidInput(f"key: looks like a secret ({', '.join(kinds)}). Nothing was stored: use another key.")

    async def _chunks(self, text: str) -> AsyncIterator[str]:
        start = 0
        while start < len(text):
            section = text[start : start + 2 * SECTION_CHARS]
            if len(section) == 2 * SECTION_CHARS:
                section = section[: last_cut(section, SECTION_CHARS)]
            for chunk in await chunked(section, self._embedder.count_tokens, self._limits):
                yield chunk
            start += len(section)

    async def _score(
        self, scope: Scope, scenes: Mapping[int, NewScene], vectors: Mapping[ContentHash, Vector]
    ) -> list[_Scored]:
        """What could not be embedded is taken for new."""
        centroid = await self._centroids.of(scope)
        rarities = await self._rarity.of(scope, [one.scene.action for one in scenes.values()])

        def scored(start: int, new: NewScene, rare: float) -> _Scored:
            text = embed_text(new.scene, new.feeling)
            vector = vectors.get(content_hash(text))
            legible = self._embedder.coverage(text)
            new_to_it = 1.0 if vector is None else novelty(vector, centroid, legible=legible)
            salience = salience_signals(Reading(new.scene.action), rarity=rare).salience
            worth = importance(novelty=new_to_it, salience=salience)
            return _Scored(start, replace(new, importance=worth), new_to_it, salience, worth)

        def all_of_them() -> list[_Scored]:
            return [scored(start, new, rare) for (start, new), rare in zip(scenes.items(), rarities, strict=True)]

        return await asyncio.to_thread(all_of_them)

    async def _kept_before(self, scope: Scope, low: Sequence[_Scored]) -> list[_Scored]:
        """Those that an earlier try, which came to no end, has stored: they were worth it before they were known."""
        keyed = await self._ledger.keyed(scope, [one.scene.key for one in low if one.scene.key is not None])
        return [one for one in low if one.scene.key in keyed]


def _scenes(given: IngestText, chunks: Sequence[str]) -> dict[int, NewScene]:
    """By where each begins in the text that the chunks are."""
    found: dict[int, NewScene] = {}
    start = 0
    for position, chunk in enumerate(chunks):
        # Without the space around it; the first line of a block of code keeps its indentation.
        action = chunk.strip("\n").rstrip()
        found[start + len(chunk) - len(chunk.lstrip("\n"))] = NewScene(
            scene=Scene(action=action, actors=given.actors, when=(given.when,) if given.when else ()),
            category=route(Reading(action), given.category),
            session_id=given.session_id,
            key=None if given.key is None else _key_of(given.key, position, action),
            tool=TOOL,
        )
        start += len(chunk)
    return found


def _kept(one: _Scored, stored: Stored) -> Chunk:
    return Chunk(
        start=one.start,
        length=len(one.scene.scene.action),
        status=stored.status,
        importance=one.importance,
        novelty=one.novelty,
        salience=one.salience,
        id=stored.memory.id,
        category=stored.memory.category,
        resembles=stored.resembles,
    )


def _dropped(one: _Scored) -> Chunk:
    return Chunk(
        start=one.start,
        length=len(one.scene.scene.action),
        status="dropped",
        importance=one.importance,
        novelty=one.novelty,
        salience=one.salience,
    )


# --- what is noted down -----------------------------------------------------------------------------------------


def _to_json(poured: Ingested) -> dict[str, Any]:
    """Without any of its text."""
    return {
        "digest": _digest(poured.text),
        "redacted": dict(poured.redacted),
        "chunks": [{name: value for name, value in asdict(one).items() if value is not None} for one in poured.chunks],
    }


_FORGOTTEN = Chunk(start=0, length=0, status="forgotten", importance=0.0, novelty=0.0, salience=0.0)


def _key_of(key: str, position: int, action: str) -> str:
    return f"{key}#{position}-{_digest(action)[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
