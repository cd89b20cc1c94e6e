"""spec P12: patrols can be watched."""

from __future__ import annotations

import json

from madeleine.memory.model import BeingId, RunId
from madeleine.patrol.report import PatrolProgress, PatrolReport, PatrolStepReport
from madeleine.patrol.run import PatrolEvent
from madeleine.server.background.loops import MAX_QUEUED_PATROL_EVENTS, PatrolEventBroadcast, patrol_event_as_json

ADA, BERT = BeingId("ada"), BeingId("bert")


def event(number: int, being_id: BeingId = ADA) -> PatrolEvent:
    return PatrolEvent(being_id=being_id, run_id=RunId(str(number)), event="begins")


async def test_a_subscriber_gets_the_events_of_its_being_in_order() -> None:
    events = PatrolEventBroadcast()
    with events.subscribe(ADA) as subscription:
        for number in range(4):
            events.publish(event(number, BERT if number == 1 else ADA))
        told = aiter(subscription)
        assert [(await anext(told)).run_id for _ in range(3)] == ["0", "2", "3"]


async def test_a_subscriber_that_does_not_read_loses_the_oldest_events_and_blocks_nobody() -> None:
    events = PatrolEventBroadcast()
    with events.subscribe(ADA) as slow:
        for number in range(MAX_QUEUED_PATROL_EVENTS + 10):
            events.publish(event(number))
        first = await anext(aiter(slow))
    assert first.run_id == "10"


async def test_a_subscription_that_ended_is_removed() -> None:
    events = PatrolEventBroadcast()
    with events.subscribe(ADA):
        pass
    events.publish(event(1))
    assert events._queues == []


def test_events_are_written_without_words_of_a_memory() -> None:
    progress = PatrolEvent(
        being_id=ADA, run_id=RunId("r"), event="progress", progress=PatrolProgress("assign", 0, 9, 3, 7)
    )
    assert patrol_event_as_json(progress) == {
        "event": "progress", "run_id": "r", "step": "❶", "name": "assign", "done": 0, "total": 9, "part": 3, "parts": 7
    }  # fmt: skip
    report = PatrolReport(run_id=RunId("r"), steps=(PatrolStepReport("age", {"aged": 2}),))
    ended = patrol_event_as_json(PatrolEvent(being_id=ADA, run_id=RunId("r"), event="ends", report=report))
    assert json.loads(json.dumps(ended))["report"]["steps"] == [{"step": "❷", "name": "age", "aged": 2}]
