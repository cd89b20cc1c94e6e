"""A patrol (spec P6, P7, P12): each step prepares with the help of models, then changes what it looks at in a
transaction of its own. What a run has changed is journalled, and can be undone (ruling 11)."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Literal

from madeleine.memory.errors import CannotUndo, MadeleineError
from madeleine.memory.language_model import LanguageModel
from madeleine.memory.model import BeingId, MemoryId, RunId, Scope
from madeleine.memory.patrol_records import PatrolRun, PatrolUndoResult
from madeleine.memory.recall.ports import ReactivationRecorder
from madeleine.memory.rules.archiving.retention import EndedSessionOrProject
from madeleine.patrol.context import PatrolRunContext, PatrolServices
from madeleine.patrol.deciding.answers import AgentDecision, RejectedAgentDecision
from madeleine.patrol.deciding.rendering import decision_guidance_names
from madeleine.patrol.deciding.requests import DecisionRequest
from madeleine.patrol.deciding.resolution import (
    DECISION_HANDLERS,
    MAX_OFFERED_DECISION_REQUESTS_BYTES,
    apply_agent_decisions,
    decide_pending_with_model,
    merge_undecided_episodes_into_passages,
    offer_decisions_to_agent,
)
from madeleine.patrol.report import (
    PATROL_STEPS,
    STEP_SKIP_REASON_WITHOUT_MODEL_KEY,
    PatrolProgress,
    PatrolReport,
    PatrolStepName,
    PatrolStepReport,
)
from madeleine.patrol.steps.assign import (
    MAX_ASSIGNMENT_BATCH_MEMORIES,
    assign_memories_to_clusters,
    prepare_cluster_assignment,
)
from madeleine.patrol.steps.mechanical import MECHANICAL_STEP_FUNCTIONS
from madeleine.patrol.steps.retain import archive_expired_memories

logger = logging.getLogger(__name__)


PatrolRunStage = Literal["begins", "progress", "ends", "fails"]


class _DryRunRollback(Exception):
    """Ends the transaction of a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolEvent:
    """`report`: of a patrol that has ended."""

    being_id: BeingId
    run_id: RunId
    event: PatrolRunStage
    progress: PatrolProgress | None = None
    report: PatrolReport | None = None


