"""The days that a question asks for, and nothing else ("What is coming up next week?", "What did we do yesterday?"),
seen from today."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache

from madeleine.memory.text.content_words import content_words, words_that_ask_or_join
from madeleine.memory.text.lexicon import Lexicon, lexicons_for_script_of_text, probable_lexicons
from madeleine.memory.text.named_days import YEAR_PATTERN, NamedDays, find_named_days
from madeleine.memory.text.normalization import lowercase_with_straight_apostrophes
from madeleine.memory.text.parts_of_times import TimeBeside, with_part
from madeleine.memory.text.relative_dates import (
    DAYS_BY_CALENDAR_KIND,
    NUMBER_OR_WORD_PATTERN,
    PAST_DAYS_KINDS,
    Days,
    RelativeDaysMatch,
    calendar_days_in_lexicon,
    narrowest_days,
    past_days_in_lexicon,
    year_of_day,
)
from madeleine.memory.text.written_dates import with_han_numerals_of_dates_in_digits

MAX_CALENDAR_QUESTION_CHARS = 200
"""A longer message names something besides; to look through it in all languages would take tens of milliseconds."""
MIN_WORDS_TELLING_LANGUAGE = 6
"""Of a shorter question every language of its script is considered."""
_MADE_UP_CONTENT_WORD = "zqnamed"
_KINDS_OF_NOW = ("today", "this_week", "this_month", "this_year")
"""These often mean no more than "now"."""
_KINDS_THAT_MAY_BE_DURATIONS = ("days_ahead", "weeks_ahead", "months_ahead")
"""What was done "in two weeks" took so long."""
_KINDS_TOLD_BESIDE_OTHERS = ("today", "this_year", "next_year", *_KINDS_THAT_MAY_BE_DURATIONS)
"""Beside what else a question asks for these tell no days: "today" is "now", and "Christmas next year" no year."""


def days_asked_for(question: str, today: date) -> tuple[Days, ...]:
    """Empty for a question that names anything besides; the next and the last such days if nothing tells which of the
    two are meant; up to the last day that there is for "What is coming up?"."""
    if len(question) > MAX_CALENDAR_QUESTION_CHARS:
        return ()
    question = with_han_numerals_of_dates_in_digits(question)
    low = lowercase_with_straight_apostrophes(question)
    is_short = low.count(" ") < MIN_WORDS_TELLING_LANGUAGE
    lexicons = lexicons_for_script_of_text(low) if is_short else probable_lexicons(low)
    for lexicon in lexicons:
        for match in _find_relative_days(low, lexicon, today):
            if days := _days_meant_by_relative_words(low, match, lexicon, today):
                return (days,)
    named = [(one, lexicon) for lexicon in lexicons if (one := find_named_days(question, lexicon, today))]
    meant = dict.fromkeys(_days_meant_by_name(named, probable_lexicons(low), today))
    if meant:  # of what two languages read the one that reads more of it
        return tuple(narrowest_days(meant))
    if years := {days for lexicon in lexicons if (days := _year_asked_for(low, lexicon, today))}:
        return tuple(years)
    return ((today, date.max),) if any(_asks_for_all_to_come(low, lexicon) for lexicon in lexicons) else ()


def days_named(question: str, today: date) -> Days | None:
    """The days that a question names from today, or of the past and without a year, or as those to come ("coming up"),
    whatever else it asks; None if it names none or several. A year is found by its words, and need not be that of the
    telling."""
    question = with_han_numerals_of_dates_in_digits(question)
    low = lowercase_with_straight_apostrophes(question)
    if len(low) > MAX_CALENDAR_QUESTION_CHARS:
        return None
    lexicons = probable_lexicons(low)
    matches = [match for lexicon in lexicons for match in _find_relative_days(low, lexicon, today)]
    days = {
        match.days
        for match in matches
        if match.kind not in _KINDS_TOLD_BESIDE_OTHERS and not any(match.is_within(other) for other in matches)
    }
    if days:
        return days.pop() if len(days) == 1 else None
    for lexicon in () if YEAR_PATTERN.search(low) else lexicons:
        named = find_named_days(question, lexicon, today)
        if named and _asks_about_time_within_named_days(named, lexicon):
            if _tells_of_past(_rest_of_question(named), lexicon):
                return named.past
            if named.which:
                return named.nearest or named.past or named.coming
    is_to_come = any(_has_pattern(low, lexicon, "coming_up") for lexicon in lexicons)
    return (today, date.max) if is_to_come else None


def _days_meant_by_relative_words(low: str, match: RelativeDaysMatch, lexicon: Lexicon, today: date) -> Days | None:
    """None if the question names anything besides, or, of "this week", does not ask for what is on or was."""
    before, behind = low[: match.start], low[match.end :]
    rest = f"{before} {behind}"
    if _lies_outside(before, behind, lexicon) or not _has_only_question_and_calendar_words(rest, lexicon):
        return None
    first, last = match.days
    if _asks_since(before, lexicon):
        return first, max(last, today)
    if match.kind in _KINDS_THAT_MAY_BE_DURATIONS and _tells_of_past(low, lexicon):
        return None
    if match.kind not in _KINDS_OF_NOW or _tells_of_past(low, lexicon):
        return match.days
    if not _asks_for_coming_days(rest, lexicon) and not _has_pattern(low, lexicon, "asks_what_is_on"):
        return None
    return (today, last) if _has_pattern(low, lexicon, "to_come") else match.days


def _days_meant_by_name(
    named_in: Sequence[tuple[NamedDays, Lexicon]], probable: Sequence[Lexicon], today: date
) -> Iterator[Days]:
    """`named_in`: what is named, as each language reads it."""
    is_sure = False
    for named, lexicon in named_in:
        rest = _rest_of_question(named)
        is_outside = _lies_outside(named.before, named.behind, lexicon)
        if (coming := _days_to_come(named, today)) and not is_outside and _asks_for_coming_days(rest, lexicon):
            is_sure |= _has_calendar_word(_without_word_of_time(named, lexicon), lexicon)
            yield coming
    for named, lexicon in () if is_sure else named_in:
        if lexicon in probable and _asks_what_happened_in_named_days(named, lexicon):
            rest = _rest_of_question(named)
            is_past, is_since = _tells_of_past(rest, lexicon), _asks_since(named.before, lexicon)
            past = named.past if is_past or is_since or not named.nearest else named.nearest
            coming = named.nearest or _days_to_come(named, today)
            if past and past[0] <= today:
                yield (past[0], today) if is_since else past
            if coming and not is_past and not is_since and not _says_from_that_day_on(rest, lexicon):
                yield coming


def _days_to_come(named: NamedDays, today: date) -> Days | None:
    return named.coming if named.coming and named.coming[1] >= today else None


def _rest_of_question(named: NamedDays) -> str:
    return f"{named.before} {named.behind}"


@cache
def _any_relative_days_pattern(lexicon: Lexicon) -> re.Pattern[str]:
    """Matches wherever one of the kinds does: one search instead of one for each, where there is none."""
    patterns = map(lexicon.pattern, (*DAYS_BY_CALENDAR_KIND, *PAST_DAYS_KINDS))
    return re.compile("|".join(pattern.pattern for pattern in patterns if pattern))


def _find_relative_days(low: str, lexicon: Lexicon, today: date) -> Iterator[RelativeDaysMatch]:
    """With "the end of" before them, or behind them, if they have one."""
    for match in _whole_relative_days_in_lexicon(low, lexicon, today):
        beside = with_part(TimeBeside(low[: match.start], low[match.end :]), lexicon)
        days = beside.part(match.days) if beside.part else None
        yield RelativeDaysMatch(len(beside.before), len(low) - len(beside.behind), "part", days) if days else match


def _whole_relative_days_in_lexicon(low: str, lexicon: Lexicon, today: date) -> Iterator[RelativeDaysMatch]:
    if not _any_relative_days_pattern(lexicon).search(low):
        return
    yield from calendar_days_in_lexicon(low, lexicon, today)
    yield from past_days_in_lexicon(low, lexicon, today)


def _asks_for_coming_days(rest: str, lexicon: Lexicon) -> bool:
    """Whether it has a word for it, and asks neither for the past nor for what begins on that day. `rest`: the question
    without its days."""
    return (
        _has_only_question_and_calendar_words(rest, lexicon)
        and _has_calendar_word(rest, lexicon)
        and not _tells_of_past(rest, lexicon)
        and not _says_from_that_day_on(rest, lexicon)
    )


def _year_asked_for(low: str, lexicon: Lexicon, today: date) -> Days | None:
    """ "What happened in 2025?": by its number alone, up to today if since then."""
    years = [*YEAR_PATTERN.finditer(low)]
    if len(years) != 1:
        return None
    named = NamedDays(low[: years[0].start()], low[years[0].end() :], None, None)
    rest = _without_word_of_time(named, lexicon)
    if _lies_outside(named.before, named.behind, lexicon) or not _has_only_question_and_calendar_words(rest, lexicon):
        return None
    first, last = year_of_day(date(int(years[0][0]), 1, 1))
    return (first, max(last, today)) if _asks_since(named.before, lexicon) else (first, last)


def _asks_for_all_to_come(low: str, lexicon: Lexicon) -> bool:
    """ "What is coming up?", "What is planned?", "my next appointments", and not "What deadlines are coming up?"."""
    if _tells_of_past(low, lexicon) or _has_word(low, lexicon, "deadline_words"):
        return False
    patterns = filter(None, (lexicon.pattern("coming_up"), lexicon.pattern("to_come")))
    places = [match.span() for pattern in patterns if (match := pattern.search(low))]
    places += _places_of_next_calendar_words(low, lexicon)
    return any(_has_only_question_and_calendar_words(f"{low[:at]} {low[to:]}", lexicon) for at, to in places)


def _places_of_next_calendar_words(low: str, lexicon: Lexicon) -> Iterator[tuple[int, int]]:
    """Of "next appointments" and the like."""
    for at, to in _places_of_words(low, lexicon, "calendar_words"):
        start = lexicon.start_of_match_at_end("next_time", low[:at].rstrip())
        end = lexicon.end_of_match_at_start("next_time_behind", low[to:].lstrip())
        if start is not None or end is not None:
            yield at if start is None else start, to if end is None else len(low) - len(low[to:].lstrip()) + end


def _asks_what_happened_in_named_days(named: NamedDays, lexicon: Lexicon) -> bool:
    without = _without_word_of_time(named, lexicon)
    return (
        _asks_about_time_within_named_days(named, lexicon)
        and _has_only_question_and_calendar_words(without, lexicon)
        and (not _has_calendar_word(without, lexicon) or _tells_of_past(_rest_of_question(named), lexicon))
    )


def _asks_about_time_within_named_days(named: NamedDays, lexicon: Lexicon) -> bool:
    """Whether a word before the day says that something was in that time or since then, and not, say, before it; or no
    such word does."""
    ahead = named.before.strip()
    if _lies_outside(ahead, named.behind, lexicon):
        return False
    if named.is_surely_time:
        return lexicon.start_of_match_at_end("from_day", ahead) is None or _asks_since(ahead, lexicon)
    if not ahead or not lexicon.entries.get("spaced", True):
        return not named.may_be_name
    if _without_word_of_time(named, lexicon) != f"{ahead} {named.behind}":
        return True
    last = NUMBER_OR_WORD_PATTERN.findall(ahead)[-1:]
    return not named.may_be_name and bool(last) and last[0] not in lexicon.words("function_words", "stop_words")


def _lies_outside(before: str, behind: str, lexicon: Lexicon) -> bool:
    """Whether it is before or after these days that something is asked for."""
    ahead = before.strip()
    words_ahead = ("tells_before", "not_in_time")
    return (
        any(lexicon.start_of_match_at_end(name, ahead) is not None for name in words_ahead)
        or lexicon.end_of_match_at_start("not_in_time_behind", behind.strip()) is not None
    )


def _without_word_of_time(named: NamedDays, lexicon: Lexicon) -> str:
    """What is said beside the day and a word such as "on" before it."""
    ahead = named.before.strip()
    starts = (lexicon.start_of_match_at_end(name, ahead) for name in ("in_time", "since_time"))
    return f"{ahead[: next((start for start in starts if start is not None), len(ahead))]} {named.behind}"


def _tells_of_past(text: str, lexicon: Lexicon) -> bool:
    return _has_pattern(text, lexicon, "asks_past", "happened")


def _says_from_that_day_on(text: str, lexicon: Lexicon) -> bool:
    return _has_pattern(text, lexicon, "from_day", "from_day_behind")


def _has_pattern(text: str, lexicon: Lexicon, *names: str) -> bool:
    return any(pattern and pattern.search(text) for pattern in map(lexicon.pattern, names))


def _asks_since(before: str, lexicon: Lexicon) -> bool:
    return lexicon.start_of_match_at_end("since_time", before.strip()) is not None


def _has_calendar_word(text: str, lexicon: Lexicon) -> bool:
    return _has_word(text, lexicon, "calendar_words")


def _has_word(text: str, lexicon: Lexicon, name: str) -> bool:
    return next(_places_of_words(text, lexicon, name), None) is not None


def _places_of_words(text: str, lexicon: Lexicon, name: str) -> Iterator[tuple[int, int]]:
    """Of the words of this list of the lexicon."""
    words = lexicon.words(name)
    if lexicon.entries.get("spaced", True):
        yield from (match.span() for match in NUMBER_OR_WORD_PATTERN.finditer(text) if match[0] in words)
        return
    for word in words:
        yield from (match.span() for match in re.finditer(re.escape(word), text))


def _has_only_question_and_calendar_words(question: str, lexicon: Lexicon) -> bool:
    """Whether it holds nothing but words that ask, that join, and that mean a calendar or news, and is in that
    language."""
    words = NUMBER_OR_WORD_PATTERN.findall(question)
    of_calendar = lexicon.words("calendar_words", "news_words")
    if lexicon.entries.get("spaced", True):
        own = sum(word in words_that_ask_or_join(lexicon) or word in of_calendar for word in words)
        if words and 2 * own <= len(words):
            return False
    return set(content_words(f"{question} {_MADE_UP_CONTENT_WORD}")) <= {_MADE_UP_CONTENT_WORD, *of_calendar}
