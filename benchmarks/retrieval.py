"""Retrieval quality through the real pipeline: `python -m benchmarks.retrieval DATA_FOLDER`.

The use case `StoreScenes` stores each set in a real ledger and index, one being for each unit. Every query goes through
`RecallMemories.rank`, with the match gate. BM25 alone and dense vectors alone query the same index. The product's
defaults are the configuration of all sets.

With `--chatter` two sentences of small talk (`benchmarks/chatter.toml`, in the language of the set) stand before each
question, the same ones in every run.

With `--answers` each question is also answered as a tool answers it, with a limit of three and without: the share of
the evidence that the answer holds, its tokens, and the evidence in 100 of them.

Then every unit is asked the questions of `benchmarks/unrelated.txt`, for the share that recalls nothing. The cost of
the gate is the difference in R@10 to the same ranking without it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
import tomllib
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from benchmarks import ablation, data_sets, metrics
from madeleine.memory.index import CandidateQuery
from madeleine.memory.model import LIVING_STATUSES, BeingId, MemoryId, Scope, Vector
from madeleine.memory.recall.config import RecallConfig
from madeleine.memory.recall.recall import RecallMemories
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.ranking.matching import MatchThresholds
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from madeleine.tools.reading import MAX_RECALLED_MEMORIES_WITHOUT_LIMIT

HERE = Path(__file__).parent
RESULTS = HERE / "results"
STORE_BATCH = 64
OPEN_GATE = MatchThresholds(likeness=-2.0)
RECALL = "recall"
CHANNELS = (RECALL, "recall without gate", "rrf", "bm25 alone", "dense alone")
DEFAULT_SETS = "locomo,beam100k,longmemeval_s_dev50:user,longmemeval_s_dev50,jsquad"


@dataclass
class Outcome:
    """By query: the 1-based ranks of its evidence, and the amount of evidence."""

    ranks: dict[str, list[int]] = field(default_factory=dict)
    relevant: dict[str, int] = field(default_factory=dict)

    def add(self, query: str, ids: Sequence[str], gold: Collection[str]) -> None:
        self.ranks[query] = [rank for rank, id_ in enumerate(ids, 1) if id_ in gold]
        self.relevant[query] = len(gold)

    def ndcg(self) -> list[float]:
        return [metrics.ndcg_at_k(ranks, self.relevant[q], at=10) for q, ranks in self.ranks.items()]

    def figures(self) -> dict[str, float]:
        ndcg = self.ndcg()
        figures = {
            "nDCG@10": metrics.mean_percent(ndcg),
            "± s.e.": metrics.standard_error_percent(ndcg),
            "R@5": metrics.mean_percent(
                [metrics.recall_at_k(r, self.relevant[q], at=5) for q, r in self.ranks.items()]
            ),
            "R@10": metrics.mean_percent(
                [metrics.recall_at_k(r, self.relevant[q], at=10) for q, r in self.ranks.items()]
            ),
        }
        return {name: round(value, 2) for name, value in figures.items()}

    def questions_found(self) -> dict[str, float]:
        """The share of queries, in %, of which any or all evidence is among the first five or ten."""
        shares = {}
        for at in (5, 10):
            among = {query: sum(rank <= at for rank in ranks) for query, ranks in self.ranks.items()}
            shares[f"any@{at}"] = metrics.mean_percent([found > 0 for found in among.values()])
            shares[f"all@{at}"] = metrics.mean_percent([found == self.relevant[q] for q, found in among.items()])
        return {name: round(value, 2) for name, value in shares.items()}


@dataclass
class AnswerContent:
    """By query: how much evidence there is, how much of it the answer holds, and the answer's tokens."""

    relevant: list[int] = field(default_factory=list)
    found: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        shares = [found / of for found, of in zip(self.found, self.relevant, strict=True) if of]
        return {
            "evidence %": round(metrics.mean_percent(shares), 1),
            "tokens": round(fmean(self.tokens), 1),
            "evidence per 100 tokens": round(100 * sum(self.found) / max(1, sum(self.tokens)), 2),
        }


@dataclass
class SetResult:
    documents: int = 0
    queries: int = 0
    outcomes: dict[str, Outcome] = field(default_factory=lambda: {channel: Outcome() for channel in CHANNELS})
    without: dict[str, Outcome] = field(default_factory=lambda: {part: Outcome() for part in ablation.WITHOUT})
    sessions: Outcome = field(default_factory=Outcome)
    """The same ranking with each session at the place of its first memory."""
    answers: dict[str, AnswerContent] = field(default_factory=dict)
    unrelated_asked: int = 0
    unrelated_empty: int = 0

    async def add_answers(self, recall: RecallMemories, scope: Scope, text: str, gold: set[MemoryId]) -> None:
        for label, most in (("limit 3", 0), ("no limit", MAX_RECALLED_MEMORIES_WITHOUT_LIMIT)):
            answer = await recall(
                replace(scope, count_activations=False), RecallQuery(text=text, limit=3, max_limit=most)
            )
            content = self.answers.setdefault(label, AnswerContent())
            content.relevant.append(len(gold))
            content.found.append(sum(memory.id in gold for memory, _ in answer.memories))
            content.tokens.append(answer.total_tokens)

    def losses(self) -> dict[str, dict[str, float]]:
        """Points of nDCG@10 lost without each part, with the standard error of the paired differences."""
        complete = self.outcomes[RECALL].ndcg()
        losses = {}
        for part, outcome in self.without.items():
            lost = [before - after for before, after in zip(complete, outcome.ndcg(), strict=True)]
            figures = {"nDCG@10": metrics.mean_percent(lost), "± s.e.": metrics.standard_error_percent(lost)}
            losses[part] = {name: round(value, 2) for name, value in figures.items()}
        return losses


