"""spec T1: the task that looks over conversations, in the process that owns the memory."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from madeleine.memory.language_model import LanguageModel
from madeleine.memory.watch.thread import MemoryExtractionPollResult
from madeleine.server.background import loops as rounds
from madeleine.server.background.loops import MemoryExtractionLoop, is_memory_extraction_enabled
from madeleine.server.settings.settings import Settings
from tests.rows import for_each_row

NEVER = 3_600.0


class Threaded:
    """A memory thread whose turns are told what they come to, and how long they take."""

    def __init__(self, *turns: MemoryExtractionPollResult | Exception, seconds: float = NEVER) -> None:
        self.new_messages_event = asyncio.Event()
        self.turns = list(turns)
        self.done = 0
        self.came: asyncio.Queue[LanguageModel | None] = asyncio.Queue()
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.cancelled = 0
        self.lent = 0
        self.is_open = True
        self.watcher = MemoryExtractionLoop(lambda: self if self.is_open else None, self.lend, seconds=seconds)

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[None]:
        self.lent += 1
        try:
            yield
        finally:
            self.lent -= 1

    async def poll(self, language: LanguageModel | None) -> MemoryExtractionPollResult:
        self.came.put_nowait(language)
        assert self.lent == 1
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.done += 1
        found = self.turns.pop(0) if self.turns else MemoryExtractionPollResult()
        if isinstance(found, Exception):
            raise found
        return found


async def test_it_takes_turns_until_nothing_is_left_to_read() -> None:
    home = Threaded(
        MemoryExtractionPollResult(has_more=True),
        MemoryExtractionPollResult(has_more=True),
        MemoryExtractionPollResult(),
    )
    await home.watcher.poll()
    assert (home.done, home.lent) == (3, 0)


async def test_an_observed_message_starts_a_poll_at_once() -> None:
    home = Threaded()
    running = asyncio.create_task(home.watcher.run())
    for _ in range(2):
        home.new_messages_event.set()
        await home.came.get()
    await home.watcher.stop(running)
    assert home.done == 2


async def test_it_polls_regularly() -> None:
    home = Threaded(seconds=0.001)
    running = asyncio.create_task(home.watcher.run())
    for _ in range(3):
        await home.came.get()
    await home.watcher.stop(running)


async def test_it_does_nothing_before_the_memory_is_open() -> None:
    home = Threaded(seconds=0.001)
    home.is_open = False
    await home.watcher.poll()
    running = asyncio.create_task(home.watcher.run())
    home.is_open = True
    await home.came.get()
    await home.watcher.stop(running)


async def test_a_failing_turn_is_logged_and_retried_at_the_next_poll(caplog: pytest.LogCaptureFixture) -> None:
    home = Threaded(OSError("no"), MemoryExtractionPollResult(Counter(stored=2, read=3)))
    with caplog.at_level(logging.INFO):
        await home.watcher.poll()
        await home.watcher.poll()
    assert home.done == 2
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert caplog.records[1].message == "the memory thread: 3 read, 2 stored"


@pytest.mark.parametrize(("seconds", "cancelled"), [(0.0, 1), (60.0, 0)])
async def test_at_the_end_a_quick_turn_is_finished_and_another_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, seconds: float, cancelled: int
) -> None:
    """It is repeated at the next start (tests/unit/memory/watch/test_thread.py)."""
    monkeypatch.setattr(rounds, "POLL_STOP_GRACE_SECONDS", seconds)
    home = Threaded(MemoryExtractionPollResult(has_more=True))
    home.goes_on.clear()
    home.new_messages_event.set()
    running = asyncio.create_task(home.watcher.run())
    await home.came.get()
    ending = asyncio.create_task(home.watcher.stop(running))
    resting = asyncio.create_task(home.watcher.wait_until_idle())
    if not cancelled:
        await asyncio.sleep(0)
        assert not resting.done()
        home.goes_on.set()
    await ending
    await resting
    assert (home.cancelled, home.done, running.done()) == (cancelled, 1 - cancelled, True)


@for_each_row(
    ("given", "does"),
    [
        ({}, False),
        ({"thread": "on"}, False),
        ({"anthropic_api_key": "k"}, False),
        ({"thread": "On", "anthropic_api_key": "k"}, True),
        ({"llm_api_key": "k"}, True),
        ({"llm_url": "http://127.0.0.1:1/v1", "llm_large_model": "m"}, True),
        ({"llm_api_key": "k", "thread": "off"}, False),
        ({"llm_api_key": "k", "llm": "off"}, False),
        ({"thread_records": True}, True),
        ({"thread_records": True, "thread": "off"}, False),
    ],
)
def test_it_runs_where_a_model_was_chosen_for_this_program(given: dict[str, Any], does: bool) -> None:
    """spec T1: off by default without a model."""
    assert is_memory_extraction_enabled(Settings.model_validate(given)) is does
