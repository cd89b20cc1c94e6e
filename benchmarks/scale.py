"""What grows with the number of memories: `python -m benchmarks.scale`.

Stores of made-up memories with made-up vectors in groups of eight are written straight into the ledger
(`benchmarks.patrol.made_up_store`); the product builds the real index over them, and its graph. Then the use cases
behind the tools are called in this process, one after the other; the real model embeds queries and new scenes.

`loop` is the longest time for which the event loop, and so every other call, waited while one was under way. A
forgotten memory is looked for in an answer at once, and its words in every byte of the files when the ledger says that
they are gone. Disk is what all files hold beside the text of the memories.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.made_up_scenes import questions, scenes
from benchmarks.patrol.made_up_store import SCOPE, batch_of, new_memories, open_store
from benchmarks.patrol.measurements import p95
from madeleine.inference.dense import DenseEmbedder
from madeleine.memory.keyword_search import KeywordQuery
from madeleine.memory.recall.search import split_search_terms
from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore

RESULTS = Path(__file__).parent / "results"
TICK_SECONDS = 0.001
RARE_WORDS = ("xylophone", "zeppelin", "quagmire", "yurt", "wolverine", "jacaranda", "obsidian", "tamarind")
ROUNDS = len(RARE_WORDS)
MAX_ERASURE_SECONDS = 600


class LongestBlock:
    """The longest time for which a task that wants to run each millisecond did not."""

    def __init__(self) -> None:
        self.milliseconds = 0.0

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._tick())
        await asyncio.sleep(2 * TICK_SECONDS)
        self.milliseconds = 0.0
        try:
            yield
        finally:
            await asyncio.sleep(2 * TICK_SECONDS)
            task.cancel()

    async def _tick(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(TICK_SECONDS)
            self.milliseconds = max(self.milliseconds, 1000 * (time.perf_counter() - began - TICK_SECONDS))


async def timed(calls: list[Callable[[], Awaitable[Any]]]) -> dict[str, float]:
    """Milliseconds of the calls, one after the other: p50, p95 of several, longest block of the loop."""
    took = []
    block = LongestBlock()
    async with block.watched():
        for call in calls:
            began = time.perf_counter()
            await call()
            took.append(1000 * (time.perf_counter() - began))
    times = {"p50 ms": round(median(took), 1)} | ({"p95 ms": p95(took)} if len(took) > 1 else {})
    return times | {"loop ms": round(block.milliseconds, 1)}


async def measure(folder: Path, size: int, calls: int) -> dict[str, Any]:
    data_dir = folder / str(size)
    began = time.perf_counter()
    real = DenseEmbedder(Settings().embedding_model, folder / "models")
    async with open_store(data_dir, size, real=real, background=True) as memory:
        figures: dict[str, Any] = {"seconds to make the store": round(time.perf_counter() - began, 1)}
        figures["disk bytes a memory"] = disk_bytes_a_memory(data_dir, await mean_text_bytes(memory), size)
        use = memory.use_cases
        recalls = [RecallQuery(text=text) for text in questions(calls + 30, seed=3)]
        await timed([lambda query=query: use.recall(SCOPE, query) for query in recalls[:30]])  # type: ignore[misc]
        figures["recall"] = await timed(
            [lambda query=query: use.recall(SCOPE, query) for query in recalls[30:]]  # type: ignore[misc]
        )
        new = list(scenes(calls, seed=size + 1))
        figures["store"] = await timed([lambda scene=scene: use.store(SCOPE, [scene]) for scene in new])  # type: ignore[misc]
        figures |= await measure_search(memory)
        figures["forget"], figures["erased from the bytes"] = await measure_forgetting(memory, data_dir)
        await memory.ledger.memories.commit_store_batch(SCOPE, batch_of(new_memories(size, night=1)))
        await memory.index_keeper.index_marked_memories()
        figures["patrol"] = await timed([lambda: use.patrol(SCOPE)])
        [last] = await use.patrol.runs(SCOPE, limit=1)
        figures["undo of the patrol"] = await timed([lambda: use.patrol.undo_patrol(SCOPE, last.id)])
        figures["resident MB"], figures["of it our own, MB"] = resident_megabytes()
    return figures


async def measure_search(memory: OpenedMemoryStore) -> dict[str, Any]:
    search = memory.use_cases.search
    rare = [
        KeywordQuery(terms=split_search_terms(f"paid {number} euros"), mode="and") for number in range(3, 3 + ROUNDS)
    ]
    absent = [KeywordQuery(terms=split_search_terms(word)) for word in RARE_WORDS]
    message = "Which book about the harbour did Keiko read before the summer holiday?"
    return {
        "search, all of several words": await timed([lambda query=query: search(SCOPE, query) for query in rare]),  # type: ignore[misc]
        "search, an absent word": await timed([lambda query=query: search(SCOPE, query) for query in absent]),  # type: ignore[misc]
        "search by a message": await timed(
            [lambda: search.search_by_tags_of_message(SCOPE, message, KeywordQuery(terms=(), limit=10))] * ROUNDS
        ),
    }


async def measure_forgetting(memory: OpenedMemoryStore, data_dir: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Figures of one `forget` until its answer, and of the time until no byte of the files has the words."""
    word = "quicksilverfish"
    scene = next(scenes(1, seed=7))
    [stored] = await memory.use_cases.store(
        SCOPE, [replace(scene, scene=replace(scene.scene, action=f"The {word} lives behind the boiler."))]
    )
    await memory.index_keeper.index_marked_memories()
    answered = await timed([lambda: memory.use_cases.forget(SCOPE, [stored.memory.id])])
    recalled = await memory.use_cases.recall(SCOPE, RecallQuery(text=f"Where does the {word} live?"))
    if stored.memory.id in [memory.id for memory, _ in recalled.memories]:
        raise RuntimeError("what was forgotten is still recalled")
    scrubber = memory.use_cases.forget.scrubber
    erased = await timed([lambda: scrubber.request_and_wait(within_seconds=MAX_ERASURE_SECONDS)])
    if (await memory.ledger.erasure.read_scrub_backlog()).pending:
        raise RuntimeError("the bytes of what was forgotten are still there")
    if files := await asyncio.to_thread(files_with, word, data_dir):
        raise RuntimeError(f"what was forgotten is still in {files}")
    return answered, erased


