"""Response times over stdio: `python -m benchmarks.latency`.

A store is filled with N made-up memories. Then the real MCP client calls `recall` and `store` on the real server, one
call at a time: first with `--in-process`, then through a host ("hosted"). Beside each call, in the same minute and on
the same machine, the bare embedding of the same text in fp32 is timed in this process: the model alone, one text, no
cache. The figures are milliseconds, and their ratios; and the characters of recalls of three memories beside what those
say.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult
from rich.console import Console
from rich.table import Table

from benchmarks.made_up_scenes import questions, scenes, texts
from madeleine.inference import FP32_MODEL_NAME
from madeleine.inference.dense import load_embedding_model
from madeleine.memory.model import BeingId, Scope
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store

BEING = "benchmark"
FILL_BATCH = 256
WARM_UP = 20
CALLS = ("recall", "store", "recall, hosted", "store, hosted")
ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"


@dataclass
class Timing:
    """Milliseconds of each call, and of the bare embedding of the same text."""

    calls: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        figures: dict[str, float] = {}
        for percent in (50, 95):
            call, bare = (quantiles(values, n=100)[percent - 1] for values in (self.calls, self.bare))
            figures |= {f"p{percent} ms": call, f"bare p{percent} ms": bare, f"p{percent} ratio": call / bare}
        return {name: round(value, 2) for name, value in figures.items()}


async def fill(data_dir: Path, count: int) -> float:
    """Fill the store. Returns memories per second."""
    memories = list(scenes(count, seed=1))
    async with open_memory_store(Settings(data_dir=data_dir, being=BEING)) as memory:
        await memory.embedder.warm_up()
        started = time.perf_counter()
        for start in range(0, count, FILL_BATCH):
            await memory.use_cases.store(Scope(BeingId(BEING), "benchmark"), memories[start : start + FILL_BATCH])
        seconds = time.perf_counter() - started
        await memory.index_keeper.index_marked_memories()
        await memory.index.optimize_if_worthwhile()
    return count / seconds


async def measure(
    inputs: Sequence[str], bare: Callable[[str], object], call: Callable[[str], Awaitable[CallToolResult]]
) -> Timing:
    timing = Timing()
    for number, text in enumerate(inputs):
        started = time.perf_counter()
        bare(text)
        between = time.perf_counter()
        answer = await call(text)
        ended = time.perf_counter()
        if answer.is_error:
            raise RuntimeError(f"the server refused: {answer.content}")
        if number >= WARM_UP:
            timing.bare.append(1000 * (between - started))
            timing.calls.append(1000 * (ended - between))
    return timing


TOLD_FIELDS = ("text", "lesson", "before", "feeling")
"""What a memory says; all else of an answer is overhead."""


def overhead_chars(answer: Any) -> int:
    """Characters of an answer, or of a memory in it, beside what the memories say."""
    memories = [answer] if "id" in answer else [*answer["memories"], *answer.get("preferences", ())]
    told = sum(len(_compact(memory[name])) - 2 for memory in memories for name in TOLD_FIELDS if name in memory)
    return len(_compact(answer)) - told


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def measure_answers(client: Client, inputs: Sequence[str]) -> dict[str, int]:
    """Overhead of recalls of three memories, the median and the greatest, and the greatest of a memory."""
    calls = [await client.call_tool("recall", {"query": text, "format": "memories"}) for text in inputs]
    answers = [call.structured_content for call in calls if call.structured_content]
    recalls = sorted(overhead_chars(answer) for answer in answers if len(answer["memories"]) == 3)
    if not recalls:
        return {}
    memories = [overhead_chars(memory) for answer in answers for memory in answer["memories"]]
    return {"recalls": len(recalls), "median": recalls[len(recalls) // 2], "most": recalls[-1], "memory": max(memories)}


async def over_stdio(
    data_dir: Path, model_dir: Path, calls: int, *, hosted: bool = False
) -> tuple[dict[str, Timing], dict[str, int]]:
    fp32 = load_embedding_model(FP32_MODEL_NAME, model_dir)

    def bare(text: str) -> object:
        return fp32.embed([text])

    environment = {"MADELEINE_DATA_DIR": str(data_dir), "MADELEINE_BEING": BEING, "MADELEINE_LOG_LEVEL": "warning"}
    environment |= {"MADELEINE_PATROL_AUTO": "false"}  # no patrol during a measurement
    command = ["-m", "madeleine"]
    server = StdioServerParameters(
        command=sys.executable, args=command + ([] if hosted else ["--in-process"]), env=environment, cwd=ROOT
    )
    try:
        async with Client(stdio_client(server)) as client:
            timings = {
                "recall": await measure(
                    list(questions(calls + WARM_UP, seed=2 + hosted)),
                    bare,
                    lambda text: client.call_tool("recall", {"query": text}),
                ),
                "store": await measure(
                    list(texts(calls + WARM_UP, seed=4 + hosted)),
                    bare,
                    lambda text: client.call_tool("store", {"text": text}),
                ),
            }
            return timings, await measure_answers(client, list(questions(calls, seed=2 + hosted)))
    finally:
        if hosted:
            await asyncio.to_thread(
                subprocess.run, [sys.executable, *command, "stop"], env=environment, cwd=ROOT, check=True
            )


async def run(sizes: Sequence[int], calls: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
            data_dir = Path(folder) / "data"
            rate = await fill(data_dir, size)
            timings, overhead = await over_stdio(data_dir, Path(folder), calls)
            through_host, _ = await over_stdio(data_dir, Path(folder), calls, hosted=True)
            timings |= {f"{call}, hosted": timing for call, timing in through_host.items()}
            figures[str(size)] = {"bulk memories/s": round(rate, 1), "overhead chars": overhead}
            figures[str(size)] |= {call: timing.figures() for call, timing in timings.items()}
    return figures


def show(figures: dict[str, Any], calls: int) -> None:
    columns = list(next(iter(figures.values()))["recall"])
    table = Table("memories", "call", *columns, title=f"Over stdio, {calls} calls each")
    for size, of_size in figures.items():
        for call in CALLS:
            table.add_row(size, call, *(f"{of_size[call][column]:.2f}" for column in columns))
    Console(width=140).print(table)
    for size, of_size in figures.items():
        if overhead := of_size["overhead chars"]:
            recalls = f"{overhead['recalls']} recalls of three: {overhead['median']} characters beside what they say"
            print(f"{size} memories, {recalls}, at most {overhead['most']}; of a memory at most {overhead['memory']}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000", help="memories in the store, comma-separated")
    parser.add_argument("--calls", type=int, default=500, help="timed calls of each tool")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    figures = asyncio.run(run(sizes, arguments.calls))
    show(figures, arguments.calls)
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "latency.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
