"""One store a role: everything is told on its day, then the questions are asked on the last one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from benchmarks.truth.material import DAYS, Chain, LookAlike, OlderAnswer, Told
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.proposals import SupersessionCandidateSearch
from madeleine.memory.ingest.store import StoredSceneResult, StoreScenes
from madeleine.memory.model import BeingId, MemoryId, Scene, Scope
from madeleine.memory.recall.config import RecallConfig
from madeleine.memory.recall.recall import RecallMemories
from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.wiring.open_memory import OpenedMemoryStore

FIRST_DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)
WITHIN = 10
"""Memories that a recall may return."""
BATCH_SIZE = 50


@dataclass(eq=False)
class TruthStore:
    """The memories of one being, and the use cases on a clock of its own. `stored`: the answer for each text told."""

    memory: OpenedMemoryStore
    role: str
    clock: datetime = FIRST_DAY
    stored: dict[str, StoredSceneResult] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ledger, index, embedder = self.memory.ledger, self.memory.index, self.memory.embedder
        self.scope = Scope(BeingId(self.role), "benchmark", count_activations=False)
        search = SupersessionCandidateSearch(index)
        self.store = StoreScenes(ledger.memories, index, embedder, now=self.now, search_superseded=search)
        self.recall = RecallMemories(ledger.recall, index, embedder, ledger.activations, now=self.now)

    def now(self) -> datetime:
        return self.clock

    def id_of(self, told: Told) -> MemoryId:
        return self.stored[told.text].memory.id

    async def tell(self, texts: Sequence[Told], supersedes: dict[str, Told]) -> None:
        """Store the texts on their days. `supersedes`: by text, what it takes the place of, said with the store."""
        by_day: dict[int, list[str]] = defaultdict(list)
        for told in texts:
            by_day[told.day].append(told.text)
        for day in sorted(by_day):
            self.clock = FIRST_DAY + timedelta(days=day)
            for start in range(0, len(by_day[day]), BATCH_SIZE):
                batch = by_day[day][start : start + BATCH_SIZE]
                scenes = [self._scene(text, supersedes.get(text)) for text in batch]
                self.stored |= dict(zip(batch, await self.store(self.scope, scenes), strict=True))
        self.clock = FIRST_DAY + timedelta(days=DAYS)

    def _scene(self, text: str, before: Told | None) -> NewScene:
        """Of a session a day, as agents store it."""
        return NewScene(
            scene=Scene(action=text),
            session_id=f"{self.clock:%Y-%m-%d}",
            tool="benchmark",
            supersedes=self.id_of(before) if before else None,
        )

    async def ask(self, question: str, *, config: RecallConfig, as_of: datetime | None = None) -> list[MemoryId]:
        """At most `WITHIN` memories, best first; what is near follows, as an agent reads it (`benchmarks/small`)."""
        query = RecallQuery(text=question, limit=WITHIN, token_budget=100_000)
        if as_of is not None:
            query = replace(query, as_of=as_of)
        result = await replace(self.recall, config=config)(self.scope, query)
        return [*(memory.id for memory, _ in result.memories), *(memory.id for memory in result.near)][:WITHIN]


def place(id_: MemoryId, answer: Sequence[MemoryId]) -> int:
    """From 1; beyond all places for a memory that did not come."""
    return answer.index(id_) + 1 if id_ in answer else WITHIN + 1


def texts_of(
    chains: Sequence[Chain], lookalikes: Sequence[LookAlike], older: Sequence[OlderAnswer], others: Sequence[Told]
) -> list[Told]:
    return [
        *(version for chain in chains for version in chain.versions),
        *(fact for pair in lookalikes for fact in pair.facts),
        *(memory for group in older for memory in group.memories),
        *others,
    ]
