"""Does forgetting help? `python -m benchmarks.dynamics`: a simulated year through the real pipeline.

A session is stored every noon (`benchmarks.year`), the day's questions are recalled in the afternoon, and a patrol runs
every night, whose offers a mind of rules decides (`benchmarks.mind`). The clock is simulated; ledger, index and the
embedding model are the real ones. What recall does not bring among its first five is looked for by `search_memory`,
as an agent would. The same year is lived four times: whole; without decay (❷ and ❸ left out); without revival (❺);
without consolidation (nobody decides). A vector is computed once and shared.

At the end, nothing being activated: every fact is asked about once more. Then dead memories of the whole system are
cued, once to three times, found by search or opened by id, and it is counted how many came back.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import mind
from benchmarks.year import Fact, Year, year
from madeleine.inference.dense import DenseEmbedder
from madeleine.inference.stems import stem
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.keyword_search import KeywordQuery
from madeleine.memory.model import BeingId, Memory, MemoryId, ModelName
from madeleine.memory.recall.recall import Query, Recall
from madeleine.memory.recall.revisit import Revisit
from madeleine.memory.recall.search import Search, terms_of
from madeleine.memory.recall.tagged import MessageSearch
from madeleine.memory.rules.dynamics.decay import FLOOR, effective_importance
from madeleine.memory.rules.dynamics.revival import revived_session_count
from madeleine.memory.scope import Scope
from madeleine.patrol.report import STEPS, PatrolReport, StepName
from madeleine.patrol.run import Patrol
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.ledgers import LEDGER
from madeleine.server.wiring.open_memory import OpenMemory, open_memory

RESULTS = Path(__file__).parent / "results"
SCOPE = Scope(BeingId("year"), "benchmark")
UNSEEN = replace(SCOPE, counts=False)
"""Asks without leaving a trace."""
AT = 5
ROUNDS_OF_DECISIONS = 8
"""At most, a night: each answers what fits into one answer of the tool."""
GAPS = (30, 60, 90)
"""Days since a fact was last stored or asked about; the last class is open."""
CUES = (1, 2, 3)
IMPORTANCES = (0.05, 0.06, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

Channel = Literal["search_memory", "recall_memory"]
Patrols = Literal["after", "between"]


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    without: frozenset[StepName] = frozenset()
    decides: bool = True

    @property
    def steps(self) -> tuple[StepName, ...]:
        return tuple(step for step in STEPS if step not in self.without)


FULL = Variant("full")
NO_DECAY = Variant("no decay", frozenset({"age", "flag"}))
VARIANTS = (
    FULL,
    NO_DECAY,
    Variant("no revival", frozenset({"revive"})),
    Variant("no consolidation", decides=False),
)


class RememberedEmbedder:
    """`server.wiring.open_memory.TextModel` that computes nothing twice, whichever store asks."""

    def __init__(self, inner: DenseEmbedder) -> None:
        self._inner = inner
        self._rows: dict[str, NDArray[np.float32]] = {}
        self._tokens: dict[str, int] = {}

    @property
    def model(self) -> ModelName:
        return self._inner.model

    def coverage(self, text: str) -> float:
        return self._inner.coverage(text)

    async def dimension(self) -> int:
        return await self._inner.dimension()

    async def warm_up(self) -> None:
        await self._inner.warm_up()

    async def close(self) -> None:
        """It outlives the store that closes it."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if missing := [text for text in dict.fromkeys(texts) if text not in self._rows]:
            self._rows |= dict(zip(missing, await self._inner.embed(missing), strict=True))
        return np.stack([self._rows[text] for text in texts])

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        if missing := [text for text in dict.fromkeys(texts) if text not in self._tokens]:
            self._tokens |= dict(zip(missing, await self._inner.count_tokens(missing), strict=True))
        return [self._tokens[text] for text in texts]


