"""The time that one patrol takes, by step."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.patrol.made_up_store import SCOPE, STARTED
from madeleine.patrol.context import PatrolServices
from madeleine.patrol.report import PatrolProgress
from madeleine.patrol.run import PatrolEvent, RunPatrols
from madeleine.server.wiring.data_directory import LEDGER_FILE
from madeleine.server.wiring.open_memory import OpenedMemoryStore


@dataclass
class TimedPatrol:
    """Milliseconds by part, in order: the steps, `offers` (decision requests and report), `index`."""

    parts: dict[str, float] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    """Rows of the journal, by step."""
    counts: dict[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(self.parts.values())


async def timed_patrol(memory: OpenedMemoryStore, data_dir: Path, *, offer_pending: bool = True) -> TimedPatrol:
    timed = TimedPatrol()
    last = time.perf_counter()

    def lap(part: str) -> None:
        nonlocal last
        now = time.perf_counter()
        timed.parts[part] = timed.parts.get(part, 0.0) + 1000 * (now - last)
        last = now

    def step(progress: PatrolProgress) -> None:
        if not progress.parts:
            lap(progress.step)

    def on_event(event: PatrolEvent) -> None:
        if event.event == "begins":
            lap("begin")
        elif event.event == "ends":
            lap("offers")

    services = PatrolServices(
        ledger=memory.ledger.patrols, word_idf=memory.index, embedder=memory.embedder, now=lambda: STARTED
    )
    run = RunPatrols(
        services, memory.ledger.activations, update_index=memory.index_keeper.index_marked_memories, on_event=on_event
    )
    report = await run(SCOPE, on_progress=step, offer_pending=offer_pending)
    lap("index")
    timed.counts = {step.name: step.counts for step in report.steps}
    with sqlite3.connect(f"file:{data_dir / LEDGER_FILE}?mode=ro", uri=True) as ledger:
        timed.rows = dict(
            ledger.execute("SELECT step, count(*) FROM patrol_changes WHERE run_id = ? GROUP BY step", (report.run_id,))
        )
    return timed


async def timed_reads(memory: OpenedMemoryStore) -> dict[str, float]:
    """Milliseconds of the reads that scan a whole being, medians of 5."""
    view = memory.ledger.patrols.memory_reader_for_patrol(SCOPE)
    reads: Mapping[str, Callable[[], Awaitable[object]]] = {
        "clusters with their vectors": view.clusters,
        "counts by cluster": view.memory_counts_of_each_cluster,
        "sessions": view.unsummarised_sessions,
        "unclustered": lambda: view.unclustered_memory_states(limit=2_000),
        "fading": view.memory_states_with_outdated_status,
        "recalled dead": view.recalled_dead_memory_states,
    }
    milliseconds = {}
    for name, read in reads.items():
        times = []
        for _ in range(5):
            began = time.perf_counter()
            await read()
            times.append(1000 * (time.perf_counter() - began))
        milliseconds[name] = round(median(times), 2)
    return milliseconds


def medians(patrols: Sequence[TimedPatrol]) -> dict[str, Any]:
    parts = {part: round(median(patrol.parts[part] for patrol in patrols), 1) for part in patrols[0].parts}
    return {
        "ms": parts,
        "total ms": round(median(patrol.total for patrol in patrols), 1),
        "journal rows": {
            step: round(median(patrol.rows.get(step, 0) for patrol in patrols)) for step in patrols[0].rows
        },
        "counts": {step: dict(counts) for step, counts in patrols[-1].counts.items()},
    }
