"""Days that a text tells from the day of telling: yesterday, last month, the past two weeks, in the languages of the
lexicons (ADR 42)."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain
from typing import NamedTuple

from madeleine.memory.text.dates import ENGLISH_MONTH_NAMES
from madeleine.memory.text.lexicon import Lexicon, probable_lexicons
from madeleine.memory.text.normalization import lowercase_with_straight_apostrophes
from madeleine.memory.text.scripts import HAN_CHAR_PATTERN

Days = tuple[date, date]
"""The first and the last one."""
DaysFromToday = Callable[[date, int], Days]
"""Of today and the number in the phrase, 0 if it has none."""
_NUMBER_BY_HAN_NUMERAL = dict(zip("一二三四五六七八九十两兩", (*range(1, 11), 2, 2), strict=True))
DAYS_AROUND_WEEKS_AGO_DAY = 3
"""Days on either side of the day that "two weeks ago" says."""
DEFAULT_DAYS, DEFAULT_WEEKS = 7, 4
"""Of "the next few days" and "the past few weeks", without a number."""
MAX_DAYS_OR_WEEKS = 1_000
NUMBER_OR_WORD_PATTERN = re.compile(r"\d+|[^\W\d_]+")


class RelativeDaysMatch(NamedTuple):
    """`kind`: the pattern of the lexicon."""

    start: int
    end: int
    kind: str
    days: Days

    def is_within(self, other: RelativeDaysMatch) -> bool:
        """As "tomorrow" is in "the day after tomorrow"."""
        return self.end - self.start < other.end - other.start and other.start <= self.start and self.end <= other.end


def days_as_text(days: Days) -> str:
    """The last day that there is stands for no end."""
    first, last = days
    if last == date.max:
        return f"{first} or later"
    return str(first) if first == last else f"{first} to {last}"


def first_and_last_moment_of_days(days: Days) -> tuple[datetime, datetime]:
    """In UTC."""
    first, last = days
    return datetime.combine(first, time.min, UTC), datetime.combine(last, time.max, UTC)


def week_containing_day(day: date) -> Days:
    monday = day - timedelta(days=day.weekday())
    return monday, monday + timedelta(days=6)


def month_containing_day(day: date) -> Days:
    return day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1])


def _single_day(day: date) -> Days:
    return day, day


def days_around(day: date) -> Days:
    around = timedelta(days=DAYS_AROUND_WEEKS_AGO_DAY)
    return day - around, day + around


def month_before(day: date, count: int) -> Days:
    """`count` months before that of the day, below 0 after it."""
    year, month = divmod(day.year * 12 + day.month - 1 - count, 12)
    return month_containing_day(date(year, month + 1, 1))


def year_of_day(day: date) -> Days:
    return date(day.year, 1, 1), date(day.year, 12, 31)


_PAST_DAYS_BY_WEEKDAY_KIND: Mapping[str, DaysFromToday] = {
    "last_weekday": lambda today, weekday: _single_day(latest_weekday_before(today, weekday)),
    "weekday_of_last_week": lambda today, weekday: _single_day(today - timedelta(days=today.weekday() + 7 - weekday)),
}
_PAST_DAYS_BY_KIND: Mapping[str, DaysFromToday] = {
    "last_weekend": lambda today, _: weekend_before(today),
    "last_weeks": lambda today, count: (today - timedelta(weeks=count or DEFAULT_WEEKS), today),
    "last_days": lambda today, count: (today - timedelta(days=count or DEFAULT_DAYS), today),
    "two_days_ago": lambda today, _: _single_day(today - timedelta(days=2)),
    "days_ago": lambda today, count: _single_day(today - timedelta(days=count or 1)),
    "weeks_ago": lambda today, count: (
        days_around(today - timedelta(weeks=count)) if count else week_containing_day(today - timedelta(weeks=1))
    ),
    "months_ago": lambda today, count: month_before(today, count or 1),
    "years_ago": lambda today, count: year_of_day(month_before(today, 12 * (count or 1))[0]),
}
"""In this order, for "the last week" is a span and "last week" a week of the calendar."""
PAST_DAYS_KINDS = (*_PAST_DAYS_BY_WEEKDAY_KIND, *_PAST_DAYS_BY_KIND)
_KINDS_TOLD_IN_MEMORIES = frozenset(PAST_DAYS_KINDS) - {"weeks_ago", "last_weeks", "last_days", "last_weekend"}


def _span_of_next_days(today: date, count: int) -> Days:
    return today + timedelta(days=1), today + timedelta(days=count)


DAYS_BY_CALENDAR_KIND: Mapping[str, DaysFromToday] = {
    "next_weekday": lambda today, weekday: _single_day(
        latest_weekday_before(today + timedelta(days=1), weekday) + timedelta(weeks=1)
    ),
    "weekday_of_next_week": lambda today, weekday: _single_day(today + timedelta(days=7 - today.weekday() + weekday)),
    "in_two_days": lambda today, _: _single_day(today + timedelta(days=2)),
    "tomorrow": lambda today, _: _span_of_next_days(today, 1),
    "next_days": lambda today, count: _span_of_next_days(today, count or DEFAULT_DAYS),
    "next_weeks": lambda today, count: _span_of_next_days(today, 7 * (count or DEFAULT_WEEKS)),
    "days_ahead": lambda today, count: _single_day(today + timedelta(days=count or 1)),
    "weeks_ahead": lambda today, count: days_around(today + timedelta(weeks=count or 1)),
    "months_ahead": lambda today, count: month_before(today, -(count or 1)),
    "week_after_next": lambda today, _: week_containing_day(today + timedelta(weeks=2)),
    "next_week": lambda today, _: week_containing_day(today + timedelta(weeks=1)),
    "next_month": lambda today, _: month_containing_day(month_containing_day(today)[1] + timedelta(days=1)),
    "next_year": lambda today, _: year_of_day(date(today.year + 1, 1, 1)),
    "today": lambda today, _: _single_day(today),
    "this_week": lambda today, _: week_containing_day(today),
    "this_month": lambda today, _: month_containing_day(today),
    "this_year": lambda today, _: year_of_day(today),
}
"""In this order, for "the next week" is a span and "next week" a week of the calendar."""
_KINDS_OF_WEEKDAYS = ("next_weekday", "weekday_of_next_week")
_KINDS_ANNOUNCED_IN_MEMORIES = (
    *_KINDS_OF_WEEKDAYS, "in_two_days", "tomorrow", "week_after_next", "next_week", "next_month",
)  # fmt: skip


def weekend_before(today: date) -> Days:
    """The last one that is over."""
    sunday = latest_weekday_before(today, 6)
    return sunday - timedelta(days=1), sunday


def latest_weekday_before(today: date, weekday: int) -> date:
    """`weekday`: from 0 for Monday."""
    return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)


def find_past_days(text: str, today: date) -> Iterator[RelativeDaysMatch]:
    """What the text says of the past, seen from today."""
    low = lowercase_with_straight_apostrophes(text)
    if len(low) != len(text):
        return
    taken: list[RelativeDaysMatch] = []
    for lexicon in probable_lexicons(text):
        for match in past_days_in_lexicon(low, lexicon, today):
            if not any(match.start < one.end and one.start < match.end for one in taken):
                taken.append(match)
                yield match


def past_days_in_lexicon(low: str, lexicon: Lexicon, today: date) -> Iterator[RelativeDaysMatch]:
    """The same by one language. `low`: in lower case with straight apostrophes. Matches may overlap."""
    for kind in PAST_DAYS_KINDS:
        pattern = lexicon.pattern(kind)
        for match in pattern.finditer(low) if pattern else ():
            with suppress(ValueError, OverflowError):
                days = _days_of_past_phrase(lexicon, kind, match[0], today)
                yield RelativeDaysMatch(match.start(), match.end(), kind, days)


def calendar_days_in_lexicon(
    low: str, lexicon: Lexicon, today: date, kinds: Iterable[str] = DAYS_BY_CALENDAR_KIND
) -> Iterator[RelativeDaysMatch]:
    """What the text says of now and of the time to come, by one language, the first of each kind. Matches may
    overlap."""
    for kind in kinds:
        if (pattern := lexicon.pattern(kind)) and (match := pattern.search(low)):
            with suppress(ValueError, OverflowError):
                tell_number = weekday_number_in_phrase if kind in _KINDS_OF_WEEKDAYS else number_in_phrase
                days = DAYS_BY_CALENDAR_KIND[kind](today, tell_number(lexicon, match[0]))
                yield RelativeDaysMatch(match.start(), match.end(), kind, days)


def days_announced_by_relative_words(text: str, told: date) -> set[Days]:
    """The days that a text of this day tells of as still to come ("tomorrow", "next week")."""
    low = lowercase_with_straight_apostrophes(text)
    matches = [
        match
        for lexicon in probable_lexicons(text)
        for match in calendar_days_in_lexicon(low, lexicon, told, _KINDS_ANNOUNCED_IN_MEMORIES)
    ]
    return {match.days for match in matches if not any(match.is_within(other) for other in matches)}


def narrowest_days(named: Collection[Days]) -> list[Days]:
    """Those within which no others lie, in order: "at the end of January, on the 29th" names one day twice."""
    return [days for days in named if not any(one != days and days[0] <= one[0] and one[1] <= days[1] for one in named)]


def text_with_relative_dates_resolved(text: str, today: date) -> str:
    """A question with what it says of the past seen from today ("10 days ago", "last Tuesday") as dates; without
    "the past two weeks", of which no memory tells in words."""
    for match in sorted(find_past_days(text, today), reverse=True):
        text = f"{text[: match.start]} {_iso_dates_meant_by_relative_words(match)} {text[match.end :]}"
    return text


def text_without_relative_dates(text: str) -> str:
    for match in sorted(find_past_days(text, date.max), reverse=True):
        text = f"{text[: match.start]}{text[match.end :]}"
    return text


def date_texts_meant_by_relative_words(text: str, day: date) -> tuple[str, ...]:
    """The days, months and years that a text of this day tells of ("yesterday", "last month"); of a period of some
    days none is told."""
    told = (match for match in find_past_days(text, day) if match.kind in _KINDS_TOLD_IN_MEMORIES)
    return tuple(dict.fromkeys(map(_iso_dates_meant_by_relative_words, told)))


def relative_phrase_by_day(text: str, today: date) -> dict[str, str]:
    """For each day that `text_with_relative_dates_resolved` writes the phrase of the text that it stands for."""
    return {
        day: text[match.start : match.end].strip().lower()
        for match in find_past_days(text, today)
        if match.kind not in ("months_ago", "years_ago")
        for day in _iso_dates_meant_by_relative_words(match).split()
    }


def _days_of_past_phrase(lexicon: Lexicon, kind: str, phrase: str, today: date) -> Days:
    if kind in _PAST_DAYS_BY_WEEKDAY_KIND:
        return _PAST_DAYS_BY_WEEKDAY_KIND[kind](today, weekday_number_in_phrase(lexicon, phrase))
    return _PAST_DAYS_BY_KIND[kind](today, number_in_phrase(lexicon, phrase))


def number_in_phrase(lexicon: Lexicon, phrase: str) -> int:
    """In digits, words or Han signs; 0 for a phrase without a number."""
    words = NUMBER_OR_WORD_PATTERN.findall(phrase)
    counts = (
        int(number) for word in words if (number := word if word.isdigit() else lexicon.digits_by_number_word.get(word))
    )
    han = (_NUMBER_BY_HAN_NUMERAL[sign] for sign in HAN_CHAR_PATTERN.findall(phrase) if sign in _NUMBER_BY_HAN_NUMERAL)
    return min(next(chain(counts, han), 0), MAX_DAYS_OR_WEEKS)


def weekday_number_in_phrase(lexicon: Lexicon, phrase: str) -> int:
    """From 0 for Monday. A lexicon may have several forms of each, week after week."""
    days = lexicon.entries["days"].split()
    places = NUMBER_OR_WORD_PATTERN.findall(phrase) if lexicon.entries.get("spaced", True) else (phrase,)
    return next(at for at, day in enumerate(days) if any(day in place for place in places)) % 7


def _iso_dates_meant_by_relative_words(match: RelativeDaysMatch) -> str:
    first, last = match.days
    if match.kind in ("last_days", "last_weeks"):
        return ""
    if match.kind == "years_ago":
        return str(first.year)
    if match.kind == "months_ago":
        return f"{ENGLISH_MONTH_NAMES[first.month - 1]} {first.year}"
    return " ".join((first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1))
