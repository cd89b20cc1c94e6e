"""What a recall leaves out: `python -m benchmarks.unrelated`.

A store for each of twelve languages, one that mixes English with German and with Japanese, and one of all languages.
Each file holds short memories of one person, and questions: `related` (one memory answers), `unrelated` (none has to do
with it), `unknown_attribute` (about people and things of the store, asked for what was never told) and `unknown_word`
(two words, of which the store knows one). A number before a question is that of its memory. The sentences were written
before anything was tuned to them. `natural/` has stores of 20 to 40 memories with questions as long as people ask them,
`loosely_related` ones in other words, in languages that put no spaces between words or join them to particles.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.model import BeingId, MemoryId, Scene, Scope
from madeleine.memory.recall.selection import RecallQuery
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store

HERE = Path(__file__).parent
LANGUAGES = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(HERE.glob("*.toml"))}
MIXED_STORES = {"de+en": ("de", "en"), "en+ja": ("en", "ja"), "all": tuple(LANGUAGES)}
NATURAL = {
    f"natural {path.stem}": tomllib.loads(path.read_text("utf-8")) for path in sorted(HERE.glob("natural/*.toml"))
}
KINDS = ("related", "loosely_related", "unrelated", "unknown_attribute", "unknown_word")


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    memory: MemoryId | None
    """The memory that it asks for."""


@dataclass(frozen=True, slots=True)
class Answer:
    memories: tuple[MemoryId, ...]
    near: tuple[MemoryId, ...]
    best_score: float


def lines_of(language: str, kind: str) -> list[str]:
    return str({**LANGUAGES, **NATURAL}[language].get(kind, "")).strip().splitlines()


async def store_language(memory: OpenedMemoryStore, scope: Scope, language: str) -> dict[str, list[Question]]:
    scenes = [NewScene(scene=Scene(action=line)) for line in lines_of(language, "memories")]
    ids = [stored.memory.id for stored in await memory.use_cases.store(scope, scenes)]

    def question(line: str) -> Question:
        number, _, text = line.partition(" ")
        return Question(text, ids[int(number) - 1]) if number.isdigit() else Question(line, None)

    return {kind: [question(line) for line in lines_of(language, kind)] for kind in KINDS}


async def ask(memory: OpenedMemoryStore, scope: Scope, text: str) -> Answer:
    result = await memory.use_cases.recall(scope, RecallQuery(text=text))
    near = tuple(found.id for found in result.near)
    best = max((score for _, score in result.memories), default=0.0)
    return Answer(tuple(found.id for found, _ in result.memories), near, best)


def percent(hits: Sequence[bool]) -> str:
    return f"{100 * sum(hits) / len(hits):.0f}" if hits else "–"


def row_of(answers: Mapping[str, Sequence[tuple[Question, Answer]]]) -> list[str]:
    related, word = answers["related"], answers["unknown_word"]
    scores = [answer.best_score for _, answer in related if answer.memories]
    wrong = [answer.best_score for _, answer in answers["unknown_attribute"] if answer.memories]
    return [
        percent([question.memory in answer.memories for question, answer in related]),
        percent([question.memory in answer.memories for question, answer in answers["loosely_related"]]),
        percent([answer.memories[:1] == (question.memory,) for question, answer in related]),
        percent([not answer.memories for _, answer in answers["unrelated"]]),
        percent([not (answer.memories or answer.near) for _, answer in answers["unrelated"]]),
        percent([not answer.memories for _, answer in answers["unknown_attribute"]]),
        percent([question.memory in answer.near for question, answer in word]),
        percent([question.memory in (*answer.memories, *answer.near) for question, answer in word]),
        " / ".join(f"{sum(group) / len(group):.2f}" if group else "–" for group in (scores, wrong)),
    ]


async def measure_store(
    memory: OpenedMemoryStore, name: str, languages: Sequence[str], *, show: Sequence[str], console: Console
) -> dict[str, list[tuple[Question, Answer]]]:
    scope = Scope(BeingId(name), "benchmark")
    questions: dict[str, list[Question]] = {kind: [] for kind in KINDS}
    for language in languages:
        for kind, of_kind in (await store_language(memory, scope, language)).items():
            questions[kind] += of_kind
    answers = {kind: [(q, await ask(memory, scope, q.text)) for q in of_kind] for kind, of_kind in questions.items()}
    for kind in show:
        for question, answer in answers[kind]:
            asks = question.memory is not None and kind != "unknown_word"
            wrong = question.memory not in answer.memories if asks else bool(answer.memories)
            if wrong or (kind == "unknown_word" and question.memory not in answer.near):
                console.print(f"{name} {kind}: {question.text} ({len(answer.memories)} {len(answer.near)})")
    return answers


async def run(stores: Sequence[str], *, show: Sequence[str]) -> None:
    console = Console(width=140)
    table = Table("store", "related found %", "loosely", "first %", "unrelated empty %", "nor near %",
                  "unknown attribute empty %", "unknown word near %",
                  "near or found %", "mean best score, related / wrong")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
        async with open_memory_store(Settings(data_dir=Path(folder))) as memory:
            total: dict[str, list[tuple[Question, Answer]]] = {kind: [] for kind in KINDS}
            for name in stores:
                languages = MIXED_STORES.get(name, (name,))
                answers = await measure_store(memory, name, languages, show=show, console=console)
                table.add_row(name, *row_of(answers))
                for kind in KINDS if name not in NATURAL else ():
                    total[kind] += answers[kind]
            table.add_row("together", *row_of(total))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", default=",".join((*LANGUAGES, *MIXED_STORES, *NATURAL)), help="comma-separated")
    parser.add_argument("--show", default="", help="kinds of questions whose wrong answers are printed")
    arguments = parser.parse_args()
    show = arguments.show.split(",") if arguments.show else []
    asyncio.run(run(arguments.stores.split(","), show=show))


if __name__ == "__main__":
    main()
