"""What clusters tell apart: `python -m benchmarks.topics DATA_FOLDER`.

Twelve chats of a set (or as many as it has), their first 36 turns each, are interleaved turn by turn and stored, 40 a
night, and a patrol follows each night; nobody decides. The clusters at the end are compared with the chats. Once with
the dates of the turns, once without any. A chat is a unit of the set, or a session where all is one unit: of JSQuAD an
article.
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

CHATS, TURNS_OF_CHAT, TURNS_A_NIGHT = 12, 36, 40
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


async def live(chats: Sequence[Sequence[Document]], embedder: CachedEmbedder, *, dated: bool) -> dict[str, Any]:
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
            for day, begin in enumerate(range(0, len(told), TURNS_A_NIGHT)):
                turns = [
                    (topic, replace(turn, id=f"{topic} {turn.id}", session=topic, time=turn.time if dated else ""))
                    for topic, turn in told[begin : begin + TURNS_A_NIGHT]
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
            for dated in (True, False):
                found = await live(chats, embedder, dated=dated)
                rows.append({"set": name, "chats": len(chats), "dates": "with" if dated else "without"} | found)
        await embedder.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", help="separated by commas; all of the folder by default")
    arguments = parser.parse_args()
    names = arguments.sets.split(",") if arguments.sets else data_sets.names(arguments.folder)
    table = Table("set", "chats", "dates", "clusters", "largest %", "adjusted Rand", "in no cluster %")
    rows = asyncio.run(run(arguments.folder, names))
    for row in rows:
        rand = f"{row['adjusted Rand']:.2f}"
        cells = (row["set"], row["chats"], row["dates"], row["count"], row["largest %"], rand, row["in no cluster %"])
        table.add_row(*map(str, cells))
    console = Console(width=140)
    console.print(table)
    for row in rows:
        console.print(f"{row['set']}, {row['dates']} dates: {'; '.join(row['names'])}")


if __name__ == "__main__":
    main()
