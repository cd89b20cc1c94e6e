"""Ingest a text (spec L1): redact, clean, chunk, embed in one batch, score, drop chunks of little importance, store.

A text with a key is ingested once. Its chunks have keys of their own, derived from it, so that after a crash in the
middle none is stored twice. The outcome is recorded at the end and is the answer from then on, without the chunks that
were forgotten since.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Literal
from weakref import WeakValueDictionary

from madeleine.memory.embedding import Embedder, embed_with_cache
from madeleine.memory.errors import KeyConflict
from madeleine.memory.ingest.being_statistics import BeingCentroids, TextRarityScorer
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.ports import IngestLedger
from madeleine.memory.ingest.store import StoredSceneResult, StoreScenes
from madeleine.memory.model import (
    BeingId,
    Category,
    ContentHash,
    MemoryId,
    Scene,
    Scope,
    Vector,
    content_hash,
    embedded_text,
)
from madeleine.memory.rules.storing.chunk_scoring import (
    MIN_STORED_CHUNK_IMPORTANCE,
    chunk_category,
    chunk_importance,
    chunk_novelty_against_centroid,
    chunk_salience,
)
from madeleine.memory.rules.storing.chunking import DEFAULT_CHUNK_TOKEN_LIMITS, ChunkTokenLimits, split_into_chunks
from madeleine.memory.rules.storing.secrets import (
    CountingRedactor,
    RedactText,
    redact_secrets,
    refuse_value_that_is_secret,
)
from madeleine.memory.text.normalization import normalize_unicode_and_whitespace
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.sentences import best_cut_position

INGEST_TOOL_NAME = "ingest"
CHUNKING_SECTION_CHARS = 16_000
"""Characters of a long text that are chunked at a time: 15 ms, after which the event loop has its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextIngestRequest:
    """`category`, `when` and `actors` apply to all chunks; without a category each chunk gets its own. `key` makes the
    call idempotent."""

    text: str
    session_id: str = ""
    category: Category | None = None
    key: str | None = None
    when: str = ""
    actors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedChunk:
    """The outcome for `length` characters of the cleaned text from `start`; length 0 if the place is no longer known.
    Dropped: not important enough. `id`, `category`: of the memory that the chunk became or reinforced. Forgotten: that
    memory is erased, and all that was known of the chunk."""

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
class IngestedTextWithChunks:
    """`text`: redacted and cleaned. `repeated`: the key was used before for the same text, and nothing was done.
    `embedding_error`: why the memories are found by their words only, for now."""

    text: str
    chunks: tuple[IngestedChunk, ...]
    repeated: bool = False
    embedding_error: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class IngestText:
    """The use case."""

    ledger: IngestLedger
    store: StoreScenes
    embedder: Embedder
    centroids: BeingCentroids
    rarity: TextRarityScorer
    _: KW_ONLY
    now: Callable[[], datetime]
    redact: RedactText = redact_secrets
    threshold: float = MIN_STORED_CHUNK_IMPORTANCE
    limits: ChunkTokenLimits = DEFAULT_CHUNK_TOKEN_LIMITS
    _session_locks: WeakValueDictionary[tuple[BeingId, str], asyncio.Lock] = field(
        default_factory=WeakValueDictionary, init=False
    )

    async def __call__(self, scope: Scope, request: TextIngestRequest) -> IngestedTextWithChunks:
        """Store all chunks that are important enough, in one transaction. Texts of a session are embedded at the same
        time, but stored in the order in which they came. Raises `KeyConflict` if the key was used for another text,
        `InvalidInput` if it is a secret, `StorageFull` and `StorageError`."""
        async with self._storing_turn_in_session(scope, request.session_id) as turn:
            return await self._ingest(scope, request, turn)

    async def _ingest(self, scope: Scope, request: TextIngestRequest, turn: Awaitable[Any]) -> IngestedTextWithChunks:
        refuse_value_that_is_secret("key", request.key or "", self.redact)
        redaction = CountingRedactor(self.redact)
        # Before it is chunked: a secret may be longer than a chunk.
        text = await asyncio.to_thread(lambda: redaction.redact_text(normalize_unicode_and_whitespace(request.text)))
        request = redaction.redact_fields(request, "session_id", "when", "actors")
        if request.key is not None and (earlier := await self.ledger.earlier_ingest_outcome(scope, request.key)):
            return await self._outcome_of_repeated_ingest(scope, request.key, text, earlier)
        pieces = [piece async for piece in self._split_text_into_chunks(text)]
        # In a thread: there may be thousands, at a millisecond each, and the event loop has other calls to answer.
        scenes = await asyncio.to_thread(_chunk_scenes_by_start, request, pieces)
        texts = [embedded_text(new.scene, new.feeling) for new in scenes.values()]
        embedded = await embed_with_cache(self.embedder, self.ledger, texts)
        await turn
        scored = await self._score_chunks(scope, scenes, embedded.vectors)
        low_keys = [new.key for chunk, new in scored if chunk.importance < self.threshold and new.key is not None]
        # Stored by an earlier try that did not end: they were important enough before they were known.
        stored_before = await self.ledger.idempotency_key_outcomes(scope, low_keys)
        kept = [(chunk, new) for chunk, new in scored if chunk.importance >= self.threshold or new.key in stored_before]
        new_scenes = [new for _, new in kept]
        stored = (
            await self.store.store_already_redacted_scenes(scope, new_scenes, vectors=embedded.vectors) if kept else []
        )
        stored_at = {chunk.start: answer for (chunk, _), answer in zip(kept, stored, strict=True)}
        ingested = IngestedTextWithChunks(
            text=text,
            chunks=tuple(_chunk_with_storage_outcome(chunk, stored_at.get(chunk.start)) for chunk, _ in scored),
            embedding_error=embedded.error_text,
            redacted=redaction.found,
        )
        if request.key is not None:
            await self.ledger.record_ingest_outcome(
                scope, request.key, _ingest_outcome_to_json(ingested), at=self.now()
            )
        return ingested

    async def _outcome_of_repeated_ingest(
        self, scope: Scope, key: str, text: str, outcome: Mapping[str, Any]
    ) -> IngestedTextWithChunks:
        chunks = tuple(IngestedChunk(**chunk) for chunk in outcome["chunks"])
        if "digest" not in outcome:
            chunks = await self._outcomes_after_chunks_forgotten(scope, key, text, chunks)
        elif outcome["digest"] != _text_digest(text):
            raise KeyConflict(key)
        return IngestedTextWithChunks(text=text, chunks=chunks, repeated=True, redacted=outcome["redacted"])

    async def _outcomes_after_chunks_forgotten(
        self, scope: Scope, key: str, text: str, chunks: Sequence[IngestedChunk]
    ) -> tuple[IngestedChunk, ...]:
        """The outcome after some chunks were forgotten, and with them the text's digest. The keys of the remaining
        chunks prove that the text is the same. Raises `KeyConflict`."""
        ids = [chunk.id for chunk in chunks if chunk.id is not None]
        existing = {memory.id for memory in await self.ledger.memories_with_ids(scope, ids)}
        keys = [
            _idempotency_key_of_chunk(key, position, text[chunk.start : chunk.start + chunk.length])
            for position, chunk in enumerate(chunks)
        ]
        existing_keys = [chunk_key for chunk_key, chunk in zip(keys, chunks, strict=True) if chunk.id in existing]
        known = await self.ledger.idempotency_key_outcomes(scope, existing_keys)
        remaining: list[IngestedChunk] = []
        for chunk_key, chunk in zip(keys, chunks, strict=True):
            if chunk_key in known:
                remaining.append(chunk)
            elif chunk.id is not None and chunk.id not in existing:
                remaining.append(_OUTCOME_OF_FORGOTTEN_CHUNK)
            elif chunk.status == "stored":
                raise KeyConflict(key)
            else:
                remaining.append(replace(chunk, start=0, length=0))
        return tuple(remaining)

    @asynccontextmanager
    async def _storing_turn_in_session(self, scope: Scope, session_id: str) -> AsyncIterator[Awaitable[Any]]:
        """Yields what is to be awaited before storing: all earlier texts of the session have ended then, whatever
        their outcome. A text without a session waits for nobody."""
        lock = asyncio.Lock()
        if session_id:
            lock = self._session_locks.setdefault((scope.being_id, session_id), lock)
        turn = asyncio.create_task(lock.acquire())
        try:
            yield turn
        finally:
            if turn.done() and not turn.cancelled():
                lock.release()
            else:
                turn.cancel()

    async def _split_text_into_chunks(self, text: str) -> AsyncIterator[str]:
        start = 0
        while start < len(text):
            section = text[start : start + 2 * CHUNKING_SECTION_CHARS]
            if len(section) == 2 * CHUNKING_SECTION_CHARS:
                section = section[: best_cut_position(section, CHUNKING_SECTION_CHARS)]
            for piece in await split_into_chunks(section, self.embedder.count_tokens, self.limits):
                yield piece
            start += len(section)

    async def _score_chunks(
        self, scope: Scope, scenes: Mapping[int, NewScene], vectors: Mapping[ContentHash, Vector]
    ) -> list[tuple[IngestedChunk, NewScene]]:
        """Chunks, dropped as yet, and their scenes, with importance. A chunk without a vector counts as new."""
        centroid = await self.centroids.centroid(scope)
        rarities = await self.rarity.rarities(scope, [new.scene.action for new in scenes.values()])

        def score(start: int, new: NewScene, rarity: float) -> tuple[IngestedChunk, NewScene]:
            text = embedded_text(new.scene, new.feeling)
            vector = vectors.get(content_hash(text))
            newness = (
                1.0 if vector is None else chunk_novelty_against_centroid(vector, centroid, self.embedder.vector_space)
            )
            salient = chunk_salience(AnalysedText(new.scene.action), rarity=rarity)
            worth = chunk_importance(novelty=newness, salience=salient)
            length = len(new.scene.action)
            chunk = IngestedChunk(
                start=start, length=length, status="dropped", importance=worth, novelty=newness, salience=salient
            )
            return chunk, replace(new, importance=worth)

        return await asyncio.to_thread(lambda: list(map(score, scenes.keys(), scenes.values(), rarities)))