def files_with(word: str, folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def disk_bytes_a_memory(data_dir: Path, text_bytes: float, size: int) -> dict[str, int]:
    """Beside its text, of all files, and of those of the index."""
    files = {path: path.stat().st_blocks * 512 for path in data_dir.rglob("*") if path.is_file()}
    of_index = sum(length for path, length in files.items() if path.relative_to(data_dir).parts[0] == "index")
    return {"all": round(sum(files.values()) / size - text_bytes), "index": round(of_index / size)}


async def mean_text_bytes(memory: OpenedMemoryStore) -> float:
    page = await memory.ledger.index_source.memories_after_id(after=None, limit=1_000)
    return sum(len(one.scene.action.encode()) for one in page) / len(page)


def resident_megabytes() -> tuple[int, int]:
    """Of this process: all, and without the pages of files, which the system reclaims when it needs them."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    kilobytes = {
        line.split(":")[0]: line.split()[1] for line in status.splitlines() if ":" in line and line.split()[1:]
    }
    return int(kilobytes["VmRSS"]) // 1024, int(kilobytes["RssAnon"]) // 1024


def show(console: Console, figures: dict[str, dict[str, Any]]) -> None:
    table = Table("", *(f"{int(size):,}" for size in figures), title="What grows")
    for name, first in next(iter(figures.values())).items():
        parts = first if isinstance(first, dict) else {"": first}
        for part in parts:
            values = (of_size[name][part] if part else of_size[name] for of_size in figures.values())
            table.add_row(f"{name} {part}".strip(), *map(str, values))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000", help="comma-separated numbers of memories")
    parser.add_argument("--calls", type=int, default=300, help="recalls and stores that are measured")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    figures = {}
    for size in map(int, arguments.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
            figures[str(size)] = asyncio.run(measure(Path(folder), size, arguments.calls))
            show(Console(width=120), figures)
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "scale.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
