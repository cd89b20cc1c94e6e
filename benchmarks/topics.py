"""What clusters tell apart: `python -m benchmarks.topics DATA_FOLDER`.

Twelve chats of a set (or as many as it has), their first 36 turns each, are interleaved turn by turn and stored, and a
patrol follows each night; nobody decides. The clusters at the end are compared with the chats. Once with the dates of
the turns, once without any; with 30, 40 and 50 turns a night, for which memories meet first is chance. A chat is a unit
of the set, or a session where all is one unit: of JSQuAD an article.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import data_sets
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.data_sets import Document
from benchmarks.life.lives import LifeSession
from benchmarks.life.living import NOBODY, SCOPE, LivedStore
from benchmarks.life.measures import all_memories, measure_clusters
from madeleine.inference.dense import DenseEmbedder
from madeleine.memory.model import MemoryId
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store

CHATS, TURNS_OF_CHAT = 12, 36
TURNS_A_NIGHT = 30, 40, 50
MIN_TURNS_OF_CHAT = 30


def chats_of(folder: Path, name: str) -> list[Sequence[Document]]:
    """The first turns of each chat of at least 30."""
    units = data_sets.read(folder, name)
    chats = [unit.documents for unit in units] if len(units) > 1 else _sessions(units[0].documents)
    return [turns[:TURNS_OF_CHAT] for turns in chats if len(turns) >= MIN_TURNS_OF_CHAT][:CHATS]


def _sessions(documents: Sequence[Document]) -> Sequence[Sequence[Document]]:
    sessions: dict[str, list[Document]] = defaultdict(list)
    for document in documents:
        sessions[document.session].append(document)
    return list(sessions.values())


async def live(
    chats: Sequence[Sequence[Document]], embedder: CachedEmbedder, *, dated: bool, turns_a_night: int
) -> dict[str, Any]:
    """Clusters after the last night, as `measure_clusters` tells them."""
    told = [
        (f"chat {number}", turn)
        for row in itertools.zip_longest(*chats)
        for number, turn in enumerate(row)
        if turn is not None
    ]
    topics: dict[MemoryId, str] = {}
    with tempfile.TemporaryDirectory(prefix="madeleine-") as temporary:
        settings = Settings(data_dir=Path(temporary), being=SCOPE.being_id)
        async with open_memory_store(settings, embedder=embedder, background=False) as memory:
            lived = LivedStore(memory)
            for day, begin in enumerate(range(0, len(told), turns_a_night)):
                turns = [
                    (topic, replace(turn, id=f"{topic} {turn.id}", session=topic, time=turn.time if dated else ""))
                    for topic, turn in told[begin : begin + turns_a_night]
                ]
                night = LifeSession(day, str(day), "", tuple(turn for _, turn in turns))
                await lived.live_session(night, "store")
                topics |= {id_: topic for topic, turn in turns for id_ in lived.memories_of[turn.id]}
                await memory.index_keeper.index_marked_memories()
                await lived.run_night(day, NOBODY)
            return await measure_clusters(lived, await all_memories(lived), topics)


async def run(folder: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="madeleine-") as temporary:
        embedder = CachedEmbedder(DenseEmbedder(Settings().embedding_model, Path(temporary)))
        await embedder.warm_up()
        for name in names:
            chats = chats_of(folder, name)
            for dated, turns in itertools.product((True, False), TURNS_A_NIGHT):
                found = await live(chats, embedder, dated=dated, turns_a_night=turns)
                dates = "with" if dated else "without"
                rows.append({"set": name, "chats": len(chats), "dates": dates, "turns": turns} | found)
        await embedder.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", help="separated by commas; all of the folder by default")
    arguments = parser.parse_args()
    names = arguments.sets.split(",") if arguments.sets else data_sets.names(arguments.folder)
    table = Table("set", "chats", "dates", "turns a night", "clusters", "largest %", "adjusted Rand", "in no cluster %")
    rows = asyncio.run(run(arguments.folder, names))
    columns = ("set", "chats", "dates", "turns", "count", "largest %", "adjusted Rand", "in no cluster %")
    for _, of_kind in itertools.groupby(rows, key=lambda row: (row["set"], row["dates"])):
        lives = list(of_kind)
        for row in lives:
            table.add_row(*(str(row[column]) for column in columns))
        mean = sum(row["adjusted Rand"] for row in lives) / len(lives)
        table.add_row("", "", "", "mean", "", "", f"{mean:.3f}", "", end_section=True)
    console = Console(width=140)
    console.print(table)
    for row in rows:
        console.print(f"{row['set']}, {row['dates']} dates, {row['turns']}: {'; '.join(row['names'])}")


if __name__ == "__main__":
    main()
