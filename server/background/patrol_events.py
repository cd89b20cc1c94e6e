"""Live events of patrols, for clients that watch them (spec P12)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from madeleine.memory.model import BeingId
from madeleine.patrol.report import STEP_SYMBOLS
from madeleine.patrol.run import PatrolEvent

MAX_QUEUED = 64
"""Events that a subscriber has not read yet; beyond these the oldest are dropped."""


class EventBroadcast:
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
        subscription = (being_id, asyncio.Queue[PatrolEvent](MAX_QUEUED))
        self._queues.append(subscription)
        try:
            yield _events(subscription[1])
        finally:
            self._queues.remove(subscription)


async def _events(queue: asyncio.Queue[PatrolEvent]) -> AsyncIterator[PatrolEvent]:
    while True:
        yield await queue.get()


def as_json(event: PatrolEvent) -> dict[str, Any]:
    """One line to a watcher; no words of a memory."""
    fields: dict[str, Any] = {"event": event.event, "run_id": event.run_id}
    if progress := event.progress:
        fields |= {"step": STEP_SYMBOLS[progress.step], "name": progress.step, "done": progress.done}
        fields |= {"total": progress.total}
        fields |= {"part": progress.part, "parts": progress.parts} if progress.parts else {}
    return fields | ({"report": event.report.as_record()} if event.report else {})
