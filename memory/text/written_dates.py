"""Dates as people write them within a text, in the languages of the lexicons (ADR 42).

A whole date becomes ISO 8601, which keyword search takes as one word; a day without its year and a month with it become
English words, as those beside every memory are. `9/11/2023` becomes both dates that it may be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import cache, lru_cache

from madeleine.memory.text.dates import ENGLISH_MONTH_NAMES
from madeleine.memory.text.lexicon import (
    Lexicon,
    all_words_of_lexicon_lists,
    load_lexicon,
    load_lexicon_headers,
    probable_lexicons,
)
from madeleine.memory.text.normalization import digits_of_han_number, without_accents
from madeleine.memory.text.relative_dates import text_without_relative_dates

_YEAR_FIRST_DATE_PATTERN = re.compile(r"(?<![\w.:/-])(\d{4})([/.])(\d{1,2})\2(\d{1,2})(?![\w/])")
_YEAR_LAST_DATE_PATTERN = re.compile(r"(?<![\w.:/-])(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?![\w/])")
_LETTER_RUN_PATTERN = re.compile(r"[^\W\d_]+")
_ISO_DATE_PATTERN = re.compile(r"(?<![\w-])\d{4}-\d\d-\d\d(?![\w-])")
_CJK_DATE_PATTERN = re.compile(
    r"(?<!\d)(?:(\d{4})\s?[年년]\s?(\d{1,2})\s?[月월](?:\s?(\d{1,2})\s?[日号號일])?"
    r"|(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日号號일])"
)
_HAN_NUMERAL_REGEX = "(?:[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九])"
_HAN_DATE_PATTERN = re.compile(
    "(?<![一二三四五六七八九十])(?:([〇零一二三四五六七八九]{4})(年))?"
    f"({_HAN_NUMERAL_REGEX})(月)({_HAN_NUMERAL_REGEX})([日号號])"
)
"""Of a day, and its year: 十二月一日. A month alone may be part of a name: 二月河."""
_ABBREVIATION_WITH_DAY_REGEXES = (
    r"(?<![\d.:/-])([0-3]?\d(?:\.|er|º|st|nd|rd|th|-?го)?(?: (?:de|of))? ?)",
    r"(?=[0-3]?\d(?:st|nd|rd|th)?\b(?![:/]))",
)
"""A day before an abbreviated month, and one behind it."""
MAX_LANGUAGES_OF_MONTH_NAME = 3
"""That a question may be in: of more nothing tells which it is."""


def with_han_numerals_of_dates_in_digits(text: str) -> str:
    """12月1日 for 十二月一日. What is no date of the calendar stays."""
    if "月" not in text:
        return text

    def in_digits(match: re.Match[str]) -> str:
        year, month, day = (part and digits_of_han_number(part) for part in match.group(1, 3, 5))
        if int(month) > len(ENGLISH_MONTH_NAMES) or int(day) > 31:
            return match[0]
        return f"{year or ''}{match[2] or ''}{month}月{day}{match[6]}"

    return _HAN_DATE_PATTERN.sub(in_digits, text)


def text_with_iso_dates(text: str) -> str:
    """The text with its dates in one form, whatever the language."""
    text = with_han_numerals_of_dates_in_digits(text)
    if not any(map(str.isdigit, text)):
        return text
    text = _YEAR_FIRST_DATE_PATTERN.sub(lambda m: _iso_date_or_original(m, (m[1], m[3], m[4])), text)
    text = _YEAR_LAST_DATE_PATTERN.sub(_year_last_date_as_iso, text)
    if "月" in text or "월" in text:
        text = _CJK_DATE_PATTERN.sub(
            lambda m: f" {_as_iso_date_or_english_words(m, m[1], m[2] or m[4], m[3] or m[5])} ", text
        )
    if not (names := _month_names_in_text(text)):
        return text
    day_first, month_first, month_and_year = _patterns_of_dates_with_named_month(names)
    text = day_first.sub(lambda m: _as_iso_date_or_english_words(m, m[3], _month_number_of_name(m[2]), m[1]), text)
    text = month_first.sub(lambda m: _as_iso_date_or_english_words(m, m[3], _month_number_of_name(m[1]), m[2]), text)
    return month_and_year.sub(lambda m: _as_iso_date_or_english_words(m, m[2], _month_number_of_name(m[1]), None), text)


def month_names_replaced_by_english(text: str, dated: str) -> tuple[str, ...]:
    """The names of months that are English ones in `dated`, which `text_with_iso_dates` has made of the text:
    "diciembre" of "2 de diciembre", which is asked for by that name alone, too."""
    if dated == text:
        return ()
    left = {*_LETTER_RUN_PATTERN.findall(dated.lower()), *map(str.lower, ENGLISH_MONTH_NAMES)}
    return tuple(name for name in _month_names_in_text(text) if name not in left)


def text_without_dates(text: str) -> str:
    """The text without its dates, for what it is about."""
    text = text_without_relative_dates(with_han_numerals_of_dates_in_digits(text))
    names = _month_names_in_text(text)
    for pattern in (
        _ISO_DATE_PATTERN,
        _YEAR_FIRST_DATE_PATTERN,
        _YEAR_LAST_DATE_PATTERN,
        _CJK_DATE_PATTERN,
        *(_patterns_of_dates_with_named_month(names) if names else ()),
    ):
        text = pattern.sub("", text)
    return text


def _year_last_date_as_iso(match: re.Match[str]) -> str:
    first, second, year = match[1], match[3], match[4]
    day_first, month_first = (
        _iso_date_or_original(match, (year, second, first)),
        _iso_date_or_original(match, (year, first, second)),
    )
    if match[2] != "/" or month_first in (day_first, match[0]):
        return day_first
    return month_first if day_first == match[0] else f"{month_first} {day_first}"


def _iso_date_or_original(match: re.Match[str], parts: tuple[str, str, str]) -> str:
    year, month, day = map(int, parts)
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return match[0]


def _as_iso_date_or_english_words(match: re.Match[str], year: str | None, month: str | int, day: str | None) -> str:
    if year and day:
        return _iso_date_or_original(match, (year, str(month), day))
    if not 1 <= int(month) <= len(ENGLISH_MONTH_NAMES) or (day and not 1 <= int(day) <= 31):
        return match[0]
    name = ENGLISH_MONTH_NAMES[int(month) - 1]
    return f"{int(day)} {name}" if day else f"{name} {year}"


@cache
def _all_month_numbers_by_name() -> Mapping[str, int]:
    """Of each month's name in every lexicon, also without accents, from 1. Each line of `months` has twelve."""
    numbers = {}
    for lexicon in map(load_lexicon, load_lexicon_headers()):
        for position, name in enumerate(lexicon.entries.get("months", "").split()):
            numbers[name] = numbers[without_accents(name)] = position % len(ENGLISH_MONTH_NAMES) + 1
    return numbers


