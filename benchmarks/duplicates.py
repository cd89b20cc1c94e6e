"""Are repeated facts recognised and changed facts kept apart (spec T6)? `python -m benchmarks.duplicates`.

Pairs of made-up sentences (`made_up_sentences.py`) are stored by the use case behind `store`, with the real model,
ledger and index, N pairs of each sort in one store of one being:

- *near-identical*: the same words with one fact changed, a digit, a name, a date or a negation. No second sentence may
  reinforce the first.
- *paraphrased*: the same facts in other words. Each second sentence should reinforce the first, or be linked to it.
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

from benchmarks.made_up_sentences import CHANGES, sentences
from madeleine.memory.ingest.store import NewScene, Stored, StoreScenes
from madeleine.memory.model import BeingId, Scene, Scope
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory

ADA = Scope(BeingId("ada"))
BATCH_SIZE = 50
RESULTS = Path(__file__).parent / "results"


@dataclass
class Outcome:
    """Counts over the second sentences. `right`: reinforced, or was linked to, the first sentence of its own pair."""

    pairs: int = 0
    reinforced: int = 0
    linked: int = 0
    right: int = 0
    merged: Counter[str] = field(default_factory=Counter)
    """Near-identical sentences that reinforced another, by what was changed."""
    missed: list[tuple[str, str]] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs,
            "reinforced": self.reinforced,
            "linked": self.linked,
            "recognised, %": round(100 * (self.reinforced + self.linked) / self.pairs, 1),
            "to the right one, %": round(100 * self.right / self.pairs, 1),
        }


async def store_all(store: StoreScenes, texts: Sequence[str]) -> list[Stored]:
    answers: list[Stored] = []
    for start in range(0, len(texts), BATCH_SIZE):
        batch = texts[start : start + BATCH_SIZE]
        answers += await store(ADA, [NewScene(scene=Scene(action=text)) for text in batch])
    return answers


async def run(store: StoreScenes, pairs: int, *, seed: int = 20) -> tuple[Outcome, Outcome, float]:
    """(near-identical, paraphrased, percentage of first sentences that were linked to another)."""
    rng = random.Random(seed)
    sources = list(itertools.islice(sentences(seed), 2 * pairs))
    changes = [CHANGES[at % len(CHANGES)] for at in range(pairs)]
    first = [source.text() for source in sources]
    second: list[str] = []
    for at, source in enumerate(sources):
        text = first[at]
        # No sentence may equal another one by accident.
        while text in {*first, *second}:
            text = source.with_changed(changes[at], rng).text() if at < pairs else source.paraphrased(rng)
        second.append(text)
    before = await store_all(store, first)
    assert all(stored.status == "stored" for stored in before), "a first sentence was taken for a repetition"
    after = await store_all(store, second)
    near, paraphrased = Outcome(pairs=pairs), Outcome(pairs=pairs)
    for at, (was, now) in enumerate(zip(before, after, strict=True)):
        outcome = near if at < pairs else paraphrased
        outcome.reinforced += now.status == "reinforced"
        outcome.linked += now.resembles is not None
        outcome.right += was.memory.id in (now.memory.id, now.resembles)
        if at < pairs and now.status == "reinforced":
            near.merged[changes[at]] += 1
            near.missed.append((first[at], second[at]))
        if at >= pairs and now.status == "stored" and now.resembles is None:
            paraphrased.missed.append((first[at], second[at]))
    return near, paraphrased, 100 * sum(stored.resembles is not None for stored in before) / len(before)


async def measure(pairs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
        async with open_memory(Settings(data_dir=Path(folder)), background=False) as memory:
            began = time.perf_counter()
            near, paraphrased, at_first = await run(memory.use.store, pairs)
            seconds = time.perf_counter() - began
    for first, second in [*near.missed, *paraphrased.missed[:20]]:
        print(f"- {first}\n  {second}")
    return {
        "near-identical": near.figures() | {"merged": dict(near.merged), "merged in all": sum(near.merged.values())},
        "paraphrased": paraphrased.figures(),
        "first sentences linked to another, %": round(at_first, 1),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000, help="pairs of each sort")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    figures = asyncio.run(measure(arguments.pairs))
    table = Table("", "pairs", "reinforced", "linked", "recognised, %", "to the right one, %", "merged")
    for name in ("near-identical", "paraphrased"):
        row = figures[name]
        cells = [row[key] for key in ("pairs", "reinforced", "linked", "recognised, %", "to the right one, %")]
        table.add_row(name, *map(str, cells), str(row.get("merged in all", "")))
    Console(width=110).print(table)
    linked = figures["first sentences linked to another, %"]
    print(f"First sentences linked to another: {linked} %. {figures['seconds']} s.")
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "duplicates.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
