"""Extracted memories are stored, reinforced, or recognised as quotes (spec T4 to T6)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Literal

from madeleine.memory.chat import ConversationMessage
from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import EmbeddingUnavailable, SourcesForgotten
from madeleine.memory.index import CandidateQuery, RecallIndex
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.ports import MemoryAndIdempotencyKeyReader
from madeleine.memory.ingest.store import StoredSceneResult
from madeleine.memory.model import LIVING_STATUSES, Memory, MemoryId, MemoryStatus, Scene, Scope, Vector
from madeleine.memory.recall.ports import RecallLedger
from madeleine.memory.rules.storing.quoting import (
    person_restates_known_text,
    repeats_known_text,
    share_of_words_in_source,
    statements_of_memory,
)
from madeleine.memory.rules.storing.secrets import CountingRedactor, RedactText, redact_secrets
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.watch.extraction import ExtractedMemory, ExtractedMemoryWithMessages

STATUSES_SEARCHED_FOR_QUOTES: tuple[MemoryStatus, ...] = ("active", "dying", "dead")
MAX_MEMORIES_CHECKED_FOR_QUOTING_BY_WORDS = 40
"""A long message may quote many memories, each with few of its words."""
MAX_QUOTE_CANDIDATES_BY_MEANING = 20
MAX_QUOTE_SEARCH_TEXT_CHARS = 8_000
"""Characters of a text by which memories are looked up."""


@dataclass(frozen=True, slots=True)
class SimilarMemory:
    """`cosine`: 0 where there are no vectors."""

    memory: Memory
    cosine: float


@dataclass(frozen=True, eq=False)
class FindMemoriesSimilarToTexts:
    """Search for memories that a text may quote, dead ones too. Does not count as a recall."""

    ledger: RecallLedger
    index: RecallIndex
    embedder: Embedder

    async def search(self, scope: Scope, texts: Sequence[str]) -> list[list[SimilarMemory]]:
        """The memories nearest to each text, in words and in meaning; in words alone while the embedding model is
        unavailable. Raises `IndexUnavailable`."""
        if not texts:
            return []
        texts = [text[:MAX_QUOTE_SEARCH_TEXT_CHARS] for text in texts]
        vectors: list[Vector | None] = [None] * len(texts)
        with suppress(EmbeddingUnavailable):
            vectors = list(await self.embedder.embed(texts))
        return [
            await self._search_memories_near_text(scope, text, vector)
            for text, vector in zip(texts, vectors, strict=True)
        ]

    async def _search_memories_near_text(self, scope: Scope, text: str, vector: Vector | None) -> list[SimilarMemory]:
        async def known_vector() -> Vector | None:
            return vector

        query = CandidateQuery(
            words=text,
            statuses=STATUSES_SEARCHED_FOR_QUOTES,
            sparse_limit=MAX_MEMORIES_CHECKED_FOR_QUOTING_BY_WORDS,
            dense_limit=MAX_QUOTE_CANDIDATES_BY_MEANING,
        )
        pool = await self.index.candidates(scope, query, known_vector)
        cosines = dict(zip(pool.ids, map(float, pool.cosine), strict=True))
        return [
            SimilarMemory(memory, cosines[memory.id]) for memory in await self.ledger.memories_with_ids(scope, pool.ids)
        ]


OBSERVE_TOOL_NAME = "observe"
MIN_SHARE_OF_ESSENCE_WORDS_SAID_BY_PERSON = 0.5
"""Share of an essence's words from which it counts as said by the person, and not by the assistant alone: a question is
among the messages of its answer, too."""
MIN_QUOTE_COSINE = 0.85
"""Cosine from which what the assistant says is a memory in other words, if no fact differs."""

RememberStatus = Literal["stored", "reinforced", "repeated", "quoted"]


@dataclass(frozen=True, slots=True)
class ExtractedMemoryStoreResult:
    """Outcome for an extracted memory. Repeated: an earlier try stored it, and `status` is the outcome of that. Quoted:
    the assistant repeated a memory, and nothing was done. `redacted`: secrets that were taken out, by kind."""

    extracted: ExtractedMemory
    outcome: RememberStatus
    memory_id: MemoryId
    status: Literal["stored", "reinforced"] = "stored"
    redacted: Mapping[str, int] = field(default_factory=dict)


StoreRedactedScenes = Callable[[Scope, Sequence[NewScene]], Awaitable[list[StoredSceneResult]]]
"""`memory.ingest.store.StoreScenes.store_already_redacted_scenes`."""


def utc_day(at: datetime) -> date:
    return at.astimezone(UTC).date()


@dataclass(frozen=True, eq=False)
class RememberExtractedMemories:
    """The use case. A repeated call stores nothing twice: by keys, and then by T6. `day_of`: the day of a moment where
    the people are."""

    store: StoreRedactedScenes
    ledger: MemoryAndIdempotencyKeyReader
    similar: FindMemoriesSimilarToTexts
    _: KW_ONLY
    day_of: Callable[[datetime], date] = utc_day
    redact: RedactText = redact_secrets

    async def __call__(
        self,
        scope: Scope,
        findings: Sequence[ExtractedMemoryWithMessages],
        session_id: str,
        *,
        tool: str,
        keys: Sequence[str] = (),
    ) -> list[ExtractedMemoryStoreResult]:
        """Store all or none, redacted and linked to their messages; answers in order. `keys`: one each, by default from
        the session, the messages and the essence. Raises `SourcesForgotten` if a message is gone, `StorageFull`,
        `StorageError`, `IndexUnavailable`."""
        redactions = [CountingRedactor(self.redact) for _ in findings]
        findings = [
            _redact_extracted_memory(finding, redaction)
            for finding, redaction in zip(findings, redactions, strict=True)
        ]
        keys = keys or [extracted_memory_idempotency_key(session_id, finding) for finding in findings]
        earlier = await self.ledger.idempotency_key_outcomes(scope, keys)
        similar = await self.similar.search(scope, [finding.extracted.essence for finding in findings])
        results: dict[int, ExtractedMemoryStoreResult] = {}
        scenes: dict[int, NewScene] = {}
        for at, (finding, key, near) in enumerate(zip(findings, keys, similar, strict=True)):
            if again := earlier.get(key):
                results[at] = ExtractedMemoryStoreResult(finding.extracted, "repeated", again.memory_id, again.status)
            elif quote := _known_memory_repeated_by_assistant(finding, near):
                results[at] = ExtractedMemoryStoreResult(finding.extracted, "quoted", quote.id)
            else:
                scenes[at] = self._build_scene_to_store(finding, near, session_id, tool, key)
        stored = await self.store(scope, list(scenes.values())) if scenes else []
        for at, answer in zip(scenes, stored, strict=True):
            outcome: RememberStatus = "repeated" if answer.repeated else answer.status
            results[at] = ExtractedMemoryStoreResult(findings[at].extracted, outcome, answer.memory.id, answer.status)
        return [replace(results[at], redacted=redaction.found) for at, redaction in enumerate(redactions)]

    async def store_memory_extracted_by_agent(
        self,
        scope: Scope,
        session_id: str,
        extracted: ExtractedMemory,
        messages: Sequence[ConversationMessage],
        key: str = "",
    ) -> StoredSceneResult | None:
        """Store a memory that an agent has extracted itself. One that only repeats a memory, dead or alive, changes
        nothing. None if the memory, or every message that it rests on, was forgotten meanwhile."""
        finding = ExtractedMemoryWithMessages(extracted, tuple(messages))
        try:
            [result] = await self(scope, [finding], session_id, tool=OBSERVE_TOOL_NAME, keys=[key] if key else ())
        except SourcesForgotten as error:
            left = [message for message in messages if message.id not in error.ids]
            return await self.store_memory_extracted_by_agent(scope, session_id, extracted, left, key) if left else None
        memories = await self.ledger.memories_with_ids(scope, [result.memory_id])
        if not memories:
            return None
        status = "reinforced" if result.outcome == "quoted" else result.status
        repeated = result.outcome in {"repeated", "quoted"}
        return StoredSceneResult(memory=memories[0], status=status, repeated=repeated, redacted=result.redacted)

    def _build_scene_to_store(
        self,
        finding: ExtractedMemoryWithMessages,
        similar: Sequence[SimilarMemory],
        session_id: str,
        tool: str,
        key: str,
    ) -> NewScene:
        """The essence as a scene; or the scene of a living memory that says all of it, so that this one is reinforced
        (spec T6), and keeps what else is new of it: told shorter it would not count as the same."""
        extracted, sources = finding.extracted, finding.sources
        day = (self.day_of(sources[-1].at).isoformat(),) if sources else ()
        new = NewScene(
            scene=Scene(
                action=extracted.essence, actors=speakers_of_messages(sources), when=day, dialogue=finding.dialogue
            ),
            importance=extracted.weight,
            emotions=extracted.emotions,
            lesson=extracted.lesson,
            themes=extracted.themes,
            category="procedural" if _is_preference_of_person(finding) else "episodic",
            session_id=session_id,
            key=key,
            tool=tool,
            sources=tuple(message.id for message in sources),
        )
        same = next((each.memory for each in similar if _restates_living_memory(finding, each.memory)), None)
        if same is None:
            return new
        return replace(new, scene=same.scene, feeling=same.feeling, category=same.category)


def _redact_extracted_memory(
    finding: ExtractedMemoryWithMessages, redaction: CountingRedactor
) -> ExtractedMemoryWithMessages:
    extracted = redaction.redact_fields(finding.extracted, "essence", "lesson", "themes")
    return replace(redaction.redact_fields(finding, "dialogue"), extracted=extracted)


def extracted_memory_idempotency_key(session_id: str, finding: ExtractedMemoryWithMessages) -> str:
    """The same for the same essence and lesson of the same messages."""
    positions = [message.position for message in finding.sources]
    return f"observed-{json_digest([session_id, positions, finding.extracted.essence, finding.extracted.lesson])}"


def json_digest(value: object) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return hashlib.sha256(written.encode(errors="surrogatepass")).hexdigest()[:32]


def speakers_of_messages(messages: Sequence[ConversationMessage]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(message.speaker for message in messages if message.speaker))


def _known_memory_repeated_by_assistant(
    finding: ExtractedMemoryWithMessages, similar: Sequence[SimilarMemory]
) -> Memory | None:
    """The memory, dead or alive, that the assistant only repeated."""
    essence = finding.extracted.essence
    asked = "\n".join(message.text for message in finding.sources if message.role == "user")
    if not finding.sources or share_of_words_in_source(essence, asked) >= MIN_SHARE_OF_ESSENCE_WORDS_SAID_BY_PERSON:
        return None
    speakers = speakers_of_messages(finding.sources)
    for each in similar:
        statements = statements_of_memory(each.memory)
        if repeats_known_text(essence, statements, speakers) or (
            each.cosine >= MIN_QUOTE_COSINE and repeats_known_text(essence, statements, speakers, share=0.0)
        ):
            return each.memory
    return None


def _is_preference_of_person(finding: ExtractedMemoryWithMessages) -> bool:
    """Of the person, and never what an assistant alone said (ruling 15)."""
    said_by_person = any(message.role == "user" for message in finding.sources) or not finding.sources
    return said_by_person and AnalysedText(finding.extracted.essence).is_preference_text


def _restates_living_memory(finding: ExtractedMemoryWithMessages, memory: Memory) -> bool:
    """Whether a living memory, true still, says all of the finding; the lesson may be another one (ruling 13)."""
    if memory.status not in LIVING_STATUSES or memory.compressed or memory.truth != "current":
        return False
    essence = finding.extracted.essence
    return person_restates_known_text(essence, statements_of_memory(memory), speakers_of_messages(finding.sources))