class Life:
    """The use cases over one store, on a clock of their own, and what has become of each fact."""

    def __init__(self, memory: OpenMemory, variant: Variant) -> None:
        self.memory = memory
        self.variant = variant
        self.at = datetime.min
        ledger, index, embedder = memory.ledger, memory.index, memory.embedder
        self.store = StoreScenes(ledger.memories, index, embedder, now=self.now)
        self.recall = Recall(ledger.recall, index, embedder, ledger.activations, now=self.now)
        self.search = Search(
            ledger.search, ledger.activations, by_message=MessageSearch(ledger.search, stem), now=self.now
        )
        self.revisit = Revisit(ledger.revisit, ledger.activations, now=self.now)
        self.patrol = Patrol(ledger.patrols, index, embedder, ledger.activations, now=self.now)
        self.versions: dict[int, list[MemoryId]] = defaultdict(list)
        self.noise: set[MemoryId] = set()

    def now(self) -> datetime:
        return self.at

    async def night(self, *, decides: bool) -> Counter[str]:
        """A patrol, and the decisions on what it hands out. What it did, by name."""
        report = await self.patrol(SCOPE, steps=self.variant.steps, hands_out=decides)
        done = _counted(report)
        for _ in range(ROUNDS_OF_DECISIONS if decides else 0):
            decisions = mind.decisions(report.pending)
            if not decisions:
                break
            report = await self.patrol.decide(SCOPE, decisions)
            done.update(_counted(report))
        await self.memory.keeper.catch_up()
        return done

    async def status(self) -> dict[str, int]:
        counts = await self.memory.ledger.patrols.patrol_view(SCOPE).cluster_counts()
        return {name: sum(getattr(count, name) for count in counts) for name in ("active", "dying", "dead")}

    async def all(self) -> dict[MemoryId, Memory]:
        found: dict[MemoryId, Memory] = {}
        after: MemoryId | None = None
        while page := await self.memory.ledger.index_source.all_memories(after=after, limit=500):
            found |= {memory.id: memory for memory in page}
            after = page[-1].id
        return found


def _counted(report: PatrolReport) -> Counter[str]:
    found: Counter[str] = Counter()
    for step in report.steps:
        if step.failed:
            raise RuntimeError(f"the step {step.name} failed: {step.failed}")
        found.update({f"{step.name}.{name}": count for name, count in step.counts.items()})
    for one in report.decided:
        if one.refused:
            raise RuntimeError(f"a decision was refused: {one.refused}")
        found.update({f"decided.{name}": count for name, count in one.counts.items()})
    return found


# --- the year ---------------------------------------------------------------------------------------------------


@dataclass
class Asked:
    """A question that was asked. `rank`: of the valid version among recall's answers, 0 if it was not there; `gap`:
    days since the fact was last told or asked about."""

    gap: int
    rank: int


