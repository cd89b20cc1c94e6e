"""Are lessons found when their condition comes up again? `python -m benchmarks.lessons`.

`failures.tsv`, written for this project: of each failure a lesson (discovery, condition, action), the condition in
other words (`paraphrase`), and a concrete task that meets it without naming it (`later`). All lessons go through the
use case behind `report_failure`, every task through that behind `lessons`. `unrelated.txt`: tasks that none of them is
about.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import tempfile
from pathlib import Path

from madeleine.memory.lessons.lessons import LearnLessons, LessonConfig, LessonProposal
from madeleine.memory.lessons.values import AgentTaskFailureReport
from madeleine.memory.model import BeingId, Scope
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store

FOLDER = Path(__file__).parent
SCOPE = Scope(BeingId("agent"), count_activations=False)


def failures() -> list[dict[str, str]]:
    with (FOLDER / "failures.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def unrelated_tasks() -> list[str]:
    return (FOLDER / "unrelated.txt").read_text(encoding="utf-8").splitlines()


async def learn_all(lessons: LearnLessons) -> list[str]:
    """The ids of the lessons, in order."""
    ids: list[str] = []
    for row in failures():
        lesson = {name: row[name] for name in ("discovery", "condition", "action")}
        failure = AgentTaskFailureReport(task=row["condition"], error=row["discovery"])
        outcome = await lessons.report_failure(SCOPE, failure, LessonProposal.model_validate(lesson))
        assert outcome.learnt is not None, row
        ids.append(outcome.learnt.memory.id)
    return ids


async def found_ids(lessons: LearnLessons, task: str) -> list[str]:
    return [learnt.memory.id for learnt, _ in await lessons.lessons_applying_to_task_with_scores(SCOPE, task, limit=3)]


async def measure(likeness: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_memory_store(Settings(data_dir=Path(folder) / "memory"), background=False) as memory:
            use = memory.use_cases.lessons
            config = LessonConfig(likeness=likeness)
            lessons = LearnLessons(use.ledger, use.store, use.update, use.embedder, now=use.now, config=config)
            ids = await learn_all(lessons)
            for kind in ("paraphrase", "later"):
                found = [await found_ids(lessons, row[kind]) for row in failures()]
                first = sum(id_ in shown[:1] for id_, shown in zip(ids, found, strict=True))
                three = sum(id_ in shown for id_, shown in zip(ids, found, strict=True))
                print(f"{kind}: the right lesson first {first}, in the first three {three}, of {len(ids)}")
            silent = sum([not await found_ids(lessons, task) for task in unrelated_tasks()])
            print(f"unrelated: none {silent} of {len(unrelated_tasks())}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lessons")
    parser.add_argument("--likeness", type=float, default=LessonConfig().likeness)
    asyncio.run(measure(parser.parse_args().likeness))
