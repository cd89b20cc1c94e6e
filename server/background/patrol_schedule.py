"""Automatic patrols, in the process that owns the memory, and live events of patrols (spec P12; docs/adr/0016)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence, Set
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta
from typing import Any, Protocol

from madeleine.memory.language_model import LanguageModel
from madeleine.memory.model import BeingId, Scope
from madeleine.memory.patrol_records import RecentActivity
from madeleine.patrol.report import STEP_SYMBOLS, PatrolReport
from madeleine.patrol.run import PatrolEvent
from madeleine.patrol.triggers import PatrolTrigger, PatrolTriggers, due_trigger
from madeleine.server.background.polling import PollingLoop
from madeleine.server.settings.settings import Settings

logger = logging.getLogger(__name__)

SCHEDULE_CLIENT_NAME = "madeleine schedule"
MINIMUM_INTERVAL = timedelta(hours=1)
"""Between two automatic patrols of one being, failed ones included: an import of thousands is one event, and must not
age everything by many cycles; and what fails is not retried in a loop."""
LanguageModelLease = Callable[[], AbstractAsyncContextManager[LanguageModel | None]]
"""Lends this process's own language model for one patrol; None where there is none."""


class ActivityLedger(Protocol):
    async def recent_activity(self) -> list[RecentActivity]:
        """Of every being with activity since its last patrol.

        A patrol that was undone counts, for it would only do the same again; one that was rolled back, or that only
        applied decisions, does not. What a patrol has written itself is no activity. A recall counts if it returned
        any living memory.
        """


class AutomaticPatrol(Protocol):
    """`patrol.run.Patrol`, as far as it is needed here."""

    def is_running(self, being_id: BeingId) -> bool: ...

    async def __call__(
        self, scope: Scope, *, language: LanguageModel | None = None, offer_pending: bool = True
    ) -> PatrolReport: ...


class PatrolSchedule(PollingLoop):
    cancelled_message = "a patrol was running and is rolled back, for the process ends"

    def __init__(
        self,
        triggers: PatrolTriggers,
        opened: Callable[[], tuple[ActivityLedger, AutomaticPatrol] | None],
        *,
        now: Callable[[], datetime],
        wait: Callable[[], Awaitable[object]],
        last_call: Callable[[], datetime | None] = lambda: None,
        language: LanguageModelLease = nullcontext,
    ) -> None:
        """`opened` returns None while the memory is not open. `now` is in this machine's time zone. `wait` comes before
        each poll, also before the first: calls are answered before patrols start."""
        super().__init__(wait)
        self._triggers = triggers
        self._opened = opened
        self._now = now
        self._last_call = last_call
        self._language = language
        self._not_before: dict[BeingId, datetime] = {}

    async def poll(self) -> None:
        """Patrol for every being for which one is due, one after the other."""
        if (opened := self._opened()) is None:
            return
        ledger, patrol = opened
        with self._at_work():
            try:
                patrolled: set[BeingId] = set()
                # Read again for each: an agent may have run a patrol of the next one during this one's.
                while not self._stopping and (next_due := self._next_due(await ledger.recent_activity(), patrolled)):
                    activity, trigger = next_due
                    patrolled.add(activity.being_id)
                    await self._patrol(patrol, activity, trigger)
            except Exception:
                logger.exception("checking for due patrols failed; retrying at the next poll")

    def _next_due(
        self, activities: Sequence[RecentActivity], patrolled: Set[BeingId]
    ) -> tuple[RecentActivity, PatrolTrigger] | None:
        now = self._now()
        for activity in activities:
            if activity.being_id in patrolled or now < self._not_before.get(activity.being_id, now):
                continue
            if trigger := due_trigger(now, activity, self._triggers, last_call=self._last_call()):
                return activity, trigger
        return None

    async def _patrol(self, patrol: AutomaticPatrol, activity: RecentActivity, trigger: PatrolTrigger) -> None:
        being_id = activity.being_id
        try:
            async with self._language() as language:
                if patrol.is_running(being_id):
                    return
                self._not_before[being_id] = self._now() + MINIMUM_INTERVAL
                logger.info("an automatic patrol begins (trigger: %s; %d new memories)", trigger, activity.stored)
                await patrol(Scope(being_id, SCHEDULE_CLIENT_NAME), language=language, offer_pending=False)
        except Exception:
            logger.exception("an automatic patrol failed; retrying in %s at the earliest", MINIMUM_INTERVAL)


def configured_triggers(settings: Settings) -> PatrolTriggers:
    idle = settings.patrol_after_idle_minutes
    return PatrolTriggers(
        after_memories=settings.patrol_after_memories,
        at_hour=settings.patrol_at_hour,
        after_idle=timedelta(minutes=idle) if idle else None,
    )


MAX_QUEUED_EVENTS = 64
"""Events that a subscriber has not read yet; beyond these the oldest are dropped."""


class PatrolEventBroadcast:
    """`publish` returns at once, however slow a subscriber is."""

    def __init__(self) -> None:
        self._queues: list[tuple[BeingId, asyncio.Queue[PatrolEvent]]] = []

    def publish(self, event: PatrolEvent) -> None:
        for being_id, queue in self._queues:
            if being_id == event.being_id:
                if queue.full():
                    queue.get_nowait()
                queue.put_nowait(event)

    @contextmanager
    def subscribe(self, being_id: BeingId) -> Iterator[AsyncIterator[PatrolEvent]]:
        """An endless iterator over the events of one being, for one reader."""
        subscription = (being_id, asyncio.Queue[PatrolEvent](MAX_QUEUED_EVENTS))
        self._queues.append(subscription)
        try:
            yield _queued_events(subscription[1])
        finally:
            self._queues.remove(subscription)


async def _queued_events(queue: asyncio.Queue[PatrolEvent]) -> AsyncIterator[PatrolEvent]:
    while True:
        yield await queue.get()


def patrol_event_as_json(event: PatrolEvent) -> dict[str, Any]:
    """One line to a watcher; no words of a memory."""
    fields: dict[str, Any] = {"event": event.event, "run_id": event.run_id}
    if progress := event.progress:
        fields |= {"step": STEP_SYMBOLS[progress.step], "name": progress.step}
        fields |= {"done": progress.done, "total": progress.total}
        fields |= {"part": progress.part, "parts": progress.parts} if progress.parts else {}
    return fields | ({"report": event.report.as_record()} if event.report else {})
