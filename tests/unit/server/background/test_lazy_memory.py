"""The memory behind the first answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from madeleine.server.background import serving as lazy
from madeleine.server.background.serving import LazilyOpenedMemory
from madeleine.server.settings.settings import Settings


@pytest.mark.parametrize("finish_seconds", [0.0, 60.0])
async def test_a_memory_that_takes_too_long_to_open_is_given_up_at_the_end_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finish_seconds: float
) -> None:
    """To build an index anew takes minutes: nobody waits so long for a process that was told to end."""
    told: list[str] = []
    begun, goes_on = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def open_slowly(_: Settings) -> AsyncIterator[Any]:
        begun.set()
        try:
            await goes_on.wait()
            told.append("open")
            yield
        finally:
            told.append("closed")

    monkeypatch.setattr(lazy, "OPEN_CALLS_GRACE_SECONDS", finish_seconds)
    monkeypatch.setattr(lazy, "MEMORY_OPENING_DELAY_SECONDS", 0)
    async with asyncio.timeout(30):
        async with LazilyOpenedMemory(Settings(data_dir=tmp_path), open_slowly):
            await begun.wait()
            if finish_seconds:
                goes_on.set()
    assert told == (["open", "closed"] if finish_seconds else ["closed"])
