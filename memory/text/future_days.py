"""The days that a text names, and the day from which on it says that something is true ("from January 2027")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from madeleine.memory.text.dates import ENGLISH_MONTH_NAMES, IsoPeriod, parse_iso_period
from madeleine.memory.text.lexicon import Lexicon, probable_lexicons
from madeleine.memory.text.sentences import split_sentences
from madeleine.memory.text.written_dates import text_with_iso_dates

_ISO = r"(?<![\d-])((?:19|20)\d\d-\d\d(?:-\d\d)?)(?![\d-])"
_MONTH = "|".join(ENGLISH_MONTH_NAMES)
_WITH_MONTH = re.compile(rf"(?<![\w-])(?:(\d{{1,2}}) ({_MONTH})|({_MONTH}) (\d{{4}}))(?!\w)", re.IGNORECASE)
_ISO_DAY = re.compile(_ISO)
_DAY_BEHIND = re.compile(rf"[\s,:]{{1,3}}(?:[^\W\d_]+\s+)?{_ISO}")
"""Behind "from", which an article or a preposition may follow."""
_DAY_BEFORE = re.compile(rf"{_ISO}\s*\Z")
_LAST_DAY = re.compile(rf"\s*[-–/]\s*\d|\s*\d{{1,2}}\s?[日号號일月월]|\s*(?:[^\W\d_]+\s+){{0,2}}{_ISO}")
"""Behind the first day of a period, which has an end."""
_FIRST_DAY = re.compile(r"(?<![\w.,:/-])(\d{1,2})\.?\s*(?:[-–/]|[^\W\d_]{1,4})\s*\Z")
"""Before the last day of a period: "3 to", "3. bis", "3-"."""
_CLAUSE_MARK = re.compile(r"[,;:，、،]")


def dates_in_text_as_iso_periods(text: str, told: date) -> list[IsoPeriod]:
    """Its dates and months, in order, and the first day of "3 to 9 February". A day without its year is the one that is
    nearest to the day of telling."""
    days = (day for span in _spans_named(text, told) for day in span)
    return [period for day in days if (period := parse_iso_period(day)) is not None]


def iso_periods_in_text_ranges_as_first_day(text: str, told: date) -> list[IsoPeriod]:
    """Its dates and months, in order, as `dates_in_text_as_iso_periods`; of "3 to 9 February" only the first day."""
    return [period for day, *_ in _spans_named(text, told) if (period := parse_iso_period(day)) is not None]


def _spans_named(text: str, told: date) -> Iterator[tuple[str, ...]]:
    """Each date or month as one ISO text; of "3 to 9 February" and "from 28 March to 4 April" two, its first and its
    last day."""
    dated = _with_iso_days(text, told)
    days = {day.end(): day for day in _ISO_DAY.finditer(dated)}
    last_end_by_first_end = dict(_ends_of_periods(dated, text))
    for end, day in days.items():
        if end not in last_end_by_first_end.values():
            last = days.get(last_end_by_first_end.get(end, -1))
            yield (*_first_days(dated, day), day[1], *((last[1],) if last else ()))


def _ends_of_periods(dated: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the first and the last day of each period end that a word such as "from" begins; none of what is moved from
    one day to another."""
    low = dated.lower()
    for lexicon in probable_lexicons(text):
        change = lexicon.pattern("change")
        for start, end, _ in _days_from_which_on(low, lexicon):
            rest = _LAST_DAY.match(low, end)
            if rest and rest[1] and not (change and change.search(low[:start])):
                yield end, rest.end()


def _first_days(text: str, last: re.Match[str]) -> Iterator[str]:
    """The day before the last one of a period, if it is told as a number alone."""
    first = _FIRST_DAY.search(text, 0, last.start())
    if first and len(last[1]) == len("2027-02-09") and int(first[1]) < int(last[1][-2:]):
        yield f"{last[1][:-2]}{int(first[1]):02}"


def validity_start_stated_in_text(text: str, told: date) -> IsoPeriod | None:
    """From when on it is true what a text of one sentence says. None if it does not say so, or, as far as can be read,
    of a part of it alone."""
    low = _with_iso_days(text, told).lower()
    if not _ISO_DAY.search(low) or len(split_sentences(text)) > 1:
        return None
    for lexicon in probable_lexicons(text):
        for start, end, day in _days_from_which_on(low, lexicon):
            if not _LAST_DAY.match(low, end) and not _has_begun_a_clause(low[:start], lexicon):
                return parse_iso_period(day)
    return None


def _days_from_which_on(low: str, lexicon: Lexicon) -> Iterator[tuple[int, int, str]]:
    """(start, end, day), each with the word that says so."""
    before, behind = lexicon.pattern("from_day"), lexicon.pattern("from_day_behind")
    for word in before.finditer(low) if before else ():
        if found := _DAY_BEHIND.match(low, word.end()):
            yield word.start(), found.end(), found[1]
    for word in behind.finditer(low) if behind else ():
        if found := _DAY_BEFORE.search(low, 0, word.start()):
            yield found.start(), word.end(), found[1]


def _has_begun_a_clause(text: str, lexicon: Lexicon) -> bool:
    """ "The rent is 980 euros, and …" tells what is true now, too."""
    return bool(_CLAUSE_MARK.search(text)) or not lexicon.words("conjunctions").isdisjoint(text.split())


def _with_iso_days(text: str, told: date) -> str:
    return _WITH_MONTH.sub(lambda match: _iso(match, told), text_with_iso_dates(text))


def _iso(match: re.Match[str], told: date) -> str:
    day, month = match[1], ENGLISH_MONTH_NAMES.index((match[2] or match[3]).capitalize()) + 1
    if not day:
        return f"{match[4]}-{month:02}"
    try:
        years = (date(year, month, int(day)) for year in (told.year - 1, told.year, told.year + 1))
        return min(years, key=lambda one: abs(one - told)).isoformat()
    except ValueError:
        return match[0]
