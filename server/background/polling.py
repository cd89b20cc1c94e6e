"""A background task that polls, and how its owner stops it."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

logger = logging.getLogger(__name__)

STOP_GRACE_SECONDS = 2.0
"""How long a poll may still take when the process stops; then it is cancelled."""


class PollingLoop(ABC):
    """`run` goes on until it is cancelled; `stop` cancels it when it is idle, or after `STOP_GRACE_SECONDS`."""

    cancelled_message: str
    """Logged when a poll is cancelled."""

    def __init__(self, wait: Callable[[], Awaitable[object]]) -> None:
        """`wait` is called before each poll."""
        self._wait = wait
        self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()

    @abstractmethod
    async def poll(self) -> None:
        """Raises nothing but its cancellation."""

    async def wait_until_idle(self) -> None:
        """Returns when no poll is at work."""
        await self._idle.wait()

    async def run(self) -> None:
        while not self._stopping:
            await self._wait()
            await self.poll()

    async def stop(self, running: asyncio.Task[None]) -> None:
        """Stop the task `running` that `run` runs in."""
        self._stopping = True
        try:
            async with asyncio.timeout(STOP_GRACE_SECONDS):
                await self.wait_until_idle()
        except TimeoutError:
            logger.info("%s", self.cancelled_message)
        running.cancel()
        await asyncio.wait({running})

    @asynccontextmanager
    async def running(self, name: str) -> AsyncIterator[None]:
        """Run it in a task of that name meanwhile."""
        task = asyncio.create_task(self.run(), name=name)
        try:
            yield
        finally:
            await self.stop(task)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        self._idle.clear()
        try:
            yield
        finally:
            self._idle.set()
