"""What comes of a lived year: `python -m benchmarks.life DATA_FOLDER`.

Conversations of three sets are replayed by their dates, several to a being, each set through another tool: `store`,
`ingest`, `observe`. Dates that lie within less than a year are stretched to it. The being recalls for the first turns
of each session. Every night has a patrol, whether or not something happened. The same life is lived three times:
without patrols; with patrols whose decisions nobody takes; with a mind of rules that obeys the guidance
(`obedient_mind.py`).

On days 30, 90, 180 and 365 the sets' own questions are asked, as far as their evidence was told, without counting it as
a recall. A summary counts as evidence only if its text holds it. The clock is simulated; ledger, index and embedding
model are real. Each vector is computed once for all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.life.coming_back import measure_coming_back
from benchmarks.life.lives import KINDS, Life, read_life
from benchmarks.life.living import SCOPE, WAYS, LivedStore, Way
from benchmarks.life.measures import measure_day, nights
from benchmarks.life.report import markdown, plot, show
from madeleine.inference.dense import DenseEmbedder
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store

RESULTS = Path(__file__).parents[1] / "results"
MEASURED_DAYS = (30, 90, 180, 365)


async def live(life: Life, way: Way, settings: Settings, embedder: CachedEmbedder, days: Iterable[int]) -> Any:
    """Days from 0, in order."""
    began = time.monotonic()
    measured: list[dict[str, Any]] = []
    async with open_memory_store(settings, embedder=embedder, background=False) as memory:
        lived = LivedStore(memory)
        for day in days:
            for session in life.of_day(day):
                await lived.live_session(session, life.entry)
            await memory.index_keeper.index_marked_memories()
            await lived.run_night(day, way)
            await memory.index_keeper.embed_missing_pieces()  # as it is done in the background
            await memory.index_keeper.index_marked_memories()
            if day + 1 in MEASURED_DAYS:
                measured.append(await measure_day(lived, life, day + 1, settings.data_dir))
        return {
            "days": measured,
            "nights": nights(lived.record),
            "coming back": await measure_coming_back(lived) if way.decides else {},
            "did": dict(sorted(lived.record.counts.items())),
            "seconds": round(time.monotonic() - began),
        }


def _new_folder(within: str) -> Path:
    return Path(tempfile.mkdtemp(dir=within))


async def run(folder: Path, sets: str, ways: str, days: int) -> dict[str, Any]:
    figures: dict[str, Any] = {"days": days, "lives": {}}
    with tempfile.TemporaryDirectory(prefix="madeleine-") as temporary, Progress() as bar:
        model = DenseEmbedder(Settings().embedding_model, Path(temporary) / "models")
        embedder = CachedEmbedder(model)
        await embedder.warm_up()
        for kind in KINDS:
            life = read_life(folder, kind)
            if life.name not in sets.split(","):
                continue
            figures["lives"][life.name] = {
                "entry": life.entry,
                "sessions": len(life.sessions),
                "turns": sum(len(session.turns) for session in life.sessions),
                "topics": len({session.topic for session in life.sessions}),
                "ways": {},
            }
            for way in [way for way in WAYS if way.name in ways.split(",")]:
                settings = Settings(data_dir=_new_folder(temporary), being=SCOPE.being_id)
                passing_days = bar.track(range(days), description=f"{life.name}, {way.name}")
                lived = await live(life, way, settings, embedder, passing_days)
                figures["lives"][life.name]["ways"][way.name] = lived
        await model.close()
    return figures


def main() -> None:
    names = ",".join(kind.data_set.partition(":")[0] for kind in KINDS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default=names, help="separated by commas")
    parser.add_argument("--ways", default=",".join(way.name for way in WAYS), help="separated by commas")
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--record", action="store_true", help=f"write figures, tables and a plot to {RESULTS.name}/")
    arguments = parser.parse_args()
    figures = asyncio.run(run(arguments.folder, arguments.sets, arguments.ways, arguments.days))
    show(Console(width=140), figures)
    if arguments.record:
        record(figures)


def record(figures: dict[str, Any]) -> None:
    """Lives, and ways of living them, that were recorded before and not lived now stay: all together take hours."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "life.json"
    recorded = json.loads(file.read_text(encoding="utf-8"))["lives"] if file.exists() else {}
    for name, life in figures["lives"].items():
        life["ways"] = recorded.get(name, {}).get("ways", {}) | life["ways"]
    figures = figures | {"lives": recorded | figures["lives"]}
    file.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (RESULTS / "life.md").write_text(markdown(figures), encoding="utf-8")
    plot(figures, RESULTS / "life.png")


if __name__ == "__main__":
    main()
