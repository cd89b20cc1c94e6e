"""`run_patrol`: tidy memory now (spec P6, P7, P12)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from patrol.report import STEPS, SYMBOLS, StepName
from patrol.run import Progress
from tools.arguments import Arguments
from tools.tool import OBJECTS, TEXT, Call, Tool, answer_schema


class RunPatrolArguments(Arguments):
    steps: Annotated[list[StepName], Field(min_length=1, max_length=7, description="Only these; all if left out.")] = (
        list(STEPS)
    )
    dry_run: Annotated[bool, Field(description="Report what would change, change nothing.")] = False


async def run(call: Call, arguments: RunPatrolArguments) -> dict[str, Any]:
    def tell(progress: Progress) -> None:
        call.progress(progress.done, progress.total, f"{SYMBOLS[progress.step]} {progress.step}")

    report = await call.use.patrol(call.scope, steps=arguments.steps, dry_run=arguments.dry_run, progress=tell)
    return report.as_json()


TOOL = Tool(
    name="run_patrol",
    description=(
        "Tidy memory: sort new memories into clusters, let unused ones fade, bring recalled ones back, merge small "
        "clusters. Use it after many new memories or at the end of a day; nothing is erased. Answers a report "
        "by step and what waits for a decision."
    ),
    arguments=RunPatrolArguments,
    answers=answer_schema(
        ("run_id", "dry_run", "steps", "pending"),
        run_id=TEXT,
        dry_run={"type": "boolean"},
        steps=OBJECTS,
        pending=OBJECTS,
    ),
    run=run,
    read_only=False,
    destructive=False,
    idempotent=False,
    shows=False,
)
