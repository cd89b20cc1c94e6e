"""From what was extracted of a conversation to memories (spec T4 to T6): stored, or reinforced, or known as a quote."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal, Protocol

from madeleine.memory.chat import Message, MessageId
from madeleine.memory.ingest.ports import KeyOutcome
from madeleine.memory.ingest.store import NewScene, Stored
from madeleine.memory.model import LIVING, Memory, MemoryId, Scene
from madeleine.memory.rules.storing.quoting import echoes, restates, share_said, statements_of
from madeleine.memory.scope import Scope
from madeleine.memory.watch.extraction import Extracted, Finding
from madeleine.memory.watch.similar import SimilarMemories, SimilarMemory

OWN_WORDS = 0.5
"""Share of an essence's words from which it is taken for what the person said, and not the assistant alone: a question
is among the messages of its answer, too."""
ECHO = 0.85
"""Cosine from which what the assistant says is a memory in other words, if no fact differs."""

Outcome = Literal["stored", "reinforced", "repeated", "quoted"]


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of an essence. Repeated: an earlier try had done it already, and `status` is what it did. Quoted: the
    assistant said what a memory says, and nothing was done."""

    extracted: Extracted
    outcome: Outcome
    memory_id: MemoryId
    status: Literal["stored", "reinforced"] = "stored"


class RememberLedger(Protocol):
    async def keyed(self, scope: Scope, keys: Sequence[str]) -> dict[str, KeyOutcome]: ...

    async def link(self, scope: Scope, told: Mapping[MemoryId, Sequence[MessageId]]) -> None:
        """Which messages a memory was drawn from, so that they can be forgotten with it. A memory or message that is
        not the being's, or is gone, is left out; what is linked already stays linked."""
        ...


Store = Callable[[Scope, Sequence[NewScene]], Awaitable[list[Stored]]]
"""`memory.ingest.store.StoreScenes`."""


def utc_day(at: datetime) -> date:
    return at.astimezone(UTC).date()


class Remember:
    """The use case. What is done twice is done once: by keys, and then by T6."""

    def __init__(
        self,
        store: Store,
        ledger: RememberLedger,
        similar: SimilarMemories,
        *,
        day_of: Callable[[datetime], date] = utc_day,
    ) -> None:
        """`day_of`: the day that a moment is on where the people are."""
        self._store = store
        self._ledger = ledger
        self._similar = similar
        self._day_of = day_of

    async def __call__(
        self,
        scope: Scope,
        findings: Sequence[Finding],
        *,
        session_id: str,
        tool: str,
        keys: Sequence[str] | None = None,
    ) -> list[Remembered]:
        """All or none, then linked to the messages; answers in order. `keys`: one each, by default from the session,
        the messages and the essence. Raises `StorageFull`, `StorageError`, `IndexUnavailable`."""
        keys = keys or [key_of(session_id, one) for one in findings]
        earlier = await self._ledger.keyed(scope, keys)
        near = await self._similar.near(scope, [one.extracted.essence for one in findings])
        scenes: list[NewScene] = []
        found: list[Remembered | int] = []
        for one, key, known in zip(findings, keys, near, strict=True):
            if again := earlier.get(key):
                found.append(Remembered(one.extracted, "repeated", again.memory_id, again.status))
            elif quote := _quoted(one, known):
                found.append(Remembered(one.extracted, "quoted", quote.id))
            else:
                found.append(len(scenes))
                scenes.append(self._scene(one, known, session_id, tool, key))
        stored = await self._store(scope, scenes) if scenes else []
        results = [
            one if isinstance(one, Remembered) else _remembered(findings[at].extracted, stored[one])
            for at, one in enumerate(found)
        ]
        told: dict[MemoryId, list[MessageId]] = {}
        for result, one in zip(results, findings, strict=True):
            if result.outcome != "quoted":
                told.setdefault(result.memory_id, []).extend(message.id for message in one.sources)
        if told:
            await self._ledger.link(scope, told)
        return results

    async def earlier(self, scope: Scope, keys: Sequence[str]) -> dict[str, MemoryId]:
        """What earlier tries under these keys have led to."""
        return {key: known.memory_id for key, known in (await self._ledger.keyed(scope, keys)).items()}

    async def link(self, scope: Scope, told: Mapping[MemoryId, Sequence[MessageId]]) -> None:
        await self._ledger.link(scope, told)

    def _scene(self, one: Finding, known: Sequence[SimilarMemory], session_id: str, tool: str, key: str) -> NewScene:
        """The essence as a scene; that of a living memory which says it all, so that it is reinforced (spec T6): said
        on another day or by another name of the same person it would not be taken for the same."""
        speakers = speakers_of(one.sources)
        same = next((each.memory for each in known if _alive(each.memory) and _restates(one, each.memory)), None)
        if same is not None:
            return NewScene(
                scene=same.scene,
                feeling=same.feeling,
                category=same.category,
                importance=one.extracted.weight,
                session_id=session_id,
                key=key,
                tool=tool,
            )
        day = [self._day_of(one.sources[-1].at).isoformat()] if one.sources else []
        return NewScene(
            scene=Scene(action=one.extracted.essence, actors=speakers, when=tuple(day), dialogue=one.dialogue),
            importance=one.extracted.weight,
            emotions=one.extracted.emotions,
            lesson=one.extracted.lesson,
            session_id=session_id,
            key=key,
            tool=tool,
        )


def key_of(session_id: str, one: Finding) -> str:
    """The same for the same essence and lesson of the same messages."""
    told = [session_id, [message.position for message in one.sources], one.extracted.essence, one.extracted.lesson]
    return f"observed-{digest(told)}"


def digest(told: object) -> str:
    written = json.dumps(told, ensure_ascii=False)
    return hashlib.sha256(written.encode(errors="surrogatepass")).hexdigest()[:32]


def speakers_of(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(message.speaker for message in messages if message.speaker))


def _quoted(one: Finding, known: Sequence[SimilarMemory]) -> Memory | None:
    """The memory that the assistant only told again, dead or alive."""
    asked = "\n".join(message.text for message in one.sources if message.role == "user")
    if not one.sources or share_said(one.extracted.essence, asked) >= OWN_WORDS:
        return None
    speakers = speakers_of(one.sources)
    for near in known:
        told = statements_of(near.memory)
        if echoes(one.extracted.essence, told, speakers) or (
            near.cosine >= ECHO and echoes(one.extracted.essence, told, speakers, share=0.0)
        ):
            return near.memory
    return None


def _restates(one: Finding, memory: Memory) -> bool:
    if one.extracted.lesson and one.extracted.lesson != memory.lesson:
        return False
    return restates(one.extracted.essence, statements_of(memory), speakers_of(one.sources))


def _alive(memory: Memory) -> bool:
    return memory.status in LIVING and not memory.compressed


def _remembered(extracted: Extracted, stored: Stored) -> Remembered:
    return Remembered(extracted, "repeated" if stored.repeated else stored.status, stored.memory.id, stored.status)
