"""The days that a text names, and the day from which on it says that something is true ("from January 2027")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import cache, lru_cache
from itertools import pairwise

from madeleine.memory.text.dates import ENGLISH_MONTH_NAMES, IsoPeriod, parse_iso_period
from madeleine.memory.text.lexicon import Lexicon, probable_lexicons
from madeleine.memory.text.relative_dates import Days, days_announced_by_relative_words, narrowest_days
from madeleine.memory.text.sentences import split_sentences
from madeleine.memory.text.written_dates import (
    month_numbers_by_name_in_text,
    text_with_iso_dates,
    with_abbreviated_months_written_out,
    with_han_numerals_of_dates_in_digits,
)

_ISO_DAY_OR_MONTH_REGEX = r"(?<![\d-])((?:19|20)\d\d-\d\d(?:-\d\d)?)(?![\d-])"
_ENGLISH_MONTH_REGEX = "|".join(ENGLISH_MONTH_NAMES)
_DATE_WITH_MONTH_NAME_PATTERN = re.compile(
    rf"(?<![\w-])(?:(\d{{1,2}}) ({_ENGLISH_MONTH_REGEX})|({_ENGLISH_MONTH_REGEX}) (\d{{4}}))(?!\w)", re.IGNORECASE
)
_ISO_DAY_OR_MONTH_PATTERN = re.compile(_ISO_DAY_OR_MONTH_REGEX)
_DATE_AFTER_FROM_WORD_PATTERN = re.compile(rf"[\s,:]{{1,3}}(?:[^\W\d_]+\s+)?{_ISO_DAY_OR_MONTH_REGEX}")
"""Behind "from", which an article or a preposition may follow."""
_DATE_BEFORE_FROM_WORD_PATTERN = re.compile(rf"{_ISO_DAY_OR_MONTH_REGEX}\s*\Z")
_PERIOD_LAST_DAY_PATTERN = re.compile(
    rf"\s*[-–/]\s*\d|\s*\d{{1,2}}\s?[日号號일月월]|\s*(?:[^\W\d_]+\s+){{0,2}}{_ISO_DAY_OR_MONTH_REGEX}"
)
"""Behind the first day of a period, which has an end."""
MAX_DAYS_TO_COME_WITHOUT_YEAR = timedelta(days=120)
"""Up to which a day or month that is told without its year is the coming one."""
_CLAUSE_PUNCTUATION_PATTERN = re.compile(r"[;，、،]|[,:](?!\d)")


def dates_in_text_as_iso_periods(text: str, told: date) -> list[IsoPeriod]:
    """Its dates and months, in order, and the first day of "3 to 9 February". A day without its year is the one that is
    nearest to the day of telling."""
    days = (day for span in _iso_spans_named_in_text(text, told) for day in span)
    return [period for day in days if (period := parse_iso_period(day)) is not None]


def iso_periods_in_text_ranges_as_first_day(text: str, told: date) -> list[IsoPeriod]:
    """Its dates and months, in order, as `dates_in_text_as_iso_periods`; of "3 to 9 February" only the first day."""
    return [period for day, *_ in _iso_spans_named_in_text(text, told) if (period := parse_iso_period(day)) is not None]


def day_spans_in_text(text: str, told: date) -> set[Days]:
    """The first and the last day of each day, month and period that it names."""
    spans: set[Days] = set()
    for first, *rest in _iso_spans_named_in_text(text, told):
        periods = parse_iso_period(first), parse_iso_period(rest[-1] if rest else first)
        if all(period and period.precision in ("day", "month") for period in periods):
            begin, end = (period for period in periods if period)
            spans.add((begin.start.date(), max(begin.end.date(), end.end.date())))
    return spans


@lru_cache(maxsize=1_000)
def days_to_come_in_text(text: str, told: date) -> Days | None:
    """The one day or period to come that a text of this day names, or tells from it ("tomorrow"), as a day or a part of
    a year; None for none, and for several. Without its year it must be near: "on 3 May", told in November, may have
    been."""
    text = with_han_numerals_of_dates_in_digits(text)
    names_date = any(map(str.isdigit, text)) or month_numbers_by_name_in_text(text)
    dated = day_spans_in_text(text, told) if names_date else set()
    named = narrowest_days(dated | days_announced_by_relative_words(text, told))
    to_come = [span for span in named if span[0] > told]
    if len(to_come) != 1:
        return None
    [(first, last)] = to_come
    is_sure = str(first.year) in text or first - told <= MAX_DAYS_TO_COME_WITHOUT_YEAR
    return (first, last) if is_sure else None


@lru_cache(maxsize=1_000)
def _iso_spans_named_in_text(text: str, told: date) -> Sequence[tuple[str, ...]]:
    """Each date or month as one ISO text; of "3 to 9 February" and "from 28 March to 4 April" two, its first and its
    last day."""
    return tuple(_find_iso_spans(text, told))


def _find_iso_spans(text: str, told: date) -> Iterator[tuple[str, ...]]:
    dated = _with_dates_as_iso(text, told)
    if not (days := {day.end(): day for day in _ISO_DAY_OR_MONTH_PATTERN.finditer(dated)}):
        return
    last_end_by_first_end = dict(_end_positions_of_period_days(dated, text))
    before_last = _first_day_of_period_pattern(probable_lexicons(text))
    for end, day in days.items():
        if end not in last_end_by_first_end.values():
            last = days.get(last_end_by_first_end.get(end, -1))
            yield (*_first_day_of_numeric_range(dated, day, before_last), day[1], *((last[1],) if last else ()))


def _end_positions_of_period_days(dated: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the first and the last day of each period end that a word such as "from" begins; none of what is moved from
    one day to another."""
    low = dated.lower()
    for lexicon in probable_lexicons(text):
        # "Closed from 24 December to 2 January" tells of an end, and moves nothing.
        change = lexicon.pattern_without_concepts("change", "over, finished", "cancelled, given up", "stopped, closed")
        for start, end, _ in _validity_start_days_in_text(low, lexicon):
            rest = _PERIOD_LAST_DAY_PATTERN.match(low, end)
            if rest and rest[1] and not (change and change.search(low[:start])):
                yield end, rest.end()
        until = lexicon.pattern("until_day")
        for first, last in pairwise(_ISO_DAY_OR_MONTH_PATTERN.finditer(low)):
            between = low[first.end() : last.start()].strip()
            if until and until.fullmatch(between) and not (change and change.search(low[: first.start()])):
                yield first.end(), last.end()


