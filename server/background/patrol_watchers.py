"""Who watches patrols, live (spec P12). None of them is waited for."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from madeleine.memory.model import BeingId
from madeleine.patrol.report import SYMBOLS
from madeleine.patrol.run import News

MOST_WAITING = 64
"""News that a watcher has not read yet; beyond these the oldest are dropped."""


class Watcher:
    """An endless iterator over the news of one being, for one reader."""

    def __init__(self, being_id: BeingId) -> None:
        self.being_id = being_id
        self._waiting: deque[News] = deque(maxlen=MOST_WAITING)
        self._some = asyncio.Event()

    def add(self, news: News) -> None:
        self._waiting.append(news)
        self._some.set()

    async def __aiter__(self) -> AsyncIterator[News]:
        while True:
            await self._some.wait()
            while self._waiting:
                yield self._waiting.popleft()
            self._some.clear()


class Watchers:
    """`tell` returns at once, however slow or gone they are."""

    def __init__(self) -> None:
        self._all: list[Watcher] = []

    def tell(self, news: News) -> None:
        for one in self._all:
            if one.being_id == news.being_id:
                one.add(news)

    @contextmanager
    def watching(self, being_id: BeingId) -> Iterator[Watcher]:
        one = Watcher(being_id)
        self._all.append(one)
        try:
            yield one
        finally:
            self._all.remove(one)


def as_json(news: News) -> dict[str, Any]:
    """One line to a watcher; no words of a memory."""
    found: dict[str, Any] = {"event": news.event, "run_id": news.run_id}
    if news.progress is not None:
        told = news.progress
        found |= {"step": SYMBOLS[told.step], "name": told.step, "done": told.done, "total": told.total}
        found |= {"part": told.part, "parts": told.parts} if told.parts else {}
    return found | ({"report": news.report.as_record()} if news.report is not None else {})
