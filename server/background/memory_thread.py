"""The memory thread in the process that owns the memory (spec T1; docs/adr/0021): a task that looks again and again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from madeleine.memory.ports import LanguageModel
from madeleine.server.background.polling import Rounds
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.language_models import LanguageModels
from madeleine.server.wiring.lazy_memory import LazyMemory

if TYPE_CHECKING:
    from madeleine.memory.watch.thread import Turned

logger = logging.getLogger(__name__)


class Thread(Protocol):
    """`memory.watch.thread.MemoryThread`, as far as it is needed here."""

    @property
    def news(self) -> asyncio.Event: ...

    async def turn(self, language: LanguageModel | None) -> Turned: ...


class Watcher(Rounds):
    """What is cut short at the end is looked at again at the next start."""

    cut_short = "the memory thread was looking at a conversation, and will look at it again"

    def __init__(
        self,
        thread: Callable[[], Thread | None],
        language: Callable[[], AbstractAsyncContextManager[LanguageModel | None]],
        *,
        seconds: float,
    ) -> None:
        """`thread` is None while the memory is not open. `seconds` between two looks, if nothing is observed before."""
        super().__init__()
        self._thread = thread
        self._language = language
        self._seconds = seconds

    async def look(self) -> None:
        """Turn until nothing more can be looked at now."""
        more = True
        while more and not self._ending and (thread := self._thread()) is not None:
            with self._at_work():
                try:
                    thread.news.clear()
                    async with self._language() as language:
                        more = _told(await thread.turn(language))
                except Exception:
                    logger.exception("it is not known what was said; the next look tries again")
                    more = False

    async def _pause(self) -> None:
        thread = self._thread()
        if thread is None:
            await asyncio.sleep(self._seconds)
            return
        try:
            async with asyncio.timeout(self._seconds):
                await thread.news.wait()
        except TimeoutError:
            pass


def _told(turned: Turned) -> bool:
    """Whether there is more."""
    if any(turned.counts[name] for name in ("asked", "stored", "failed", "given up")):
        logger.info(
            "the memory thread: %s", ", ".join(f"{count} {name}" for name, count in sorted(turned.counts.items()))
        )
    return turned.more


@asynccontextmanager
async def memory_thread(settings: Settings, memory: LazyMemory, models: LanguageModels) -> AsyncIterator[Watcher]:
    """While the memory is served."""

    def thread() -> Thread | None:
        opened = memory.opened
        return opened.thread if opened else None

    watcher = Watcher(
        thread, lambda: models.for_background(ambient_key=settings.thread == "on"), seconds=settings.thread_seconds
    )
    if not runs(settings):
        yield watcher
        return
    async with watcher.running("memory thread"):
        yield watcher


def runs(settings: Settings) -> bool:
    """Off by default without a model (spec T1)."""
    if settings.thread == "off":
        return False
    if settings.thread_records or settings.chooses_language():
        return True
    if settings.thread == "on" and not settings.language_key():
        logger.warning(
            "MADELEINE_THREAD is on, and there is no language model: set MADELEINE_LLM_API_KEY or MADELEINE_LLM_URL, "
            "or MADELEINE_THREAD_RECORDS to keep conversations without one."
        )
        return False
    return settings.thread == "on"
