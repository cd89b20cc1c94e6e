"""spec P12: patrols can be watched."""

from __future__ import annotations

import json

from madeleine.memory.model import BeingId, RunId
from madeleine.patrol.report import PatrolReport, StepReport
from madeleine.patrol.run import News
from madeleine.patrol.walk import Progress
from madeleine.server.background.patrol_watchers import MOST_WAITING, Watchers, as_json

ADA, BERT = BeingId("ada"), BeingId("bert")


def news(number: int, being_id: BeingId = ADA) -> News:
    return News(being_id=being_id, run_id=RunId(str(number)), event="begins")


async def test_a_watcher_is_told_of_its_own_being_alone_and_in_order() -> None:
    watchers = Watchers()
    with watchers.watching(ADA) as watcher:
        for number in range(4):
            watchers.tell(news(number, BERT if number == 1 else ADA))
        told = aiter(watcher)
        assert [(await anext(told)).run_id for _ in range(3)] == ["0", "2", "3"]


async def test_a_watcher_that_does_not_read_misses_the_oldest_and_holds_nobody_up() -> None:
    watchers = Watchers()
    with watchers.watching(ADA) as slow:
        for number in range(MOST_WAITING + 10):
            watchers.tell(news(number))
        first = await anext(aiter(slow))
    assert first.run_id == "10"


async def test_a_watcher_that_has_gone_is_forgotten() -> None:
    watchers = Watchers()
    with watchers.watching(ADA):
        pass
    watchers.tell(news(1))
    assert watchers._all == []


def test_news_are_written_without_words_of_a_memory() -> None:
    progress = News(being_id=ADA, run_id=RunId("r"), event="progress", progress=Progress("assign", 0, 9, 3, 7))
    assert as_json(progress) == {
        "event": "progress", "run_id": "r", "step": "❶", "name": "assign", "done": 0, "total": 9, "part": 3, "parts": 7
    }  # fmt: skip
    report = PatrolReport(run_id=RunId("r"), steps=(StepReport("age", {"aged": 2}),))
    ended = as_json(News(being_id=ADA, run_id=RunId("r"), event="ends", report=report))
    assert json.loads(json.dumps(ended))["report"]["steps"] == [{"step": "❷", "name": "age", "aged": 2}]
