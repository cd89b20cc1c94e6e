"""What is told again is known again, what is told otherwise is kept apart (spec T6): `python -m benchmarks.duplicates`.

Made-up sentences (`told.py`) go through the use case behind `store`, with the real model, ledger and index, twice N
pairs in one store of one being:

- *near-identical*: the same words with one fact changed, a digit, a name, a date or a negation. None may be taken for
  the other.
- *told again*: the same facts in other words. Each should reinforce what it tells again, or be linked to a memory that
  it resembles.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.told import KINDS, sentences
from madeleine.memory.ingest.store import NewScene, Stored, StoreScenes
from madeleine.memory.model import BeingId, Scene
from madeleine.memory.scope import Scope
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory

ADA = Scope(BeingId("ada"))
AT_ONCE = 50
RESULTS = Path(__file__).parent / "results"


@dataclass
class Outcome:
    """Of the second of each pair. `right`: reinforced or linked the very one that it tells again."""

    pairs: int = 0
    reinforced: int = 0
    linked: int = 0
    right: int = 0
    merged: Counter[str] = field(default_factory=Counter)
    """Near-identical ones that were taken for another, by what is different."""
    missed: list[tuple[str, str]] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs,
            "reinforced": self.reinforced,
            "linked": self.linked,
            "known again, %": round(100 * (self.reinforced + self.linked) / self.pairs, 1),
            "to the right one, %": round(100 * self.right / self.pairs, 1),
        }


async def put(store: StoreScenes, texts: Sequence[str]) -> list[Stored]:
    found: list[Stored] = []
    for start in range(0, len(texts), AT_ONCE):
        some = texts[start : start + AT_ONCE]
        found += await store(ADA, [NewScene(scene=Scene(action=text)) for text in some])
    return found


async def run(store: StoreScenes, pairs: int, *, seed: int = 20) -> tuple[Outcome, Outcome, float]:
    """(near-identical, told again, share in % of first tellings that were linked to another)."""
    chance = random.Random(seed)
    told = list(itertools.islice(sentences(seed), 2 * pairs))
    kinds = [KINDS[at % len(KINDS)] for at in range(pairs)]
    first = [one.plainly() for one in told]
    second: list[str] = []
    for at, one in enumerate(told):
        text = first[at]
        # Not by chance what another one tells.
        while text in {*first, *second}:
            text = one.with_another(kinds[at], chance).plainly() if at < pairs else one.again(chance)
        second.append(text)
    before = await put(store, first)
    assert all(stored.status == "stored" for stored in before), "first tellings differ"
    after = await put(store, second)
    near, again = Outcome(pairs=pairs), Outcome(pairs=pairs)
    for at, (was, now) in enumerate(zip(before, after, strict=True)):
        outcome = near if at < pairs else again
        outcome.reinforced += now.status == "reinforced"
        outcome.linked += now.resembles is not None
        outcome.right += was.memory.id in (now.memory.id, now.resembles)
        if at < pairs and now.status == "reinforced":
            near.merged[kinds[at]] += 1
            near.missed.append((first[at], second[at]))
        if at >= pairs and now.status == "stored" and now.resembles is None:
            again.missed.append((first[at], second[at]))
    return near, again, 100 * sum(stored.resembles is not None for stored in before) / len(before)


async def measure(pairs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
        async with open_memory(Settings(data_dir=Path(folder)), background=False) as memory:
            began = time.perf_counter()
            near, again, at_first = await run(memory.use.store, pairs)
            seconds = time.perf_counter() - began
    for first, second in [*near.missed, *again.missed[:20]]:
        print(f"- {first}\n  {second}")
    return {
        "near-identical": near.figures() | {"merged": dict(near.merged), "merged in all": sum(near.merged.values())},
        "told again": again.figures(),
        "first tellings linked to another, %": round(at_first, 1),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000, help="of each sort")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments.pairs))
    table = Table("", "pairs", "reinforced", "linked", "known again, %", "to the right one, %", "merged")
    for name in ("near-identical", "told again"):
        row = found[name]
        cells = [row[key] for key in ("pairs", "reinforced", "linked", "known again, %", "to the right one, %")]
        table.add_row(name, *map(str, cells), str(row.get("merged in all", "")))
    Console(width=110).print(table)
    print(f"First tellings linked to another: {found['first tellings linked to another, %']} %. {found['seconds']} s.")
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "duplicates.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