def _month_number_of_name(name: str) -> int:
    return _all_month_numbers_by_name()[name.lower()]


def _month_names_in_text(text: str) -> tuple[str, ...]:
    return tuple(sorted(_all_month_numbers_by_name().keys() & _LETTER_RUN_PATTERN.findall(text.lower())))


def month_numbers_by_name_in_text(text: str) -> Mapping[str, int]:
    """The names of months in the text, in lower case, each with its number, from 1."""
    return {name: _month_number_of_name(name) for name in _month_names_in_text(text)}


def english_month_by_name_in_question(question: str) -> Mapping[str, str]:
    """For the names of months that the question has in another language the English ones, in lower case: the dates
    beside memories are in English. None where its language cannot be told: "Mars" is a planet, too."""
    names = _month_names_in_text(question)
    if not names or len(lexicons := probable_lexicons(question)) > MAX_LANGUAGES_OF_MONTH_NAME:
        return {}
    listed = all_words_of_lexicon_lists(lexicons, "months")
    own = listed | {without_accents(name) for name in listed}
    english = {name: ENGLISH_MONTH_NAMES[_month_number_of_name(name) - 1].lower() for name in names if name in own}
    return {name: month for name, month in english.items() if name != month}


@lru_cache(maxsize=100)
def _patterns_of_dates_with_named_month(
    months: tuple[str, ...],
) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """`24. Januar 2024`, `January 24, 2024`, `enero de 2024`."""
    names = "|".join(months)
    of, year, day = "(?: (?:de|del|di|of))?", r"((?:19|20)\d\d)(?!\w|-\d)", r"([0-3]?\d)"
    return (
        re.compile(
            rf"(?<![\w.:/-]){day}(?:\.|er|[º°ª]|st|nd|rd|th|-?го)?{of} ({names})(?!\w)(?:\.?,?{of} {year})?",
            re.IGNORECASE,
        ),
        re.compile(rf"(?<!\w)({names})\.? {day}(?:st|nd|rd|th)?(?![\w:])(?:,? {year})?", re.IGNORECASE),
        re.compile(rf"(?<!\w)({names})\.?,?{of} {year}", re.IGNORECASE),
    )


def with_abbreviated_months_written_out(text: str, lexicon: Lexicon) -> str:
    """With the English names of months for the abbreviations of this language beside a day ("18 nov.", "Nov 18th")."""
    if not (numbers := _month_numbers_by_abbreviation(lexicon)) or not any(map(str.isdigit, text)):
        return text
    names = "|".join(numbers)
    day_before, day_behind = _ABBREVIATION_WITH_DAY_REGEXES

    def written_out(name: str) -> str:
        return ENGLISH_MONTH_NAMES[numbers[name.lower()] - 1].lower()

    text = re.sub(rf"(?i){day_before}\b({names})\b\.?", lambda match: f"{match[1]}{written_out(match[2])}", text)
    return re.sub(rf"(?i)\b({names})\b\.? ?{day_behind}", lambda match: f"{written_out(match[1])} ", text)


@cache
def _month_numbers_by_abbreviation(lexicon: Lexicon) -> Mapping[str, int]:
    """From 1. Each line of `month_abbreviations` has twelve."""
    names = lexicon.entries.get("month_abbreviations", "").split()
    return {name: at % len(ENGLISH_MONTH_NAMES) + 1 for at, name in enumerate(names)}
