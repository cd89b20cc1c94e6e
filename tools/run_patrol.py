"""`run_patrol`: maintain the memory now (spec P6, P7, P12; rulings 10 and 11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.errors import InvalidInput, MadeleineError
from madeleine.memory.model import RunId
from madeleine.patrol.deciding.answers import AgentDecision, ReceivedDecision, RejectedAgentDecision
from madeleine.patrol.deciding.resolution import MAX_BRIEF_DECISION_REQUESTS_BYTES, MAX_OFFERED_DECISION_REQUESTS_BYTES
from madeleine.patrol.report import PATROL_STEPS, PatrolProgress, PatrolStepName
from madeleine.tools.arguments import ShortText, ToolArguments
from madeleine.tools.tool import ToolCallContext, object_schema, tool_from_function


class RunPatrolArguments(ToolArguments):
    steps: Annotated[
        list[PatrolStepName], Field(min_length=1, max_length=len(PATROL_STEPS), description="Only these.")
    ] = [*PATROL_STEPS]
    dry_run: Annotated[bool, Field(description="Only report.")] = False
    decisions: Annotated[
        list[ReceivedDecision] | None, Field(max_length=20, description="For `pending`; [] lists it.")
    ] = None
    undo: Annotated[ShortText, Field(description="The run_id to undo.")] = ""
    details: Annotated[bool, Field(description="All counts and decisions.")] = False


@tool_from_function(
    RunPatrolArguments,
    object_schema("run_id steps pending", string="run_id", array="steps pending"),
    permission="maintain",
)
async def run_patrol(call: ToolCallContext, arguments: RunPatrolArguments) -> dict[str, Any]:
    """Maintain memory: cluster new memories, let unused ones fade, revive recalled ones, merge and split. Use after
    many new memories or at day's end; undoable. `pending` lists decisions: follow `guidance`, call again with
    `decisions`."""
    named_arguments = arguments.model_fields_set - {"details"}
    if named_arguments & {"decisions", "undo"} and len(named_arguments) > 1:
        raise InvalidInput("Nothing was done. decisions and undo each stand alone: leave out the other arguments.")

    def report_progress(progress: PatrolProgress) -> None:
        call.report_progress(progress.steps_done, progress.total, progress.message)

    patrol = call.use_cases.patrol
    room = MAX_OFFERED_DECISION_REQUESTS_BYTES if arguments.details else MAX_BRIEF_DECISION_REQUESTS_BYTES
    if arguments.undo:
        undone = await patrol.undo_patrol(
            call.scope, RunId(await call.use_cases.short_ids.full_id(call.scope, "run", arguments.undo))
        )
        return {"run_id": arguments.undo, "undone": dict(undone.counts), "steps": [], "pending": []}
    if arguments.decisions is not None:
        report = await patrol.apply_decisions_and_offer_more(
            call.scope, await _decisions_with_full_offer_ids(call, arguments.decisions), pending_bytes=room
        )
        return report.as_json() if arguments.details else report.as_json_without_empty_steps()
    report = await patrol(
        call.scope,
        steps=arguments.steps,
        dry_run=arguments.dry_run,
        language=call.language_model,
        pending_bytes=room,
        on_progress=report_progress,
    )
    return report.as_json() if arguments.details else report.as_json_without_empty_steps()


async def _decisions_with_full_offer_ids(
    call: ToolCallContext, decisions: Sequence[AgentDecision | RejectedAgentDecision]
) -> list[AgentDecision | RejectedAgentDecision]:
    """An offer that is not known, or ambiguous, rejects its own decision only."""
    named: list[AgentDecision | RejectedAgentDecision] = []
    for decision in decisions:
        try:
            offer = (
                await call.use_cases.short_ids.full_id(call.scope, "decision", decision.offer) if decision.offer else ""
            )
        except MadeleineError as error:
            named.append(RejectedAgentDecision(offer=decision.offer, reason=str(error)))
        else:
            named.append(decision.model_copy(update={"offer": offer}))
    return named
