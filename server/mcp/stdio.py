"""MCP on standard input and output, for one client."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio

from madeleine.memory.model import BeingId
from madeleine.server.background.serving import served_memory
from madeleine.server.mcp.lines import stdio_transport
from madeleine.server.mcp.server import Caller, McpRequestHandlers, selected_toolset
from madeleine.server.settings.settings import Settings


async def serve_stdio(settings: Settings) -> None:
    """Serve until the client closes either pipe, or SIGTERM or SIGINT. Calls under way are finished, the index is
    flushed. Raises `InvalidInput` for unknown tools."""
    toolset, caller = selected_toolset(settings), Caller(BeingId(settings.being))
    end = anyio.Event()
    with call_on_stop_signals(end.set):
        async with served_memory(settings) as served, stdio_transport(end) as (incoming, outgoing):
            handlers = McpRequestHandlers(
                toolset, lambda _: caller, served.memory.use_cases, lambda _: served.models.for_process()
            )
            await handlers.serve(incoming, outgoing)


@contextmanager
def call_on_stop_signals(end: Callable[[], None]) -> Iterator[None]:
    """Call `end` on SIGTERM and SIGINT; not on Windows, whose event loop takes no signals."""
    loop = asyncio.get_running_loop()
    signals = () if sys.platform == "win32" else (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, end)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
