"""The steps of a patrol, one after the other."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from madeleine.memory.errors import MadeleineError
from madeleine.patrol.context import PatrolContext
from madeleine.patrol.deciding.resolution import DECISION_TYPES, resolve_with_model
from madeleine.patrol.preparation import prepare
from madeleine.patrol.report import STEPS, PatrolProgress, StepName, StepReport
from madeleine.patrol.steps.aging import age, flag, revive
from madeleine.patrol.steps.assign import ASSIGNMENT_BATCH, assign
from madeleine.patrol.steps.merge import merge
from madeleine.patrol.unit_of_work import UnitOfWork

logger = logging.getLogger(__name__)

WITHOUT_KEY = "[graph] BYOK key not set: skipping ❹❻ diary/think_md (mechanical processing only)"
"""The words of spec P7."""
DRY_RUN = "a dry run asks no language model"
MECHANICAL_STEPS: Mapping[StepName, Callable[[UnitOfWork], Awaitable[StepReport]]] = {
    "age": age, "flag": flag, "revive": revive, "merge": merge
}  # fmt: skip


async def run_steps(
    context: PatrolContext, names: Sequence[StepName], on_progress: Callable[[PatrolProgress], None]
) -> list[StepReport]:
    """Run these steps in the order of `STEPS`. A step that fails reports what it had done, and the others follow."""
    names = [name for name in STEPS if name in names]
    reports: list[StepReport] = []
    for done, name in enumerate(names):
        progress = PatrolProgress(name, done, len(names))
        context.begin_step()
        context.report_progress = _part_reporter(progress, on_progress)
        try:
            reports.append(await _run_step(context, name))
        except Exception as error:  # one of the three places where it is caught broadly: the patrol goes on
            logger.exception("the patrol's step %s failed", name)
            reason = str(error) if isinstance(error, MadeleineError) else "see the server's log"
            reports.append(StepReport(name, dict(context.counts), failed=reason))
            if context.dry_run:  # its transaction may hold half of the step
                break
        on_progress(replace(progress, done=done + 1))
    if context.language_model is None and DECISION_TYPES.keys() & set(names):
        logger.info(WITHOUT_KEY)
    return reports


def _part_reporter(
    progress: PatrolProgress, on_progress: Callable[[PatrolProgress], None]
) -> Callable[[int, int], None]:
    return lambda part, parts: on_progress(replace(progress, part=part, parts=parts))


async def _run_step(context: PatrolContext, name: StepName) -> StepReport:
    if name == "assign":
        return await _assign(context)
    if name in DECISION_TYPES:
        if context.language_model is None or context.dry_run:
            return StepReport(name, skipped=DRY_RUN if context.language_model else WITHOUT_KEY)
        return await resolve_with_model(context, name)
    async with context.unit_of_work(name) as work:
        return await MECHANICAL_STEPS[name](work)


async def _assign(context: PatrolContext) -> StepReport:
    """In several transactions, so that other calls can store between them."""
    prepared = context.prepared or await prepare(context)
    counts = context.counts
    while True:
        async with context.unit_of_work("assign", prepared) as work:
            report = await assign(work)
        counts.update(report.counts)
        counts["waiting_for_vectors"] = report.counts["waiting_for_vectors"]
        prepared = replace(prepared, memories=(), notes=())
        if report.counts["assigned"] < ASSIGNMENT_BATCH or context.out_of_time:
            return StepReport("assign", dict(counts))
        context.report_progress(counts["assigned"], counts["assigned"] + ASSIGNMENT_BATCH)
