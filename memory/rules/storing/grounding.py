"""Whether a text that a model wrote rests on what it was shown: its numbers and names stand there too (spec T3)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from datetime import date, timedelta

from madeleine.memory.text.lexicon import all_words_of_lexicon_lists, load_language_neutral_pattern
from madeleine.memory.text.normalization import fold_text
from madeleine.memory.text.reading import AnalysedText, WordInText, canonical_number_text

MAX_RESOLVED_DATE_DISTANCE_FROM_TELLING = timedelta(days=400)
"""Between the day on which a time was told in words ("next month") and the date that is meant by it."""
_QUOTE_ADDRESS_OR_CODE_PATTERN = load_language_neutral_pattern("stated_value")
_NON_NAME_ENDINGS_AT_SENTENCE_START = ("ing", "ed", "ly", "ez", "iert", "ый", "но")
_INFLECTION_ENDING_PATTERN = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e)$")
_MIN_STEM_CHARS = 3
_TWO_LETTER_SPELLING_BY_UMLAUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "æ": "ae"})
_CLOCK_TIME_PATTERN = re.compile(r"(\d{1,2}):(\d{2})")
_DAY_FIRST_DATE_PATTERN = re.compile(r"(\d{1,2})[./](\d{1,2})[./](\d{4})")
_MAX_CHARS_BETWEEN_MONTH_AND_NUMBER = 4
"""Between a month's name and its day or year: "15 de marzo", "March 15, 2026"."""
_CJK_DATE_UNIT_PATTERN = re.compile(r"\s?[年月日号號년월일]")


def ungrounded_terms(text: str, sources: str, *, days: Collection[date] = (), orders: bool = False) -> tuple[str, ...]:
    """Names, numbers and values of the text that do not stand in the sources, nor in words; in order, each once.
    A value is what is quoted, an address, or what is said to be a password, a code, an account.

    A name is a capitalised word, at a sentence's beginning only if the sources have no such word in any form. Where
    nouns are capitalised, in German, some may be the writer's own: not if most of them are. `days`: on which the
    sources were told; where they tell a time in words ("tomorrow"), a date near one of these is what was meant.
    `orders`: the text is an instruction, whose sentences begin with a verb.
    """
    said, shown = (
        AnalysedText(unicodedata.normalize("NFKC", text)),
        AnalysedText(unicodedata.normalize("NFKC", sources)),
    )
    resolves_dates = bool(days) and (
        shown.mentions_date_or_time_span or bool(shown.words_in_lexicon_lists("time_words", "days"))
    )
    resolved = frozenset(_numbers_of_dates_near_days(said, days)) if resolves_dates else frozenset()
    new = (
        *(number for number in _numbers_not_in_sources(said, shown) if number not in resolved),
        *_names_not_in_sources(said, shown, orders, resolves_dates),
        *_quoted_or_code_values_not_in_sources(said, shown),
    )
    return tuple(dict.fromkeys(new))


def _numbers_not_in_sources(said: AnalysedText, shown: AnalysedText) -> list[str]:
    known = shown.canonical_number_texts
    return [
        number
        for number in said.numbers
        if canonical_number_text(number) not in known
        and number.lstrip("0") not in known
        and not _is_clock_time_in_sources(number, known)
    ]


def _is_clock_time_in_sources(number: str, known: frozenset[str]) -> bool:
    """19:00 is 7 pm, and 7:30 in the evening is 19:30."""
    if not (match := _CLOCK_TIME_PATTERN.fullmatch(number)):
        return False
    hours = {int(match[1]), (int(match[1]) + 12) % 24}
    return any(f"{hour}:{match[2]}" in known or (match[2] == "00" and str(hour) in known) for hour in hours)


