"""The days that a question names by a date, a month, a season, a quarter, a week, a feast, a weekend or a day of the
week, seen from today."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, timedelta
from functools import cache, lru_cache, partial
from itertools import takewhile
from typing import NamedTuple

from madeleine.memory.text.future_days import dates_in_text_as_iso_periods
from madeleine.memory.text.lexicon import Lexicon, load_lexicon, load_lexicon_headers
from madeleine.memory.text.normalization import lowercase_with_straight_apostrophes
from madeleine.memory.text.parts_of_times import (
    TimeBeside,
    Which,
    ordinal_in_phrase,
    time_told_beside,
    with_part,
)
from madeleine.memory.text.relative_dates import (
    NUMBER_OR_WORD_PATTERN,
    Days,
    latest_weekday_before,
    month_containing_day,
    weekday_number_in_phrase,
    weekend_before,
)
from madeleine.memory.text.written_dates import (
    month_numbers_by_name_in_text,
    text_without_dates,
    with_abbreviated_months_written_out,
)

MAX_DAYS_TO_TIME_WITHOUT_YEAR = 100
"""Of a month, a season or a quarter that is farther away the last one is meant."""
MAX_DATES_OF_PERIOD = 2
MONTHS_OF_QUARTER = 3
QUARTERS_PER_YEAR = 4
DAYS_INTO_THIRD_MONTH = 65
LEAP_YEAR = 2000
_FIRST_MONTH_BY_SEASON = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
"""Of three, as the weather services of the northern hemisphere count. A winter is of the year of its December."""
YEAR_PATTERN = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_HYPHENATED_WORD_PATTERN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_MONTH_NUMBER_PATTERN = re.compile(r"(?<!\d)(1[0-2]|[1-9])\s?[月월](?!\s?\d)")


class NamedDays(NamedTuple):
    """The one time that a question names, with what it says before and behind that, and the next and the last such
    days; each is None if there is none, or it is too far away. `may_be_name`: "May" may be somebody. `is_surely_time`:
    it cannot, for a part of it is named, or which one. `nearest`: of "this autumn" the one that is meant where no tense
    tells."""

    before: str
    behind: str
    coming: Days | None
    past: Days | None
    may_be_name: bool = False
    is_surely_time: bool = False
    which: Which = ""
    nearest: Days | None = None


class _Time(NamedTuple):
    """One of those that come again: `days_at` tells its days in each year, or, if not `is_of_year`, those of the
    present one for 0, of the next for 1, and raises `ValueError` where there are none."""

    start: int
    end: int
    days_at: Callable[[int], Days]
    is_of_year: bool = True
    may_be_name: bool = False
    is_told_by_which: bool = True
    """Whether "this" before it tells that it is a time."""


@lru_cache(maxsize=100)
def find_named_days(question: str, lexicon: Lexicon, today: date) -> NamedDays | None:
    """By this language. None if the question names no such time, or several of a kind."""
    low = with_abbreviated_months_written_out(lowercase_with_straight_apostrophes(question), lexicon)
    with suppress(ValueError, OverflowError):  # the year 0 or 10000
        if dated := _named_date(low, today):
            return _date_with_its_part(dated, lexicon)
    for time in _times_that_come_again(question, low, lexicon, today):
        with suppress(ValueError, OverflowError):
            if named := _days_of_time(low, time, lexicon, today):
                return named
    with suppress(OverflowError):
        return (
            _named_weekday(question, today)
            or _weekday_found_by_pattern(low, lexicon, today)
            or _named_weekend(low, lexicon, today)
        )
    return None


def _times_that_come_again(question: str, low: str, lexicon: Lexicon, today: date) -> Iterator[_Time]:
    if month := _find_month(question, low, lexicon):
        yield month
    if _any_time_pattern(lexicon).search(low):
        for times in (
            [*_find_feasts(low, lexicon)],
            [*_find_seasons(low, lexicon)],
            [*_find_quarter(low, lexicon, today)],
            [*_find_numbered_week(low, lexicon)],
            [*_find_day_in_figures(low, lexicon)],
        ):
            yield from times if len(times) == 1 else ()


@cache
def _any_time_pattern(lexicon: Lexicon) -> re.Pattern[str]:
    """Matches wherever one of the times does: one search instead of one for each, where there is none."""
    names = (*_FIRST_MONTH_BY_SEASON, "quarter", "quarter_alone", "week_number", "day_month", "month_day")
    patterns = map(lexicon.pattern, (*names, *lexicon.entries.get("feasts", ())))
    return re.compile("|".join(pattern.pattern for pattern in patterns if pattern) or r"(?!)")


def _days_of_time(low: str, time: _Time, lexicon: Lexicon, today: date) -> NamedDays | None:
    beside = TimeBeside(low[: time.start], low[time.end :])
    if time.is_told_by_which:
        beside = time_told_beside(*beside[:2], lexicon, today)
    if beside.year and not time.is_of_year:
        return None
    base = today.year if time.is_of_year else 0
    days = [*_existing_days(time.days_at, [beside.year] if beside.year else range(base - 2, base + 3))]
    # "The end of next quarter" is of the quarter that is next, "the end of November" the end that is.
    if beside.part and not beside.which:
        days = [of_part for each in days if (of_part := beside.part(each))]
    meant = _coming_past_and_nearest(sorted(days), beside, today)
    if beside.part and beside.which:
        meant = [each and beside.part(each) for each in meant]
    if not any(meant):
        return None
    coming, past, nearest = meant
    says_in = lexicon.pattern("in_time_itself")
    is_in = bool(says_in and says_in.fullmatch(low, time.start, time.end))
    is_surely_time = is_in or bool(beside.which or beside.year or beside.part)
    may_be_name = time.may_be_name and lexicon.entries.get("spaced", True) and not is_surely_time
    return NamedDays(*beside[:2], coming, past, may_be_name, is_surely_time, beside.which, nearest)


def _existing_days(days_at: Callable[[int], Days], steps: Iterable[int]) -> Iterator[Days]:
    for step in steps:
        with suppress(ValueError, OverflowError):  # no 29 February, no week 53
            yield days_at(step)


def _coming_past_and_nearest(days: list[Days], beside: TimeBeside, today: date) -> list[Days | None]:
    """`days`: in order; of one year alone if the question names a year."""
    last_over = next((each for each in reversed(days) if each[1] < today), None)
    last_begun = next((each for each in reversed(days) if each[0] <= today), None)
    next_left = next((each for each in days if each[1] >= today), None)
    next_to_begin = next((each for each in days if each[0] > today), None)
    if beside.year and days:
        return [days[0], days[0], None]
    if beside.which == "last":
        return [None, last_over, None]
    if beside.which == "next":
        return [next_to_begin, None, None]
    if beside.which == "this":
        nearest = min(days, key=lambda each: max(each[0] - today, today - each[1], timedelta()), default=None)
        return [next_left, last_begun, nearest]
    is_soon = next_left and (next_left[0] - today).days <= MAX_DAYS_TO_TIME_WITHOUT_YEAR
    return [next_left if is_soon else None, last_begun, None]


# --- times that come again ------------------------------------------------------------------------------------------


def _find_month(question: str, low: str, lexicon: Lexicon) -> _Time | None:
    places = _places_of_months(low)
    if len(places) != 1:
        return None
    [(place, month)] = places
    joins = place[0] in lexicon.words("function_words", "stop_words")  # "this may be"
    has_capital = len(low) == len(question) and question[place.start()].isupper()
    is_told_by_which = has_capital or not joins
    return _Time(
        *place.span(), partial(_month, month), may_be_name=not place[0][0].isdigit(), is_told_by_which=is_told_by_which
    )


@lru_cache(maxsize=10)
def _places_of_months(low: str) -> tuple[tuple[re.Match[str], int], ...]:
    """Of the names of months each with its number, from 1, or, if there is none, of the numbers ("10月")."""
    numbers = month_numbers_by_name_in_text(low)
    names = tuple((match, numbers[match[0]]) for match in NUMBER_OR_WORD_PATTERN.finditer(low) if match[0] in numbers)
    return names or tuple((match, int(match[1])) for match in _MONTH_NUMBER_PATTERN.finditer(low))


def _find_seasons(low: str, lexicon: Lexicon) -> Iterator[_Time]:
    for season, month in _FIRST_MONTH_BY_SEASON.items():
        for match in _matches_of_pattern(season, low, lexicon):
            yield _Time(*match.span(), partial(_three_months, month), may_be_name=True)


def _find_feasts(low: str, lexicon: Lexicon) -> Iterator[_Time]:
    for feast, days in lexicon.entries.get("feasts", {}).items():
        for match in _matches_of_pattern(feast, low, lexicon):
            yield _Time(*match.span(), partial(_feast, days), may_be_name=True)


def _find_quarter(low: str, lexicon: Lexicon, today: date) -> Iterator[_Time]:
    """ "Quarter" without its number tells no time but by "last" or "next"."""
    for match in _matches_of_pattern("quarter", low, lexicon):
        if 1 <= (number := ordinal_in_phrase(lexicon, match[0])) <= QUARTERS_PER_YEAR:
            month = MONTHS_OF_QUARTER * (number - 1) + 1
            yield _Time(*match.span(), partial(_three_months, month), may_be_name=True)
    for match in _matches_of_pattern("quarter_alone", low, lexicon):
        if time_told_beside(low[: match.start()], low[match.end() :], lexicon, today).which:
            yield _Time(*match.span(), partial(_quarter_from, today), is_of_year=False)


def _find_numbered_week(low: str, lexicon: Lexicon) -> Iterator[_Time]:
    for match in _matches_of_pattern("week_number", low, lexicon):
        number = next(int(word) for word in NUMBER_OR_WORD_PATTERN.findall(match[0]) if word.isdigit())
        yield _Time(*match.span(), partial(_week, number), may_be_name=True)


def _find_day_in_figures(low: str, lexicon: Lexicon) -> Iterator[_Time]:
    """ "24.11." None where the language may mean either number by the month."""
    found: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for name, places in (("day_month", (1, 0)), ("month_day", (0, 1))):
        for match in _matches_of_pattern(name, low, lexicon):
            numbers = [int(number) for number in re.findall(r"\d+", match[0])]
            month, day = (numbers[at] for at in places)
            with suppress(ValueError):
                _day(month, day, LEAP_YEAR)
                found.setdefault(match.span(), set()).add((month, day))
    if len(found) == 1:
        [(span, days)] = found.items()
        if len(days) == 1:
            yield _Time(*span, partial(_day, *days.pop()), may_be_name=True)


def _matches_of_pattern(name: str, low: str, lexicon: Lexicon) -> Iterator[re.Match[str]]:
    pattern = lexicon.pattern(name)
    return pattern.finditer(low) if pattern else iter(())


def _month(month: int, year: int) -> Days:
    return month_containing_day(date(year, month, 1))


def _three_months(month: int, year: int) -> Days:
    """From this month of the year on."""
    first = date(year, month, 1)
    return first, month_containing_day(first + timedelta(days=DAYS_INTO_THIRD_MONTH))[1]


def _quarter_from(today: date, count: int) -> Days:
    """That of today for 0, the next one for 1."""
    year, quarter = divmod(
        QUARTERS_PER_YEAR * today.year + (today.month - 1) // MONTHS_OF_QUARTER + count, QUARTERS_PER_YEAR
    )
    return _three_months(MONTHS_OF_QUARTER * quarter + 1, year)


def _feast(days: str, year: int) -> Days:
    """`days`: the first and the last one, "12-24/12-26"."""
    first, last = (date.fromisoformat(f"{year}-{day}") for day in days.split("/"))
    return first, last


def _week(number: int, year: int) -> Days:
    return date.fromisocalendar(year, number, 1), date.fromisocalendar(year, number, 7)


def _day(month: int, day: int, year: int) -> Days:
    return (date(year, month, day),) * 2


# --- one day, and the weekend ---------------------------------------------------------------------------------------


@lru_cache(maxsize=10)
def _named_date(low: str, today: date) -> NamedDays | None:
    if not any(map(str.isdigit, low)):
        return None
    days = sorted({(period.start.date(), period.end.date()) for period in dates_in_text_as_iso_periods(low, today)})
    if not 1 <= len(days) <= MAX_DATES_OF_PERIOD:
        return None
    nearest = days[0][0], days[-1][1]
    rest = text_without_dates(low)
    before = "".join(left for left, _ in takewhile(lambda pair: pair[0] == pair[1], zip(low, rest, strict=False)))
    behind = rest[len(before) :]
    if len(days) > 1:  # "between 16 and 18 November", of which the 16 is left
        before = before[: next((at for at, sign in enumerate(before) if sign.isdigit()), len(before))]
    is_to_come = nearest[0] > today and not YEAR_PATTERN.search(low)
    return NamedDays(before, behind, nearest, _a_year_earlier(nearest) if is_to_come else nearest)


def _date_with_its_part(named: NamedDays, lexicon: Lexicon) -> NamedDays | None:
    beside = with_part(TimeBeside(named.before, named.behind), lexicon)
    if not beside.part or not named.coming or not named.past:
        return named
    coming, past = beside.part(named.coming), beside.part(named.past)
    return NamedDays(*beside[:2], coming, past, is_surely_time=True) if coming and past else None


@lru_cache(maxsize=10)
def _named_weekday(question: str, today: date) -> NamedDays | None:
    low = lowercase_with_straight_apostrophes(question)
    numbers = _weekday_numbers_by_name()
    matches = (match for match in _HYPHENATED_WORD_PATTERN.finditer(low) if match[0] in numbers)
    places = [(match, numbers[match[0]]) for match in matches]
    if len(places) != 1:
        return None
    [(place, weekday)] = places
    # Where weekdays are written small, one with a capital is a name.
    may_be_name = len(low) != len(question) or not question[place.start()].islower()
    return _days_of_weekday(low, place, weekday, today, may_be_name=may_be_name)


def _weekday_found_by_pattern(low: str, lexicon: Lexicon, today: date) -> NamedDays | None:
    """Where words are not spaced. None for several."""
    places = [*_matches_of_pattern("weekday_name", low, lexicon)]
    if len(places) != 1:
        return None
    [place] = places
    return _days_of_weekday(low, place, weekday_number_in_phrase(lexicon, place[0]), today, may_be_name=False)


def _days_of_weekday(low: str, place: re.Match[str], weekday: int, today: date, *, may_be_name: bool) -> NamedDays:
    past = latest_weekday_before(today, weekday)
    coming = past + timedelta(weeks=1)
    return NamedDays(low[: place.start()], low[place.end() :], (coming, coming), (past, past), may_be_name)


def _named_weekend(low: str, lexicon: Lexicon, today: date) -> NamedDays | None:
    place = next(_matches_of_pattern("weekend", low, lexicon), None)
    if place is None:
        return None
    first, last = past = weekend_before(today)
    coming = first + timedelta(weeks=1), last + timedelta(weeks=1)
    beside = time_told_beside(low[: place.start()], low[place.end() :], lexicon, today)
    if beside.year or beside.part or not beside.which:
        return NamedDays(low[: place.start()], low[place.end() :], coming, past)
    named = NamedDays(*beside[:2], coming, past, is_surely_time=True, which=beside.which)
    if beside.which == "next":
        return named._replace(coming=(first + timedelta(weeks=2), last + timedelta(weeks=2)), past=None)
    if beside.which == "last":
        return named._replace(coming=None)
    return named._replace(past=coming if coming[0] <= today else past, nearest=coming)


@cache
def _weekday_numbers_by_name() -> Mapping[str, int]:
    """From 0 for Monday, in the languages that put spaces between words. Each line of `days` has seven."""
    lexicons = [lexicon for lexicon in map(load_lexicon, load_lexicon_headers()) if lexicon.entries.get("spaced", True)]
    lines = (line.split() for lexicon in lexicons for line in lexicon.entries["days"].strip().splitlines())
    return {name: at % 7 for line in lines if len(line) % 7 == 0 for at, name in enumerate(line)}


def _a_year_earlier(days: Days) -> Days:
    """28 February for the 29th of a year that has none."""
    first, last = (
        day.replace(year=day.year - 1, day=28 if (day.month, day.day) == (2, 29) else day.day) for day in days
    )
    return first, last