def _chunk_scenes_by_start(request: TextIngestRequest, pieces: Sequence[str]) -> dict[int, NewScene]:
    """Scenes by their start in the text that the pieces make up."""
    scenes: dict[int, NewScene] = {}
    start = 0
    for position, piece in enumerate(pieces):
        # Without the space around it; the first line of a block of code keeps its indentation.
        action = piece.strip("\n").rstrip()
        scenes[start + len(piece) - len(piece.lstrip("\n"))] = NewScene(
            scene=Scene(action=action, actors=request.actors, when=(request.when,) if request.when else ()),
            category=request.category or chunk_category(AnalysedText(action)),
            session_id=request.session_id,
            key=None if request.key is None else _idempotency_key_of_chunk(request.key, position, action),
            tool=INGEST_TOOL_NAME,
        )
        start += len(piece)
    return scenes


def _chunk_with_storage_outcome(chunk: IngestedChunk, stored: StoredSceneResult | None) -> IngestedChunk:
    if stored is None:
        return chunk
    memory = stored.memory
    return replace(
        chunk, status=stored.status, id=memory.id, category=memory.category, resembles=stored.resembled_memory_id
    )


# --- the recorded outcome ----------------------------------------------------------------------------------------


def _ingest_outcome_to_json(ingested: IngestedTextWithChunks) -> dict[str, Any]:
    """The outcome without any of the text."""
    chunks = [asdict(chunk) for chunk in ingested.chunks]
    return {
        "digest": _text_digest(ingested.text),
        "redacted": dict(ingested.redacted),
        "chunks": [{name: value for name, value in chunk.items() if value is not None} for chunk in chunks],
    }


_OUTCOME_OF_FORGOTTEN_CHUNK = IngestedChunk(
    start=0, length=0, status="forgotten", importance=0.0, novelty=0.0, salience=0.0
)


def _idempotency_key_of_chunk(key: str, position: int, action: str) -> str:
    return f"{key}#{position}-{_text_digest(action)[:8]}"


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