@dataclass(frozen=True, slots=True)
class Rankings:
    """The rankings of one query, by channel and by the part that is left out."""

    channels: dict[str, Sequence[MemoryId]]
    without: dict[str, Sequence[MemoryId]]


async def load(memory: OpenedMemoryStore, name: str, unit: data_sets.Unit) -> dict[str, MemoryId]:
    """Store the unit's documents and return their memories by document id. A second run finds them by their keys."""
    scope = scope_of(name, unit)
    memories: dict[str, MemoryId] = {}
    for start in range(0, len(unit.documents), STORE_BATCH):
        batch = unit.documents[start : start + STORE_BATCH]
        stored = await memory.use_cases.store(scope, [data_sets.scene(document) for document in batch])
        memories |= {document.id: answer.memory.id for document, answer in zip(batch, stored, strict=True)}
    return memories


def scope_of(name: str, unit: data_sets.Unit) -> Scope:
    return Scope(BeingId(f"{name}/{unit.name}"), "benchmark")


async def ask(memory: OpenedMemoryStore, open_gate: RecallMemories, scope: Scope, text: str) -> Rankings:
    vector = (await memory.embedder.embed([text]))[0]
    words_only = CandidateQuery(words=text, statuses=LIVING_STATUSES, sparse_limit=10, dense_limit=10)
    dense_only = replace(words_only, words="")
    recall = memory.use_cases.recall
    ranked = await recall.rank(scope, RecallQuery(text=text))
    trust = memory.embedder.vector_space.ranking_trust_of_text_behind_vector(vector)
    channels = {
        RECALL: ranked.ids,
        "recall without gate": (await open_gate.rank(scope, RecallQuery(text=text))).ids,
        "rrf": ablation.rrf_order(ranked),
        "bm25 alone": (await memory.index.candidates(scope, words_only, partial(_ready, None))).ids,
        "dense alone": (await memory.index.candidates(scope, dense_only, partial(_ready, vector))).ids,
    }
    return Rankings(channels, ablation.rankings(text, ranked, trust=trust))


async def _ready(vector: Vector | None) -> Vector | None:
    return vector


def chatter(set_name: str) -> Callable[[str], str]:
    """Puts two sentences of small talk before a question; the questions of a run get them in a fixed order."""
    sentences = tomllib.loads((HERE / "chatter.toml").read_text(encoding="utf-8"))
    spoken = sentences["ja" if set_name.startswith("jsquad") else "en"].strip().splitlines()
    choose = random.Random(13)
    return lambda question: " ".join([*choose.sample(spoken, 2), question])


async def measure(
    memory: OpenedMemoryStore, name: str, units: Sequence[data_sets.Unit], bar: Progress, *, chatty: bool, answers: bool
) -> SetResult:
    as_asked = chatter(name) if chatty else str
    result = SetResult()
    ledger = memory.ledger
    open_gate = RecallMemories(
        ledger.recall,
        memory.index,
        memory.embedder,
        ledger.activations,
        now=utc_now,
        config=RecallConfig(thresholds=OPEN_GATE),
    )
    unrelated = (HERE / "unrelated.txt").read_text(encoding="utf-8").splitlines()
    task: TaskID = bar.add_task(name, total=sum(len(u.documents) + len(u.queries) + len(unrelated) for u in units))
    memories_by_unit: dict[str, dict[str, MemoryId]] = {}
    for unit in units:
        memories_by_unit[unit.name] = await load(memory, name, unit)
        bar.advance(task, len(unit.documents))
    await memory.index_keeper.embed_missing_pieces()
    await memory.index_keeper.index_marked_memories()
    await memory.index.optimize_if_worthwhile()
    for unit in units:
        scope = scope_of(name, unit)
        memories = memories_by_unit[unit.name]
        session_of = {memories[document.id]: document.session for document in unit.documents}
        for query in unit.queries:
            gold = {memories[id_] for id_ in query.gold if id_ in memories}
            rankings = await ask(memory, open_gate, scope, as_asked(query.text))
            for outcomes, orders in ((result.outcomes, rankings.channels), (result.without, rankings.without)):
                for order, ids in orders.items():
                    outcomes[order].add(query.id, ids, gold)
            sessions = list(dict.fromkeys(session_of[id_] for id_ in rankings.channels[RECALL]))
            result.sessions.add(query.id, sessions, {session_of[id_] for id_ in gold})
            if answers:
                await result.add_answers(memory.use_cases.recall, scope, as_asked(query.text), gold)
            bar.advance(task)
        for text in unrelated:
            result.unrelated_asked += 1
            result.unrelated_empty += not (await memory.use_cases.recall.rank(scope, RecallQuery(text=text))).ids
            bar.advance(task)
        result.documents += len(unit.documents)
        result.queries += len(unit.queries)
    return result


