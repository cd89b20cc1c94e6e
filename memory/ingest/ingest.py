"""Ingesting a text (spec L1): redact, clean, cut, embed in one batch, score, drop what is worth little, route, store.

A text with a key is ingested once. Its chunks have keys of their own, made from it, so that after a crash in the middle
none is stored twice. The outcome is recorded at the end, and is the answer from then on; of chunks that were forgotten
since, it says only that.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Protocol

from madeleine.memory.embedding import Embedder, embed_cached
from madeleine.memory.errors import KeyConflict
from madeleine.memory.ingest.centroid import Centroids
from madeleine.memory.ingest.ports import KeyOutcome
from madeleine.memory.ingest.rarity import Rarity
from madeleine.memory.ingest.redaction import Redaction, refuse_secret
from madeleine.memory.ingest.store import NewScene, Stored, StoreScenes
from madeleine.memory.model import (
    BeingId,
    Category,
    ContentHash,
    Memory,
    MemoryId,
    ModelName,
    Scene,
    Scope,
    Vector,
    content_hash,
    embed_text,
)
from madeleine.memory.rules.dynamics.importance import MIN_IMPORTANCE, importance, novelty
from madeleine.memory.rules.storing.chunking import DEFAULT_LIMITS, ChunkLimits, chunked
from madeleine.memory.rules.storing.routing import route
from madeleine.memory.rules.storing.salience import salience_signals
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets
from madeleine.memory.text.normalization import clean_text
from madeleine.memory.text.reading import Reading
from madeleine.memory.text.sentences import last_break

INGEST_TOOL = "ingest"
SECTION_CHARS = 16_000
"""Of a longer text so much is cut into chunks at a time: 15 ms, after which the event loop has its turn."""

_Done = asyncio.Future[None]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestText:
    """`category`: of all chunks, None to route each by what it says. `key`: idempotency. `when`, `actors`: of all
    chunks."""

    text: str
    session_id: str = ""
    category: Category | None = None
    key: str | None = None
    when: str = ""
    actors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What became of `length` characters of the cleaned text from `start`. Dropped: not worth storing. `id`,
    `category`: of the memory that it is, or that it reinforced. Forgotten: that memory is erased, and with it all
    that was known of the chunk. Length 0: its place is not known any more."""

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
    """`text`: redacted and cleaned. `repeated`: the key was used before for the same text, and nothing was done.
    `unembedded`: why the memories are found by their words only, for now."""

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
        """The outcome of the text with this key; None until the text is ingested to the end."""
        ...

    async def keep_outcome(self, scope: Scope, key: str, outcome: Mapping[str, Any], *, at: datetime) -> None:
        """Durably; the first one stays."""
        ...


