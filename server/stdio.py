"""MCP on standard input and output, for one client."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import AsyncExitStack

from memory.errors import MadeleineError
from memory.model import BeingId
from server.app import build_server
from server.lines import stdio_transport
from server.settings import Settings
from server.wiring import OpenMemory, open_memory
from tools.tool import UseCases
from tools.toolset import Toolset, default_tools

logger = logging.getLogger(__name__)


class LazyMemory:
    """Opens the data directory behind the first answers. A failure is told to the call that meets it, and the next call
    tries again: somebody may have closed the other process, or made room on the disk."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stack = AsyncExitStack()
        self._opening: asyncio.Task[OpenMemory] | None = None

    async def __aenter__(self) -> LazyMemory:
        self._opening = self._start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._opening:
            await asyncio.wait([self._opening])
            if self._opening.exception() is None:
                await self._stack.aclose()

    def _start(self) -> asyncio.Task[OpenMemory]:
        task = asyncio.create_task(self._stack.enter_async_context(open_memory(self._settings)), name="open memory")
        task.add_done_callback(_log_failure)
        return task

    async def use_cases(self) -> UseCases:
        """Raises what opening raised."""
        if self._opening is None or (self._opening.done() and self._opening.exception() is not None):
            self._opening = self._start()
        return (await asyncio.shield(self._opening)).use


def _log_failure(task: asyncio.Task[OpenMemory]) -> None:
    if not task.cancelled() and (error := task.exception()):
        foreseen = isinstance(error, MadeleineError)
        logger.error("the memory could not be opened: %s", error, exc_info=None if foreseen else error)


async def serve_stdio(settings: Settings) -> None:
    """Until the client closes its end. What was begun is finished, the index is flushed."""
    toolset = Toolset(default_tools(random.SystemRandom()), max_text_chars=settings.max_text_chars)
    async with LazyMemory(settings) as memory, stdio_transport() as (read, write):
        server = build_server(toolset, BeingId(settings.being), memory.use_cases)
        await server.run(read, write, server.create_initialization_options())