def summarise(results: dict[str, SetResult], memory: OpenedMemoryStore, seconds: float) -> dict[str, Any]:
    return {
        "configuration": {
            "embedding_model": memory.embedder.model_name,
            "recall": asdict(memory.use_cases.recall.config),
        },
        "seconds": round(seconds),
        "sets": {
            name: {
                "documents": result.documents,
                "queries": result.queries,
                "figures": {channel: outcome.figures() for channel, outcome in result.outcomes.items()},
                "questions found": {
                    "memories": result.outcomes[RECALL].questions_found(),
                    "sessions": result.sessions.questions_found(),
                },
                "lost without": result.losses(),
                "answers": {label: content.figures() for label, content in result.answers.items()},
                "unrelated": {
                    "asked": result.unrelated_asked,
                    "empty_percent": round(100 * result.unrelated_empty / max(1, result.unrelated_asked), 2),
                },
            }
            for name, result in results.items()
        },
    }


def show(console: Console, summary: dict[str, Any]) -> None:
    table = Table("set", "channel", "nDCG@10", "± s.e.", "R@5", "R@10", "unrelated empty", title="Retrieval")
    for name, of_set in summary["sets"].items():
        for channel, figures in of_set["figures"].items():
            empty = f"{of_set['unrelated']['empty_percent']:.1f} %" if channel == RECALL else ""
            label = f"{name} ({of_set['queries']})" if channel == RECALL else ""
            table.add_row(label, channel, *(f"{value:.1f}" for value in figures.values()), empty)
    console.print(table)
    found = Table("set", "of", "any@5", "all@5", "any@10", "all@10", title="Questions with evidence found, %")
    for name, of_set in summary["sets"].items():
        for what, figures in of_set["questions found"].items():
            found.add_row(name, what, *(f"{value:.1f}" for value in figures.values()))
    console.print(found)
    answers = Table("set", "answer", "evidence %", "tokens", "evidence per 100 tokens", title="Answers")
    for name, of_set in summary["sets"].items():
        for label, figures in of_set["answers"].items():
            answers.add_row(name, label, *map(str, figures.values()))
    if answers.row_count:
        console.print(answers)
    losses = Table("lost without", *summary["sets"], title="Points of nDCG@10 ± standard error of the difference")
    for part in ablation.WITHOUT:
        of_sets = (of_set["lost without"][part] for of_set in summary["sets"].values())
        losses.add_row(part, *(f"{loss['nDCG@10']:.1f} ± {loss['± s.e.']:.1f}" for loss in of_sets))
    console.print(losses)


def write(summary: dict[str, Any], results: dict[str, SetResult]) -> Path:
    """Write the figures, and the ranks with one query a line. Returns the path of the ranks."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "retrieval.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    path = RESULTS / "retrieval-ranks.jsonl"
    with path.open("w", encoding="utf-8") as lines:
        for name, result in results.items():
            outcome = result.outcomes[RECALL]
            for query, ranks in outcome.ranks.items():
                row = {"set": name, "query": query, "evidence": outcome.relevant[query], "ranks": ranks}
                lines.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
    return path


async def run(
    folder: Path, wanted: Sequence[str], data_dir: Path, *, record: bool, chatty: bool, answers: bool
) -> None:
    console = Console()
    settings = Settings(data_dir=data_dir)
    started = time.monotonic()
    results: dict[str, SetResult] = {}
    async with open_memory_store(settings) as memory:
        with Progress(console=console) as bar:
            for name in wanted:
                units = data_sets.read(folder, name)
                results[name] = await measure(memory, name, units, bar, chatty=chatty, answers=answers)
        summary = summarise(results, memory, time.monotonic() - started)
    show(console, summary)
    if record:
        console.print(f"Per-query ranks: {write(summary, results).relative_to(HERE.parent)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the data sets")
    parser.add_argument("--sets", default=DEFAULT_SETS, help="comma-separated names; 'all' for all in the folder")
    parser.add_argument("--data-dir", type=Path, help="keep the store here for the next run")
    parser.add_argument("--chatter", action="store_true", help="small talk before each question")
    parser.add_argument("--answers", action="store_true", help="also measure what answers hold")
    parser.add_argument("--record", action="store_true", help=f"write figures and ranks to {RESULTS.name}/")
    arguments = parser.parse_args()
    wanted = data_sets.names(arguments.folder) if arguments.sets == "all" else arguments.sets.split(",")
    with ExitStack() as stack:
        data_dir = arguments.data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="madeleine-")))
        flags = {"record": arguments.record, "chatty": arguments.chatter, "answers": arguments.answers}
        asyncio.run(run(arguments.folder, wanted, data_dir, **flags))


if __name__ == "__main__":
    main()
