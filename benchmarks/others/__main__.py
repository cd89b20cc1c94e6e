"""Madeleine beside other memory servers: `python -m benchmarks.others`, or `make others`.

Each server (`servers.py`) is started as a client starts it, over stdio, and told the texts of `benchmarks/small` one
by one, without any further argument, in the order in which they were told. Then it is asked the questions, word for
word, and its answer read as a model reads it: which memories stand in it, in which order, and how long it is.

Further: questions about something else entirely; two servers on one store, which store at the same time; a server that
is killed (SIGKILL) as soon as it has acknowledged; whether the bytes of an erased memory are on disk; and the time of
calls, beside each other in the same minute. Needs the package indices of Python and npm.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from statistics import fmean, median

from rich.console import Console
from rich.table import Table

from benchmarks.others.servers import MemoryServer, servers
from benchmarks.small.__main__ import STORES, percent

HERE = Path(__file__).parent
UNRELATED = HERE.parent / "unrelated.txt"
RESULTS = HERE.parent / "results"
WITHIN = 10
STORED_AT_ONCE = 40
CALLS_TIMED = 100
ERASED_WITHIN_SECONDS = 120
CHARS_PER_TOKEN = 4
_SIGNS = re.compile(r"[\W_]+")
Figures = dict[str, float | str | None]


def places(answer: str, texts: Mapping[str, str]) -> list[str]:
    """The keys of the texts that stand in an answer, in its order; however they are quoted or escaped."""
    said = _letters(answer)
    found = {key: said.find(_letters(text)) for key, text in texts.items()}
    return sorted((key for key, at in found.items() if at >= 0), key=found.__getitem__)


def _best_place(order: Sequence[str], keys: Iterable[str]) -> int:
    """From 1; 0 if none of them is there."""
    return min((order.index(key) + 1 for key in keys if key in order), default=0)


def _letters(text: str) -> str:
    return _SIGNS.sub("", text.replace("\\n", " ").replace('\\"', " ")).lower()


async def measure_questions(server: MemoryServer, folder: Path, names: Sequence[str]) -> Figures:
    first, within, current, empty, tokens, unrelated_empty = [], [], [], [], [], []
    for name in names:
        store = json.loads((STORES / f"{name}.json").read_text("utf-8"))
        texts = {told["key"]: told["text"] for told in store["memories"]}
        async with server.connected(folder / name) as client:
            for key, text in texts.items():
                await server.store(client, key, text)
            for question in store["questions"]:
                answer = await server.recall(client, question["text"])
                order = places(answer, texts)
                place = _best_place(order, question["answer"])
                tokens.append(len(answer) / CHARS_PER_TOKEN)
                if not question["answer"]:
                    empty.append(not places(server.told(answer), texts))
                    continue
                first.append(place == 1)
                within.append(0 < place <= WITHIN)
                if was := question.get("was"):
                    old = _best_place(order, was)
                    current.append(place > 0 and (not old or place < old))
            for text in UNRELATED.read_text("utf-8").splitlines():
                answer = await server.recall(client, text)
                unrelated_empty.append(not places(server.told(answer), texts))
    return {
        "questions": len(first) + len(empty),
        "right one first, %": percent(first),
        f"among {WITHIN}, %": percent(within),
        "changed fact: current before old, no hint given, %": percent(current),
        "nothing said of what was never told, %": percent(empty),
        "nothing said to unrelated questions, %": percent(unrelated_empty),
        "tokens an answer": round(fmean(tokens)),
    }


async def measure_two_at_once(server: MemoryServer, place: Path) -> Figures:
    """Two processes store at once; a third is asked for everything."""

    async def store_all(which: str) -> list[str]:
        stored = []
        async with server.connected(place) as client:
            for number in range(STORED_AT_ONCE):
                text = f"Marker {which}{number}x lies in drawer {number * 7 + 3}."
                await server.store(client, f"{which}{number}", text)
                stored.append(text)
        return stored

    outcomes = await asyncio.gather(store_all("north"), store_all("south"), return_exceptions=True)
    acknowledged = [text for outcome in outcomes if isinstance(outcome, list) for text in outcome]
    refused = sum(isinstance(outcome, BaseException) for outcome in outcomes)
    async with server.connected(place) as client:
        kept = [bool(places(await server.recall(client, text), {"": text})) for text in acknowledged]
    return {"two servers on one store: refused to work": refused, "of acknowledged, found, %": percent(kept)}


async def measure_kill(server: MemoryServer, place: Path) -> Figures:
    acknowledged = []
    for number in range(5):
        text = f"The spare key {number}k hangs behind the {number + 2}th door."
        try:
            async with server.connected(place) as client:
                await server.store(client, f"key{number}", text)
                acknowledged.append(text)
                for process in _processes_with(str(place)):
                    os.kill(process, signal.SIGKILL)
        except* Exception:  # its client sees the connection end
            pass
    async with server.connected(place) as client:
        kept = [bool(places(await server.recall(client, text), {"": text})) for text in acknowledged]
    return {"killed after the acknowledgement: found, %": percent(kept)}


async def measure_forget(server: MemoryServer, place: Path) -> Figures:
    secret = "Heliotrope47 is the word that Ottilie whispered."
    async with server.connected(place) as client:
        await server.store(client, "other", "A ladder leans on the wall.")
        await server.store(client, "secret", secret)
        if not await server.forget(client, "secret", secret):
            return {"erased memory": "no tool"}
        before = time.perf_counter()
        while _are_on_disk(b"Heliotrope47", place):
            if time.perf_counter() - before > ERASED_WITHIN_SECONDS:
                return {"erased memory": "bytes left"}
            await asyncio.sleep(1)
    return {"erased memory": "gone from the bytes"}


def _are_on_disk(sought: bytes, place: Path) -> bool:
    own = [path for path in place.parent.glob(f"{place.name}*") if path.suffix != ".log"]
    files = (path for one in own for path in (one, *one.rglob("*")) if path.is_file())
    return any(sought in path.read_bytes() for path in files)


async def measure_times(servers: Sequence[MemoryServer], folder: Path) -> dict[str, Figures]:
    """Milliseconds: start to the list of tools; store and recall in turn over all servers, the median."""
    started: dict[str, float] = {}
    times: dict[str, dict[str, list[float]]] = {server.name: {"store": [], "recall": []} for server in servers}
    async with AsyncExitStack() as stack:
        clients = {}
        for server in servers:
            before = time.perf_counter()
            client = clients[server.name] = await stack.enter_async_context(server.connected(folder / server.name))
            await client.list_tools()
            started[server.name] = time.perf_counter() - before
            await server.store(client, "first", "A first text that makes it load all that it needs.")
            await server.recall(client, "What is first?")
        for number in range(CALLS_TIMED):
            text = f"On day {number} Ada and Bo carried {number + 2} boxes of books to the harbour and had fish soup."
            for server in servers:
                before = time.perf_counter()
                await server.store(clients[server.name], f"day{number}", text)
                times[server.name]["store"].append(time.perf_counter() - before)
                before = time.perf_counter()
                await server.recall(clients[server.name], f"How many boxes were carried on day {number}?")
                times[server.name]["recall"].append(time.perf_counter() - before)
    return {
        name: {
            "start, s": round(started[name], 2),
            **{f"{what}, ms": round(1000 * median(of), 1) for what, of in of_server.items()},
        }
        for name, of_server in times.items()
    }


def _processes_with(place: str) -> Iterable[int]:
    """Processes that this one has started whose environment names the place."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if place.encode() in (path / "environ").read_bytes() and int(path.name) != os.getpid():
                yield int(path.name)
        except OSError:
            continue