@cache
def _first_day_of_period_pattern(lexicons: tuple[Lexicon, ...]) -> re.Pattern[str]:
    """Before the last day of a period: "3 to", "1er au", "3. bis", "3-"."""
    words = [pattern.pattern for lexicon in lexicons if (pattern := lexicon.pattern("until_day"))]
    return re.compile(
        rf"(?<![\w.,:/-])(\d{{1,2}})(?:\.|er|[º°ª]|st|nd|rd|th)?\s*(?:{'|'.join(('[-–/]', *words))})\s*\Z"
    )


def _first_day_of_numeric_range(text: str, last: re.Match[str], before_last: re.Pattern[str]) -> Iterator[str]:
    """The day before the last one of a period, if it is told as a number alone."""
    first = before_last.search(text.lower(), 0, last.start())
    if first and len(last[1]) == len("2027-02-09") and int(first[1]) < int(last[1][-2:]):
        yield f"{last[1][:-2]}{int(first[1]):02}"


@lru_cache(maxsize=1_000)
def validity_start_stated_in_text(text: str, told: date) -> IsoPeriod | None:
    """From when on it is true what a text of one sentence says. None if it does not say so, or, as far as can be read,
    of a part of it alone."""
    low = _with_dates_as_iso(text, told).lower()
    if not _ISO_DAY_OR_MONTH_PATTERN.search(low) or len(split_sentences(text)) > 1:
        return None
    for lexicon in probable_lexicons(text):
        for start, end, day in _validity_start_days_in_text(low, lexicon):
            if not _PERIOD_LAST_DAY_PATTERN.match(low, end) and not _contains_clause_break(low[:start], lexicon):
                return parse_iso_period(day)
    return None


def _validity_start_days_in_text(low: str, lexicon: Lexicon) -> Iterator[tuple[int, int, str]]:
    """(start, end, day), each with the word that says so."""
    before, behind = lexicon.pattern("from_day"), lexicon.pattern("from_day_behind")
    for word in before.finditer(low) if before else ():
        if found := _DATE_AFTER_FROM_WORD_PATTERN.match(low, word.end()):
            yield word.start(), found.end(), found[1]
    for word in behind.finditer(low) if behind else ():
        if found := _DATE_BEFORE_FROM_WORD_PATTERN.search(low, 0, word.start()):
            yield found.start(), word.end(), found[1]


def _contains_clause_break(text: str, lexicon: Lexicon) -> bool:
    """ "The rent is 980 euros, and …" tells what is true now, too."""
    return bool(_CLAUSE_PUNCTUATION_PATTERN.search(text)) or not lexicon.words("conjunctions").isdisjoint(text.split())


@lru_cache(maxsize=16)
def _with_dates_as_iso(text: str, told: date) -> str:
    """Several rules read the dates of one text."""
    for lexicon in probable_lexicons(text) if any(map(str.isdigit, text)) else ():
        text = with_abbreviated_months_written_out(text, lexicon)
    dated = _DATE_WITH_MONTH_NAME_PATTERN.sub(lambda match: _iso_date_of_match(match, told), text_with_iso_dates(text))
    if months := month_numbers_by_name_in_text(dated):
        for lexicon in probable_lexicons(text):
            if pattern := _month_after_from_word_pattern(lexicon):
                dated = pattern.sub(lambda match: match[1] + _coming_month(match[2], months, told), dated)
    return dated


@cache
def _month_after_from_word_pattern(lexicon: Lexicon) -> re.Pattern[str] | None:
    """A month without its year behind words that look ahead: "as of January", "ab dem Januar", "goes to 900 from
    January", not "in Lyon from January"; nor of a period."""
    words, months = lexicon.pattern("from_coming_month"), "|".join(lexicon.entries.get("months", "").split())
    if words is None or not months:
        return None
    alone = rf"(?!\w)(?!\s*\d)(?!(?:\s+\S+){{0,4}}?[\s\W]+(?:{months})(?!\w))"
    return re.compile(rf"({words.pattern}\s+(?:[^\W\d_]+\s+)?)({months}){alone}", re.IGNORECASE)


def _coming_month(name: str, months: Mapping[str, int], told: date) -> str:
    """ISO, where it begins soon after the day of telling; else the name."""
    with suppress(ValueError):  # the year 10000
        if number := months.get(name.lower()):
            begins = date(told.year + (number <= told.month), number, 1)
            return begins.isoformat()[:-3] if begins - told <= MAX_DAYS_TO_COME_WITHOUT_YEAR else name
    return name


def _iso_date_of_match(match: re.Match[str], told: date) -> str:
    day, month = match[1], ENGLISH_MONTH_NAMES.index((match[2] or match[3]).capitalize()) + 1
    if not day:
        return f"{match[4]}-{month:02}"
    possible: list[date] = []
    for year in (told.year - 1, told.year, told.year + 1):
        with suppress(ValueError):  # 29 February
            possible.append(date(year, month, int(day)))
    return min(possible, key=lambda one: abs(one - told)).isoformat() if possible else match[0]
