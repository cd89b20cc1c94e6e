"""What a question says beside the name of a time, to tell which is meant: "last", "next", a year, and a part of it or
what lies around a day ("the first week of October", "mid-November", "the week of 5 December")."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import partial
from typing import Literal, NamedTuple

from madeleine.memory.text.lexicon import Lexicon
from madeleine.memory.text.relative_dates import (
    NUMBER_OR_WORD_PATTERN,
    Days,
    month_containing_day,
    number_in_phrase,
    week_containing_day,
)

Which = Literal["", "last", "this", "next"]
PartOfDays = Callable[[Days], Days | None]
"""None of days that have no such part."""
DAYS_OF_THIRD_OF_MONTH = 10
MAX_DAYS_OF_MONTH = 31
MAX_DAYS_OF_FEAST = 7
_YEAR_REGEX = r"((?:19|20)\d\d)"
_YEAR_BEHIND_PATTERN = re.compile(rf"[\s,/]*(?:[^\W\d_]{{1,3}}\s+)?{_YEAR_REGEX}(?:\s?[/–-]\s?(?:\d\d)?\d\d)?(?!\d)")
_YEAR_BEFORE_PATTERN = re.compile(rf"(?<!\d){_YEAR_REGEX}\s?[年년]?[の的]?\s*\Z")
_YEARS_FROM_TODAY = {"last_year": -1, "this_year": 0, "next_year": 1}


class TimeBeside(NamedTuple):
    """What of the question is left before and behind the time, and what it says to tell which one is meant. `year` is
    0, and `part` None, if it says nothing of it."""

    before: str
    behind: str
    which: Which = ""
    year: int = 0
    part: PartOfDays | None = None


def time_told_beside(before: str, behind: str, lexicon: Lexicon, today: date) -> TimeBeside:
    """`before`, `behind`: what the question says before the name of a time and behind it, in lower case."""
    beside = _with_year(_with_which(TimeBeside(before, behind), lexicon), lexicon, today)
    return with_part(beside, lexicon)


def with_part(beside: TimeBeside, lexicon: Lexicon) -> TimeBeside:
    """The same with the part of the time that the question names, if it does."""
    ahead, behind = beside.before.rstrip(), beside.behind.lstrip()
    is_spaced = lexicon.entries.get("spaced", True)
    for name, part_of in _PARTS_BY_PATTERN.items():
        if (start := lexicon.start_of_match_at_end(name, ahead)) is not None:
            number = ordinal_in_phrase(lexicon, ahead[start:])
            return beside._replace(before=ahead[:start], part=partial(part_of, number))
        if not is_spaced and (end := lexicon.end_of_match_at_start(name, behind)) is not None:
            number = ordinal_in_phrase(lexicon, behind[:end])
            return beside._replace(behind=behind[end:], part=partial(part_of, number))
    return beside


def _with_which(beside: TimeBeside, lexicon: Lexicon) -> TimeBeside:
    ahead, behind = beside.before.rstrip(), beside.behind.lstrip()
    whiches: tuple[Which, ...] = ("last", "next", "this")
    for which in whiches:
        if (start := lexicon.start_of_match_at_end(f"{which}_time", ahead)) is not None:
            return beside._replace(before=ahead[:start], which=which)
        if (end := lexicon.end_of_match_at_start(f"{which}_time_behind", behind)) is not None:
            return beside._replace(behind=behind[end:], which=which)
    return beside


def _with_year(beside: TimeBeside, lexicon: Lexicon, today: date) -> TimeBeside:
    if match := _YEAR_BEHIND_PATTERN.match(beside.behind):
        return beside._replace(behind=beside.behind[match.end() :], year=int(match[1]))
    if match := _YEAR_BEFORE_PATTERN.search(beside.before):
        return beside._replace(before=beside.before[: match.start()], year=int(match[1]))
    ahead, behind = beside.before.rstrip(), beside.behind.lstrip()
    for name, years in _YEARS_FROM_TODAY.items():
        if (start := lexicon.start_of_match_at_end(f"{name}_of", ahead)) is not None:
            return beside._replace(before=ahead[:start], year=today.year + years)
        if (end := lexicon.end_of_match_at_start(f"{name}_behind", behind)) is not None:
            return beside._replace(behind=behind[end:], year=today.year + years)
    return beside


def ordinal_in_phrase(lexicon: Lexicon, phrase: str) -> int:
    """Which one of several, in words, digits or Han signs; -1 for the last, 0 for a phrase without a number."""
    numbers = lexicon.number_by_ordinal_word
    if lexicon.entries.get("spaced", True):
        found = (numbers[word] for word in re.findall(r"\w+", phrase) if word in numbers)
        digits = (int(word) for word in NUMBER_OR_WORD_PATTERN.findall(phrase) if word.isdigit())
        return next(found, next(digits, 0))
    return next((numbers[word] for word in numbers if word in phrase), number_in_phrase(lexicon, phrase))


def is_month(days: Days) -> bool:
    return days == month_containing_day(days[0])


def _third(at: int, _: int, days: Days) -> Days | None:
    """`at`: 0, 1 or 2. Of a month ten days, the last of them up to its end; of three months one."""
    first, last = days
    if is_month(days):
        begin = first + timedelta(days=at * DAYS_OF_THIRD_OF_MONTH)
        return begin, last if at == 2 else begin + timedelta(days=DAYS_OF_THIRD_OF_MONTH - 1)
    if (last - first).days < MAX_DAYS_OF_MONTH:
        return None
    return month_containing_day((first, first + (last - first) / 2, last)[at])


def _week_of_month(number: int, days: Days) -> Days | None:
    """Seven days from the first of the month on, and so forth."""
    first, last = days
    if not is_month(days) or not number:
        return None
    if number < 0:
        return last - timedelta(days=6), last
    begin = first + timedelta(weeks=number - 1)
    return (begin, min(begin + timedelta(days=6), last)) if begin <= last else None


def _weekend_of_month(number: int, days: Days) -> Days | None:
    """It is of the month of its Saturday."""
    first, last = days
    saturdays = [day for n in range((last - first).days + 1) if (day := first + timedelta(days=n)).weekday() == 5]
    if not is_month(days) or not number or number > len(saturdays):
        return None
    saturday = saturdays[number - (number > 0)]
    return saturday, saturday + timedelta(days=1)


def _week_of_day(_: int, days: Days) -> Days | None:
    return week_containing_day(days[0]) if (days[1] - days[0]).days < MAX_DAYS_OF_FEAST else None


def _weekend_of_day(number: int, days: Days) -> Days | None:
    week = _week_of_day(number, days)
    return week and (week[1] - timedelta(days=1), week[1])


def _week_before_day(_: int, days: Days) -> Days:
    return days[0] - timedelta(weeks=1), days[0] - timedelta(days=1)


def _seven_days_after(_: int, days: Days) -> Days:
    return days[1] + timedelta(days=1), days[1] + timedelta(weeks=1)


_PARTS_BY_PATTERN: Mapping[str, Callable[[int, Days], Days | None]] = {
    "week_of_month": _week_of_month,
    "weekend_of_month": _weekend_of_month,
    "week_before_day": _week_before_day,
    "week_after_day": _seven_days_after,
    "week_of_day": _week_of_day,
    "weekend_of_day": _weekend_of_day,
    "beginning_of": partial(_third, 0),
    "middle_of": partial(_third, 1),
    "end_of": partial(_third, 2),
}
"""By the number in the phrase. In this order, for "the last week of" ends like "the week of"."""
