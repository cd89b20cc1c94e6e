"""One life over the real use cases, on a clock of its own."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from benchmarks import data_sets
from benchmarks.data_sets import Document
from benchmarks.life import obedient_mind
from benchmarks.life.lives import Entry, LifeSession, noon_of
from madeleine.memory.chat import NewConversationMessage
from madeleine.memory.ingest.being_statistics import BeingCentroids, TextRarityScorer
from madeleine.memory.ingest.ingest import IngestText, TextIngestRequest
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.model import BeingId, MemoryId, Scope
from madeleine.memory.recall.recall import RecallMemories
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.watch.extraction import ExtractedMemory
from madeleine.memory.watch.observe import AgentExtractedMemory, ObserveConversation, ObservedConversationPart
from madeleine.memory.watch.remember import FindMemoriesSimilarToTexts, RememberExtractedMemories
from madeleine.patrol.context import PatrolServices
from madeleine.patrol.deciding.resolution import MAX_BRIEF_DECISION_REQUESTS_BYTES
from madeleine.patrol.report import PatrolReport
from madeleine.patrol.run import RunPatrols
from madeleine.server.wiring.open_memory import OpenedMemoryStore

SCOPE = Scope(BeingId("life"), "benchmark")
UNCOUNTED = replace(SCOPE, count_activations=False)
RECALLED_TURNS = 3
"""First turns of each session for which the being recalls, as a hook does."""
BYTES_PER_TOKEN = 3.2
"""Of JSON in English, with ids; so is estimated what an answer of a patrol costs its reader."""
MAX_DECIDE_CALLS = 20
"""Calls with decisions a night: the mind goes on as long as something is offered, which is far less in all but a few
nights of hundreds of turns."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a being lives. Without `patrols` nothing is maintained; without `decides` the offers stay open."""

    name: str
    patrols: bool = True
    decides: bool = True


NO_PATROL = Way("no patrol", patrols=False, decides=False)
NOBODY = Way("nobody decides", decides=False)
OBEDIENT = Way("obedient mind")
WAYS = (NO_PATROL, NOBODY, OBEDIENT)


@dataclass(frozen=True, slots=True)
class Night:
    """`tokens`: of all answers of the patrol; `largest`: of the longest; `decided`: decisions carried out, declined
    ones included; `open`: those that were left."""

    tokens: float
    largest: float
    decided: int
    open: int


@dataclass
class LifeRecord:
    nights: list[Night] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """What the patrols did, by step and name."""
    refused: Counter[str] = field(default_factory=Counter)
    """Reasons why a decision was refused."""


class LivedStore:
    """`memories_of`: the memories that each turn became, by the turn's id."""

    def __init__(self, memory: OpenedMemoryStore) -> None:
        self.memory = memory
        self.clock = datetime.min
        ledger, index, embedder = memory.ledger, memory.index, memory.embedder
        self._store = StoreScenes(ledger.memories, index, embedder, now=self.now)
        self._ingest = IngestText(
            ledger.memories,
            self._store,
            embedder,
            BeingCentroids(ledger.recall, embedder),
            TextRarityScorer(index),
            now=self.now,
        )
        similar = FindMemoriesSimilarToTexts(ledger.recall, index, embedder)
        remember = RememberExtractedMemories(self._store.store_already_redacted_scenes, ledger.memories, similar)
        self._observe = ObserveConversation(
            ledger.conversations, remember.store_memory_extracted_by_agent, now=self.now
        )
        self.recall = RecallMemories(ledger.recall, index, embedder, ledger.activations, now=self.now)
        services = PatrolServices(ledger=ledger.patrols, word_idf=index, embedder=embedder, now=self.now)
        self._patrol = RunPatrols(services, ledger.activations)
        self.memories_of: dict[str, list[MemoryId]] = defaultdict(list)
        self.record = LifeRecord()

    def now(self) -> datetime:
        return self.clock

    async def live_session(self, session: LifeSession, entry: Entry) -> None:
        """Take in all turns of a session at noon, and recall for its first turns as they come."""
        self.clock = noon_of(session.day)
        for turn in session.turns[:RECALLED_TURNS]:
            await self.recall(SCOPE, RecallQuery(text=turn.text[:1_000]))
        match entry:
            case "store":
                await self._store_turns(session.turns)
            case "ingest":
                for turn in session.turns:
                    self.clock += timedelta(minutes=1)  # each is a text of its own
                    await self._ingest_turn(turn)
            case "observe":
                await self._observe_session(session)

    async def _store_turns(self, turns: Sequence[Document]) -> None:
        stored = await self._store(SCOPE, [data_sets.scene(turn) for turn in turns])
        for turn, answer in zip(turns, stored, strict=True):
            self.memories_of[turn.id].append(answer.memory.id)

    async def _ingest_turn(self, turn: Document) -> None:
        """The speaker is the text's own first word: `user` and `assistant`."""
        new = data_sets.scene(turn)
        request = TextIngestRequest(
            text=turn.text, session_id=turn.session, key=turn.id, when=turn.time, actors=new.scene.actors
        )
        outcome = await self._ingest(SCOPE, request)
        self.memories_of[turn.id] += [chunk.id for chunk in outcome.chunks if chunk.id]

    async def _observe_session(self, session: LifeSession) -> None:
        """Each turn is observed word for word, and is a memory that the agent has made of it itself."""
        messages = [
            NewConversationMessage(role="user", text=turn.text, at=self.clock, key=turn.id) for turn in session.turns
        ]
        memories = [
            AgentExtractedMemory(ExtractedMemory(turn.text, emotions=(), weight=0.5), sources=(turn.id,))
            for turn in session.turns
        ]
        answer = await self._observe(
            SCOPE, ObservedConversationPart(session_id=session.id, messages=messages, memories=memories)
        )
        for turn, stored in zip(session.turns, answer.memories, strict=True):
            if stored:
                self.memories_of[turn.id].append(stored.memory.id)

    async def run_night(self, day: int, way: Way) -> None:
        """A patrol, and the decisions on what it offers."""
        if not way.patrols:
            return
        self.clock = noon_of(day) + timedelta(hours=11)
        report = await self._patrol(
            SCOPE, offer_pending=way.decides, pending_bytes=MAX_BRIEF_DECISION_REQUESTS_BYTES if way.decides else 0
        )
        self._count(report)
        sizes = [_tokens(report)]
        decided = 0
        for _ in range(MAX_DECIDE_CALLS if way.decides else 0):
            decisions = obedient_mind.decide(report.pending)
            if not decisions:
                break
            report = await self._patrol.apply_decisions_and_offer_more(
                SCOPE, decisions, pending_bytes=MAX_BRIEF_DECISION_REQUESTS_BYTES
            )
            self._count(report)
            decided += sum(not result.refused for result in report.decided)
            sizes.append(_tokens(report))
        left = len(report.pending) + len(report.still_open) + report.waiting_count
        self.record.nights.append(Night(sum(sizes), max(sizes), decided, left))
        await self.memory.index_keeper.index_marked_memories()

    def _count(self, report: PatrolReport) -> None:
        for step in report.steps:
            if step.failed:
                raise RuntimeError(f"the step {step.name} failed: {step.failed}")
            self.record.counts.update({f"{step.name}.{name}": count for name, count in step.counts.items()})
        for result in report.decided:
            self.record.counts.update({f"decided.{name}": count for name, count in result.counts.items()})
            if result.refused:
                self.record.refused[result.refused] += 1


def _tokens(report: PatrolReport) -> float:
    return len(json.dumps(report.as_json_without_empty_steps(), ensure_ascii=False).encode()) / BYTES_PER_TOKEN
