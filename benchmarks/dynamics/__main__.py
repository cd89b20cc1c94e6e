"""Does forgetting help? `python -m benchmarks.dynamics`: a simulated year through the real pipeline.

A session is stored every noon (`plan.py`), the day's questions are recalled in the afternoon, and a patrol runs every
night; `rule_based_agent.py` takes its decisions. The clock is simulated; ledger, index and embedding model are real.
An answer that is not among recall's first five is looked for by `search_memory`, as an agent would. The same year is
simulated four times: full; without decay (❷ and ❸ left out); without revival (❺); without consolidation (no decisions
taken). Each vector is computed once for all four.

At the end, every fact is asked about once more, without counting it as a recall. Then dead memories of the full
variant are cued one to three times, by search or by id, and those that come back are counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.dynamics.measures import ask_all_facts, loss_to_decay, store_size, summarise
from benchmarks.dynamics.plan import plan_year
from benchmarks.dynamics.report import markdown, plot, show
from benchmarks.dynamics.revival import measure_revival
from benchmarks.dynamics.simulation import FULL, SCOPE, VARIANTS, Simulation, run_year
from madeleine.inference.dense import DenseEmbedder
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store

RESULTS = Path(__file__).parents[1] / "results"


async def run(days: int, seed: int) -> dict[str, Any]:
    plan = plan_year(days, seed=seed)
    figures: dict[str, Any] = {
        "days": days,
        "seed": seed,
        "memories told": sum(len(day.scenes) for day in plan.days),
        "facts": len(plan.facts),
        "facts that change": sum(len(fact.version_days) > 1 for fact in plan.facts),
        "questions": sum(len(day.questions) for day in plan.days),
        "variants": {},
    }
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder, Progress() as bar:
        model = DenseEmbedder(Settings().embedding_model, Path(folder) / "models")
        embedder = CachedEmbedder(model)
        await embedder.warm_up()
        for variant in VARIANTS:
            data_dir = Path(folder) / variant.name.replace(" ", "-")
            data_dir.mkdir(mode=0o700)
            settings = Settings(data_dir=data_dir, being=SCOPE.being_id)
            async with open_memory_store(settings, embedder=embedder, background=False) as memory:
                simulation = Simulation(memory, variant)
                record = await run_year(simulation, plan, bar)
                of_variant = summarise(record, await ask_all_facts(simulation, plan))
                of_variant["size"] = await store_size(simulation, data_dir)
                of_variant["curve"] = record.curve
                figures["variants"][variant.name] = of_variant
                if variant is FULL:
                    figures["coming back"] = await measure_revival(simulation, seed=seed)
        await model.close()
    figures["loss to decay, points"] = loss_to_decay(figures["variants"])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--record", action="store_true", help=f"write figures, tables and a plot to {RESULTS.name}/")
    arguments = parser.parse_args()
    figures = asyncio.run(run(arguments.days, arguments.seed))
    show(Console(width=140), figures)
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "dynamics.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        (RESULTS / "dynamics.md").write_text(markdown(figures), encoding="utf-8")
        plot(figures, RESULTS / "dynamics.png")


if __name__ == "__main__":
    main()
