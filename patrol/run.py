"""A patrol (spec P6, P7, P12): each step prepares with the help of models, then changes what it looks at in a
transaction of its own. What a run has changed is journalled, and can be undone (ruling 11)."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Literal

from madeleine.memory.errors import CannotUndo, MadeleineError
from madeleine.memory.model import BeingId, MemoryId, RunId
from madeleine.memory.patrol_records import PatrolRun, UndoResult
from madeleine.memory.ports import Embedder, LanguageModel, WordStatistics
from madeleine.memory.recall.ports import ActivationLog
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets
from madeleine.memory.scope import Scope
from madeleine.patrol.deciding.decision import Decision
from madeleine.patrol.deciding.offer import Offer
from madeleine.patrol.evening import prepare
from madeleine.patrol.ports import PatrolLedger
from madeleine.patrol.report import STEPS, PatrolReport, StepName
from madeleine.patrol.round import PatrolConfig, Round, World
from madeleine.patrol.settling import carry_out, hand_out
from madeleine.patrol.walk import Progress, walk

logger = logging.getLogger(__name__)


class _Rehearsed(Exception):
    """Rolls back what a dry run has done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Of any patrol, for whoever watches. `report`: of one that has ended."""

    being_id: BeingId
    run_id: RunId
    event: Literal["begins", "progress", "ends", "fails"]
    progress: Progress | None = None
    report: PatrolReport | None = None


class Patrol:
    """The use case. One patrol a being at a time."""

    def __init__(
        self,
        ledger: PatrolLedger,
        words: WordStatistics,
        embedder: Embedder,
        activations: ActivationLog,
        *,
        now: Callable[[], datetime],
        wrote: Callable[[], Awaitable[object]] | None = None,
        removed: Callable[[Sequence[MemoryId]], Awaitable[object]] | None = None,
        redact: Redact = redact_secrets,
        config: PatrolConfig | None = None,
        news: Callable[[News], None] | None = None,
        turn: asyncio.Lock | None = None,
        today: Callable[[], date] | None = None,
    ) -> None:
        """`turn` is the one that `StoreScenes` takes, `today` the day whose diary is written. `wrote` is awaited after
        a run that changed something: it brings the changes into the index. `removed` is told of memories that an undo
        has taken out of the ledger. `news` must not block."""
        self._ledger = ledger
        self._world = World(
            ledger=ledger,
            words=words,
            embedder=embedder,
            now=now,
            today=today or (lambda: now().date()),
            redact=redact,
            config=config or PatrolConfig(),
            turn=turn or asyncio.Lock(),
        )
        self._activations = activations
        self._now = now
        self._wrote = wrote
        self._removed = removed
        self._news = news or (lambda news: None)
        self._one_at_a_time: dict[BeingId, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __call__(
        self,
        scope: Scope,
        *,
        steps: Sequence[StepName] = STEPS,
        dry_run: bool = False,
        language: LanguageModel | None = None,
        hands_out: bool = True,
        progress: Callable[[Progress], None] | None = None,
    ) -> PatrolReport:
        """Run the chosen steps, always in the order ❶ to ❼, then compress and diary. A dry run reports what would
        change and changes nothing. `language` decides what needs a mind; what it does not is handed out, if
        `hands_out`.

        `progress` is called after each step and must not block.
        """
        tell = progress or (lambda progress: None)
        async with self._one_at_a_time[scope.being_id]:
            await self._activations.flush()
            if dry_run:
                return await self._rehearse(scope, steps, tell, language)
            async with self._run(scope) as run_id:
                round_ = Round(self._world, scope, run_id, language)
                reports = await walk(round_, steps, self._telling(scope, run_id, tell))
                offers, waiting = await _handed_out(round_) if hands_out else ([], 0)
                report = PatrolReport(
                    run_id=run_id,
                    steps=tuple(reports),
                    spending=round_.spending,
                    pending=tuple(offers),
                    waiting=waiting,
                )
                await self._finish(scope, report)
            await self._bring_into_index()
            return report

    def is_under_way(self, being_id: BeingId) -> bool:
        """A patrol of this being, or an undoing of one: who asks for another now has to wait."""
        return self._one_at_a_time[being_id].locked()

    async def decide(
        self, scope: Scope, decisions: Sequence[Decision], *, progress: Callable[[Progress], None] | None = None
    ) -> PatrolReport:
        """Do what the calling agent has decided (ruling 10), and hand out what waits then. A run of its own."""
        async with self._one_at_a_time[scope.being_id]:
            await self._activations.flush()
            if not decisions:
                round_ = Round(self._world, scope, RunId(""))
                offers, waiting = await hand_out(round_)
                return PatrolReport(run_id=RunId(""), pending=tuple(offers), waiting=waiting)
            async with self._run(scope) as run_id:
                round_ = Round(self._world, scope, run_id)
                decided = await carry_out(round_, decisions)
                offers, waiting = await _handed_out(round_)
                report = PatrolReport(run_id=run_id, decided=tuple(decided), pending=tuple(offers), waiting=waiting)
                await self._finish(scope, report)
            await self._bring_into_index()
            return report

    async def undo(self, scope: Scope, run_id: RunId) -> UndoResult:
        """Raises `CannotUndo` with the reason; nothing is changed then."""
        async with self._one_at_a_time[scope.being_id]:
            await self._activations.flush()
            async with self._world.turn:
                undone = await self._ledger.undo(scope, run_id, at=self._now())
            await self._after_undo(undone)
            return undone

    async def runs(self, scope: Scope, *, limit: int = 20) -> list[PatrolRun]:
        """The latest first."""
        return await self._ledger.runs(scope, limit=limit)

    async def recover(self) -> int:
        """Roll back what dead processes have left half-way; how many runs that was. For the start, before anybody else
        is served."""
        unfinished = await self._ledger.unfinished_runs()
        for run in unfinished:
            await self._end(Scope(run.being_id), run.id)
        return len(unfinished)

    # --- a run ------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _run(self, scope: Scope) -> AsyncIterator[RunId]:
        run_id = RunId(str(uuid.uuid4()))
        begun = True  # also if the caller goes away meanwhile
        try:
            try:
                await self._ledger.begin_run(scope, run_id, self._now())
            except MadeleineError:
                begun = False
                raise
            self._news(News(being_id=scope.being_id, run_id=run_id, event="begins"))
            yield run_id
        except BaseException:
            if not begun:
                raise
            # Also where the caller has gone: to its end, or the next start has to do it. A cancel scope cancels again
            # and again, and the next patrol must not begin before.
            ending = asyncio.ensure_future(self._end(scope, run_id))
            while not ending.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({ending})
            if error := ending.exception():
                logger.error("the patrol run %s is rolled back at the next start: %r", run_id, error)  # noqa: TRY400
            self._news(News(being_id=scope.being_id, run_id=run_id, event="fails"))
            raise

    async def _finish(self, scope: Scope, report: PatrolReport) -> None:
        await self._ledger.finish_run(scope, report.run_id, self._now(), report.as_record())
        self._news(News(being_id=scope.being_id, run_id=report.run_id, event="ends", report=report))

    async def _end(self, scope: Scope, run_id: RunId) -> None:
        """Rolled back; or, where what it did was changed since, finished as far as it went: each step leaves what is
        whole."""
        try:
            try:
                async with self._world.turn:
                    undone = await self._ledger.undo(scope, run_id, at=self._now(), state="rolled_back")
                await self._after_undo(undone)
                logger.warning("the patrol run %s did not come to its end; what it did is undone", run_id)
            except CannotUndo as error:
                logger.warning("the patrol run %s did not come to its end and stays as it is: %s", run_id, error)
                await self._ledger.finish_run(scope, run_id, self._now(), {"run_id": run_id, "interrupted": True})
        except MadeleineError:
            logger.exception("the patrol run %s did not come to its end; it is rolled back at the next start", run_id)

    async def _after_undo(self, undone: UndoResult) -> None:
        if undone.removed and self._removed:
            await self._removed(undone.removed)
        await self._bring_into_index()

    async def _bring_into_index(self) -> None:
        """The run is committed by now: told as an error, it would be asked for again, and everything would age twice.
        What fails here is made good from the pending marks of the commit."""
        if self._wrote is None:
            return
        try:
            await self._wrote()
        except Exception:
            logger.exception("the patrol is committed, but the index could not be brought up to date yet")

    async def _rehearse(
        self,
        scope: Scope,
        chosen: Sequence[StepName],
        tell: Callable[[Progress], None],
        language: LanguageModel | None,
    ) -> PatrolReport:
        run_id = RunId(str(uuid.uuid4()))
        report = PatrolReport(run_id=run_id, dry_run=True)
        round_ = Round(self._world, scope, run_id, language, rehearses=True)
        if "assign" in chosen:  # the writer is not to wait for a model
            round_.evening = await prepare(round_)
        with suppress(_Rehearsed):
            async with self._ledger.patrol(scope) as transaction:
                round_.go_on_stage(transaction)
                reports = await walk(round_, chosen, tell)
                _, waiting = await hand_out(round_)
                report = replace(report, steps=tuple(reports), waiting=waiting)
                raise _Rehearsed
        return report

    def _telling(self, scope: Scope, run_id: RunId, tell: Callable[[Progress], None]) -> Callable[[Progress], None]:
        def both(progress: Progress) -> None:
            tell(progress)
            self._news(News(being_id=scope.being_id, run_id=run_id, event="progress", progress=progress))

        return both


async def _handed_out(round_: Round) -> tuple[list[Offer], int]:
    """What a run has done stays done if this fails: it can be asked for again."""
    try:
        return await hand_out(round_)
    except Exception:
        logger.exception("what waits for a decision could not be handed out")
        return [], 0
