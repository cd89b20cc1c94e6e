"""The days that a question asks for, and nothing else ("What is coming up next week?", "What did we do yesterday?"),
seen from today."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, timedelta
from functools import cache
from itertools import takewhile
from typing import NamedTuple

from madeleine.memory.text.content_words import content_words, words_that_ask_or_join
from madeleine.memory.text.future_days import dates_in_text_as_iso_periods
from madeleine.memory.text.lexicon import (
    Lexicon,
    lexicons_for_script_of_text,
    load_lexicon,
    load_lexicon_headers,
    probable_lexicons,
)
from madeleine.memory.text.normalization import lowercase_with_straight_apostrophes
from madeleine.memory.text.relative_dates import (
    DEFAULT_DAYS,
    DEFAULT_WEEKS,
    NUMBER_OR_WORD_PATTERN,
    PAST_DAYS_KINDS,
    Days,
    DaysFromToday,
    RelativeDaysMatch,
    latest_weekday_before,
    month_containing_day,
    number_in_phrase,
    past_days_in_lexicon,
    week_containing_day,
    weekday_number_in_phrase,
    weekend_before,
)
from madeleine.memory.text.written_dates import month_numbers_by_name_in_text, text_without_dates

MAX_DAYS_TO_MONTH_WITHOUT_YEAR = 100
"""Of a month that is farther away the last one is meant."""
MAX_DATES_OF_PERIOD = 2
MAX_CALENDAR_QUESTION_CHARS = 200
"""A longer message names something besides; to look through it in all languages would take tens of milliseconds."""
MIN_WORDS_TELLING_LANGUAGE = 6
"""Of a shorter question every language of its script is considered."""
_HYPHENATED_WORD_PATTERN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_YEAR_PATTERN = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_MONTH_NUMBER_PATTERN = re.compile(r"(?<!\d)(1[0-2]|[1-9])\s?[月월](?!\s?\d)")
_MADE_UP_CONTENT_WORD = "zqnamed"


def _span_of_next_days(today: date, count: int) -> Days:
    return today + timedelta(days=1), today + timedelta(days=count)


_DAYS_BY_CALENDAR_KIND: Mapping[str, DaysFromToday] = {
    "in_two_days": lambda today, _: (today + timedelta(days=2), today + timedelta(days=2)),
    "tomorrow": lambda today, _: _span_of_next_days(today, 1),
    "next_days": lambda today, count: _span_of_next_days(today, count or DEFAULT_DAYS),
    "next_weeks": lambda today, count: _span_of_next_days(today, 7 * (count or DEFAULT_WEEKS)),
    "next_week": lambda today, _: week_containing_day(today + timedelta(weeks=1)),
    "next_month": lambda today, _: month_containing_day(month_containing_day(today)[1] + timedelta(days=1)),
    "today": lambda today, _: (today, today),
    "this_week": lambda today, _: week_containing_day(today),
    "this_month": lambda today, _: month_containing_day(today),
}
"""In this order, for "the next week" is a span and "next week" a week of the calendar."""
_KINDS_OF_NOW = ("today", "this_week", "this_month")
"""These often mean no more than "now"."""


class _NamedDays(NamedTuple):
    """The one day, period, month, weekend or day of the week that a question names, with what it says before and behind
    that, and the next and the last such days; `coming` is None if they are too far away. `may_be_name`: "May" may be
    somebody."""

    before: str
    behind: str
    coming: Days | None
    past: Days
    may_be_name: bool


def days_asked_for(question: str, today: date) -> tuple[Days, ...]:
    """Empty for a question that names anything besides; the next and the last such days if nothing tells which of the
    two are meant."""
    if len(question) > MAX_CALENDAR_QUESTION_CHARS:
        return ()
    low = lowercase_with_straight_apostrophes(question)
    is_short = low.count(" ") < MIN_WORDS_TELLING_LANGUAGE
    lexicons = lexicons_for_script_of_text(low) if is_short else probable_lexicons(low)
    for lexicon in lexicons:
        for match in _relative_days_in_lexicon(low, lexicon, today):
            rest = f"{low[: match.start]} {low[match.end :]}"
            is_before = _start_of_match_at_end(low[: match.start].strip(), "tells_before", lexicon) is not None
            if not is_before and _has_only_question_and_calendar_words(rest, lexicon):
                days = _up_to_today_if_asked(match.days, low[: match.start], lexicon, today)
                if match.kind not in _KINDS_OF_NOW or _tells_of_past(low, lexicon):
                    return (days,)
                if _asks_for_coming_days(low, rest, lexicon):
                    return ((today, days[1]),)
    named = _find_named_days(question, today)
    return () if named is None else tuple(dict.fromkeys(_days_meant_by_name(low, named, lexicons, today)))


def days_named(question: str, today: date) -> Days | None:
    """The days that a question names from today, or of the past and without a year, whatever else it asks; None if it
    names none or several. A year is found by its words, and need not be that of the telling."""
    low = lowercase_with_straight_apostrophes(question)
    if len(low) > MAX_CALENDAR_QUESTION_CHARS:
        return None
    lexicons = probable_lexicons(low)
    matches = [match for lexicon in lexicons for match in _relative_days_in_lexicon(low, lexicon, today)]
    days = {
        match.days
        for match in matches
        if match.kind != "today" and not any(_is_within(match, other) for other in matches)
    }
    if days:
        return days.pop() if len(days) == 1 else None
    named = None if _YEAR_PATTERN.search(low) else _find_named_days(question, today)
    if named and any(_is_said_of_that_time(named, one) and _tells_of_past(low, one) for one in lexicons):
        return named.past
    return None


def _find_named_days(question: str, today: date) -> _NamedDays | None:
    for find in (_named_date, _named_month, _named_weekday, _named_weekend):
        with suppress(ValueError, OverflowError):  # the year 0 or 10000
            if named := find(question, today):
                return named
    return None


def _is_within(match: RelativeDaysMatch, other: RelativeDaysMatch) -> bool:
    return other.end - other.start > match.end - match.start and other.start <= match.start and match.end <= other.end


def _days_meant_by_name(low: str, named: _NamedDays, lexicons: tuple[Lexicon, ...], today: date) -> Iterator[Days]:
    rest = f"{named.before} {named.behind}"
    coming = named.coming if named.coming and named.coming[1] >= today else None
    if coming and any(_asks_for_coming_days(low, rest, lexicon) for lexicon in lexicons):
        is_sure = any(_has_calendar_word(_without_word_of_time(named, lexicon), lexicon) for lexicon in lexicons)
        yield coming
        if is_sure:
            return
    for lexicon in probable_lexicons(low):
        if _asks_for_days_of_that_time(named, lexicon):
            is_past = _tells_of_past(low, lexicon)
            is_since = _asks_since(named.before, lexicon)
            if named.past[0] <= today:
                yield (named.past[0], today) if is_since else named.past
            if coming and not is_past and not is_since and not _begins_on_that_day(low, lexicon):
                yield coming


@cache
def _any_relative_days_pattern(lexicon: Lexicon) -> re.Pattern[str]:
    """Matches wherever one of the kinds does: one search instead of one for each, where there is none."""
    patterns = map(lexicon.pattern, ("next_weekday", *_DAYS_BY_CALENDAR_KIND, *PAST_DAYS_KINDS))
    return re.compile("|".join(pattern.pattern for pattern in patterns if pattern))


def _relative_days_in_lexicon(low: str, lexicon: Lexicon, today: date) -> Iterator[RelativeDaysMatch]:
    if not _any_relative_days_pattern(lexicon).search(low):
        return
    if (pattern := lexicon.pattern("next_weekday")) and (match := pattern.search(low)):
        with suppress(OverflowError):
            day = latest_weekday_before(today, weekday_number_in_phrase(lexicon, match[0])) + timedelta(weeks=1)
            day += timedelta(weeks=day <= today)
            yield RelativeDaysMatch(match.start(), match.end(), "next_weekday", (day, day))
    for kind, days_of in _DAYS_BY_CALENDAR_KIND.items():
        if (pattern := lexicon.pattern(kind)) and (match := pattern.search(low)):
            with suppress(OverflowError):
                days = days_of(today, number_in_phrase(lexicon, match[0]))
                yield RelativeDaysMatch(match.start(), match.end(), kind, days)
    yield from past_days_in_lexicon(low, lexicon, today)


def _named_date(question: str, today: date) -> _NamedDays | None:
    low = lowercase_with_straight_apostrophes(question)
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
    is_to_come = nearest[0] > today and not _YEAR_PATTERN.search(low)
    return _NamedDays(before, behind, nearest, _a_year_earlier(nearest) if is_to_come else nearest, False)


def _named_month(question: str, today: date) -> _NamedDays | None:
    low = lowercase_with_straight_apostrophes(question)
    numbers = month_numbers_by_name_in_text(low)
    places = [match for match in NUMBER_OR_WORD_PATTERN.finditer(low) if match[0] in numbers]
    is_name = bool(places)
    places = places or [*_MONTH_NUMBER_PATTERN.finditer(low)]
    if len(places) != 1:
        return None
    [place] = places
    month = numbers[place[0]] if is_name else int(place[1])
    past = month_containing_day(date(today.year - (month > today.month), month, 1))
    coming = month_containing_day(date(today.year + (month < today.month), month, 1))
    is_soon = (coming[0] - today).days <= MAX_DAYS_TO_MONTH_WITHOUT_YEAR
    return _NamedDays(low[: place.start()], low[place.end() :], coming if is_soon else None, past, is_name)


def _named_weekday(question: str, today: date) -> _NamedDays | None:
    low = lowercase_with_straight_apostrophes(question)
    numbers = _weekday_numbers_by_name()
    matches = (match for match in _HYPHENATED_WORD_PATTERN.finditer(low) if match[0] in numbers)
    places = [(match, numbers[match[0]]) for match in matches]
    if len(places) != 1:
        return None
    [(place, weekday)] = places
    past = latest_weekday_before(today, weekday)
    coming = past + timedelta(weeks=1)
    # Where weekdays are written small, one with a capital is a name.
    may_be_name = len(low) != len(question) or not question[place.start()].islower()
    return _NamedDays(low[: place.start()], low[place.end() :], (coming, coming), (past, past), may_be_name)


def _named_weekend(question: str, today: date) -> _NamedDays | None:
    low = lowercase_with_straight_apostrophes(question)
    patterns = (lexicon.pattern("weekend") for lexicon in probable_lexicons(low))
    place = next((match for pattern in patterns if pattern and (match := pattern.search(low))), None)
    if place is None:
        return None
    first, last = past = weekend_before(today)
    coming = first + timedelta(weeks=1), last + timedelta(weeks=1)
    return _NamedDays(low[: place.start()], low[place.end() :], coming, past, False)


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


def _asks_for_coming_days(low: str, rest: str, lexicon: Lexicon) -> bool:
    """Whether it has a word for it, and asks neither for the past nor for what begins on that day."""
    return (
        _has_only_question_and_calendar_words(rest, lexicon)
        and _has_calendar_word(rest, lexicon)
        and not _tells_of_past(low, lexicon)
        and not _begins_on_that_day(low, lexicon)
    )


def _asks_for_days_of_that_time(named: _NamedDays, lexicon: Lexicon) -> bool:
    without = _without_word_of_time(named, lexicon)
    return (
        _is_said_of_that_time(named, lexicon)
        and _has_only_question_and_calendar_words(without, lexicon)
        and not _has_calendar_word(without, lexicon)
    )


def _is_said_of_that_time(named: _NamedDays, lexicon: Lexicon) -> bool:
    """Whether a word before the day says that something was in that time or since then, and not, say, before it; or no
    such word does."""
    ahead = named.before.strip()
    if not ahead or not lexicon.entries.get("spaced", True):
        return not named.may_be_name
    if _without_word_of_time(named, lexicon) != f"{ahead} {named.behind}":
        return True
    last = NUMBER_OR_WORD_PATTERN.findall(ahead)[-1:]
    return not named.may_be_name and bool(last) and last[0] not in lexicon.words("function_words", "stop_words")


def _without_word_of_time(named: _NamedDays, lexicon: Lexicon) -> str:
    """What is said beside the day and a word such as "on" before it."""
    ahead = named.before.strip()
    starts = (_start_of_match_at_end(ahead, name, lexicon) for name in ("in_time", "since_time"))
    return f"{ahead[: next((start for start in starts if start is not None), len(ahead))]} {named.behind}"


def _tells_of_past(low: str, lexicon: Lexicon) -> bool:
    return _has_pattern(low, lexicon, "asks_past", "happened")


def _begins_on_that_day(low: str, lexicon: Lexicon) -> bool:
    return _has_pattern(low, lexicon, "from_day", "from_day_behind")


def _has_pattern(low: str, lexicon: Lexicon, *names: str) -> bool:
    return any(pattern and pattern.search(low) for pattern in map(lexicon.pattern, names))


def _up_to_today_if_asked(days: Days, before: str, lexicon: Lexicon, today: date) -> Days:
    return (days[0], max(days[1], today)) if _asks_since(before, lexicon) else days


def _asks_since(before: str, lexicon: Lexicon) -> bool:
    return _start_of_match_at_end(before.strip(), "since_time", lexicon) is not None


def _start_of_match_at_end(text: str, pattern_name: str, lexicon: Lexicon) -> int | None:
    """Where a match of the pattern begins that reaches the end of the text."""
    pattern = lexicon.pattern(pattern_name)
    matches = pattern.finditer(text) if pattern else ()
    return next((match.start() for match in matches if match.end() == len(text)), None)


def _has_calendar_word(text: str, lexicon: Lexicon) -> bool:
    if not lexicon.entries.get("spaced", True):
        return any(word in text for word in lexicon.words("calendar_words"))
    return not lexicon.words("calendar_words").isdisjoint(NUMBER_OR_WORD_PATTERN.findall(text))


def _has_only_question_and_calendar_words(question: str, lexicon: Lexicon) -> bool:
    """Whether it holds nothing but words that ask, that join, and that mean a calendar, and is in that language."""
    words = NUMBER_OR_WORD_PATTERN.findall(question)
    if lexicon.entries.get("spaced", True):
        own = sum(word in words_that_ask_or_join(lexicon) or word in lexicon.words("calendar_words") for word in words)
        if words and 2 * own <= len(words):
            return False
    return set(content_words(f"{question} {_MADE_UP_CONTENT_WORD}")) <= {
        _MADE_UP_CONTENT_WORD,
        *lexicon.words("calendar_words"),
    }
