"""When a patrol comes by itself (spec P12): after many new memories, at an hour of the day, in a quiet spell."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from madeleine.memory.patrol_records import RecentActivity

Reason = Literal["memories", "hour", "quiet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """`after_memories`: so many new ones, 0 for never. `at_hour`: 0 to 23 in the time zone of `now`. `after_quiet`: so
    long nothing was asked."""

    after_memories: int = 200
    at_hour: int | None = 3
    after_quiet: timedelta | None = timedelta(minutes=60)


def due(now: datetime, lately: RecentActivity, habits: Habits, *, last_call: datetime | None = None) -> Reason | None:
    """Why a patrol should begin now, if it should. `last_call`: when anybody last asked anything. Moments are aware.

    Of an hour that passed while no process ran, something has to be older: then it is made up for, once.
    """
    if 0 < habits.after_memories <= lately.stored:
        return "memories"
    if habits.at_hour is not None and lately.first < last_strike(now, habits.at_hour):
        return "hour"
    if habits.after_quiet is not None and now - max(lately.latest, last_call or lately.latest) >= habits.after_quiet:
        return "quiet"
    return None


def last_strike(now: datetime, hour: int) -> datetime:
    """The latest moment, `now` at most, at which it was that hour."""
    today = now.replace(hour=hour, minute=0, second=0, microsecond=0)
    return today if today <= now else today - timedelta(days=1)
