"""What every process that serves a memory runs beside its transport."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from madeleine.server.background.memory_thread import memory_thread
from madeleine.server.background.patrol_schedule import scheduled_patrols
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
    async with (
        LanguageModels(settings) as models,
        LazyMemory(settings) as memory,
        scheduled_patrols(settings, memory, language=models.for_background) as patrols,
        memory_thread(settings, memory, models) as watcher,
    ):
        yield ServedMemory(models, memory, (patrols, watcher))
