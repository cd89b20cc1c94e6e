"""`report_failure` and `lessons`: learn from what failed (spec O11)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.lessons.lessons import (
    LESSON_PROPOSAL_INSTRUCTIONS,
    MAX_LESSON_DISCOVERY_CHARS,
    MAX_LESSON_PART_CHARS,
    MAX_STEPS,
    LessonProposal,
)
from madeleine.memory.lessons.values import AgentTaskFailureReport, LessonWithOutcomeCounts
from madeleine.memory.permissions import Permission
from madeleine.tools.arguments import NonEmptyText, SceneLengthText, ShortText, ToolArguments, ZeroToOne
from madeleine.tools.replies import notice_field, without_empty_fields
from madeleine.tools.tool import ToolCallContext, object_schema, tool_from_function

DEFAULT_LESSON_LIMIT = 3


LessonPartText = Annotated[NonEmptyText, Field(max_length=MAX_LESSON_PART_CHARS)]


class NewLessonArguments(ToolArguments):
    discovery: Annotated[
        NonEmptyText, Field(max_length=MAX_LESSON_DISCOVERY_CHARS, description="What was found out, in one sentence.")
    ]
    condition: Annotated[LessonPartText, Field(description="When it applies, in words of the next task.")]
    action: Annotated[LessonPartText, Field(description="What to do then.")]
    rationale: LessonPartText = ""
    steps: Annotated[list[LessonPartText], Field(max_length=MAX_STEPS)] = []
    confidence: Annotated[ZeroToOne, Field(description="That the action prevents it; a guess is below 0.5.")] = 0.5


class ReportFailureArguments(ToolArguments):
    task: Annotated[SceneLengthText, Field(description="What was to be done, in your own words.")]
    error: Annotated[SceneLengthText, Field(description="What went wrong: the error, not what was said.")]
    tool_calls: Annotated[list[ShortText], Field(max_length=50, description="Names of the tools, in order.")] = []
    retries: Annotated[int, Field(ge=0, le=1_000)] = 0
    turns: Annotated[int, Field(ge=0, le=10_000)] = 0
    session_id: ShortText = ""
    lesson: Annotated[
        NewLessonArguments | None,
        Field(description="Of a reviewer: another agent, or you as one who sees nothing but the failure."),
    ] = None


@tool_from_function(
    ReportFailureArguments,
    object_schema("status", string="status id text lesson reason instructions notice", object="failure redacted"),
    listed=False,
)
async def report_failure(call: ToolCallContext, arguments: ReportFailureArguments) -> dict[str, Any]:
    """Report a task that failed, so that the lesson is found when its condition comes up again. No conversation: task,
    error, tools. With status propose, call it again with the same failure and the lesson that its instructions ask
    for. Before a task, ask lessons."""
    failure = arguments.to_dataclass(AgentTaskFailureReport)
    proposal = None
    if arguments.lesson is not None:
        told = arguments.lesson.model_dump()
        proposal = LessonProposal.model_validate(told | {"steps": tuple(told["steps"])})
    outcome = await call.use_cases.lessons.report_failure(
        call.scope, failure, proposal, session_id=arguments.session_id, language=call.language_model
    )
    redacted = without_empty_fields(redacted=dict(outcome.redacted))
    if outcome.learnt is not None:
        status = "stored" if outcome.stored is None else outcome.stored.status
        shown = {"status": status} | lesson_as_json(outcome.learnt)
        return shown | redacted | notice_field(outcome.notice)
    if outcome.discarded:
        return {"status": "discarded", "reason": outcome.discarded} | redacted
    waiting = {"status": "propose", "instructions": LESSON_PROPOSAL_INSTRUCTIONS, "failure": asdict(outcome.failure)}
    return waiting | redacted | notice_field(outcome.notice)


class LessonsArguments(ToolArguments):
    task: Annotated[SceneLengthText, Field(description="What you are about to do: finds the lessons that apply.")] = ""
    id: Annotated[ShortText, Field(description="Of a lesson: shows its rationale and steps.")] = ""
    outcome: Annotated[
        Literal["helped", "failed"] | None, Field(description="With id: whether following it helped.")
    ] = None
    limit: Annotated[int, Field(ge=1, le=20)] = DEFAULT_LESSON_LIMIT


def _permission_for_arguments(arguments: LessonsArguments) -> Permission:
    return "write" if arguments.outcome else "read"


@tool_from_function(
    LessonsArguments,
    object_schema("lessons", array="lessons"),
    name="lessons",
    listed=False,
    permission="read",
    permission_of=_permission_for_arguments,
)
async def find_or_rate_lessons(call: ToolCallContext, arguments: LessonsArguments) -> dict[str, Any]:
    """Find the lessons of earlier failures that apply to a task; none if it is like none of them. With an id: how to
    carry one out, and with outcome say whether it helped, so that good ones stay and bad ones go."""
    if bool(arguments.task) == bool(arguments.id) or (arguments.outcome and not arguments.id):
        raise InvalidInput("Nothing was done. Give a task, or the id of a lesson, and outcome only with an id.")
    if arguments.task:
        found = await call.use_cases.lessons.lessons_applying_to_task_with_scores(
            call.scope, arguments.task, limit=arguments.limit
        )
        call.audit_recall("lessons", [one.memory.id for one, _ in found])
        return {"lessons": [lesson_as_json(one) | {"score": score} for one, score in found]}
    [memory_id] = (await call.use_cases.short_ids.full_memory_id_by_given_id(call.scope, [arguments.id])).values()
    if arguments.outcome is None:
        learnt = await call.use_cases.lessons.load_lesson(call.scope, memory_id)
        call.audit_recall("lessons", [memory_id])
    else:
        learnt = await call.use_cases.lessons.record_lesson_outcome(
            call.scope, memory_id, helped=arguments.outcome == "helped"
        )
    return {"lessons": [lesson_as_json(learnt, in_full=True)]}


def lesson_as_json(learnt: LessonWithOutcomeCounts, *, in_full: bool = False) -> dict[str, Any]:
    """Its first two tiers; `in_full` also the third (spec O11)."""
    lesson = learnt.lesson
    shown = {"id": learnt.memory.short_id, "text": lesson.discovery, "condition": lesson.condition}
    shown |= {"action": lesson.action}
    more = {"rationale": lesson.rationale, "steps": list(lesson.steps), "confidence": lesson.confidence}
    return shown | without_empty_fields(
        **more if in_full else {}, helped=learnt.helped or None, failed=learnt.failed or None
    )
