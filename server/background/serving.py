"""The memory as a process serves it: opened behind the first answers, with its background loops."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from madeleine.memory.errors import LedgerLost, MadeleineError
from madeleine.server import pause_garbage_collection
from madeleine.server.background.loops import (
    AutomaticPatrolLoop,
    MemoryExtractionLoop,
    PatrolEventBroadcast,
    PollingLoop,
    is_memory_extraction_enabled,
    patrol_triggers_from_settings,
)
from madeleine.server.mcp.lines import OPEN_CALLS_GRACE_SECONDS
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.language_models import LanguageModelPool
from madeleine.storage.resources import limit_malloc_arenas
from madeleine.tools.tool import ToolUseCases

if TYPE_CHECKING:
    from madeleine.server.wiring.open_memory import OpenedMemoryStore

    MemoryOpener = Callable[[Settings], AbstractAsyncContextManager[OpenedMemoryStore]]

logger = logging.getLogger(__name__)

LEDGER_FILES_CHECK_SECONDS = 1.0
MEMORY_OPENING_DELAY_SECONDS = 0.3
"""From the start to opening, unless a call comes first: time to answer a client's handshake and list the tools."""
THREAD_SWITCH_SECONDS = 0.0001
"""A thread that comes back from the model or from SQLite waits so long for the interpreter that the event loop uses; by
default 5 ms, twice what it takes to embed a question (ADR 85)."""


