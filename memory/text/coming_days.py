"""The days to come that a question asks for, and nothing else ("What is coming up next week?"), seen from today."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, timedelta

from madeleine.memory.text.content_words import content_words
from madeleine.memory.text.future_days import dates_in_text_as_iso_periods
from madeleine.memory.text.lexicon import Lexicon, lexicons_for_script_of_text
from madeleine.memory.text.written_dates import month_numbers_by_name_in_text, text_without_dates

Days = tuple[date, date]
"""The first and the last one."""
DEFAULT_COMING_DAYS, DEFAULT_COMING_WEEKS = 7, 4
"""Of "the next few days" and "the next few weeks", without a number."""
MAX_COMING_DAYS_OR_WEEKS = 1_000
"""Days, or weeks."""
MAX_DAYS_TO_MONTH_WITHOUT_YEAR = 100
"""Of a month that is farther away the last one is meant."""
MAX_CALENDAR_QUESTION_CHARS = 200
"""A longer message names something besides; to look through it in all languages would take tens of milliseconds."""
_NUMBER_OR_WORD_PATTERN = re.compile(r"\d+|[^\W\d_]+")
_MADE_UP_CONTENT_WORD = "zqnamed"


def _span_of_next_days(today: date, count: int) -> Days:
    return today + timedelta(days=1), today + timedelta(days=count)


def _week_containing_day(day: date) -> Days:
    monday = day - timedelta(days=day.weekday())
    return monday, monday + timedelta(days=6)


def _month_containing_day(day: date) -> Days:
    return day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1])


_COMING_DAYS_FUNCTION_BY_PATTERN_NAME: Mapping[str, Callable[[date, int], Days]] = {
    "tomorrow": lambda today, _: _span_of_next_days(today, 1),
    "next_days": lambda today, count: _span_of_next_days(today, count or DEFAULT_COMING_DAYS),
    "next_weeks": lambda today, count: _span_of_next_days(today, 7 * (count or DEFAULT_COMING_WEEKS)),
    "next_week": lambda today, _: _week_containing_day(today + timedelta(weeks=1)),
    "next_month": lambda today, _: _month_containing_day(_month_containing_day(today)[1] + timedelta(days=1)),
}
"""In this order, for "the next week" is a span and "next week" a week of the calendar."""


def coming_days_asked_for(question: str, today: date) -> Days | None:
    """None for a question that names anything besides, and for one that asks for no days to come."""
    if len(question) > MAX_CALENDAR_QUESTION_CHARS:
        return None
    low = question.lower().replace("\u2019", "'")
    for lexicon in lexicons_for_script_of_text(low):
        for kind, days_of in _COMING_DAYS_FUNCTION_BY_PATTERN_NAME.items():
            pattern = lexicon.pattern(kind)
            match = pattern.search(low) if pattern else None
            if match and _has_only_question_and_calendar_words(f"{low[: match.start()]} {low[match.end() :]}", lexicon):
                with suppress(OverflowError):
                    return days_of(today, min(_number_in_phrase(lexicon, match[0]), MAX_COMING_DAYS_OR_WEEKS))
    return _named_day_or_month(question, today)


def _named_day_or_month(question: str, today: date) -> Days | None:
    """The one day or month that is not over and that the question names ("What is on in December?")."""
    low = question.lower()
    months = month_numbers_by_name_in_text(low)
    if not months and not any(map(str.isdigit, question)):
        return None
    rest = text_without_dates(question)
    spans = [(period.start.date(), period.end.date()) for period in dates_in_text_as_iso_periods(question, today)]
    if not spans:
        spans = [span for month in set(months.values()) if (span := _days_of_month_if_soon(month, today))]
        rest = _NUMBER_OR_WORD_PATTERN.sub(lambda word: "" if word[0] in months else word[0], low)
    if len(spans) != 1 or spans[0][1] < today:
        return None
    is_calendar = any(
        _has_only_question_and_calendar_words(rest, lexicon) and _asks_for_calendar(low, rest, lexicon)
        for lexicon in lexicons_for_script_of_text(low)
    )
    return spans[0] if is_calendar else None


def _asks_for_calendar(question: str, rest: str, lexicon: Lexicon) -> bool:
    """Whether it has a word for it, and asks neither for the past nor for what begins on that day."""
    others = (lexicon.pattern(name) for name in ("asks_past", "from_day", "from_day_behind"))
    if any(pattern and pattern.search(question) for pattern in others):
        return False
    return not lexicon.words("calendar_words").isdisjoint(_NUMBER_OR_WORD_PATTERN.findall(rest.lower()))


def _days_of_month_if_soon(month: int, today: date) -> Days | None:
    days = _month_containing_day(today.replace(year=today.year + (month < today.month), month=month, day=1))
    return days if (days[0] - today).days <= MAX_DAYS_TO_MONTH_WITHOUT_YEAR else None


def _number_in_phrase(lexicon: Lexicon, phrase: str) -> int:
    """0 for a phrase without a number."""
    words = _NUMBER_OR_WORD_PATTERN.findall(phrase)
    numbers = (word if word.isdigit() else lexicon.digits_by_number_word.get(word) for word in words)
    return next((int(number) for number in numbers if number), 0)


def _has_only_question_and_calendar_words(question: str, lexicon: Lexicon) -> bool:
    """Whether it holds nothing but words that ask, that join, and that mean a calendar."""
    return set(content_words(f"{question} {_MADE_UP_CONTENT_WORD}")) <= {
        _MADE_UP_CONTENT_WORD,
        *lexicon.words("calendar_words"),
    }
