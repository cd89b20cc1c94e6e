"""Small stores of one agent's own memories, as agents write them: `python -m benchmarks.small`.

Each `.json` file beside this one is one being: memories in the order in which they were told (key, text, category,
when, themes, some with actors, feeling, lesson, and `supersedes`: the key of the memory whose place it takes), and
questions (kind, `answer`: the keys that answer it, none for what was never told; `was`: the keys that did once). Every
memory goes through the use case behind `store`, every question through `recall` with a limit of ten; beside it, in the
same run, the memories are ordered by the plain cosine between the vectors of their texts and of the question.

The place of an answer is its place in its group, `memories` or `preferences`; `near` follows behind `memories`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.model import BeingId, MemoryId, Scene, Scope
from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store

STORES = Path(__file__).parent
RESULTS = STORES.parent / "results"
LIMIT = 10


@dataclass(frozen=True, slots=True)
class Groups:
    """Keys of the memories in an answer, best first in each group."""

    memories: tuple[str, ...]
    preferences: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    def place(self, keys: Iterable[str]) -> int:
        """The best place of any of them, from 1; 0 if none is there."""
        orders = ((*self.memories, *self.near)[:LIMIT], self.preferences)
        return min((order.index(key) + 1 for key in keys for order in orders if key in order), default=0)


@dataclass(frozen=True, slots=True)
class Answered:
    """A question with what recall and the plain search by cosine answered."""

    store: str
    question: dict[str, Any]
    recalled: Groups
    dense: Groups


def figures(answered: Sequence[Answered], groups: Callable[[Answered], Groups]) -> dict[str, Any]:
    """Percentages: of the questions with an answer, how many bring it first, within ten, and not only as `near`; of
    changed facts, in how many the current one comes before every older one; of the others, how many bring nothing."""
    known = [one for one in answered if one.question["answer"]]
    changed = [one for one in known if one.question.get("was")]
    unknown = [one for one in answered if not one.question["answer"]]
    places = [groups(one).place(one.question["answer"]) for one in known]
    told = [_is_told(groups(one), one.question) for one in known]
    current = [_is_current_first(groups(one), one.question) for one in changed]
    return {
        "questions": len(answered),
        "first, %": percent(place == 1 for place in places),
        "within ten, %": percent(place > 0 for place in places),
        "not only near, %": percent(is_told for is_told, place in zip(told, places, strict=True) if place),
        "current before old, %": percent(current),
        "empty where unknown, %": percent(not groups(one).memories for one in unknown),
    }


def _is_told(groups: Groups, question: dict[str, Any]) -> bool:
    return not {*groups.memories, *groups.preferences}.isdisjoint(question["answer"])


def _is_current_first(groups: Groups, question: dict[str, Any]) -> bool:
    now, old = groups.place(question["answer"]), groups.place(question["was"])
    return bool(now) and (not old or now < old)


def percent(outcomes: Iterable[bool]) -> float | None:
    counted = list(outcomes)
    return round(100 * sum(counted) / len(counted), 1) if counted else None


async def ask_store(memory: OpenedMemoryStore, store: dict[str, Any], *, supersede: bool) -> list[Answered]:
    scope = Scope(BeingId(store["name"]), "benchmark")
    ids: dict[str, MemoryId] = {}
    for told in store["memories"]:
        old = ids[told["supersedes"]] if supersede and "supersedes" in told else None
        [stored] = await memory.use_cases.store(scope, [new_scene(told, old)])
        if stored.status == "stored":
            ids[told["key"]] = stored.memory.id
        else:
            print(f"{store['name']}: taken for told again: {told['text']}")
    await memory.index_keeper.embed_missing_pieces()
    await memory.index_keeper.index_marked_memories()
    keys = {id_: key for key, id_ in ids.items()}
    texts = [told["text"] for told in store["memories"]]
    vectors = await memory.embedder.embed(texts)
    answered = []
    for question in store["questions"]:
        result = await memory.use_cases.recall(scope, RecallQuery(text=question["text"], limit=LIMIT))
        groups = ([memory for memory, _ in group] for group in (result.memories, result.preferences))
        recalled = Groups(*(tuple(keys[memory.id] for memory in group) for group in (*groups, result.near)))
        order = np.argsort(-(vectors @ (await memory.embedder.embed([question["text"]]))[0]), kind="stable")[:LIMIT]
        dense = Groups(tuple(store["memories"][at]["key"] for at in order))
        answered.append(Answered(store["name"], question, recalled, dense))
    return answered


def new_scene(told: dict[str, Any], supersedes: MemoryId | None) -> NewScene:
    fields: dict[str, Any] = {"supersedes": supersedes} if supersedes else {}
    return NewScene(
        scene=Scene(action=told["text"], actors=tuple(told.get("actors", ())), when=(told["when"],)),
        session_id=told["when"],
        category=told["category"],
        themes=tuple(told["themes"]),
        feeling=told.get("feeling", ""),
        lesson=told.get("lesson", ""),
        **fields,
    )


async def ask_all(*, supersede: bool) -> list[Answered]:
    answered: list[Answered] = []
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
        async with open_memory_store(Settings(data_dir=Path(folder)), background=False) as memory:
            for path in sorted(STORES.glob("*.json")):
                store = json.loads(path.read_text("utf-8"))
                answered += await ask_store(memory, store, supersede=supersede)
    return answered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    parser.add_argument("--no-act", action="store_true", help="store without `supersedes`")
    parser.add_argument("--failures", action="store_true", help="print the questions that are not answered first")
    arguments = parser.parse_args()
    answered = asyncio.run(ask_all(supersede=not arguments.no_act))
    if arguments.failures:
        print_failures(answered)
    by_name = {"all": answered}
    by_name |= {f"kind {kind}": [one for one in answered if one.question["kind"] == kind] for kind in kinds(answered)}
    by_name |= {f"store {name}": [one for one in answered if one.store == name] for name in stores(answered)}
    table: dict[str, dict[str, Any]] = {
        name: {"recall": figures(some, lambda one: one.recalled), "dense alone": figures(some, lambda one: one.dense)}
        for name, some in by_name.items()
    }
    print_table(table)
    if arguments.record:
        (RESULTS / "small.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def kinds(answered: Sequence[Answered]) -> list[str]:
    return sorted({one.question["kind"] for one in answered})


def stores(answered: Sequence[Answered]) -> list[str]:
    return sorted({one.store for one in answered})


def print_failures(answered: Sequence[Answered]) -> None:
    for one in answered:
        answer, groups = one.question["answer"], one.recalled
        place = groups.place(answer)
        if place != 1 if answer else groups.memories:
            print(f"{one.store} {one.question['kind']}: {one.question['text']}  {answer} at {place or '-'}")
            print(f"    {groups.memories[:5]} preferences {groups.preferences[:3]} near {groups.near[:3]}")


def print_table(table: dict[str, dict[str, Any]]) -> None:
    names = [name for name in next(iter(table.values()))["recall"] if name != "questions"]
    shown = Table("", "questions", *names, title="recall / dense alone")
    for name, row in table.items():
        cells = [f"{_cell(row['recall'][figure])} / {_cell(row['dense alone'][figure])}" for figure in names]
        shown.add_row(name, str(row["recall"]["questions"]), *cells)
    Console(width=150).print(shown)


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


if __name__ == "__main__":
    main()
