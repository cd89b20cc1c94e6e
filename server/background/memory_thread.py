"""The memory thread's background task, in the process that owns the memory (spec T1; docs/adr/0021)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Protocol

from madeleine.memory.language_model import LanguageModel
from madeleine.server.background.polling import PollingLoop
from madeleine.server.settings.settings import Settings

if TYPE_CHECKING:
    from madeleine.memory.watch.thread import PollResult

logger = logging.getLogger(__name__)


class PolledThread(Protocol):
    """`memory.watch.thread.MemoryThread`, as far as it is needed here."""

    @property
    def new_messages(self) -> asyncio.Event: ...

    async def poll(self, language: LanguageModel | None) -> PollResult: ...


class MemoryThreadLoop(PollingLoop):
    """What is cancelled at the end is read again at the next start."""

    cancelled_message = "the memory thread was reading a conversation, and will read it again at the next start"

    def __init__(
        self,
        thread: Callable[[], PolledThread | None],
        language: Callable[[], AbstractAsyncContextManager[LanguageModel | None]],
        *,
        seconds: float,
    ) -> None:
        """`thread` is None while the memory is not open. `seconds`: between two polls, if nothing is observed."""
        super().__init__(self._wait_for_messages)
        self._thread = thread
        self._language = language
        self._seconds = seconds

    async def poll(self) -> None:
        """Take turns until nothing is left to read."""
        more = True
        while more and not self._stopping and (thread := self._thread()) is not None:
            with self._at_work():
                try:
                    thread.new_messages.clear()
                    async with self._language() as language:
                        more = _log_poll(await thread.poll(language))
                except Exception:
                    logger.exception("reading unwatched messages failed; retrying at the next poll")
                    more = False

    async def _wait_for_messages(self) -> None:
        thread = self._thread()
        if thread is None:
            await asyncio.sleep(self._seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._seconds):
                await thread.new_messages.wait()


def _log_poll(result: PollResult) -> bool:
    """Log what the poll did; return whether more is left to read."""
    counts = result.counts
    if any(counts[name] for name in ("asked", "stored", "failed", "abandoned")):
        logger.info("the memory thread: %s", ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return result.more


def is_thread_enabled(settings: Settings) -> bool:
    """Whether the memory thread runs: by default only with a language model (spec T1)."""
    if settings.thread == "off":
        return False
    if settings.thread_records or settings.chooses_language():
        return True
    if settings.thread == "on" and not settings.language_key():
        logger.warning(
            "MADELEINE_THREAD is on, but there is no language model. Set MADELEINE_LLM_API_KEY or MADELEINE_LLM_URL, "
            "or MADELEINE_THREAD_RECORDS to keep conversations without one."
        )
        return False
    return settings.thread == "on"
