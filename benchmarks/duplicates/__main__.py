"""`python -m benchmarks.duplicates`: the use case behind `store`, with the real model, ledger and index, is told facts
again, made-up ones (`made_up.py`) and hand-written ones (`hand_written.py`), and facts that have changed."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.duplicates import hand_written, made_up
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store

RESULTS = Path(__file__).parents[1] / "results"


async def measure(pairs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
        async with open_memory_store(Settings(data_dir=Path(folder)), background=False) as memory:
            began = time.perf_counter()
            store = memory.use_cases.store
            near, paraphrased, strays = await made_up.run(store, pairs)
            counts: Counter[tuple[str, str, str, str]] = Counter()
            for language in hand_written.languages():
                counts += await hand_written.run(store, language)
            seconds = time.perf_counter() - began
    for first, second in near.missed:
        print(f"- {first}\n  {second}")
    return {
        "near-identical": near.figures() | {"merged": dict(near.merged), "merged in all": sum(near.merged.values())},
        "paraphrased": paraphrased.figures(),
        "first sentences linked to one about something else, %": round(strays, 1),
        "hand-written": {name: dict(outcomes) for name, outcomes in hand_written.rows(counts)},
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000, help="made-up pairs of each sort")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    figures = asyncio.run(measure(arguments.pairs))
    made = Table("made up", "pairs", "reinforced", "linked", "recognised, %", "to the right one, %", "merged")
    for name in ("near-identical", "paraphrased"):
        row = figures[name]
        cells = [row[key] for key in ("pairs", "reinforced", "linked", "recognised, %", "to the right one, %")]
        made.add_row(name, *map(str, cells), str(row.get("merged in all", "")))
    told = Table("written by hand", "told", "reinforced", "linked", "to the right one")
    for name, outcomes in figures["hand-written"].items():
        told.add_row(name, *(str(outcomes.get(key, 0)) for key in ("told", "reinforced", "linked", "right")))
    console = Console(width=110)
    console.print(made, told)
    strays = figures["first sentences linked to one about something else, %"]
    print(f"First made-up sentences linked to one about something else: {strays} %. {figures['seconds']} s.")
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "duplicates.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
