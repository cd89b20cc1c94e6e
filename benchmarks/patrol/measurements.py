"""The three measurements: growth, idle, recall."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.made_up_scenes import questions
from benchmarks.patrol.made_up_store import FADES, SCOPE, batch_of, new_memories, open_store
from benchmarks.patrol.timing import TimedPatrol, medians, timed_patrol, timed_reads
from madeleine.inference.dense import DenseEmbedder
from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore


async def growth(folder: Path, sizes: Sequence[int], nights: int) -> dict[str, Any]:
    """Patrol stores of each size in turn, so that all are measured in the same minutes. The first night warms up."""
    timed: dict[int, list[TimedPatrol]] = defaultdict(list)
    async with AsyncExitStack() as stack:
        stores = {
            size: await stack.enter_async_context(open_store(folder / f"growth-{size}", size)) for size in sizes
        }  # fmt: skip
        for night in range(nights + 1):
            for size, memory in stores.items():
                await memory.ledger.memories.commit_store_batch(SCOPE, batch_of(new_memories(size, night=night)))
                await memory.index_keeper.index_marked_memories()
                patrol = await timed_patrol(memory, folder / f"growth-{size}")
                if night:
                    timed[size].append(patrol)
        return {
            str(size): medians(timed[size]) | {"reads ms": await timed_reads(memory)} for size, memory in stores.items()
        }  # fmt: skip


async def idle(folder: Path, size: int, nights: int) -> dict[str, Any]:
    data_dir = folder / "idle"
    began = time.perf_counter()
    async with open_store(data_dir, size, idle_nights=FADES - nights) as memory:
        ready = time.perf_counter() - began
        patrols = [await timed_patrol(memory, data_dir, offer_pending=False) for _ in range(nights)]
        # The memories that have waited longest fade on the last night but none before.
        fading = await timed_patrol(memory, data_dir, offer_pending=False)
        return {
            "memories": size,
            "seconds to make the store": round(ready, 1),
            "none fades": medians(patrols),
            "some fade": medians([fading]),
            "reads ms": await timed_reads(memory),
        }


async def timed_recalls(memory: OpenedMemoryStore, queries: Sequence[str], stop: Callable[[], bool]) -> list[float]:
    """Milliseconds of each recall, one after the other, until `stop()` is true."""
    milliseconds: list[float] = []
    for text in queries:
        if stop():
            break
        began = time.perf_counter()
        await memory.use_cases.recall(SCOPE, RecallQuery(text=text))
        milliseconds.append(1000 * (time.perf_counter() - began))
    return milliseconds


async def recall_during_patrols(folder: Path, size: int, rounds: int) -> dict[str, Any]:
    """Time recalls one after the other: in each round, some at rest and then as many as fit into one patrol."""
    real = DenseEmbedder(Settings().embedding_model, folder / "models")
    data_dir = folder / "recall"
    queries = iter(questions(1_000_000, seed=3))
    at_rest: list[float] = []
    during: list[float] = []
    by_round: list[dict[str, float]] = []
    patrols: list[TimedPatrol] = []
    async with open_store(data_dir, size, real=real, background=True) as memory:
        await timed_recalls(memory, [next(queries) for _ in range(50)], lambda: False)
        for night in range(rounds + 1):
            await memory.ledger.memories.commit_store_batch(SCOPE, batch_of(new_memories(size, night=night)))
            await memory.index_keeper.index_marked_memories()
            at_rest_now = await timed_recalls(memory, [next(queries) for _ in range(60)], lambda: False)
            running = asyncio.create_task(timed_patrol(memory, data_dir))
            meanwhile = await timed_recalls(memory, [next(queries) for _ in range(10_000)], running.done)
            timed = await running
            if night:
                at_rest += at_rest_now
                during += meanwhile
                patrols.append(timed)
                by_round.append({"rest": p95(at_rest_now), "during": p95(meanwhile)})
    return {
        "memories": size,
        "rounds": rounds,
        "recalls at rest": len(at_rest),
        "recalls during": len(during),
        "p50 ms at rest": round(median(at_rest), 2),
        "p50 ms during": round(median(during), 2),
        "p95 ms at rest": p95(at_rest),
        "p95 ms during": p95(during),
        "p95 ratio": round(p95(during) / p95(at_rest), 2),
        "p95 ratio, median of rounds": round(median(values["during"] / values["rest"] for values in by_round), 2),
        "longest ms during": round(max(during), 1),
        "patrol": medians(patrols),
    }


def p95(values: Sequence[float]) -> float:
    return round(quantiles(values, n=20, method="inclusive")[-1], 2)