async def run(folder: Path, installed: Path, names: Sequence[str]) -> dict[str, Figures]:
    compared = await servers(installed)
    figures: dict[str, Figures] = {}
    for server in compared:
        own = folder / server.name.replace(" ", "-")
        own.mkdir(parents=True)
        figures[server.name] = {
            **await measure_questions(server, own, names),
            **await measure_two_at_once(server, own / "two"),
            **await measure_kill(server, own / "kill"),
            **await measure_forget(server, own / "forget"),
        }
    (folder / "times").mkdir()
    for name, times in (await measure_times(compared, folder / "times")).items():
        figures[name] |= times
    return figures


def show(figures: Mapping[str, Figures]) -> None:
    table = Table("", *figures)
    for row in next(iter(figures.values())):
        table.add_row(row, *("–" if of.get(row) is None else str(of[row]) for of in figures.values()))
    Console(width=150).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", default="backend,desk,family,praxis,voyage", help="of benchmarks/small")
    parser.add_argument("--installed", type=Path, help="keep the other servers here for the next run")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="madeleine-")))
        installed = arguments.installed or folder / "installed"
        figures = asyncio.run(run(folder, installed, arguments.stores.split(",")))
    show(figures)
    if arguments.record:
        text = json.dumps(figures, indent=1, ensure_ascii=False)
        (RESULTS / "others.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
