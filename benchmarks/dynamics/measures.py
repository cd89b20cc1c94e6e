"""What a simulated year is judged by: recall during the year and on its last day, changed facts, size."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.dynamics.plan import Fact, YearPlan
from benchmarks.dynamics.simulation import NO_DECAY, TOP, UNCOUNTED, Simulation, YearRecord
from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.wiring.data_directory import LEDGER_FILE

GAPS = (30, 60, 90)
"""Days since a fact was last stored or asked about; the last class is open."""


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The answer to a question on the last day. Ranks are 0 if missing. `older_rank`: of an earlier version;
    `small_talk`: small talk among the first five; `shown`: how many answers those are."""

    cued: bool
    changed: bool
    gap: int
    rank: int
    older_rank: int
    small_talk: int
    shown: int

    @property
    def answered(self) -> bool:
        return 0 < self.rank <= TOP


async def ask_all_facts(simulation: Simulation, plan: YearPlan) -> list[FinalAnswer]:
    """Ask every question about every fact once, without counting it as a recall."""
    last_day = len(plan.days) - 1
    answers = []
    for number, fact in enumerate(plan.facts):
        ids = [await simulation.survivor_of(id_) for id_ in simulation.versions[number]]
        for question in fact.questions:
            ranked = (await simulation.recall.rank(UNCOUNTED, RecallQuery(text=question))).ids
            ranks = [ranked.index(id_) + 1 if id_ in ranked else 0 for id_ in ids]
            older = [rank for rank, id_ in zip(ranks, ids, strict=True) if rank and id_ != ids[-1]]
            answers.append(
                FinalAnswer(
                    cued=bool(fact.asked),
                    changed=len(ids) > 1,
                    gap=last_day - last_touched(fact),
                    rank=ranks[-1],
                    older_rank=min(older, default=0),
                    small_talk=sum(id_ in simulation.small_talk for id_ in ranked[:TOP]),
                    shown=len(ranked[:TOP]),
                )
            )
    return answers


def last_touched(fact: Fact) -> int:
    return max(*fact.version_days, *(day for day, _ in fact.asked), 0)


def gap_class(gap: int) -> str:
    for low, high in zip((0, *GAPS), GAPS, strict=False):
        if gap <= high:
            return f"{low + (low > 0)} to {high}"
    return f"over {GAPS[-1]}"


GAP_CLASSES = tuple(dict.fromkeys(gap_class(gap) for gap in range(GAPS[-1] + 2)))


def percent(values: Sequence[bool]) -> float | None:
    return round(100 * fmean(values), 2) if values else None


def percent_of(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole else None


def summarise(record: YearRecord, answers: Sequence[FinalAnswer]) -> dict[str, Any]:
    """The figures of one variant, as they are recorded."""
    return {
        "asked in the year": _asked_in_the_year(record),
        "last day": _last_day(answers),
        "changed": _changed(answers),
        "did": dict(sorted(record.patrol_counts.items())),
        "seconds": round(record.seconds),
    }


def _asked_in_the_year(record: YearRecord) -> dict[str, Any]:
    by_gap = {name: [asked for asked in record.asked if gap_class(asked.gap) == name] for name in GAP_CLASSES}
    recalled = sum(0 < asked.rank <= TOP for asked in record.asked)
    return {
        "questions": len(record.asked),
        "R@5": percent_of(recalled, len(record.asked)),
        "by days since": {
            name: {"questions": len(group), "R@5": percent([0 < asked.rank <= TOP for asked in group])}
            for name, group in by_gap.items()
        },
        "searched": record.searched,
        "found by search": record.found_by_search,
        "R@5, then search": percent_of(recalled + record.found_by_search, len(record.asked)),
    }


def _last_day(answers: Sequence[FinalAnswer]) -> dict[str, Any]:
    cued = [answer for answer in answers if answer.cued]
    by_gap = {name: [answer for answer in answers if gap_class(answer.gap) == name] for name in GAP_CLASSES}
    return {
        "R@5, cued": percent([answer.answered for answer in cued]),
        "R@5, cued within 60 days": percent([answer.answered for answer in cued if answer.gap <= GAPS[1]]),
        "R@5, never cued": percent([answer.answered for answer in answers if not answer.cued]),
        "first, cued": percent([answer.rank == 1 for answer in cued]),
        "questions, cued": len(cued),
        "by days since": {
            name: {"questions": len(group), "R@5": percent([answer.answered for answer in group])}
            for name, group in by_gap.items()
        },
        "noise among the first five": percent_of(
            sum(answer.small_talk for answer in answers), sum(answer.shown for answer in answers)
        ),
    }


def _changed(answers: Sequence[FinalAnswer]) -> dict[str, Any]:
    changed = [answer for answer in answers if answer.changed]
    both = [answer for answer in changed if answer.rank and answer.older_rank]
    return {
        "questions": len(changed),
        "R@5": percent([answer.answered for answer in changed]),
        "newest before older": percent([answer.rank < answer.older_rank for answer in both]),
        "both found": percent([bool(answer.rank and answer.older_rank) for answer in changed]),
        "newest first of all": percent([answer.rank == 1 for answer in changed]),
        "older alone": percent([bool(answer.older_rank and not answer.rank) for answer in changed]),
    }


async def store_size(simulation: Simulation, data_dir: Path) -> dict[str, int]:
    with closing(sqlite3.connect(data_dir / LEDGER_FILE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    await simulation.memory.index.flush()
    status = await simulation.status_counts()
    return status | {
        "memories": await simulation.memory.ledger.index_source.count_memories(),
        "living points": status["active"] + status["dying"],
        "ledger bytes": (data_dir / LEDGER_FILE).stat().st_size,
    }


def loss_to_decay(variants: Mapping[str, Any]) -> dict[str, float]:
    """R@5 without decay minus R@5 of the full variant, in points."""
    without, full = variants[NO_DECAY.name], variants["full"]
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