@dataclass
class Lived:
    curve: list[dict[str, int]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    searched: int = 0
    """Questions that recall did not answer, looked for by their words."""
    found_by_search: int = 0
    did: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


async def live(life: Life, plan: Year, bar: Progress) -> Lived:
    lived = Lived()
    task = bar.add_task(life.variant.name, total=len(plan.days))
    touched: dict[int, int] = {}
    began = time.monotonic()
    for number, day in enumerate(plan.days):
        life.at = day.at
        stored = await life.store(SCOPE, [entry.scene for entry in day.entries])
        for entry, answer in zip(day.entries, stored, strict=True):
            if entry.fact is None:
                life.noise.add(answer.memory.id)
            else:
                life.versions[entry.fact[0]].append(answer.memory.id)
                touched[entry.fact[0]] = number
        life.at = day.at + timedelta(hours=4)
        for fact, question in day.cues:
            rank = await ask(life, fact, question, plan.facts[fact].words, lived)
            lived.asked.append(Asked(number - touched[fact], rank))
            touched[fact] = number
        life.at = day.at + timedelta(hours=11)
        lived.did.update(await life.night(decides=life.variant.decides))
        if number % 7 == 0 or number == len(plan.days) - 1:
            lived.curve.append({"day": number} | await life.status())
        bar.advance(task)
    lived.seconds = time.monotonic() - began
    return lived


async def ask(life: Life, fact: int, question: str, words: Sequence[str], lived: Lived) -> int:
    """As an agent does: recall, then a search by `words`. The rank among what was recalled, 0 if it was not."""
    ranked = await life.recall.rank(UNSEEN, Query(text=question))
    wanted = await standing_for(life, life.versions[fact][-1])
    rank = ranked.ids.index(wanted) + 1 if wanted in ranked.ids else 0
    await life.recall(SCOPE, Query(text=question))
    if not 0 < rank <= AT:
        lived.searched += 1
        lived.found_by_search += wanted in await search(life, words)
    return rank


async def standing_for(life: Life, id_: MemoryId) -> MemoryId:
    """It, or the survivor that took it over."""
    while (found := await life.memory.ledger.memories.memories(SCOPE, [id_])) and found[0].absorbed_into:
        id_ = found[0].absorbed_into
    return id_


async def search(life: Life, words: Sequence[str]) -> set[MemoryId]:
    """The first ten of those that hold all of the words, newest first."""
    page = await life.search(SCOPE, KeywordQuery(terms=terms_of(" ".join(words)), mode="and"))
    return {MemoryId(hit.id) for hit in page.hits}


def telling_words(text: str, *, most: int = 4) -> list[str]:
    """The longest that are not stop words."""
    return sorted(mind.words(text), key=lambda word: (-len(word), word))[:most]


# --- the end of the year ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answered:
    """A fact, asked about on the last day. Ranks are 0 for what was not among the answers; `older`: of an earlier
    version; `noise`: how many of the first five are noise, `shown` how many answers those were."""

    cued: bool
    changed: bool
    gap: int
    rank: int
    older: int
    noise: int
    shown: int

    @property
    def found(self) -> bool:
        return 0 < self.rank <= AT


async def examine(life: Life, plan: Year) -> list[Answered]:
    last = len(plan.days) - 1
    found = []
    for number, fact in enumerate(plan.facts):
        ids = [await standing_for(life, id_) for id_ in life.versions[number]]
        for question in fact.questions:
            ranked = (await life.recall.rank(UNSEEN, Query(text=question))).ids
            ranks = [ranked.index(id_) + 1 if id_ in ranked else 0 for id_ in ids]
            older = [rank for rank, id_ in zip(ranks, ids, strict=True) if rank and id_ != ids[-1]]
            found.append(
                Answered(
                    cued=bool(fact.cues),
                    changed=len(ids) > 1,
                    gap=last - last_touched(fact),
                    rank=ranks[-1],
                    older=min(older, default=0),
                    noise=sum(id_ in life.noise for id_ in ranked[:AT]),
                    shown=len(ranked[:AT]),
                )
            )
    return found


def last_touched(fact: Fact) -> int:
    return max(*fact.told, *(day for day, _ in fact.cues), 0)


def gap_class(gap: int) -> str:
    for low, high in zip((0, *GAPS), GAPS, strict=False):
        if gap <= high:
            return f"{low + (low > 0)} to {high}"
    return f"over {GAPS[-1]}"


GAP_CLASSES = tuple(dict.fromkeys(gap_class(gap) for gap in range(GAPS[-1] + 2)))


def percent(values: Sequence[bool]) -> float | None:
    return round(100 * fmean(values), 2) if values else None


def figures(lived: Lived, answered: Sequence[Answered]) -> dict[str, Any]:
    cued = [one for one in answered if one.cued]
    changed = [one for one in answered if one.changed]
    both = [one for one in changed if one.rank and one.older]
    asked = {name: [a for a in lived.asked if gap_class(a.gap) == name] for name in GAP_CLASSES}
    by_gap = {name: [a for a in answered if gap_class(a.gap) == name] for name in GAP_CLASSES}
    return {
        "asked in the year": {
            "questions": len(lived.asked),
            "R@5": percent([0 < one.rank <= AT for one in lived.asked]),
            "by days since": {
                name: {"questions": len(group), "R@5": percent([0 < one.rank <= AT for one in group])}
                for name, group in asked.items()
            },
            "searched": lived.searched,
            "found by search": lived.found_by_search,
            "R@5, then search": percent_of(
                sum(0 < one.rank <= AT for one in lived.asked) + lived.found_by_search, len(lived.asked)
            ),
        },
        "last day": {
            "R@5, cued": percent([one.found for one in cued]),
            "R@5, cued within 60 days": percent([one.found for one in cued if one.gap <= GAPS[1]]),
            "R@5, never cued": percent([one.found for one in answered if not one.cued]),
            "first, cued": percent([one.rank == 1 for one in cued]),
            "questions, cued": len(cued),
            "by days since": {
                name: {"questions": len(group), "R@5": percent([one.found for one in group])}
                for name, group in by_gap.items()
            },
            "noise among the first five": percent_of(sum(a.noise for a in answered), sum(a.shown for a in answered)),
        },
        "changed": {
            "questions": len(changed),
            "R@5": percent([one.found for one in changed]),
            "newest before older": percent([one.rank < one.older for one in both]),
            "both found": percent([bool(one.rank and one.older) for one in changed]),
            "newest first of all": percent([one.rank == 1 for one in changed]),
            "older alone": percent([bool(one.older and not one.rank) for one in changed]),
        },
        "did": dict(sorted(lived.did.items())),
        "seconds": round(lived.seconds),
    }


def percent_of(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole else None


async def size(life: Life, data_dir: Path) -> dict[str, int]:
    await life.memory.ledger.database.checkpoint()
    await life.memory.index.flush()
    status = await life.status()
    return status | {
        "memories": await life.memory.ledger.index_source.count_memories(),
        "living points": status["active"] + status["dying"],
        "ledger bytes": (data_dir / LEDGER).stat().st_size,
    }


# --- coming back ------------------------------------------------------------------------------------------------


@dataclass
class Cued:
    """One way to cue, over a sample of dead memories."""

    channel: Channel
    cues: int
    patrols: Patrols
    memories: int = 0
    found: int = 0
    """Those that the channel hit at every cue."""
    back: int = 0
    back_of_found: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "channel": self.channel,
            "cues": self.cues,
            "patrols": self.patrols,
            "memories": self.memories,
            "hit": percent_of(self.found, self.memories),
            "came back": percent_of(self.back, self.memories),
            "came back, of those hit": percent_of(self.back_of_found, self.found),
        }


WAYS: tuple[tuple[Channel, int, Patrols], ...] = tuple(
    (channel, cues, patrols)
    for channel in ("search_memory", "recall_memory")
    for cues in CUES
    for patrols in ("after", "between")
    if cues > 1 or patrols == "after"
)  # fmt: skip


async def cue_the_dead(life: Life, *, seed: int) -> dict[str, Any]:
    """Each way on a sample of its own. The patrols are mechanical: nobody lets go of anything meanwhile."""
    dead = [memory for memory in (await life.all()).values() if memory.status == "dead"]
    forgotten = sorted((memory for memory in dead if memory.absorbed_into is None), key=lambda memory: memory.id)
    random.Random(seed).shuffle(forgotten)
    ways = []
    for position, (channel, cues, patrols) in enumerate(WAYS):
        sample = forgotten[position :: len(WAYS)]
        ways.append(await _cue(life, sample, Cued(channel, cues, patrols, memories=len(sample))))
    return {
        "dead": len(dead),
        "absorbed": len(dead) - len(forgotten),
        "ways": [way.as_json() for way in ways],
        "by importance": by_formula(),
    }


async def _cue(life: Life, sample: Sequence[Memory], way: Cued) -> Cued:
    hit = {memory.id for memory in sample}
    for cue in range(way.cues):
        for memory in sample:
            if way.channel == "search_memory":
                found = memory.id in await search(life, telling_words(memory.scene.action))
            else:
                found = bool((await life.revisit.by_ids(SCOPE, [memory.id])).memories)
            if not found:
                hit.discard(memory.id)
        if way.patrols == "between" or cue == way.cues - 1:
            life.at += timedelta(days=1)
            await life.night(decides=False)
    now = await life.memory.ledger.memories.memories(SCOPE, [memory.id for memory in sample])
    back = {memory.id for memory in now if memory.status == "active"}
    way.found, way.back, way.back_of_found = len(hit), len(back), len(back & hit)
    return way


def by_formula() -> list[dict[str, Any]]:
    """What ❺ gives for each importance, for a memory that died when it had faded: one strong cue is +2."""
    rows = []
    for importance in IMPORTANCES:
        faded = next(count for count in range(1000) if effective_importance(importance, count) <= FLOOR)
        back = {
            cues: revived_session_count(
                importance=importance, session_count=faded, reactivation_count=2 * cues
            )
            for cues in CUES
        }  # fmt: skip
        rows.append(
            {"importance": importance, "fades after": faded}
            | {f"session count after {cues}": count for cues, count in back.items()}
        )
    return rows


# --- all of it --------------------------------------------------------------------------------------------------


async def run(days: int, seed: int) -> dict[str, Any]:
    plan = year(days, seed=seed)
    found: dict[str, Any] = {
        "days": days,
        "seed": seed,
        "memories told": sum(len(day.entries) for day in plan.days),
        "facts": len(plan.facts),
        "facts that change": sum(len(fact.told) > 1 for fact in plan.facts),
        "questions": sum(len(day.cues) for day in plan.days),
        "variants": {},
    }
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder, Progress() as bar:
        inner = DenseEmbedder(Settings().embedding_model, Path(folder) / "models")
        embedder = RememberedEmbedder(inner)
        await embedder.warm_up()
        for variant in VARIANTS:
            data_dir = Path(folder) / variant.name.replace(" ", "-")
            data_dir.mkdir(mode=0o700)
            settings = Settings(data_dir=data_dir, being=SCOPE.being_id)
            async with open_memory(settings, embedder=embedder, background=False) as memory:
                life = Life(memory, variant)
                lived = await live(life, plan, bar)
                of_variant = figures(lived, await examine(life, plan))
                of_variant["size"] = await size(life, data_dir)
                of_variant["curve"] = lived.curve
                found["variants"][variant.name] = of_variant
                if variant is FULL:
                    found["coming back"] = await cue_the_dead(life, seed=seed)
        await inner.close()
    found["loss to decay, points"] = losses(found["variants"])
    return found


def losses(variants: Mapping[str, Any]) -> dict[str, float]:
    """R@5 without decay minus R@5 of the whole system."""
    without, full = variants[NO_DECAY.name], variants[FULL.name]
    pairs = {
        "asked in the year": (without["asked in the year"]["R@5"], full["asked in the year"]["R@5"]),
        **{
            f"asked in the year, {name} days after": (
                without["asked in the year"]["by days since"][name]["R@5"],
                full["asked in the year"]["by days since"][name]["R@5"],
            )
            for name in GAP_CLASSES
        },
        **{
            f"last day, {name}": (without["last day"][f"R@5, {name}"], full["last day"][f"R@5, {name}"])
            for name in ("cued", "cued within 60 days", "never cued")
        },
    }
    return {name: round(a - b, 2) for name, (a, b) in pairs.items() if a is not None and b is not None}


# --- telling ----------------------------------------------------------------------------------------------------


def tables(found: Mapping[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """(title, columns, rows)"""
    variants: Mapping[str, Any] = found["variants"]
    names = list(variants)

    def row(label: str, *path: str) -> list[str]:
        cells = []
        for name in names:
            value: Any = variants[name]
            for key in path:
                value = value.get(key)
            cells.append("" if value is None else f"{value:.1f}" if isinstance(value, float) else f"{value:,}")
        return [label, *cells]

    year_, last, changed = "asked in the year", "last day", "changed"
    main = [
        row("R@5 when asked in the year", year_, "R@5"),
        row("  with the search where that fails", year_, "R@5, then search"),
        *(row(f"  {name} days after", year_, "by days since", name, "R@5") for name in GAP_CLASSES),
        row("R@5 on the last day, cued facts", last, "R@5, cued"),
        row("  touched within 60 days", last, "R@5, cued within 60 days"),
        row("  facts never cued", last, "R@5, never cued"),
        row("cued facts that come first", last, "first, cued"),
        row("noise among the first five, %", last, "noise among the first five"),
        row("changed facts: the newest comes first of all", changed, "newest first of all"),
        row("  before an older version, where both come", changed, "newest before older"),
        row("  both come", changed, "both found"),
        row("  only an older one comes", changed, "older alone"),
        row("let go in the year", "did", "decided.made_dead"),
        row("merged away in the year", "did", "decided.absorbed"),
        row("come back in the year", "did", "revive.revived"),
        row("active", "size", "active"),
        row("dying", "size", "dying"),
        row("dead", "size", "dead"),
        row("living points of the index", "size", "living points"),
        row("ledger, bytes", "size", "ledger bytes"),
    ]
    losses_ = [[name, f"{points:.2f}"] for name, points in found["loss to decay, points"].items()]
    back = found["coming back"]
    ways = [
        [way["channel"], str(way["cues"]), way["patrols"], str(way["memories"]), _shown(way["hit"]),
         _shown(way["came back, of those hit"]), _shown(way["came back"])]
        for way in back["ways"]
    ]  # fmt: skip
    formula = [["–" if value is None else str(value) for value in one.values()] for one in back["by importance"]]
    return [
        (f"{found['days']} days, {found['memories told']:,} told, {found['facts']} facts", ["", *names], main),
        ("R@5 lost to decay, points", ["", "points"], losses_),
        (
            f"Coming back: {back['dead'] - back['absorbed']:,} forgotten memories",
            ["cued by", "cues", "patrols", "memories", "hit, %", "back of hit, %", "back, %"],
            ways,
        ),
        ("What the formula gives: session count after so many strong cues", list(back["by importance"][0]), formula),
    ]


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def show(console: Console, found: Mapping[str, Any]) -> None:
    for title, columns, rows in tables(found):
        table = Table(*columns, title=title)
        for cells in rows:
            table.add_row(*cells)
        console.print(table)


def markdown(found: Mapping[str, Any]) -> str:
    parts = []
    for title, columns, rows in tables(found):
        lines = [f"**{title}**", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        parts.append("\n".join([*lines, *(f"| {' | '.join(cell.strip() for cell in cells)} |" for cells in rows)]))
    return "\n\n".join(parts) + "\n"


def plot(found: Mapping[str, Any], path: Path) -> None:
    """Status over the year for each variant, R@5 by days since, and who came back."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(12.5, 6.6), layout="constrained")
    colours = {"active": "#2a7f62", "dying": "#e0a030", "dead": "#8c8c8c"}
    of_status = (axes[0, 0], axes[0, 1], axes[0, 2], axes[1, 0])
    for axis, (name, of_variant) in zip(of_status, found["variants"].items(), strict=True):
        curve = of_variant["curve"]
        for status, colour in colours.items():
            axis.plot([one["day"] for one in curve], [one[status] for one in curve], color=colour, label=status)
        axis.set(title=name, xlabel="day", ylabel="memories", ylim=(0, found["memories told"]))
        axis.grid(alpha=0.25)
    axes[0, 0].legend(frameon=False)
    axis = axes[1, 1]
    width = 0.2
    for position, (name, of_variant) in enumerate(found["variants"].items()):
        groups = of_variant["asked in the year"]["by days since"]
        places = np.arange(len(groups)) + (position - 1.5) * width
        axis.bar(places, [group["R@5"] or 0 for group in groups.values()], width, label=name)
    axis.set_xticks(range(len(GAP_CLASSES)), GAP_CLASSES)
    axis.set(title="R@5 when asked, by days since last touched", ylabel="%", ylim=(0, 100))
    axis.legend(frameon=False, fontsize=8, loc="lower left")
    axis = axes[1, 2]
    for channel, marker in (("search_memory", "o"), ("recall_memory", "s")):
        for patrols, style in (("after", "-"), ("between", "--")):
            ways = [
                way
                for way in found["coming back"]["ways"]
                if way["channel"] == channel and (way["patrols"] == patrols or way["cues"] == 1)
            ]
            label = f"{channel}, patrol {patrols}"
            backs = [way["came back"] or 0 for way in ways]
            axis.plot([way["cues"] for way in ways], backs, style, marker=marker, label=label)
    axis.axhline(95, color="#b03030", linewidth=0.8)
    axis.set(title="forgotten memories that came back", xlabel="strong cues", ylabel="%", ylim=(0, 104))
    axis.set_xticks(CUES)
    axis.legend(frameon=False, fontsize=8, loc="lower left")
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--record", action="store_true", help=f"write figures, tables and a plot to {RESULTS.name}/")
    arguments = parser.parse_args()
    found = asyncio.run(run(arguments.days, arguments.seed))
    show(Console(width=140), found)
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "dynamics.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (RESULTS / "dynamics.md").write_text(markdown(found), encoding="utf-8")
        plot(found, RESULTS / "dynamics.png")


if __name__ == "__main__":
    main()
