"""What time it is: for use cases, which are told."""

from __future__ import annotations

from datetime import UTC, date, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)


def local_date_today() -> date:
    """Where the machine is: a diary's day is the one that its people have."""
    return datetime.now().astimezone().date()


def local_day(at: datetime) -> date:
    """The day that a moment is on where the machine is."""
    return at.astimezone().date()
