"""A host without clients."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from madeleine.server.host.host import MemoryHost
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.language_models import LanguageModelPool
from madeleine.tools.tool import ToolUseCases


async def no_use_cases() -> ToolUseCases:
    raise AssertionError


async def test_an_idle_host_stays_until_its_background_work_is_done(tmp_path: Path) -> None:
    """spec P12: a patrol is not cut because nobody is there; that is when it comes."""
    asked, done = asyncio.Event(), asyncio.Event()

    async def wait_until_idle() -> None:
        asked.set()
        await done.wait()

    settings = Settings(data_dir=tmp_path, idle_seconds=0.001)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = MemoryHost(settings, no_use_cases, LanguageModelPool(settings), wait_until_idle=wait_until_idle)
        serving = asyncio.create_task(host.serve(listener))
        await asked.wait()
        assert not host.stop_event.is_set()
        done.set()
        async with asyncio.timeout(30):
            await serving


async def test_a_client_that_connects_meanwhile_keeps_an_idle_host(tmp_path: Path) -> None:
    asked, greeted = asyncio.Event(), asyncio.Event()

    async def wait_until_idle() -> None:
        asked.set()
        await greeted.wait()

    settings = Settings(data_dir=tmp_path, idle_seconds=0.001)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = MemoryHost(settings, no_use_cases, LanguageModelPool(settings), wait_until_idle=wait_until_idle)
        serving = asyncio.create_task(host.serve(listener))
        await asked.wait()
        _, writer = await asyncio.open_connection(*listener.getsockname())
        async with asyncio.timeout(30):
            while host._idle_end is not None:  # noqa: ASYNC110
                await asyncio.sleep(0)
        greeted.set()
        await asyncio.sleep(0)
        assert not host.stop_event.is_set()
        writer.close()
        async with asyncio.timeout(30):
            await serving
