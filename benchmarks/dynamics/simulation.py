"""One simulated year over the real use cases, on a clock of its own."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from rich.progress import Progress

from benchmarks.dynamics import rule_based_agent
from benchmarks.dynamics.plan import YearPlan
from madeleine.inference.stems import stem_english_word
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.keyword_search import KeywordQuery
from madeleine.memory.model import BeingId, Memory, MemoryId, Scope
from madeleine.memory.recall.recall import RecallMemories
from madeleine.memory.recall.search import (
    BrowseMemories,
    SearchByTagsFromMessage,
    SearchStoredTexts,
    split_search_terms,
)
from madeleine.memory.recall.selection import RecallQuery
from madeleine.patrol.context import PatrolServices
from madeleine.patrol.report import PATROL_STEPS, PatrolReport, PatrolStepName
from madeleine.patrol.run import RunPatrols
from madeleine.server.wiring.open_memory import OpenedMemoryStore

SCOPE = Scope(BeingId("year"), "benchmark")
UNCOUNTED = replace(SCOPE, count_activations=False)
"""Queries in this scope count as no recall."""
TOP = 5
MOST_DECISION_CALLS = 8
"""Calls of `decide` a night; each answers as many open decisions as one answer of the tool holds."""


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    without: frozenset[PatrolStepName] = frozenset()
    decides: bool = True

    @property
    def steps(self) -> tuple[PatrolStepName, ...]:
        return tuple(step for step in PATROL_STEPS if step not in self.without)


FULL = Variant("full")
NO_DECAY = Variant("no decay", frozenset({"age", "flag"}))
VARIANTS = (FULL, NO_DECAY, Variant("no revival", frozenset({"revive"})), Variant("no consolidation", decides=False))


class Simulation:
    """The use cases over one store, with a simulated clock, and the memory of each fact version."""

    def __init__(self, memory: OpenedMemoryStore, variant: Variant) -> None:
        self.memory = memory
        self.variant = variant
        self.clock = datetime.min
        ledger, index, embedder = memory.ledger, memory.index, memory.embedder
        self.store = StoreScenes(ledger.memories, index, embedder, now=self.now)
        self.recall = RecallMemories(ledger.recall, index, embedder, ledger.activations, now=self.now)
        self.search = SearchStoredTexts(
            ledger.search,
            ledger.activations,
            search_by_tags=SearchByTagsFromMessage(ledger.search, stem_english_word),
            now=self.now,
        )
        self.browse = BrowseMemories(ledger.recall, ledger.activations, now=self.now)
        services = PatrolServices(ledger=ledger.patrols, word_idf=index, embedder=embedder, now=self.now)
        self.patrol = RunPatrols(services, ledger.activations)
        self.versions: dict[int, list[MemoryId]] = defaultdict(list)
        self.small_talk: set[MemoryId] = set()

    def now(self) -> datetime:
        return self.clock

    async def run_patrol(self, *, decides: bool) -> Counter[str]:
        """Run a patrol and answer its decision requests. Returns its counts by name."""
        report = await self.patrol(SCOPE, steps=self.variant.steps, offer_pending=decides)
        counts = _counts(report)
        for _ in range(MOST_DECISION_CALLS if decides else 0):
            decisions = rule_based_agent.decide(report.pending)
            if not decisions:
                break
            report = await self.patrol.apply_decisions_and_offer_more(SCOPE, decisions)
            counts.update(_counts(report))
        await self.memory.index_keeper.index_marked_memories()
        return counts

    async def status_counts(self) -> dict[str, int]:
        clusters = await self.memory.ledger.patrols.memory_reader_for_patrol(SCOPE).memory_counts_of_each_cluster()
        return {name: sum(getattr(count, name) for count in clusters) for name in ("active", "dying", "dead")}

    async def all_memories(self) -> dict[MemoryId, Memory]:
        memories: dict[MemoryId, Memory] = {}
        after: MemoryId | None = None
        while page := await self.memory.ledger.index_source.memories_after_id(after=after, limit=500):
            memories |= {memory.id: memory for memory in page}
            after = page[-1].id
        return memories

    async def survivor_of(self, id_: MemoryId) -> MemoryId:
        """The memory itself, or the one that absorbed it."""
        while (memories := await self.memory.ledger.memories.memories_with_ids(SCOPE, [id_])) and memories[
            0
        ].absorbed_into:
            id_ = memories[0].absorbed_into
        return id_

    async def keyword_hits(self, words: Sequence[str]) -> set[MemoryId]:
        """The ten newest memories that contain all of the words."""
        page = await self.search(SCOPE, KeywordQuery(terms=split_search_terms(" ".join(words)), mode="and"))
        return {MemoryId(hit.id) for hit in page.hits}


def _counts(report: PatrolReport) -> Counter[str]:
    counts: Counter[str] = Counter()
    for step in report.steps:
        if step.failed:
            raise RuntimeError(f"the step {step.name} failed: {step.failed}")
        counts.update({f"{step.name}.{name}": count for name, count in step.counts.items()})
    for decision in report.decided:
        if decision.refused:
            raise RuntimeError(f"a decision was refused: {decision.refused}")
        counts.update({f"decided.{name}": count for name, count in decision.counts.items()})
    return counts


@dataclass
class AskedQuestion:
    """`rank`: of the valid version among recall's answers, 0 if missing; `gap`: days since the fact was last stored or
    asked about."""

    gap: int
    rank: int


@dataclass
class YearRecord:
    curve: list[dict[str, int]] = field(default_factory=list)
    asked: list[AskedQuestion] = field(default_factory=list)
    searched: int = 0
    """Questions that recall did not answer, searched by keyword."""
    found_by_search: int = 0
    patrol_counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


async def run_year(simulation: Simulation, plan: YearPlan, bar: Progress) -> YearRecord:
    """Store at noon, ask at four in the afternoon, patrol at eleven at night, for every day of the plan."""
    record = YearRecord()
    task = bar.add_task(simulation.variant.name, total=len(plan.days))
    last_touched: dict[int, int] = {}
    began = time.monotonic()
    for number, day in enumerate(plan.days):
        simulation.clock = day.noon
        stored = await simulation.store(SCOPE, [planned.scene for planned in day.scenes])
        for planned, answer in zip(day.scenes, stored, strict=True):
            if planned.fact_version is None:
                simulation.small_talk.add(answer.memory.id)
            else:
                fact_number = planned.fact_version[0]
                simulation.versions[fact_number].append(answer.memory.id)
                last_touched[fact_number] = number
        simulation.clock = day.noon + timedelta(hours=4)
        for fact_number, question in day.questions:
            words = plan.facts[fact_number].search_words
            rank = await _ask(simulation, fact_number, question, words, record)
            record.asked.append(AskedQuestion(number - last_touched[fact_number], rank))
            last_touched[fact_number] = number
        simulation.clock = day.noon + timedelta(hours=11)
        record.patrol_counts.update(await simulation.run_patrol(decides=simulation.variant.decides))
        if number % 7 == 0 or number == len(plan.days) - 1:
            record.curve.append({"day": number} | await simulation.status_counts())
        bar.advance(task)
    record.seconds = time.monotonic() - began
    return record


async def _ask(
    simulation: Simulation, fact_number: int, question: str, words: Sequence[str], record: YearRecord
) -> int:
    """Ask as an agent does: recall, then a keyword search. Returns the rank in the recall, 0 if missing."""
    ranked = await simulation.recall.rank(UNCOUNTED, RecallQuery(text=question))
    wanted = await simulation.survivor_of(simulation.versions[fact_number][-1])
    rank = ranked.ids.index(wanted) + 1 if wanted in ranked.ids else 0
    await simulation.recall(SCOPE, RecallQuery(text=question))
    if not 0 < rank <= TOP:
        record.searched += 1
        record.found_by_search += wanted in await simulation.keyword_hits(words)
    return rank
