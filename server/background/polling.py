"""A task that looks again and again, with a pause before each look, and how its owner ends it."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

logger = logging.getLogger(__name__)

QUICK_SECONDS = 2.0
"""What a look may still take when the process is told to end; then it is cut short."""


class Rounds(ABC):
    """`run` goes on until it is cancelled; `end` does that at a good moment."""

    cut_short: str
    """What the log says of a look that has to end before it is through."""

    def __init__(self) -> None:
        self._ending = False
        self._idle = asyncio.Event()
        self._idle.set()

    @abstractmethod
    async def look(self) -> None:
        """One round; it raises nothing but its cancellation."""

    @abstractmethod
    async def _pause(self) -> None: ...

    async def at_rest(self) -> None:
        """Returns when no look is at work."""
        await self._idle.wait()

    async def run(self) -> None:
        while not self._ending:
            await self._pause()
            await self.look()

    async def end(self, running: asyncio.Task[None]) -> None:
        """A look that is nearly through ends; another is cut short."""
        self._ending = True
        try:
            async with asyncio.timeout(QUICK_SECONDS):
                await self.at_rest()
        except TimeoutError:
            logger.info("%s", self.cut_short)
        running.cancel()
        await asyncio.wait({running})

    @asynccontextmanager
    async def running(self, name: str) -> AsyncIterator[None]:
        """A task of that name runs meanwhile."""
        task = asyncio.create_task(self.run(), name=name)
        try:
            yield
        finally:
            await self.end(task)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        self._idle.clear()
        try:
            yield
        finally:
            self._idle.set()
