"""What is true now? `python -m benchmarks.truth`, or `make truth`.

300 hand-written facts in three roles change one to three times over half a year, among other memories; beside them are
look-alikes, which are both true, and questions whose answer is the older memory. Each role is one being. The real use
cases store everything on its day by a simulated clock, twice: without any act, and with `supersedes` at each change.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.truth import material
from benchmarks.truth.material import Chain, Told
from benchmarks.truth.run import FIRST_DAY, WITHIN, TruthStore, place, texts_of
from benchmarks.truth.sizes import measure_sizes, table_of_sizes
from madeleine.inference.dense import DenseEmbedder
from madeleine.memory.recall.config import RecallConfig
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import MODELS_FOLDER, open_memory_store

RESULTS = Path(__file__).parents[1] / "results"
WITH_RULE = RecallConfig()
WITHOUT_RULE = replace(WITH_RULE, newer_among_near_equals=False)


async def measure_questions(store: TruthStore, chains: list[Chain]) -> Counter[str]:
    """Counts over the questions of the chains, by name and half."""
    counts: Counter[str] = Counter()

    def count(name: str, half: int, happened: bool) -> None:
        counts[f"{name}, half {half}"] += happened

    for chain in chains:
        *older, current = map(store.id_of, chain.versions)
        older = [id_ for id_ in older if id_ != current]
        for prefix, config in (("", WITH_RULE), ("without the rule: ", WITHOUT_RULE)):
            answer = await store.ask(chain.question, config=config)
            at = place(current, answer)
            before = at <= WITHIN and all(place(id_, answer) > at for id_ in older)
            count(f"{prefix}current before older", chain.half, before)
            count(f"{prefix}current first of all", chain.half, at == 1)
            count(f"{prefix}current within ten", chain.half, at <= WITHIN)
            any_came = any(place(id_, answer) <= WITHIN for id_ in (*older, current))
            count(f"{prefix}any version within ten", chain.half, any_came)
        count("chains", chain.half, True)
        moment = FIRST_DAY + timedelta(days=chain.past_day)
        ids = [store.id_of(version) for version in chain.versions]
        for prefix, config in (("", WITH_RULE), ("without the rule: ", WITHOUT_RULE)):
            answer = await store.ask(chain.past_question, config=config, as_of=moment)
            came = [id_ for id_ in answer if id_ in ids]
            count(f"{prefix}as_of right", chain.half, came[:1] == [ids[chain.past_answer]])
            count(f"{prefix}as_of first of all", chain.half, answer[:1] == [ids[chain.past_answer]])
            count(f"{prefix}as_of wrong version", chain.half, bool(came) and came[0] != ids[chain.past_answer])
    return counts


async def measure_controls(store: TruthStore) -> Counter[str]:
    counts: Counter[str] = Counter()
    for pair in material.lookalikes(store.role):
        for own, other in ((0, 1), (1, 0)):
            behind = {}
            for name, config in (("with", WITH_RULE), ("without", WITHOUT_RULE)):
                answer = await store.ask(pair.questions[own], config=config)
                mine, theirs = (place(store.id_of(pair.facts[at]), answer) for at in (own, other))
                behind[name] = mine > theirs
                counts[f"look-alike behind the other, {name} the rule"] += behind[name]
            counts["look-alikes put behind by the rule"] += behind["with"] and not behind["without"]
            counts["look-alike questions"] += 1
    for group in material.older_answers(store.role):
        counts["older questions"] += 1
        for name, config in (("with", WITH_RULE), ("without", WITHOUT_RULE)):
            answer = await store.ask(group.question, config=config)
            at = place(store.id_of(group.memories[group.answer]), answer)
            counts[f"older first of all, {name} the rule"] += at == 1
            ids = [store.id_of(memory) for memory in group.memories]
            came = [id_ for id_ in answer if id_ in ids]
            counts[f"older before its group, {name} the rule"] += came[:1] == [ids[group.answer]]
    return counts


def measure_proposals(store: TruthStore, others: list[Told]) -> Counter[str]:
    """Of the store without acts. A proposal is right if it names an earlier version of the same chain."""
    counts: Counter[str] = Counter()

    def proposed(told: Told) -> list[str]:
        before = store.stored[told.text].may_supersede
        return [before.id] if before else []

    for chain in material.chains(store.role):
        ids = [store.id_of(version) for version in chain.versions]
        for at, version in enumerate(chain.versions):
            names = proposed(version)
            right = sum(id_ in ids[:at] for id_ in names)
            if at:
                counts[f"changes, half {chain.half}"] += 1
                counts[f"changes proposed, half {chain.half}"] += right > 0
                counts["changes absorbed"] += store.stored[version.text].status == "reinforced"
            else:
                counts["ordinary"] += 1
                counts["ordinary with a proposal"] += bool(names)
            counts["proposals"] += len(names)
            counts["proposals right"] += right
    for pair in material.lookalikes(store.role):
        mine, theirs = map(store.id_of, pair.facts)
        counts["look-alikes proposed"] += theirs in proposed(pair.facts[0]) or mine in proposed(pair.facts[1])
        counts["look-alikes absorbed"] += mine == theirs
    for told in (*others, *(fact for pair in material.lookalikes(store.role) for fact in pair.facts)):
        counts["ordinary"] += 1
        counts["ordinary with a proposal"] += bool(proposed(told))
        counts["proposals"] += len(proposed(told))
    return counts


async def measure_role(role: str, others: list[Told], embedder: CachedEmbedder) -> dict[str, Counter[str]]:
    chains, lookalikes, older = material.chains(role), material.lookalikes(role), material.older_answers(role)
    texts = texts_of(chains, lookalikes, older, others)
    changes = {version.text: before for chain in chains for before, version in itertools.pairwise(chain.versions)}
    figures: dict[str, Counter[str]] = {}
    for name, supersedes in (("no act", {}), ("superseded", changes)):
        with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
            settings = Settings(data_dir=Path(folder))
            async with open_memory_store(settings, background=False, embedder=embedder) as memory:
                store = TruthStore(memory, role)
                await store.tell(texts, supersedes)
                figures[name] = await measure_questions(store, chains)
                figures[f"{name}, controls"] = await measure_controls(store)
                if not supersedes:
                    figures["proposals"] = measure_proposals(store, others)
    return figures


@asynccontextmanager
async def _embedder(vectors: dict[str, Any]) -> AsyncIterator[CachedEmbedder]:
    """`vectors`: by text; those that are computed are added."""
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
        inner = DenseEmbedder(Settings().embedding_model, Path(folder) / MODELS_FOLDER)
        try:
            yield CachedEmbedder(inner, vectors)
        finally:
            await inner.close()


async def measure(fillers: int, roles: list[str], vectors: dict[str, Any]) -> dict[str, Any]:
    began = time.perf_counter()
    others = list(material.fillers(fillers))
    totals: dict[str, Counter[str]] = {}
    async with _embedder(vectors) as embedder:
        for role in roles:
            for name, counts in (await measure_role(role, others, embedder)).items():
                totals.setdefault(name, Counter()).update(counts)
    seconds = round(time.perf_counter() - began)
    return {"fillers": fillers, "roles": roles, **percentages(totals), "seconds": seconds}


async def measure_proposals_by_size(sizes: list[int], vectors: dict[str, Any]) -> Table:
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
        async with (
            _embedder(vectors) as embedder,
            open_memory_store(Settings(data_dir=Path(folder)), background=False, embedder=embedder) as memory,
        ):
            return table_of_sizes(await measure_sizes(memory, sizes))


def read_cache(folder: Path | None) -> dict[str, Any]:
    if folder is None or not (folder / "vectors.npz").exists():
        return {}
    with np.load(folder / "vectors.npz") as file:
        return dict(zip(file["texts"].tolist(), file["rows"], strict=True))


def percentages(totals: Mapping[str, Counter[str]]) -> dict[str, Any]:
    """Counts, and percentages of the chains by half and in all."""
    figures: dict[str, Any] = {name: dict(counts) for name, counts in totals.items() if "chains, half 0" not in counts}
    for name, counts in totals.items():
        if "chains, half 0" not in counts:
            continue
        halves = [counts["chains, half 0"], counts["chains, half 1"]]
        names = dict.fromkeys(key.rsplit(", half", 1)[0] for key in counts)
        figures[name] = {
            key: [
                *(round(100 * counts[f"{key}, half {half}"] / max(1, halves[half]), 1) for half in (0, 1)),
                round(100 * sum(counts[f"{key}, half {half}"] for half in (0, 1)) / sum(halves), 1),
            ]
            for key in names
            if key != "chains"
        }
    return figures


def show(figures: dict[str, Any]) -> None:
    console = Console(width=110)
    for name, part in figures.items():
        if not isinstance(part, dict):
            continue
        columns = ("half 0, %", "half 1, %", "all, %") if "current first of all" in part else ("count",)
        table = Table("", *columns, title=name)
        for key, value in part.items():
            table.add_row(key, *(map(str, value) if isinstance(value, list) else [str(value)]))
        console.print(table)
    console.print(f"{figures['seconds']} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fillers", type=int, default=3_000, help="other memories of each role")
    parser.add_argument("--roles", default=",".join(material.ROLES))
    parser.add_argument("--cache", type=Path, help="folder that keeps the vectors from one run to the next")
    parser.add_argument(
        "--sizes", help="what is proposed in stores of so many memories, such as 20,40,80,300, and nothing else"
    )
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    vectors = read_cache(arguments.cache)
    if arguments.sizes:
        sizes = [int(size) for size in arguments.sizes.split(",")]
        Console(width=110).print(asyncio.run(measure_proposals_by_size(sizes, vectors)))
        figures = {}
    else:
        figures = asyncio.run(measure(arguments.fillers, arguments.roles.split(","), vectors))
    if arguments.cache is not None:
        arguments.cache.mkdir(parents=True, exist_ok=True)
        rows = np.stack(list(vectors.values()))
        np.savez(arguments.cache / "vectors.npz", texts=np.array(list(vectors)), rows=rows)
    if not figures:
        return
    show(figures)
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "truth.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
