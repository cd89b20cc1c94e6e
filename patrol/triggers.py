"""When a patrol starts automatically (spec P12): after many new memories, at an hour of the day, when idle."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from madeleine.memory.patrol_records import ActivitySinceLastPatrol

PatrolTrigger = Literal["memories", "hour", "idle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolTriggerConfig:
    """`after_memories`: number of new memories, 0 for never. `at_hour`: 0 to 23 in the time zone of `now`, None for
    never. `after_idle`: time without a call, None for never."""

    after_memories: int = 200
    at_hour: int | None = 3
    after_idle: timedelta | None = timedelta(minutes=60)


def due_patrol_trigger(
    now: datetime,
    activity: ActivitySinceLastPatrol,
    triggers: PatrolTriggerConfig,
    *,
    last_call_at: datetime | None = None,
) -> PatrolTrigger | None:
    """Why a patrol is due, None if it is not. `last_call_at`: time of the last call of any client. Times are aware.

    An hour that passed while no process ran is made up for once, if there is activity from before it.
    """
    if 0 < triggers.after_memories <= activity.stored:
        return "memories"
    if triggers.at_hour is not None and activity.first < latest_moment_at_hour(now, triggers.at_hour):
        return "hour"
    last_activity = max(activity.latest, last_call_at or activity.latest)
    if triggers.after_idle is not None and now - last_activity >= triggers.after_idle:
        return "idle"
    return None


def latest_moment_at_hour(now: datetime, hour: int) -> datetime:
    """The latest time, `now` at most, at which it was that hour."""
    today = now.replace(hour=hour, minute=0, second=0, microsecond=0)
    return today if today <= now else today - timedelta(days=1)
