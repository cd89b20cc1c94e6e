"""Patrols that come by themselves, in the process that owns the memory (spec P12; docs/adr/0016)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from madeleine.memory.model import BeingId
from madeleine.memory.patrol_records import RecentActivity
from madeleine.memory.ports import LanguageModel
from madeleine.memory.scope import Scope
from madeleine.patrol.report import PatrolReport
from madeleine.patrol.when import Habits, Reason, due
from madeleine.server.background.polling import Rounds
from madeleine.server.background.ports import BeingsLedger
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.lazy_memory import LazyMemory

logger = logging.getLogger(__name__)

CLIENT = "madeleine by itself"
APART = timedelta(hours=1)
"""Two patrols of one being that come by themselves, the failed ones too: an import of thousands is one event, and must
not age everything by many cycles; and what fails is not tried in a loop."""
Language = Callable[[], AbstractAsyncContextManager[LanguageModel | None]]
"""Lends this process's own language model for one patrol; None where there is none."""


class Patrols(Protocol):
    """`patrol.run.Patrol`, as far as it is needed here."""

    def is_under_way(self, being_id: BeingId) -> bool: ...

    async def __call__(
        self, scope: Scope, *, language: LanguageModel | None = None, hands_out: bool = True
    ) -> PatrolReport: ...


@dataclass(frozen=True, slots=True)
class Ward:
    """Whom to look after, and how."""

    beings: BeingsLedger
    patrol: Patrols


class Schedule(Rounds):
    cut_short = "a patrol was under way and is rolled back, for the process ends"

    def __init__(
        self,
        habits: Habits,
        ward: Callable[[], Ward | None],
        *,
        now: Callable[[], datetime],
        pause: Callable[[], Awaitable[object]],
        last_call: Callable[[], datetime | None] = lambda: None,
        language: Language = nullcontext,
    ) -> None:
        """`ward` is None while the memory is not open. `now` is in this machine's time zone. `pause` lies before each
        look, also before the first: answers come before patrols."""
        super().__init__()
        self._habits = habits
        self._ward = ward
        self._now = now
        self._wait = pause
        self._last_call = last_call
        self._language = language
        self._not_before: dict[BeingId, datetime] = {}

    async def look(self) -> None:
        """Patrol for all to whom one is due, one being after the other."""
        ward = self._ward()
        if ward is None:
            return
        with self._at_work():
            try:
                await self._tend_all(ward)
            except Exception:
                logger.exception("it is not known whether a patrol is due; the next look tries again")

    async def _pause(self) -> None:
        await self._wait()

    async def _tend_all(self, ward: Ward) -> None:
        seen: set[BeingId] = set()
        # Read anew for each: an agent may have asked for a patrol of the next one while this one's was under way.
        while not self._ending and (found := self._next(await ward.beings.recent_activity(), seen)):
            one, reason = found
            seen.add(one.being_id)
            await self._tend(ward, one, reason)

    def _next(self, all_: list[RecentActivity], seen: Set[BeingId]) -> tuple[RecentActivity, Reason] | None:
        now = self._now()
        for one in all_:
            if one.being_id in seen or now < self._not_before.get(one.being_id, now):
                continue
            if reason := due(now, one, self._habits, last_call=self._last_call()):
                return one, reason
        return None

    async def _tend(self, ward: Ward, one: RecentActivity, reason: Reason) -> None:
        try:
            async with self._language() as language:
                if ward.patrol.is_under_way(one.being_id):
                    return
                self._not_before[one.being_id] = self._now() + APART
                logger.info("a patrol begins by itself (%s), %d memories are new", reason, one.stored)
                await ward.patrol(Scope(one.being_id, CLIENT), language=language, hands_out=False)
        except Exception:
            logger.exception("a patrol that came by itself failed; the next try is in %s", APART)


def habits_of(settings: Settings) -> Habits:
    idle = settings.patrol_after_idle_minutes
    return Habits(
        after_memories=settings.patrol_after_memories,
        at_hour=settings.patrol_at_hour,
        after_quiet=timedelta(minutes=idle) if idle else None,
    )


@asynccontextmanager
async def patrols_by_themselves(
    settings: Settings, memory: LazyMemory, *, language: Language = nullcontext
) -> AsyncIterator[Schedule]:
    """While the memory is served. `language`: of this process, by its own key."""

    def ward() -> Ward | None:
        opened = memory.opened
        return Ward(opened.ledger.beings, opened.use.patrol) if opened else None

    schedule = Schedule(
        habits_of(settings),
        ward,
        now=lambda: datetime.now().astimezone(),
        pause=lambda: asyncio.sleep(settings.patrol_check_seconds),
        last_call=lambda: memory.last_call,
        language=language,
    )
    if not settings.patrol_by_itself:
        yield schedule
        return
    async with schedule.running("patrols by themselves"):
        yield schedule
