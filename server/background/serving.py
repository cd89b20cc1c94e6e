"""What every process that serves a memory runs beside its transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from madeleine.server.background.memory_thread import MemoryThreadLoop, is_thread_enabled
from madeleine.server.background.patrol_schedule import PatrolSchedule, triggers_of
from madeleine.server.background.polling import PollingLoop
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.language_models import LanguageModels
from madeleine.server.wiring.lazy_memory import LazyMemory


@dataclass(frozen=True, slots=True)
class ServedMemory:
    """A memory with its language models, and the loops of scheduled patrols and of the memory thread."""

    models: LanguageModels
    memory: LazyMemory
    loops: tuple[PollingLoop, ...]

    async def wait_until_idle(self) -> None:
        for loop in self.loops:
            await loop.wait_until_idle()


@asynccontextmanager
async def served_memory(settings: Settings) -> AsyncIterator[ServedMemory]:
    """The memory opens behind the first answers; on exit the loops end before it closes."""
    async with LanguageModels(settings) as models, LazyMemory(settings) as memory, AsyncExitStack() as running:
        patrols = PatrolSchedule(
            triggers_of(settings),
            lambda: (memory.opened.ledger.activity, memory.opened.use.patrol) if memory.opened else None,
            now=lambda: datetime.now().astimezone(),
            wait=lambda: asyncio.sleep(settings.patrol_check_seconds),
            last_call=lambda: memory.last_call,
            language=models.for_background,
        )
        thread = MemoryThreadLoop(
            lambda: memory.opened.thread if memory.opened else None,
            partial(models.for_background, ambient_key=settings.thread == "on"),
            seconds=settings.thread_seconds,
        )
        if settings.patrol_auto:
            await running.enter_async_context(patrols.running("scheduled patrols"))
        if is_thread_enabled(settings):
            await running.enter_async_context(thread.running("memory thread"))
        yield ServedMemory(models, memory, (patrols, thread))