@dataclass(frozen=True, slots=True)
class _ScoredChunk:
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
        threshold: float = MIN_IMPORTANCE,
        limits: ChunkLimits = DEFAULT_LIMITS,
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
            return await self._ingest(scope, given, before)

    async def _ingest(self, scope: Scope, given: IngestText, before: _Done | None) -> Ingested:
        refuse_secret("key", given.key or "", self._redact)
        redaction = Redaction(self._redact)
        # Before it is cut: a secret may be longer than a chunk.
        text = await asyncio.to_thread(lambda: redaction.text(clean_text(given.text)))
        given = replace(
            given,
            session_id=redaction.text(given.session_id),
            when=redaction.text(given.when),
            actors=redaction.texts(given.actors),
        )
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
        scenes_kept = [one.scene for one in kept]
        stored = await self._store.store_redacted(scope, scenes_kept, vectors=embedded.vectors) if kept else []
        stored_at = {one.start: memory for one, memory in zip(kept, stored, strict=True)}
        ingested = Ingested(
            text=text,
            chunks=tuple(_chunk(one, stored_at.get(one.start)) for one in scored),
            unembedded=embedded.unavailable,
            redacted=redaction.found,
        )
        if given.key is not None:
            await self._ledger.keep_outcome(scope, given.key, _to_json(ingested), at=self._now())
        return ingested

    async def _as_before(self, scope: Scope, key: str, text: str, outcome: Mapping[str, Any]) -> Ingested:
        chunks = tuple(Chunk(**one) for one in outcome["chunks"])
        if "digest" not in outcome:
            chunks = await self._remaining(scope, key, text, chunks)
        elif outcome["digest"] != _digest(text):
            raise KeyConflict(key)
        return Ingested(text=text, chunks=chunks, repeated=True, redacted=outcome["redacted"])

    async def _remaining(self, scope: Scope, key: str, text: str, chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
        """The outcome after some chunks were forgotten, and with them the text's digest. That the text is the same
        shows in the keys of the remaining chunks. Raises `KeyConflict`."""
        ids = [chunk.id for chunk in chunks if chunk.id is not None]
        existing = {memory.id for memory in await self._ledger.memories(scope, ids)}
        keys = [
            _key_of(key, position, text[chunk.start : chunk.start + chunk.length])
            for position, chunk in enumerate(chunks)
        ]
        existing_keys = [one for one, chunk in zip(keys, chunks, strict=True) if chunk.id in existing]
        known = await self._ledger.keyed(scope, existing_keys)
        remaining: list[Chunk] = []
        for chunk_key, chunk in zip(keys, chunks, strict=True):
            if chunk_key in known:
                remaining.append(chunk)
            elif chunk.id is not None and chunk.id not in existing:
                remaining.append(_FORGOTTEN)
            elif chunk.status == "stored":
                raise KeyConflict(key)
            else:
                remaining.append(replace(chunk, start=0, length=0))
        return tuple(remaining)

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

    async def _chunks(self, text: str) -> AsyncIterator[str]:
        start = 0
        while start < len(text):
            section = text[start : start + 2 * SECTION_CHARS]
            if len(section) == 2 * SECTION_CHARS:
                section = section[: last_break(section, SECTION_CHARS)]
            for chunk in await chunked(section, self._embedder.count_tokens, self._limits):
                yield chunk
            start += len(section)

    async def _score(
        self, scope: Scope, scenes: Mapping[int, NewScene], vectors: Mapping[ContentHash, Vector]
    ) -> list[_ScoredChunk]:
        """What could not be embedded is taken for new."""
        centroid = await self._centroids.of(scope)
        rarities = await self._rarity.of(scope, [one.scene.action for one in scenes.values()])

        def scored(start: int, new: NewScene, rare: float) -> _ScoredChunk:
            text = embed_text(new.scene, new.feeling)
            vector = vectors.get(content_hash(text))
            legible = self._embedder.coverage(text)
            new_to_it = 1.0 if vector is None else novelty(vector, centroid, legible=legible)
            salience = salience_signals(Reading(new.scene.action), rarity=rare).salience
            worth = importance(novelty=new_to_it, salience=salience)
            return _ScoredChunk(start, replace(new, importance=worth), new_to_it, salience, worth)

        def all_of_them() -> list[_ScoredChunk]:
            return [scored(start, new, rare) for (start, new), rare in zip(scenes.items(), rarities, strict=True)]

        return await asyncio.to_thread(all_of_them)

    async def _kept_before(self, scope: Scope, low: Sequence[_ScoredChunk]) -> list[_ScoredChunk]:
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
            tool=INGEST_TOOL,
        )
        start += len(chunk)
    return found


def _chunk(scored: _ScoredChunk, stored: Stored | None) -> Chunk:
    return Chunk(
        start=scored.start,
        length=len(scored.scene.scene.action),
        status=stored.status if stored else "dropped",
        importance=scored.importance,
        novelty=scored.novelty,
        salience=scored.salience,
        id=stored.memory.id if stored else None,
        category=stored.memory.category if stored else None,
        resembles=stored.resembles if stored else None,
    )


# --- the recorded outcome ----------------------------------------------------------------------------------------


def _to_json(ingested: Ingested) -> dict[str, Any]:
    """Without any of its text."""
    chunks = [asdict(chunk) for chunk in ingested.chunks]
    return {
        "digest": _digest(ingested.text),
        "redacted": dict(ingested.redacted),
        "chunks": [{name: value for name, value in chunk.items() if value is not None} for chunk in chunks],
    }


_FORGOTTEN = Chunk(start=0, length=0, status="forgotten", importance=0.0, novelty=0.0, salience=0.0)


def _key_of(key: str, position: int, action: str) -> str:
    return f"{key}#{position}-{_digest(action)[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
