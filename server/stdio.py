"""MCP on standard input and output, for one client."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager

import anyio

from memory.errors import MadeleineError
from memory.model import BeingId
from server.app import build_server
from server.lines import FINISH_SECONDS, stdio_transport
from server.settings import Settings
from server.wiring import OpenMemory, open_memory
from tools.choice import choose_tools
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
            # What takes longer, as an index that is built anew, goes on at the next start.
            await asyncio.wait([self._opening], timeout=FINISH_SECONDS)
            self._opening.cancel()
            await asyncio.wait([self._opening])
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
    """Until the client closes either pipe, or SIGTERM or SIGINT. What was begun is finished, the index is flushed.

    Raises `InvalidInput` for tools that nobody knows."""
    tools = choose_tools(
        default_tools(random.SystemRandom()),
        toolsets=settings.toolsets,
        names=settings.tools,
        exclude=settings.exclude_tools,
        read_only=settings.read_only,
    )
    toolset = Toolset(tools, max_text_chars=settings.max_text_chars)
    end = anyio.Event()
    with _signals(end.set):
        async with LazyMemory(settings) as memory, stdio_transport(end) as (read, write):
            server = build_server(toolset, BeingId(settings.being), memory.use_cases)
            await server.run(read, write, server.create_initialization_options())


@contextmanager
def _signals(end: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGINT call `end`; on Windows, whose event loop takes no signals, they stay as they are."""
    loop = asyncio.get_running_loop()
    watched = () if sys.platform == "win32" else (signal.SIGTERM, signal.SIGINT)
    for one in watched:
        loop.add_signal_handler(one, end)
    try:
        yield
    finally:
        for one in watched:
            loop.remove_signal_handler(one)
