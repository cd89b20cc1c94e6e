"""Background tasks that poll, in the process that owns the memory: the memory thread (spec T1; docs/adr/0021) and
scheduled patrols (spec P12; docs/adr/0016). Live events of patrols."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence, Set
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from madeleine.memory.language_model import LanguageModel
from madeleine.memory.model import BeingId, Scope
from madeleine.memory.patrol_records import ActivitySinceLastPatrol
from madeleine.patrol.report import PATROL_STEP_SYMBOLS, PatrolReport
from madeleine.patrol.run import PatrolEvent
from madeleine.patrol.triggers import PatrolTrigger, PatrolTriggerConfig, due_patrol_trigger
from madeleine.server.settings.settings import Settings

if TYPE_CHECKING:
    from madeleine.memory.watch.thread import MemoryExtractionPollResult

logger = logging.getLogger(__name__)

POLL_STOP_GRACE_SECONDS = 2.0
"""How long a poll may still take when the process stops; then it is cancelled."""


class PollingLoop(ABC):
    """`run` goes on until it is cancelled; `stop` cancels it when it is idle, or after `POLL_STOP_GRACE_SECONDS`."""

    cancelled_message: str
    """Logged when a poll is cancelled."""

    def __init__(self, wait: Callable[[], Awaitable[object]]) -> None:
        """`wait` is called before each poll."""
        self._wait = wait
        self._stopping = False
        self._working = asyncio.Lock()
        """Held while a poll is at work."""

    @abstractmethod
    async def poll(self) -> None:
        """Raises nothing but its cancellation."""

    async def wait_until_idle(self) -> None:
        """Returns when no poll is at work."""
        async with self._working:
            pass

    async def run(self) -> None:
        while not self._stopping:
            await self._wait()
            await self.poll()

    async def stop(self, task: asyncio.Task[None]) -> None:
        """Stop the task that `run` runs in."""
        self._stopping = True
        try:
            async with asyncio.timeout(POLL_STOP_GRACE_SECONDS):
                await self.wait_until_idle()
        except TimeoutError:
            logger.info("%s", self.cancelled_message)
        task.cancel()
        await asyncio.wait({task})

    @asynccontextmanager
    async def run_in_background(self, name: str) -> AsyncIterator[None]:
        """Run it in a task of that name meanwhile."""
        task = asyncio.create_task(self.run(), name=name)
        try:
            yield
        finally:
            await self.stop(task)


class PollableMemoryExtractor(Protocol):
    """`memory.watch.thread.ConversationMemoryExtractor`, as far as it is needed here."""

    @property
    def new_messages_event(self) -> asyncio.Event: ...

    async def poll(self, language: LanguageModel | None) -> MemoryExtractionPollResult: ...


class MemoryExtractionLoop(PollingLoop):
    """What is cancelled at the end is read again at the next start."""

    cancelled_message = "the memory thread was reading a conversation, and will read it again at the next start"

    def __init__(
        self,
        thread: Callable[[], PollableMemoryExtractor | None],
        language: Callable[[], AbstractAsyncContextManager[LanguageModel | None]],
        *,
        seconds: float,
    ) -> None:
        """`thread` is None while the memory is not open. `seconds`: between two polls, if nothing is observed."""
        super().__init__(self._wait_for_messages)
        self._thread = thread
        self._language = language
        self._seconds = seconds

    async def poll(self) -> None:
        """Take turns until nothing is left to read."""
        more = True
        while more and not self._stopping and (thread := self._thread()) is not None:
            async with self._working:
                try:
                    thread.new_messages_event.clear()
                    async with self._language() as language:
                        more = _log_extraction_poll_and_has_more(await thread.poll(language))
                except Exception:
                    logger.exception("reading unwatched messages failed; retrying at the next poll")
                    more = False

    async def _wait_for_messages(self) -> None:
        thread = self._thread()
        if thread is None:
            await asyncio.sleep(self._seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._seconds):
                await thread.new_messages_event.wait()


def _log_extraction_poll_and_has_more(result: MemoryExtractionPollResult) -> bool:
    """Log what the poll did; return whether more is left to read."""
    counts = result.counts
    if any(counts[name] for name in ("asked", "stored", "failed", "abandoned")):
        logger.info("the memory thread: %s", ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return result.has_more


def is_memory_extraction_enabled(settings: Settings) -> bool:
    """Whether the memory thread runs; a warning where it was to run and cannot."""
    enabled, reason = settings.memory_extraction_enablement
    if settings.thread == "on" and not enabled:
        logger.warning("The memory thread does not run: %s.", reason)
    return enabled


AUTOMATIC_PATROL_CLIENT_NAME = "madeleine schedule"
MIN_AUTOMATIC_PATROL_INTERVAL = timedelta(hours=1)
"""Between two automatic patrols of one being, failed ones included: an import of thousands is one event, and must not
age everything by many cycles; and what fails is not retried in a loop."""
LeaseLanguageModel = Callable[[], AbstractAsyncContextManager[LanguageModel | None]]
"""Lends this process's own language model for one patrol; None where there is none."""


