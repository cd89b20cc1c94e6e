"""What a patrol costs: `python -m benchmarks.patrol`.

Stores of made-up memories with made-up vectors in topical groups are written straight into the ledger; the index over
them is the real one, built by the product. What is measured runs through the use cases, in this process.

growth: the same 200 new memories come to 2,000 settled ones and to 20,000. Time by step, rows of the journal, and how
long the reads take that look at everything.
idle: 100,000 memories to which nothing happens; nights on which none fades, and one on which many do.
recall: 10,000 memories, recalls one after the other without a pause, at rest and while patrols take in 200 new ones
each. The queries are embedded by the real model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sqlite3
import tempfile
import time
import uuid
import zlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.scenes import questions, texts
from madeleine.inference import packaged
from madeleine.inference.dense import DenseEmbedder
from madeleine.memory.ingest.ports import StoreBatch
from madeleine.memory.model import (
    BeingId,
    Cluster,
    ClusterId,
    ContentHash,
    Memory,
    MemoryId,
    ModelName,
    Provenance,
    RunId,
    Scene,
    Vector,
)
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.memory.recall.recall import Query
from madeleine.memory.rules.dynamics.grouping import mean_vector
from madeleine.memory.scope import Scope
from madeleine.patrol.context import PatrolServices
from madeleine.patrol.pipeline import PatrolProgress
from madeleine.patrol.run import Patrol, PatrolEvent
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.ledgers import LEDGER
from madeleine.server.wiring.open_memory import OpenMemory, open_memory
from madeleine.storage.sql.ledger import open_ledger

RESULTS = Path(__file__).parent / "results"
SCOPE = Scope(BeingId("patrolled"), "benchmark")
MODEL = ModelName(packaged.NAME)
STARTED = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLUSTER = 8
"""Memories of a settled cluster: from 11 on ❻ would split it."""
NEW, TO_CLUSTERS, NEW_GROUP = 200, 150, 5
"""Of the new memories, so many go to settled clusters, three to each; the rest are groups of five on new topics."""
SPREAD = 0.05
"""Standard deviation, on each axis, of a vector about its topic: mutual cosine about 0.5, to the mean above 0.6."""
IMPORTANCE, FADES = 0.5, 70
"""0.5 × exp(−70 / 30) ≤ 0.05"""
WRITTEN_AT_ONCE = 5_000
_TOPIC = re.compile(r"topic(\d+)")


# --- made-up memories -------------------------------------------------------------------------------------------


@cache
def topic_vector(topic: int) -> NDArray[np.float32]:
    return _unit(np.random.default_rng(topic).standard_normal(packaged.DIM))


def vector_of(text: str) -> Vector:
    """Near to the vector of the topic that it names; anywhere, if it names none."""
    noise = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(packaged.DIM)
    topic = _TOPIC.search(text)
    return _unit(topic_vector(int(topic[1])) + SPREAD * noise if topic else noise)


def _unit(values: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(values / np.linalg.norm(values), np.float32)


def memory_of(
    text: str, topic: int, *, at: datetime, cluster: ClusterId | None = None, session_count: int = 0
) -> Memory:
    """Settled where it has a cluster, else fresh."""
    return Memory(
        id=MemoryId(str(uuid.uuid4())),
        being_id=SCOPE.being_id,
        scene=Scene(action=f"topic{topic} {text}", when=(at.date().isoformat(),)),
        provenance=Provenance(tool="benchmark", session_id=f"{at.date()}"),
        created_at=at,
        happened_at=at,
        importance=IMPORTANCE,
        fresh=cluster is None,
        cluster_id=cluster,
        session_count=session_count,
    )


def batch_of(memories: Sequence[Memory]) -> StoreBatch:
    vectors = {memory.content_hash: vector_of(memory.embed_text) for memory in memories}
    return StoreBatch(new=tuple(memories), model=MODEL, vectors=vectors)


class MadeUpEmbedder:
    """A `TextModel`: made-up vectors, but for texts without a topic where there is a real model."""

    def __init__(self, real: DenseEmbedder | None = None) -> None:
        self._real = real

    @property
    def model(self) -> ModelName:
        return MODEL

    def coverage(self, text: str) -> float:
        return 1.0

    async def dimension(self) -> int:
        return packaged.DIM

    async def warm_up(self) -> None:
        if self._real:
            await self._real.warm_up()

    async def close(self) -> None:
        if self._real:
            await self._real.close()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._real and not any(_TOPIC.search(text) for text in texts):
            return await self._real.embed(texts)
        return np.stack([vector_of(text) for text in texts])

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) // 4 for text in texts]


async def fill(data_dir: Path, count: int, *, idle_nights: int = 1) -> None:
    """`count` settled memories in clusters of `CLUSTER`, last activated up to `idle_nights` ago."""
    await asyncio.to_thread(data_dir.mkdir, mode=0o700, parents=True)
    told = list(texts(count, seed=count))
    roots = [_root(name) for name in ("Business", "Private")]
    async with open_ledger(data_dir / LEDGER) as ledger:
        written: list[Memory] = []
        clusters: list[Cluster] = [*roots]
        vectors: dict[ContentHash, Vector] = {}
        for start in range(0, count, CLUSTER):
            topic = start // CLUSTER
            id_ = ClusterId(str(uuid.uuid4()))
            members = [
                memory_of(
                    text,
                    topic,
                    at=STARTED - timedelta(days=(start + i) % 400 + 1),
                    cluster=id_,
                    session_count=(start + i) % idle_nights,
                )
                for i, text in enumerate(told[start : start + CLUSTER])
            ]
            batch = batch_of(members)
            written += batch.new
            vectors |= batch.vectors
            clusters.append(
                Cluster(
                    id=id_,
                    being_id=SCOPE.being_id,
                    name=f"topic{topic}",
                    parent_id=roots[topic % 2].id,
                    vector=mean_vector(np.stack(list(batch.vectors.values()))),
                    model=MODEL,
                )
            )
            if len(written) >= WRITTEN_AT_ONCE or start + CLUSTER >= count:
                await ledger.commit(SCOPE, StoreBatch(new=tuple(written), model=MODEL, vectors=vectors))
                written, vectors = [], {}
        async with ledger.patrol(SCOPE) as transaction:
            await transaction.apply(PatrolChanges(clusters=tuple(clusters)), run=RunId("fill"), step="fill")
        await ledger.checkpoint()


def _root(name: str) -> Cluster:
    id_ = ClusterId(str(uuid.uuid4()))
    return Cluster(id=id_, being_id=SCOPE.being_id, name=name, parent_id=id_, is_root=True)


def newcomers(settled: int, *, night: int) -> list[Memory]:
    """The same number to as many clusters, however many are settled."""
    chance = random.Random(night)
    known = chance.sample(range(settled // CLUSTER), TO_CLUSTERS // 3)
    topics = [topic for topic in known for _ in range(3)]
    fresh = (NEW - TO_CLUSTERS) // NEW_GROUP
    topics += [10_000_000 + night * fresh + group for group in range(fresh) for _ in range(NEW_GROUP)]
    told = texts(NEW, seed=1_000 + night)
    return [memory_of(text, topic, at=STARTED) for text, topic in zip(told, topics, strict=True)]


@asynccontextmanager
async def opened(
    data_dir: Path, count: int, *, idle_nights: int = 1, real: DenseEmbedder | None = None, background: bool = False
) -> AsyncIterator[OpenMemory]:
    await fill(data_dir, count, idle_nights=idle_nights)
    settings = Settings(data_dir=data_dir, being=SCOPE.being_id)
    async with open_memory(settings, embedder=MadeUpEmbedder(real), background=background) as memory:
        await memory.embedder.warm_up()
        if real:
            await memory.index.optimize()
        yield memory


# --- a patrol, timed --------------------------------------------------------------------------------------------


@dataclass
class Timed:
    """Milliseconds by part, in order: the steps, `offers` (what is handed out, and the report), `index`."""

    parts: dict[str, float] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    """Of the journal, by step."""
    counts: dict[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(self.parts.values())


async def patrol(memory: OpenMemory, data_dir: Path, *, offer_pending: bool = True) -> Timed:
    timed = Timed()
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

    services = PatrolServices(ledger=memory.ledger, words=memory.index, embedder=memory.embedder, now=lambda: STARTED)
    run = Patrol(services, memory.ledger.activations, update_index=memory.keeper.catch_up, on_event=on_event)
    report = await run(SCOPE, on_progress=step, offer_pending=offer_pending)
    lap("index")
    timed.counts = {one.name: one.counts for one in report.steps}
    with sqlite3.connect(f"file:{data_dir / LEDGER}?mode=ro", uri=True) as ledger:
        timed.rows = dict(
            ledger.execute("SELECT step, count(*) FROM patrol_changes WHERE run_id = ? GROUP BY step", (report.run_id,))
        )
    return timed


async def reads(memory: OpenMemory) -> dict[str, float]:
    """Milliseconds of what looks at everything, medians of 5."""
    view = memory.ledger.patrol_reads(SCOPE)
    wanted: Mapping[str, Callable[[], Awaitable[object]]] = {
        "clusters with their vectors": view.clusters,
        "counts by cluster": view.cluster_counts,
        "sessions": view.sessions,
        "unclustered": lambda: view.unclustered(limit=2_000),
        "fading": view.with_outdated_status,
        "recalled dead": view.recalled_dead,
    }
    found = {}
    for name, read in wanted.items():
        times = []
        for _ in range(5):
            began = time.perf_counter()
            await read()
            times.append(1000 * (time.perf_counter() - began))
        found[name] = round(median(times), 2)
    return found


def medians(nights: Sequence[Timed]) -> dict[str, Any]:
    parts = {part: round(median(night.parts[part] for night in nights), 1) for part in nights[0].parts}
    return {
        "ms": parts,
        "total ms": round(median(night.total for night in nights), 1),
        "journal rows": {step: round(median(n.rows.get(step, 0) for n in nights)) for step in nights[0].rows},
        "counts": {step: dict(counts) for step, counts in nights[-1].counts.items()},
    }


# --- growth -----------------------------------------------------------------------------------------------------


async def growth(folder: Path, sizes: Sequence[int], nights: int) -> dict[str, Any]:
    """The stores take turns, so that both are measured in the same minutes. The first night warms up."""
    timed: dict[int, list[Timed]] = defaultdict(list)
    async with AsyncExitStack() as stack:
        stores = {
            size: await stack.enter_async_context(opened(folder / f"growth-{size}", size)) for size in sizes
        }  # fmt: skip
        for night in range(nights + 1):
            for size, memory in stores.items():
                await memory.ledger.commit(SCOPE, batch_of(newcomers(size, night=night)))
                await memory.keeper.catch_up()
                found = await patrol(memory, folder / f"growth-{size}")
                if night:
                    timed[size].append(found)
        return {
            str(size): medians(timed[size]) | {"reads ms": await reads(memory)} for size, memory in stores.items()
        }  # fmt: skip


# --- idle -------------------------------------------------------------------------------------------------------


async def idle(folder: Path, size: int, nights: int) -> dict[str, Any]:
    data_dir = folder / "idle"
    began = time.perf_counter()
    async with opened(data_dir, size, idle_nights=FADES - nights) as memory:
        ready = time.perf_counter() - began
        found = [await patrol(memory, data_dir, offer_pending=False) for _ in range(nights)]
        # The memories that have waited longest fade on the last night but none before.
        fading = await patrol(memory, data_dir, offer_pending=False)
        return {
            "memories": size,
            "seconds to make the store": round(ready, 1),
            "none fades": medians(found),
            "some fade": medians([fading]),
            "reads ms": await reads(memory),
        }


# --- recall -----------------------------------------------------------------------------------------------------


async def recalls(memory: OpenMemory, asked: Sequence[str], until: Callable[[], bool]) -> list[float]:
    """Milliseconds of each, one after the other."""
    found: list[float] = []
    for text in asked:
        if until():
            break
        began = time.perf_counter()
        await memory.use.recall(SCOPE, Query(text=text))
        found.append(1000 * (time.perf_counter() - began))
    return found


async def recall_meanwhile(folder: Path, size: int, rounds: int) -> dict[str, Any]:
    """Each round: as many recalls at rest as came between the beginning and the end of the patrol before."""
    real = DenseEmbedder(Settings().embedding_model, folder / "models")
    data_dir = folder / "recall"
    asked = iter(questions(1_000_000, seed=3))
    wait_until_idle: list[float] = []
    during: list[float] = []
    by_round: list[dict[str, float]] = []
    nights: list[Timed] = []
    async with opened(data_dir, size, real=real, background=True) as memory:
        await recalls(memory, [next(asked) for _ in range(50)], lambda: False)
        for night in range(rounds + 1):
            await memory.ledger.commit(SCOPE, batch_of(newcomers(size, night=night)))
            await memory.keeper.catch_up()
            rest = await recalls(memory, [next(asked) for _ in range(60)], lambda: False)
            patrolling = asyncio.create_task(patrol(memory, data_dir))
            meanwhile = await recalls(memory, [next(asked) for _ in range(10_000)], patrolling.done)
            night_timed = await patrolling
            if night:
                wait_until_idle += rest
                during += meanwhile
                nights.append(night_timed)
                by_round.append({"rest": p95(rest), "during": p95(meanwhile)})
    return {
        "memories": size,
        "rounds": rounds,
        "recalls at rest": len(wait_until_idle),
        "recalls during": len(during),
        "p50 ms at rest": round(median(wait_until_idle), 2),
        "p50 ms during": round(median(during), 2),
        "p95 ms at rest": p95(wait_until_idle),
        "p95 ms during": p95(during),
        "p95 ratio": round(p95(during) / p95(wait_until_idle), 2),
        "p95 ratio, median of rounds": round(median(one["during"] / one["rest"] for one in by_round), 2),
        "longest ms during": round(max(during), 1),
        "patrol": medians(nights),
    }


def p95(values: Sequence[float]) -> float:
    return round(quantiles(values, n=20, method="inclusive")[-1], 2)


# --- telling ----------------------------------------------------------------------------------------------------


def tables(found: Mapping[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """(title, columns, rows)"""
    shown = []
    if sizes := found.get("growth"):
        small, large = sizes.values()
        rows = [
            *(_compared(part, small["ms"][part], large["ms"].get(part, 0.0)) for part in small["ms"]),
            _compared("all", small["total ms"], large["total ms"]),
            _compared("journal rows", sum(small["journal rows"].values()), sum(large["journal rows"].values())),
            *(_compared(f"read: {name}", ms, large["reads ms"][name]) for name, ms in small["reads ms"].items()),
        ]
        names = [f"{int(size):,}" for size in sizes]
        shown.append((f"A patrol that takes in {NEW} memories, ms", ["", *names, "ratio"], rows))
    if of_idle := found.get("idle"):
        parts = [*of_idle["none fades"]["ms"]]
        rows = [[p, *(f"{of_idle[n]['ms'].get(p, 0.0):.1f}" for n in ("none fades", "some fade"))] for p in parts]
        rows.append(["all", *(f"{of_idle[n]['total ms']:.1f}" for n in ("none fades", "some fade"))])
        dying = of_idle["some fade"]["counts"]["flag"]["dying"]
        shown.append(
            (f"A patrol of {of_idle['memories']:,} idle memories, ms", ["", "none fades", f"{dying:,} fade"], rows)
        )
        shown.append(
            ("Reads, ms", ["", "ms"], [[name, f"{ms:.1f}"] for name, ms in of_idle["reads ms"].items()])
        )  # fmt: skip
    if of_recall := found.get("recall"):
        rows = [
            [percentile, *(f"{of_recall[f'{percentile} ms {when}']:.1f}" for when in ("at rest", "during")),
             f"{of_recall[f'{percentile} ms during'] / of_recall[f'{percentile} ms at rest']:.2f}"]
            for percentile in ("p50", "p95")
        ]  # fmt: skip
        title = f"Recall over {of_recall['memories']:,} memories, ms ({of_recall['recalls during']} during patrols)"
        shown.append((title, ["", "at rest", "during a patrol", "ratio"], rows))
    return shown


def _compared(name: str, small: float, large: float) -> list[str]:
    ratio = f"{large / small:.2f}" if small else ""
    return [name, f"{small:,.1f}", f"{large:,.1f}", ratio]


def show(console: Console, found: Mapping[str, Any]) -> None:
    for title, columns, rows in tables(found):
        table = Table(*columns, title=title)
        for cells in rows:
            table.add_row(*cells)
        console.print(table)


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    wanted = arguments.parts.split(",")
    with tempfile.TemporaryDirectory(prefix="madeleine-") as name:
        folder = Path(name)
        if "growth" in wanted:
            sizes = [int(size) for size in arguments.sizes.split(",")]
            found["growth"] = await growth(folder, sizes, arguments.nights)
        if "recall" in wanted:
            found["recall"] = await recall_meanwhile(folder, arguments.recalled, arguments.rounds)
        if "idle" in wanted:
            found["idle"] = await idle(folder, arguments.idle, arguments.nights)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="growth,recall,idle", help="by comma")
    parser.add_argument("--sizes", default="2000,20000", help="growth: settled memories of the two stores")
    parser.add_argument("--nights", type=int, default=5, help="growth, idle: patrols that are measured")
    parser.add_argument("--recalled", type=int, default=10_000, help="recall: memories")
    parser.add_argument("--rounds", type=int, default=20, help="recall: patrols")
    parser.add_argument("--idle", type=int, default=100_000, help="idle: memories")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    found = asyncio.run(run(arguments))
    show(Console(width=120), found)
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "patrol.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