def _numbers_of_dates_near_days(said: AnalysedText, days: Collection[date]) -> Iterator[str]:
    """The numbers of dates that are near one of the days: of whole dates, and of days and years beside a month."""
    first, last = (
        min(days) - MAX_RESOLVED_DATE_DISTANCE_FROM_TELLING,
        max(days) + MAX_RESOLVED_DATE_DISTANCE_FROM_TELLING,
    )
    months = [word for word in said.words if word.stem in all_words_of_lexicon_lists(said.lexicons, "months")]
    position = 0
    for number in said.numbers:
        start = said.normalized_text.index(number, position)
        position = end = start + len(number)
        if whole_date := _date_from_number_text(number):
            is_near = first <= whole_date <= last
        elif number.isdigit() and len(number) == 4:
            is_near = first.year <= int(number) <= last.year
        else:
            beside = any(
                0 <= max(start - word.end, word.start - end) <= _MAX_CHARS_BETWEEN_MONTH_AND_NUMBER for word in months
            ) or _CJK_DATE_UNIT_PATTERN.match(said.normalized_text, end)
            is_near = number.isdigit() and 1 <= int(number) <= 31 and bool(beside)
        if is_near:
            yield number


def _date_from_number_text(number: str) -> date | None:
    try:
        if match := _DAY_FIRST_DATE_PATTERN.fullmatch(number):
            return date(int(match[3]), int(match[2]), int(match[1]))
        return date.fromisoformat(number if len(number) > len("2026-03") else f"{number}-01")
    except ValueError:
        return None


def _names_not_in_sources(said: AnalysedText, shown: AnalysedText, orders: bool, resolves_dates: bool) -> list[str]:
    known = {form for word in shown.words for form in _comparison_forms_of_name(word, shown)}
    calendar = ("days", "months") if resolves_dates else ()
    titles = {title.lower() for title in all_words_of_lexicon_lists(said.lexicons, "title_words")}
    not_new = all_words_of_lexicon_lists(said.lexicons, *calendar) | titles
    names = [word for word in said.possible_names if word.stem not in not_new]
    unknown = [
        word.text
        for word in names
        if not any(_is_form_of_known_stem(form, known) for form in _comparison_forms_of_name(word, said))
        and not (word.opens and (orders or word.stem.endswith(_NON_NAME_ENDINGS_AT_SENTENCE_START)))
    ]
    own_nouns = any(one.entries.get("nouns_capitalised") for one in said.lexicons) and len(unknown) * 2 < len(names)
    return [] if own_nouns else unknown


def _comparison_forms_of_name(word: WordInText, reading: AnalysedText) -> set[str]:
    """Without endings and accents, with umlauts as one letter and as two: Müller, Mueller and Muller share a form."""
    stem = _INFLECTION_ENDING_PATTERN.sub("", word.stem)
    forms = {fold_text(stem), fold_text(stem.translate(_TWO_LETTER_SPELLING_BY_UMLAUT))}
    cases = sorted(all_words_of_lexicon_lists(reading.lexicons, "name_endings"), key=len, reverse=True)
    ending = next((end for end in cases if stem.endswith(end) and len(stem) - len(end) >= _MIN_STEM_CHARS - 1), "")
    return forms | {stem.removesuffix(ending)} if ending else forms


def _is_form_of_known_stem(stem: str, known: set[str]) -> bool:
    return stem in known or any(
        len(one) >= _MIN_STEM_CHARS
        and len(stem) >= _MIN_STEM_CHARS
        and (stem.startswith(one) or one.startswith(stem))
        and abs(len(one) - len(stem)) <= _MIN_STEM_CHARS
        for one in known
    )


def _quoted_or_code_values_not_in_sources(said: AnalysedText, shown: AnalysedText) -> list[str]:
    known = _casefolded_words(shown.text)
    values = (
        next(filter(None, match.groups())).rstrip(".!?)")
        for match in _QUOTE_ADDRESS_OR_CODE_PATTERN.finditer(said.text)
    )
    return [value for value in values if not _casefolded_words(value) <= known]


def _casefolded_words(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"\w+", text)}