@dataclass(eq=False)
class RunPatrols:
    """The use case. One patrol a being at a time. `update_index` is awaited after a run that changed something.
    `on_memories_removed` gets the memories that an undo has removed from the ledger. `on_event` must not block."""

    services: PatrolServices
    activation_recorder: ReactivationRecorder
    _: KW_ONLY
    update_index: Callable[[], Awaitable[object]] | None = None
    on_memories_removed: Callable[[Sequence[MemoryId]], Awaitable[object]] | None = None
    on_event: Callable[[PatrolEvent], None] | None = None

    def __post_init__(self) -> None:
        self._ledger = self.services.ledger
        self._patrol_locks: dict[BeingId, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __call__(
        self,
        scope: Scope,
        *,
        steps: Sequence[PatrolStepName] = PATROL_STEPS,
        dry_run: bool = False,
        language: LanguageModel | None = None,
        offer_pending: bool = True,
        pending_bytes: int = MAX_OFFERED_DECISION_REQUESTS_BYTES,
        on_progress: Callable[[PatrolProgress], None] | None = None,
        ended: EndedSessionOrProject | None = None,
    ) -> PatrolReport:
        """Run the chosen steps, always in the order ❶ to ❼, then compress, diary and retention. A dry run reports what
        would change and changes nothing. `language` makes the decisions; those that it does not make are offered, if
        `offer_pending`, as many as fit into `pending_bytes`. `on_progress` must not block. `ended`: retention archives
        what was kept for it only."""
        notify = on_progress or (lambda progress: None)
        async with self._hold_patrol_locks(scope):
            if dry_run:
                context = PatrolRunContext(self.services, scope, RunId(str(uuid.uuid4())), language, dry_run=True)
                return await self._dry_run(context, steps, notify)
            async with self._begin_run_and_abort_on_error(scope) as run_id:
                context = PatrolRunContext(self.services, scope, run_id, language, ended=ended)

                def progressed(progress: PatrolProgress) -> None:
                    notify(progress)
                    self._emit(scope, run_id, "progress", progress=progress)

                reports = await run_patrol_steps(context, steps, progressed)
                await self._remove_from_index(context.archived_ids)
                report = PatrolReport(run_id=run_id, steps=tuple(reports), costs=context.costs)
                return await self._offer_decisions_and_finish_run(
                    context, report, pending_bytes if offer_pending else 0
                )

    async def is_running(self, being_id: BeingId) -> bool:
        """Whether a patrol of this being, or an undo of one, is running, here or in another server: another one would
        have to wait."""
        if self._patrol_locks[being_id].locked():
            return True
        async with self._ledger.patrol_lock(Scope(being_id), wait=False) as is_free:
            return not is_free

    async def apply_decisions_and_offer_more(
        self,
        scope: Scope,
        decisions: Sequence[AgentDecision | RejectedAgentDecision],
        *,
        pending_bytes: int = MAX_OFFERED_DECISION_REQUESTS_BYTES,
    ) -> PatrolReport:
        """Apply decisions of the calling agent (ruling 10), and offer what is pending then, as much as fits into
        `pending_bytes`. A run of its own."""
        async with self._hold_patrol_locks(scope):
            if not decisions:
                context = PatrolRunContext(self.services, scope, RunId(""))
                requests, waiting = await offer_decisions_to_agent(context, pending_bytes)
                return PatrolReport(run_id=RunId(""), pending=tuple(requests), waiting_count=waiting)
            async with self._begin_run_and_abort_on_error(scope) as run_id:
                context = PatrolRunContext(self.services, scope, run_id)
                open_before = [
                    DecisionRequest.from_json(one.body) for one in await context.reads.open_decision_requests()
                ]
                offered_before = {request.id for request in open_before}
                report = PatrolReport(run_id=run_id, decided=tuple(await apply_agent_decisions(context, decisions)))
                report = await self._offer_decisions_and_finish_run(context, report, pending_bytes)
                new = tuple(request for request in report.pending if request.id not in offered_before)
                still_open = tuple(request.id for request in report.pending if request.id in offered_before)
                explained = frozenset(decision_guidance_names(open_before))
                return replace(report, pending=new, still_open=still_open, explained=explained)

    async def undo_patrol(self, scope: Scope, run_id: RunId) -> PatrolUndoResult:
        """Raises `CannotUndo` with the reason; nothing is changed then."""
        async with self._hold_patrol_locks(scope):
            async with self.services.write_lock:
                undone = await self._ledger.undo_run(scope, run_id, at=self.services.now())
            await self._update_index_after_undo(undone)
            return undone

    async def runs(self, scope: Scope, *, limit: int = 20) -> list[PatrolRun]:
        """The latest first."""
        return await self._ledger.runs(scope, limit=limit)

    async def roll_back_unfinished_runs(self) -> int:
        """Roll back the unfinished runs of dead processes; return their number. Called at start, before any other
        call is served."""
        beings = {run.being_id for run in await self._ledger.unfinished_runs()}
        rolled_back = 0
        for being_id in sorted(beings):
            async with self._ledger.patrol_lock(Scope(being_id), wait=False) as is_free:
                if is_free:  # else a living server is at work on it
                    rolled_back += await self._roll_back_dead_runs(being_id)
        return rolled_back

    async def _roll_back_dead_runs(self, being_id: BeingId) -> int:
        """Who calls it holds the being's lock: whoever began an unfinished run has died."""
        dead = [run for run in await self._ledger.unfinished_runs() if run.being_id == being_id]
        for run in dead:
            await self._roll_back_or_finish_failed_run(Scope(being_id), run.id)
        return len(dead)

    # --- a run ------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _hold_patrol_locks(self, scope: Scope) -> AsyncIterator[None]:
        async with self._patrol_locks[scope.being_id], self._ledger.patrol_lock(scope):
            await self.activation_recorder.flush()
            yield

    @asynccontextmanager
    async def _begin_run_and_abort_on_error(self, scope: Scope) -> AsyncIterator[RunId]:
        await self._roll_back_dead_runs(scope.being_id)  # of another server
        run_id = RunId(str(uuid.uuid4()))
        begun = True  # also if the caller is cancelled meanwhile
        try:
            try:
                await self._ledger.begin_run(scope, run_id, self.services.now())
            except MadeleineError:
                begun = False
                raise
            self._emit(scope, run_id, "begins")
            yield run_id
        except BaseException:
            if not begun:
                raise
            # To its end also if the caller is cancelled, or the next start has to do it. A cancel scope cancels again
            # and again, and the next patrol must not begin before.
            aborting = asyncio.ensure_future(self._roll_back_or_finish_failed_run(scope, run_id))
            while not aborting.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({aborting})
            if error := aborting.exception():
                logger.error("the patrol run %s is rolled back at the next start: %r", run_id, error)  # noqa: TRY400
            self._emit(scope, run_id, "fails")
            raise
        await self._bring_index_up_to_date()

    async def _offer_decisions_and_finish_run(
        self, context: PatrolRunContext, report: PatrolReport, pending_bytes: int
    ) -> PatrolReport:
        requests: list[DecisionRequest] = []
        waiting = 0
        if pending_bytes:
            try:
                requests, waiting = await offer_decisions_to_agent(context, pending_bytes)
            except Exception:  # the run stays as it is: pending decisions can be asked for again
                logger.exception("pending decisions could not be offered")
        report = replace(report, pending=tuple(requests), waiting_count=waiting)
        await self._ledger.finish_run(context.scope, report.run_id, self.services.now(), report.as_json_for_ledger())
        await self._prune_journal(context.scope)
        self._emit(context.scope, context.run_id, "ends", report=report)
        return report

    async def _prune_journal(self, scope: Scope) -> None:
        try:
            await self._ledger.prune_journal(scope, undoable_runs=self.services.config.undoable_runs)
        except MadeleineError:
            logger.exception("the journal of old patrol runs was not pruned; the next patrol tries again")

    def _emit(self, scope: Scope, run_id: RunId, event: PatrolRunStage, **fields: Any) -> None:
        if self.on_event:
            self.on_event(PatrolEvent(being_id=scope.being_id, run_id=run_id, event=event, **fields))

    async def _roll_back_or_finish_failed_run(self, scope: Scope, run_id: RunId) -> None:
        """Roll back; or, if what the run did was changed since, finish it as it is: each step leaves a whole state."""
        now = self.services.now
        try:
            try:
                async with self.services.write_lock:
                    undone = await self._ledger.undo_run(scope, run_id, at=now(), state="rolled_back")
                await self._update_index_after_undo(undone)
                logger.warning("the patrol run %s did not come to its end; what it did is undone", run_id)
            except CannotUndo as error:
                logger.warning("the patrol run %s did not come to its end and stays as it is: %s", run_id, error)
                await self._ledger.finish_run(scope, run_id, now(), {"run_id": run_id, "interrupted": True})
        except MadeleineError:
            logger.exception("the patrol run %s did not come to its end; it is rolled back at the next start", run_id)

    async def _update_index_after_undo(self, undone: PatrolUndoResult) -> None:
        await self._remove_from_index(undone.removed)
        await self._bring_index_up_to_date()

    async def _remove_from_index(self, gone: Sequence[MemoryId]) -> None:
        if gone and self.on_memories_removed:
            await self.on_memories_removed(gone)

    async def _bring_index_up_to_date(self) -> None:
        """Errors are not raised: the run is committed, and after an error it would be asked for again, and everything
        would age twice. The pending marks of the commit make up for it."""
        if self.update_index is None:
            return
        try:
            await self.update_index()
        except Exception:
            logger.exception("the patrol is committed, but the index could not be brought up to date yet")

    async def _dry_run(
        self, context: PatrolRunContext, steps: Sequence[PatrolStepName], on_progress: Callable[[PatrolProgress], None]
    ) -> PatrolReport:
        report = PatrolReport(run_id=context.run_id, dry_run=True)
        if "assign" in steps:  # the writer is not to wait for a model
            context.prepared = await prepare_cluster_assignment(context)
        with suppress(_DryRunRollback):
            async with self._ledger.patrol_transaction(context.scope) as transaction:
                context.share_transaction_between_steps(transaction)
                reports = await run_patrol_steps(context, steps, on_progress)
                _, waiting = await offer_decisions_to_agent(context)
                report = replace(report, steps=tuple(reports), waiting_count=waiting)
                raise _DryRunRollback
        return report


SKIP_REASON_AGED_TODAY = "memories have aged today"
SKIP_REASON_DRY_RUN = "a dry run asks no language model"


async def run_patrol_steps(
    context: PatrolRunContext, names: Sequence[PatrolStepName], on_progress: Callable[[PatrolProgress], None]
) -> list[PatrolStepReport]:
    """Run these steps in their order. A step that fails reports what it had done, and the others follow."""
    names = [name for name in PATROL_STEPS if name in names]
    context.has_one_step = len(names) == 1
    reports: list[PatrolStepReport] = []
    for done, name in enumerate(names):
        progress = PatrolProgress(name, done, len(names))
        context.reset_step_counts_and_deadline()
        context.report_progress = partial(_report_progress_of_step, progress, on_progress)
        try:
            reports.append(await _run_step(context, name))
        except Exception as error:  # one of the three places where it is caught broadly: the patrol goes on
            logger.exception("the patrol's step %s failed", name)
            reason = str(error) if isinstance(error, MadeleineError) else "see the server's log"
            reports.append(PatrolStepReport(name, dict(context.counts), failed=reason))
            if context.dry_run:  # its transaction may hold half of the step
                break
        on_progress(replace(progress, done=done + 1))
    if context.language_model is None and DECISION_HANDLERS.keys() & set(names):
        logger.info(STEP_SKIP_REASON_WITHOUT_MODEL_KEY)
    return reports


def _report_progress_of_step(
    step: PatrolProgress, on_progress: Callable[[PatrolProgress], None], part: int, parts: int
) -> None:
    on_progress(replace(step, part=part, parts=parts))


async def _run_step(context: PatrolRunContext, name: PatrolStepName) -> PatrolStepReport:
    if name == "assign":
        return await _assign_in_batches(context)
    if name in DECISION_HANDLERS:
        is_without_mind = context.language_model is None and not context.dry_run
        if name == "compress" and is_without_mind and (joined := await merge_undecided_episodes_into_passages(context)):
            return joined
        if context.language_model is None or context.dry_run:
            return PatrolStepReport(
                name, skipped=SKIP_REASON_DRY_RUN if context.language_model else STEP_SKIP_REASON_WITHOUT_MODEL_KEY
            )
        return await decide_pending_with_model(context, name)
    if name == "retention":
        return await archive_expired_memories(context)
    if name == "age" and await _has_aged_today(context):
        return PatrolStepReport(name, skipped=SKIP_REASON_AGED_TODAY)
    async with context.unit_of_work(name) as work:
        counts = await MECHANICAL_STEP_FUNCTIONS[name](work)
    return PatrolStepReport(name, counts)


async def _has_aged_today(context: PatrolRunContext) -> bool:
    """A being ages at most once a day, however often a patrol runs (ruling 20)."""
    services, last_aged_at = context.services, await context.reads.last_aged_at()
    return last_aged_at is not None and services.local_day(last_aged_at) == services.today()


async def _assign_in_batches(context: PatrolRunContext) -> PatrolStepReport:
    """In several transactions, so that other calls can store between them."""
    prepared = context.prepared or await prepare_cluster_assignment(context)
    counts = context.counts
    while True:
        async with context.unit_of_work("assign", prepared) as work:
            batch_counts = await assign_memories_to_clusters(work)
        counts.update(batch_counts)
        counts["waiting_for_vectors"] = batch_counts["waiting_for_vectors"]
        prepared = replace(prepared, memories=(), notes=())
        if batch_counts["assigned"] < MAX_ASSIGNMENT_BATCH_MEMORIES or context.is_step_out_of_time:
            return PatrolStepReport("assign", dict(counts))
        context.report_progress(counts["assigned"], counts["assigned"] + MAX_ASSIGNMENT_BATCH_MEMORIES)
