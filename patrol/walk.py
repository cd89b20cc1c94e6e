"""The steps of a patrol, one after the other."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from madeleine.memory.errors import MadeleineError
from madeleine.patrol.evening import prepare
from madeleine.patrol.night import Evening, Night
from madeleine.patrol.report import STEPS, StepName, StepReport
from madeleine.patrol.round import Round
from madeleine.patrol.settling import MATTERS, settle
from madeleine.patrol.steps.age import age
from madeleine.patrol.steps.assign import AT_ONCE, assign
from madeleine.patrol.steps.flag import flag
from madeleine.patrol.steps.merge import merge
from madeleine.patrol.steps.revive import revive

logger = logging.getLogger(__name__)

WITHOUT_KEY = "[graph] BYOK key not set: skipping ❹❻ diary/think_md (mechanical processing only)"
"""The words of spec P7."""
REHEARSED = "a dry run asks no language model"
NEEDS_MIND = frozenset(MATTERS)
MECHANICAL: Mapping[StepName, Callable[[Night], Awaitable[StepReport]]] = {
    "age": age, "flag": flag, "revive": revive, "merge": merge
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` steps are finished, `step` is the last of them; or, where there are `parts`, `part` of them of
    the step that is under way."""

    step: StepName
    done: int
    total: int
    part: int = 0
    parts: int = 0


async def walk(round_: Round, chosen: Sequence[StepName], tell: Callable[[Progress], None]) -> list[StepReport]:
    """The chosen steps in their order. One that fails says what it had done until then, and the others follow."""
    chosen = [name for name in STEPS if name in chosen]
    reports: list[StepReport] = []
    for done, name in enumerate(chosen):
        round_.begin_step()
        round_.tell = partial(_tell_part, tell, Progress(name, done, len(chosen)))
        try:
            reports.append(await _step(round_, name))
        except Exception as error:  # one of the three places where it is: the night goes on
            logger.exception("the patrol's step %s failed", name)
            reason = str(error) if isinstance(error, MadeleineError) else "see the server's log"
            reports.append(StepReport(name, dict(round_.counts), failed=reason))
            if round_.rehearses:  # its transaction may hold half of the step
                break
        tell(Progress(name, done + 1, len(chosen)))
    if round_.model is None and NEEDS_MIND.intersection(chosen):
        logger.info(WITHOUT_KEY)
    return reports


def _tell_part(tell: Callable[[Progress], None], step: Progress, part: int, parts: int) -> None:
    tell(replace(step, part=part, parts=parts))


async def _step(round_: Round, name: StepName) -> StepReport:
    if name == "assign":
        return await _assign(round_)
    if name in MATTERS:
        if round_.model is None or round_.rehearses:
            return StepReport(name, skipped=REHEARSED if round_.model else WITHOUT_KEY)
        return await settle(round_, MATTERS[name])
    async with round_.night(name) as night:
        return await MECHANICAL[name](night)


async def _assign(round_: Round) -> StepReport:
    """An import of many is taken in bit by bit, so that who stores meanwhile has his turn."""
    evening = round_.evening or await prepare(round_)
    counts = round_.counts
    while True:
        async with round_.night("assign", evening) as night:
            found = await assign(night)
        counts.update(found.counts)
        counts["waiting_for_vectors"] = found.counts["waiting_for_vectors"]
        evening = Evening((), (), evening.vectors, evening.prototypes, evening.chosen)
        if found.counts["assigned"] < AT_ONCE or round_.out_of_time:
            return StepReport("assign", dict(counts))
        round_.tell(counts["assigned"], counts["assigned"] + AT_ONCE)