class LazilyOpenedMemory:
    """A failure to open is raised in the call that needs the memory; the next call tries again, for the cause may be
    gone: another process that owned it, or a full disk."""

    def __init__(self, settings: Settings, open_memory: MemoryOpener | None = None) -> None:
        """`open_memory`: `server.wiring.open_memory.open_memory` by default."""
        self._settings = settings
        self._open_memory = open_memory
        self._stack = AsyncExitStack()
        self._opening: asyncio.Task[OpenedMemoryStore] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.patrol_events = PatrolEventBroadcast()
        self.last_call: datetime | None = None
        """When the use cases were last needed; UTC."""
        self.on_files_lost: Callable[[], None] = lambda: None
        """Called when the data directory, or the ledger's file, is not the one that was opened any more."""

    async def __aenter__(self) -> LazilyOpenedMemory:
        limit_malloc_arenas()  # before there are threads
        self._timer = asyncio.get_running_loop().call_later(
            MEMORY_OPENING_DELAY_SECONDS, self._current_or_new_opening_task
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._timer:
            self._timer.cancel()
        if self._opening:
            # Longer work, as a rebuild of the index, continues at the next start.
            await asyncio.wait([self._opening], timeout=OPEN_CALLS_GRACE_SECONDS)
            self._opening.cancel()
            await asyncio.wait([self._opening])
        await self._stack.aclose()

    def _current_or_new_opening_task(self) -> asyncio.Task[OpenedMemoryStore]:
        """The task that opens it; a new one if there is none, or it failed."""
        if self._opening is None or (self._opening.done() and self._opening.exception() is not None):
            self._opening = asyncio.create_task(self._import_opener_and_open_memory(), name="open memory")
            self._opening.add_done_callback(_log_opening_failure)
        return self._opening

    async def _import_opener_and_open_memory(self) -> OpenedMemoryStore:
        open_memory = self._open_memory
        if open_memory is None:  # to import it takes half a second
            with pause_garbage_collection():
                module = await asyncio.to_thread(import_module, "madeleine.server.wiring.open_memory")
            open_memory = partial(module.open_memory_store, on_patrol_event=self.patrol_events.publish)
        return await self._stack.enter_async_context(open_memory(self._settings))

    @property
    def memory_if_open(self) -> OpenedMemoryStore | None:
        """None while it is not open, or could not be opened. The caller uses the model that serves now until it asks
        again."""
        task = self._opening
        if not task or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        memory = task.result()
        memory.pin_model()
        return memory

    async def watch_for_lost_files(self) -> None:
        """Returns after `on_files_lost` was called."""
        directory: tuple[int, int] | None = None
        while True:
            await asyncio.sleep(LEDGER_FILES_CHECK_SECONDS)
            try:
                with suppress(FileNotFoundError) if directory is None else nullcontext():
                    status = self._settings.data_dir.stat()
                    found = status.st_dev, status.st_ino
                    if found != (directory := directory or found):
                        logger.error("ending, as %s is another directory than before", self._settings.data_dir)
                        return self.on_files_lost()
                if self.memory_if_open:
                    self.memory_if_open.ledger.database.require_files_not_replaced()
            except (OSError, LedgerLost) as error:
                logger.error("ending, as the memory's files are lost: %s", error)  # noqa: TRY400
                return self.on_files_lost()

    async def open_use_cases_if_needed(self) -> ToolUseCases:
        """Raises what opening raised."""
        return (await self.open_memory_if_needed()).use_cases

    async def open_memory_if_needed(self) -> OpenedMemoryStore:
        """Raises what opening raised."""
        self.last_call = datetime.now(UTC)
        memory = await asyncio.shield(self._current_or_new_opening_task())
        memory.pin_model()
        return memory


def _log_opening_failure(task: asyncio.Task[OpenedMemoryStore]) -> None:
    if not task.cancelled() and (error := task.exception()):
        is_expected = isinstance(error, MadeleineError)
        logger.error("opening the memory failed: %s", error, exc_info=None if is_expected else error)


@dataclass(frozen=True, slots=True)
class MemoryWithBackgroundLoops:
    """A memory with its language models, and the loops of scheduled patrols and of the memory thread."""

    models: LanguageModelPool
    memory: LazilyOpenedMemory
    loops: tuple[PollingLoop, ...]

    async def wait_until_idle(self) -> None:
        for loop in self.loops:
            await loop.wait_until_idle()


@asynccontextmanager
async def _thread_switches_after(seconds: float) -> AsyncIterator[None]:
    """In this process: how long a thread waits for the interpreter."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@asynccontextmanager
async def open_memory_with_background_loops(settings: Settings) -> AsyncIterator[MemoryWithBackgroundLoops]:
    """The memory opens behind the first answers; on exit the loops end before it closes."""
    async with (
        _thread_switches_after(THREAD_SWITCH_SECONDS),
        LanguageModelPool(settings) as models,
        LazilyOpenedMemory(settings) as memory,
        AsyncExitStack() as running,
    ):
        patrols = AutomaticPatrolLoop(
            patrol_triggers_from_settings(settings),
            lambda: (
                (memory.memory_if_open.ledger.patrols, memory.memory_if_open.use_cases.patrol)
                if memory.memory_if_open
                else None
            ),
            now=lambda: datetime.now().astimezone(),
            wait=lambda: asyncio.sleep(settings.patrol_check_seconds),
            last_call=lambda: memory.last_call,
            language=models.lease_model_for_background_work,
        )
        thread = MemoryExtractionLoop(
            lambda: memory.memory_if_open.memory_thread if memory.memory_if_open else None,
            partial(models.lease_model_for_background_work, ambient_key=settings.thread == "on"),
            seconds=settings.thread_seconds,
        )
        if settings.patrol_auto:
            await running.enter_async_context(patrols.run_in_background("scheduled patrols"))
        if is_memory_extraction_enabled(settings):
            await running.enter_async_context(thread.run_in_background("memory thread"))
        if settings.backup_hours:
            from madeleine.server.background.backups import BackupLoop

            backups = BackupLoop(
                settings,
                lambda: memory.memory_if_open.ledger if memory.memory_if_open else None,
                now=lambda: datetime.now(UTC),
            )
            await running.enter_async_context(backups.run_in_background("scheduled backups"))
        watching = asyncio.create_task(memory.watch_for_lost_files(), name="files")
        running.callback(watching.cancel)
        yield MemoryWithBackgroundLoops(models, memory, (patrols, thread))
