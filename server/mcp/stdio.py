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
from madeleine.server.mcp.caller import Caller, fixed_caller
from madeleine.server.mcp.lines import stdio_transport
from madeleine.server.mcp.server import build_server, toolset_of
from madeleine.server.settings.settings import Settings


async def serve_stdio(settings: Settings) -> None:
    """Serve until the client closes either pipe, or SIGTERM or SIGINT. Calls under way are finished, the index is
    flushed. Raises `InvalidInput` for unknown tools."""
    toolset = toolset_of(settings)
    end = anyio.Event()
    with stop_signals(end.set):
        async with (
            served_memory(settings) as served,
            stdio_transport(end) as (read, write),
        ):
            server = build_server(
                toolset,
                fixed_caller(Caller(BeingId(settings.being))),
                served.memory.use_cases,
                language_model_of=lambda _: served.models.for_process(),
            )
            await server.run(read, write, server.create_initialization_options())


@contextmanager
def stop_signals(end: Callable[[], None]) -> Iterator[None]:
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
