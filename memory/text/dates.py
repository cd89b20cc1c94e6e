"""Dates as they are told: ISO 8601 days, times, months, years and intervals. Nothing else is a date (ADR 0033)."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import lru_cache
from typing import Literal

DatePrecision = Literal["year", "month", "day", "time"]

ENGLISH_MONTH_NAMES = "January February March April May June July August September October November December".split()
_ISO_DAY_OR_TIME_PATTERN = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_ISO_MONTH_OR_YEAR_PATTERN = re.compile(r"(\d{4})(?:-(\d{2}))?", re.ASCII)
_ISO_DAY_CHARS = len("2026-03-01")
_TIME_WITH_ZONE_PATTERN = re.compile(r"([T ]\d{2}[\d:.,]*)(?:Z|[+-][\d:]+)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class IsoPeriod:
    """`start` and `end`: its first and last microsecond, in UTC; a time of day is both. `text`: as told, without the
    time of day, in the teller's own zone. `precision`: of the start."""

    start: datetime
    end: datetime
    text: str
    precision: DatePrecision

    @property
    def start_in_words(self) -> str:
        """The start in English words, for search: `Sunday 1 March 2026`, `March 2026`, `2026`."""
        if self.precision == "year":
            return str(self.start.year)
        return (
            f"{self.start:%B} {self.start.year}" if self.precision == "month" else weekday_and_date_in_words(self.start)
        )


def weekday_and_date_in_words(moment: datetime) -> str:
    return f"{moment:%A} {moment.day} {moment:%B} {moment.year}"


@lru_cache(maxsize=1_000)
def parse_iso_period(text: str) -> IsoPeriod | None:
    """Read an ISO 8601 date, or None where the text is none. A time without a zone is in UTC.

    `2026-03-01T18:30+01:00` is a moment, `2026-03-01` a day, `2026-03` a month, `2026` a year and
    `2026-03-01/2026-03-05` the time from the first to the end of the second.
    """
    first, slash, last = text.partition("/")
    if not slash:
        return _parse_single_iso_period(text)
    start, end = _parse_single_iso_period(first), _parse_single_iso_period(last)
    if start is None or end is None or start.start > end.end:
        return None
    return IsoPeriod(start.start, end.end, f"{start.text}/{end.text}", start.precision)


def possible_utc_span(text: str) -> tuple[datetime, datetime] | None:
    """The first and the last moment that a date may mean to one who asks for a day in UTC: a time in a zone is of the
    day that it names, too."""
    periods = [
        period for written in (text, _TIME_WITH_ZONE_PATTERN.sub(r"\1", text)) if (period := parse_iso_period(written))
    ]
    if not periods:
        return None
    return min(period.start for period in periods), max(period.end for period in periods)


def enclosing_time_span(spans: Iterable[tuple[datetime, datetime]]) -> tuple[datetime, datetime]:
    """From the first to the last moment of one or more."""
    firsts, lasts = zip(*spans, strict=True)
    return min(firsts), max(lasts)


def _parse_single_iso_period(text: str) -> IsoPeriod | None:
    try:
        if _ISO_DAY_OR_TIME_PATTERN.match(text):
            moment = datetime.fromisoformat(text)
            start = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
            if len(text) > _ISO_DAY_CHARS:
                return IsoPeriod(start, start, text[:_ISO_DAY_CHARS], "time")
            return IsoPeriod(start, datetime.combine(start, time.max, UTC), text, "day")
        if match := _ISO_MONTH_OR_YEAR_PATTERN.fullmatch(text):
            year, month = int(match[1]), int(match[2] or 12)
            start = datetime(year, month if match[2] else 1, 1, tzinfo=UTC)
            last_day = datetime(year, month, monthrange(year, month)[1])
            end = datetime.combine(last_day, time.max, UTC)
            return IsoPeriod(start, end, text, "month" if match[2] else "year")
    except (ValueError, OverflowError):  # overflow: in UTC it would be before the year 1 or after 9999
        pass
    return None
