"""spec P12: when a patrol comes by itself."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from madeleine.memory.model import BeingId
from madeleine.memory.patrol_records import ActivitySinceLastPatrol
from madeleine.patrol.triggers import PatrolTrigger, PatrolTriggerConfig, due_patrol_trigger, latest_moment_at_hour
from tests.rows import for_each_row

ZONE = timezone(timedelta(hours=2))
ALL = PatrolTriggerConfig(after_memories=200, at_hour=3, after_idle=timedelta(minutes=60))
NONE = PatrolTriggerConfig(after_memories=0, at_hour=None, after_idle=None)


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 5, day, hour, minute, tzinfo=ZONE)


def came(first: datetime, latest: datetime | None = None, *, stored: int = 1) -> ActivitySinceLastPatrol:
    return ActivitySinceLastPatrol(being_id=BeingId("ada"), stored=stored, first=first, latest=latest or first)


@for_each_row(
    ("now", "lately", "last_call", "reason"),
    [
        # After many memories, also in the middle of work.
        (at(2, 10), came(at(2, 9), at(2, 10), stored=200), at(2, 10), "memories"),
        (at(2, 10), came(at(2, 9), at(2, 10), stored=199), at(2, 10), None),
        # At the hour, and after it if nothing ran then.
        (at(2, 2, 59), came(at(2, 2, 50)), at(2, 2, 55), None),
        (at(2, 3), came(at(2, 2, 50)), at(2, 2, 55), "hour"),
        (at(2, 9), came(at(1, 22)), at(2, 9), "hour"),
        (at(5, 1), came(at(1, 22)), at(5, 1), "hour"),
        # Once: all that is left came after it.
        (at(2, 9), came(at(2, 3, 1)), at(2, 8, 59), None),
        (at(2, 9), came(at(2, 3)), at(2, 8, 59), None),
        # In a quiet spell.
        (at(2, 11), came(at(2, 9), at(2, 10)), at(2, 10), "idle"),
        (at(2, 11), came(at(2, 9), at(2, 10)), None, "idle"),
        (at(2, 10, 59), came(at(2, 9), at(2, 10)), at(2, 10), None),
        # Calls that leave no trace, as those that find nothing, are calls.
        (at(2, 11), came(at(2, 9), at(2, 10)), at(2, 10, 30), None),
    ],
)
def test_a_patrol_is_due_after_many_memories_at_its_hour_or_when_idle(
    now: datetime, lately: ActivitySinceLastPatrol, last_call: datetime | None, reason: PatrolTrigger | None
) -> None:
    assert due_patrol_trigger(now, lately, ALL, last_call_at=last_call) == reason


def test_each_trigger_can_be_turned_off() -> None:
    everything = came(at(1, 1), stored=10_000)
    assert due_patrol_trigger(at(9, 9), everything, NONE) is None
    assert (
        due_patrol_trigger(at(9, 9), everything, PatrolTriggerConfig(after_memories=1, at_hour=None, after_idle=None))
        == "memories"
    )
    assert (
        due_patrol_trigger(at(9, 9), everything, PatrolTriggerConfig(after_memories=0, at_hour=0, after_idle=None))
        == "hour"
    )
    only_idle = PatrolTriggerConfig(after_memories=0, at_hour=None, after_idle=timedelta(seconds=1))
    assert due_patrol_trigger(at(9, 9), everything, only_idle) == "idle"


@for_each_row(
    ("now", "hour", "struck"),
    [
        (at(2, 3), 3, at(2, 3)),
        (at(2, 2, 59), 3, at(1, 3)),
        (at(2, 0), 0, at(2, 0)),
        (at(2, 23, 59), 0, at(2, 0)),
        (at(1, 0, 30), 23, datetime(2026, 4, 30, 23, tzinfo=ZONE)),
    ],
)
def test_the_hour_comes_once_a_day_in_the_time_zone_of_the_machine(now: datetime, hour: int, struck: datetime) -> None:
    assert latest_moment_at_hour(now, hour) == struck
