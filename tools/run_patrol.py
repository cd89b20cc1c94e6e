"""`run_patrol`: maintain the memory now (spec P6, P7, P12; rulings 10 and 11)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import RunId
from madeleine.patrol.deciding.answers import Decision
from madeleine.patrol.deciding.resolution import MAX_OFFERED_REQUESTS_CHARS
from madeleine.patrol.report import PATROL_STEPS, PatrolProgress, StepName
from madeleine.tools.arguments import ShortText, ToolArguments
from madeleine.tools.tool import ToolCall, object_schema, tool


class RunPatrolArguments(ToolArguments):
    steps: Annotated[list[StepName], Field(min_length=1, max_length=10, description="Only these.")] = list(PATROL_STEPS)
    dry_run: Annotated[bool, Field(description="Only report what would change.")] = False
    decisions: Annotated[list[Decision] | None, Field(max_length=20, description="For `pending`; [] lists it.")] = None
    undo: Annotated[ShortText, Field(description="A run_id whose changes to undo.")] = ""
    details: Annotated[bool, Field(description="All counts, all of `pending`.")] = False


BRIEF_PENDING_CHARS = 4_000
"""Of pending decisions in an answer without details: some 1,000 tokens."""


@tool(RunPatrolArguments, object_schema("run_id steps pending", string="run_id", array="steps pending"))
async def run_patrol(call: ToolCall, arguments: RunPatrolArguments) -> dict[str, Any]:
    """Maintain the memory: sort new memories into clusters, let unused ones fade, revive recalled ones, merge and
    split. Use it after many new memories or at the end of a day; it can be undone. `pending` lists decisions for you:
    follow `guidance` and call again with `decisions`."""
    named_arguments = arguments.model_fields_set - {"details"}
    if named_arguments & {"decisions", "undo"} and len(named_arguments) > 1:
        raise InvalidInput("Nothing was done. decisions and undo each stand alone: leave out the other arguments.")

    def report_progress(progress: PatrolProgress) -> None:
        call.report_progress(progress.steps_done, progress.total, progress.message)

    patrol = call.use.patrol
    room = MAX_OFFERED_REQUESTS_CHARS if arguments.details else BRIEF_PENDING_CHARS
    if arguments.undo:
        undone = await patrol.undo(call.scope, RunId(await call.use.ids.full_id(call.scope, "run", arguments.undo)))
        return {"run_id": arguments.undo, "undone": dict(undone.counts), "steps": [], "pending": []}
    if arguments.decisions is not None:
        offers = await call.use.ids.full(call.scope, "decision", [decision.offer for decision in arguments.decisions])
        named = [decision.model_copy(update={"offer": offers[decision.offer]}) for decision in arguments.decisions]
        report = await patrol.decide(call.scope, named, pending_chars=room)
        return report.as_json() if arguments.details else report.as_brief_json()
    report = await patrol(
        call.scope,
        steps=arguments.steps,
        dry_run=arguments.dry_run,
        language=call.language_model,
        pending_chars=room,
        on_progress=report_progress,
    )
    return report.as_json() if arguments.details else report.as_brief_json()
