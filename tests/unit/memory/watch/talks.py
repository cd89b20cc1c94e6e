"""Conversations over the real ledger, with a mind of the test's own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.chat import ChatRole, NewConversationMessage
from madeleine.memory.index import AwaitQueryVector, CandidatePool, CandidateQuery
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.language_model import Prompt
from madeleine.memory.model import Memory, MemoryId, Scene, Scope, Vector
from madeleine.memory.recall.recall import RecallMemories
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.watch.observe import AgentExtractedMemory, ObserveConversation, ObservedConversationPart
from madeleine.memory.watch.remember import FindMemoriesSimilarToTexts, RememberExtractedMemories
from madeleine.memory.watch.thread import (
    ConversationMemoryExtractor,
    MemoryExtractionConfig,
    MemoryExtractionPollResult,
)
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.qdrant.schema import IndexFingerprint
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from tests.doubles import ADA, Clock, WordEmbedder
from tests.household import NearbyIndex, ScriptedModel, new_store, rows, sqlite_of

Said = tuple[ChatRole, str]
DEFAULT_CONFIG = MemoryExtractionConfig()


def shown(prompt: Prompt) -> list[dict[str, Any]]:
    """The messages as the model is shown them."""
    return [json.loads(line) for line in prompt.text.splitlines() if line.startswith("{")]


def memory(essence: str, *messages: int, **more: Any) -> dict[str, Any]:
    """One of an answer."""
    found = {
        "essence": essence,
        "emotions": [],
        "weight": 0.6,
        "lesson": "",
        "themes": [],
        "messages": list(messages) or [1],
    }
    return found | more


def copies(prompt: Prompt) -> dict[str, Any]:
    """Makes a memory of each new message of more than three words, in its own: up to three."""
    new = [line for line in shown(prompt) if line.get("new") and len(line["text"].split()) > 3]
    return {"memories": [memory(line["text"][:500], line["n"]) for line in new[-3:]]}


class NearIndex(NearbyIndex):
    """What `FindMemoriesSimilarToTexts` needs, too: all that the being has, with cosines. Opened sooner than the real
    one."""

    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]:
        return [0.0] * len(words)

    async def candidates(self, scope: Scope, question: CandidateQuery, vector: AwaitQueryVector) -> CandidatePool:
        found = [point for point in self._points.values() if point.memory.being_id == scope.being_id]
        asked = await vector()
        cosines = [
            float(np.dot(point.vector, asked)) if point.vector is not None and asked is not None else 0.0
            for point in found
        ]
        return CandidatePool(
            tuple(point.memory.id for point in found),
            (),
            np.array(cosines, np.float32),
            np.zeros((len(found), 0), np.float32),
            np.zeros(0, np.float32),
            np.zeros(0, np.bool_),
            (),
            np.zeros((len(found), 0), np.bool_),
            np.zeros(0, np.bool_),
            np.zeros(0, np.float32),
        )

    async def cosines(self, ids: Sequence[MemoryId], vector: Vector) -> NDArray[np.float32]:
        vectors = [self._points[id_].vector for id_ in ids]
        return np.array([0.0 if of is None else float(of @ vector) for of in vectors], np.float32)


class Talks:
    def __init__(self, path: Path, ledger: LedgerRepositories, index: Any, config: MemoryExtractionConfig) -> None:
        self.path = path
        self.ledger = ledger
        self.index = index
        self.clock = Clock()
        self.embedder = WordEmbedder()
        self.store = StoreScenes(ledger.memories, index, self.embedder, now=self.clock)
        self.similar = FindMemoriesSimilarToTexts(ledger.recall, index, self.embedder)
        self.remember = RememberExtractedMemories(
            self.store.store_already_redacted_scenes, ledger.memories, self.similar
        )
        self.observe = ObserveConversation(
            ledger.conversations, self.remember.store_memory_extracted_by_agent, now=self.clock
        )
        self.recall = RecallMemories(ledger.recall, index, self.embedder, ledger.activations, now=self.clock)
        self.thread = self.thread_over(ledger.memories, config)
        self.mind = ScriptedModel(extract=copies)

    def thread_over(
        self, memories: Any, config: MemoryExtractionConfig = DEFAULT_CONFIG
    ) -> ConversationMemoryExtractor:
        """As after a restart."""
        remember = RememberExtractedMemories(self.store.store_already_redacted_scenes, memories, self.similar)
        return ConversationMemoryExtractor(
            self.ledger.conversations, self.ledger.patrols, remember, now=self.clock, config=config
        )

    def answers(self, answer: Callable[[Prompt], Any]) -> None:
        self.mind = ScriptedModel(extract=answer)

    async def say(self, *said: Said, session: str = "s", scope: Scope = ADA, speaker: str = "", **more: Any) -> None:
        messages = [
            NewConversationMessage(role=role, text=text, speaker=speaker if role == "user" else "")
            for role, text in said
        ]
        await self.observe(scope, ObservedConversationPart(session_id=session, messages=messages, **more))

    async def draw(self, *drawn: AgentExtractedMemory, said: Said, session: str = "s", scope: Scope = ADA) -> Any:
        message = NewConversationMessage(role=said[0], text=said[1])
        return await self.observe(
            scope, ObservedConversationPart(session_id=session, messages=[message], memories=drawn)
        )

    async def poll(self) -> MemoryExtractionPollResult:
        return await self.thread.poll(self.mind)

    async def poll_all(self) -> MemoryExtractionPollResult:
        """Until nothing more waits."""
        all_ = MemoryExtractionPollResult()
        while True:
            one = await self.poll()
            all_.counts.update(one.counts)
            if not one.has_more:
                return all_

    async def keep(self, *texts: str, scope: Scope = ADA, **fields: Any) -> list[Memory]:
        stored = await self.store(scope, [NewScene(scene=Scene(action=text), **fields) for text in texts])
        return [one.memory for one in stored]

    async def kept(self, scope: Scope = ADA) -> list[Memory]:
        everything = await self.ledger.index_source.memories_after_id(after=None, limit=1_000)
        return sorted((one for one in everything if one.being_id == scope.being_id), key=lambda one: one.scene.action)

    async def texts(self, scope: Scope = ADA) -> list[str]:
        return [one.scene.action for one in await self.kept(scope)]

    async def recalled(self, query: str, scope: Scope = ADA) -> list[str]:
        recalled = await self.recall(scope, RecallQuery(text=query))
        return [one.scene.action for one, _ in recalled.memories]

    def waits(self) -> list[tuple[str, int, int]]:
        """(session, looked at, of so many) of those that have not been looked at to the end."""
        return rows(
            self.path, "SELECT session_id, watched, messages FROM sessions WHERE watched < messages ORDER BY session_id"
        )

    def links(self) -> list[tuple[int, str]]:
        """(position of a message, what a memory that was drawn from it says)."""
        return rows(
            self.path,
            "SELECT position, action FROM message_memories JOIN messages ON messages.id = message_id "
            "JOIN memories ON memories.id = memory_id ORDER BY position, action",
        )


@asynccontextmanager
async def talks(
    templates: Path, tmp_path: Path, config: MemoryExtractionConfig = DEFAULT_CONFIG, *, real: bool = False
) -> AsyncIterator[Talks]:
    """`real`: with the real index, which can recall."""
    path = new_store(templates, tmp_path / "memory.db")
    async with AsyncExitStack() as stack:
        index: Any = NearIndex()
        if real:
            embedder = WordEmbedder()
            index = await EmbeddedQdrantIndex.open(
                tmp_path / "index", IndexFingerprint(embedder.model_name, embedder.dim)
            )
            stack.push_async_callback(index.close)
        ledger = await stack.enter_async_context(open_ledger(path))
        await sqlite_of(ledger)._writer.sql.exec_driver_sql("PRAGMA synchronous = OFF")
        yield Talks(path, ledger, index, config)
