"""How long a patrol takes: `python -m benchmarks.patrol`.

Stores of made-up memories with made-up vectors in topical groups are written straight into the ledger; the product
builds the real index over them. The measurements run through the use cases, in this process.

growth: 200 new memories are assigned among 2,000 clustered ones and among 20,000. Time by step, rows of the journal,
and the time of the reads that scan a whole being.
idle: 100,000 memories without any activity; patrols in which no memory fades, and one in which many do.
recall: 10,000 memories, recalls one after the other without a pause, at rest and during patrols with 200 new memories
each. The real model embeds the queries.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.patrol.measurements import growth, idle, recall_during_patrols
from benchmarks.patrol.report import show

RESULTS = Path(__file__).parents[1] / "results"


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    wanted = arguments.parts.split(",")
    with tempfile.TemporaryDirectory(prefix="madeleine-") as name:
        folder = Path(name)
        if "growth" in wanted:
            sizes = [int(size) for size in arguments.sizes.split(",")]
            figures["growth"] = await growth(folder, sizes, arguments.nights)
        if "recall" in wanted:
            figures["recall"] = await recall_during_patrols(folder, arguments.recalled, arguments.rounds)
        if "idle" in wanted:
            figures["idle"] = await idle(folder, arguments.idle, arguments.nights)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="growth,recall,idle", help="comma-separated")
    parser.add_argument("--sizes", default="2000,20000", help="growth: clustered memories of the two stores")
    parser.add_argument("--nights", type=int, default=5, help="growth, idle: measured patrols")
    parser.add_argument("--recalled", type=int, default=10_000, help="recall: memories")
    parser.add_argument("--rounds", type=int, default=20, help="recall: patrols")
    parser.add_argument("--idle", type=int, default=100_000, help="idle: memories")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    figures = asyncio.run(run(arguments))
    show(Console(width=120), figures)
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "patrol.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