class ActivitySinceLastPatrolReader(Protocol):
    async def activity_of_each_being_since_last_patrol(self) -> list[ActivitySinceLastPatrol]:
        """Of every being with activity since its last patrol.

        A patrol that was undone counts, for it would only do the same again; one that was rolled back, or that only
        applied decisions, does not. What a patrol has written itself is no activity. A recall counts if it returned
        any living memory.
        """


class PatrolRunner(Protocol):
    """`patrol.run.RunPatrols`, as far as it is needed here."""

    async def is_running(self, being_id: BeingId) -> bool: ...

    async def __call__(
        self, scope: Scope, *, language: LanguageModel | None = None, offer_pending: bool = True
    ) -> PatrolReport: ...


class AutomaticPatrolLoop(PollingLoop):
    cancelled_message = "a patrol was running and is rolled back, for the process ends"

    def __init__(
        self,
        triggers: PatrolTriggerConfig,
        opened: Callable[[], tuple[ActivitySinceLastPatrolReader, PatrolRunner] | None],
        *,
        now: Callable[[], datetime],
        wait: Callable[[], Awaitable[object]],
        last_call: Callable[[], datetime | None] = lambda: None,
        language: LeaseLanguageModel = nullcontext,
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
        async with self._working:
            try:
                patrolled: set[BeingId] = set()
                # Read again for each: an agent may have run a patrol of the next one during this one's.
                while not self._stopping and (
                    next_due := self._next_due_patrol(
                        await ledger.activity_of_each_being_since_last_patrol(), patrolled
                    )
                ):
                    activity, trigger = next_due
                    patrolled.add(activity.being_id)
                    await self._run_patrol_of_being(patrol, activity, trigger)
            except Exception:
                logger.exception("checking for due patrols failed; retrying at the next poll")

    def _next_due_patrol(
        self, activities: Sequence[ActivitySinceLastPatrol], patrolled: Set[BeingId]
    ) -> tuple[ActivitySinceLastPatrol, PatrolTrigger] | None:
        now = self._now()
        for activity in activities:
            if activity.being_id in patrolled or now < self._not_before.get(activity.being_id, now):
                continue
            if trigger := due_patrol_trigger(now, activity, self._triggers, last_call_at=self._last_call()):
                return activity, trigger
        return None

    async def _run_patrol_of_being(
        self, patrol: PatrolRunner, activity: ActivitySinceLastPatrol, trigger: PatrolTrigger
    ) -> None:
        being_id = activity.being_id
        try:
            async with self._language() as language:
                if await patrol.is_running(being_id):
                    return
                self._not_before[being_id] = self._now() + MIN_AUTOMATIC_PATROL_INTERVAL
                logger.info("an automatic patrol begins (trigger: %s; %d new memories)", trigger, activity.stored)
                await patrol(Scope(being_id, AUTOMATIC_PATROL_CLIENT_NAME), language=language, offer_pending=False)
        except Exception:
            logger.exception(
                "an automatic patrol failed; retrying in %s at the earliest", MIN_AUTOMATIC_PATROL_INTERVAL
            )


def patrol_triggers_from_settings(settings: Settings) -> PatrolTriggerConfig:
    idle = settings.patrol_after_idle_minutes
    return PatrolTriggerConfig(
        after_memories=settings.patrol_after_memories,
        at_hour=settings.patrol_at_hour,
        after_idle=timedelta(minutes=idle) if idle else None,
    )


MAX_QUEUED_PATROL_EVENTS = 64
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
        subscription = (being_id, asyncio.Queue[PatrolEvent](MAX_QUEUED_PATROL_EVENTS))
        self._queues.append(subscription)
        try:
            yield _yield_queued_events_forever(subscription[1])
        finally:
            self._queues.remove(subscription)


async def _yield_queued_events_forever(queue: asyncio.Queue[PatrolEvent]) -> AsyncIterator[PatrolEvent]:
    while True:
        yield await queue.get()


def patrol_event_as_json(event: PatrolEvent) -> dict[str, Any]:
    """One line to a watcher; no words of a memory."""
    fields: dict[str, Any] = {"event": event.event, "run_id": event.run_id}
    if progress := event.progress:
        fields |= {"step": PATROL_STEP_SYMBOLS[progress.step], "name": progress.step}
        fields |= {"done": progress.done, "total": progress.total}
        fields |= {"part": progress.part, "parts": progress.parts} if progress.parts else {}
    return fields | ({"report": event.report.as_json_for_ledger()} if event.report else {})
