"""Whether a text that a model wrote rests on what it was shown: its numbers and names stand there too (spec T3)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from datetime import date, timedelta

from madeleine.memory.text.lexicon import all_words_of_lexicon_lists, load_language_neutral_pattern
from madeleine.memory.text.normalization import fold_text
from madeleine.memory.text.reading import AnalysedText, WordInText, canonical_number_text

MAX_RESOLVED_DATE_DISTANCE = timedelta(days=400)
"""Between the day on which a time was told in words ("next month") and the date that is meant by it."""
_STATED_VALUE = load_language_neutral_pattern("stated_value")
_VERB_ENDINGS = ("ing", "ed", "ly", "ez", "iert", "ый", "но")
_WORD_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e)$")
_MIN_STEM_CHARS = 3
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "æ": "ae"})
_CLOCK_TIME = re.compile(r"(\d{1,2}):(\d{2})")
_DAY_FIRST_DATE = re.compile(r"(\d{1,2})[./](\d{1,2})[./](\d{4})")
_BESIDE_MONTH_CHARS = 4
"""Between a month's name and its day or year: "15 de marzo", "March 15, 2026"."""
_CALENDAR_SIGN = re.compile(r"\s?[年月日号號년월일]")


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
    resolved = frozenset(_resolved_numbers(said, days)) if resolves_dates else frozenset()
    new = (
        *(number for number in _new_numbers(said, shown) if number not in resolved),
        *_new_names(said, shown, orders, resolves_dates),
        *_new_values(said, shown),
    )
    return tuple(dict.fromkeys(new))


def _new_numbers(said: AnalysedText, shown: AnalysedText) -> list[str]:
    known = shown.canonical_number_texts
    return [
        number
        for number in said.numbers
        if canonical_number_text(number) not in known
        and number.lstrip("0") not in known
        and not _is_known_time(number, known)
    ]


def _is_known_time(number: str, known: frozenset[str]) -> bool:
    """19:00 is 7 pm, and 7:30 in the evening is 19:30."""
    if not (match := _CLOCK_TIME.fullmatch(number)):
        return False
    hours = {int(match[1]), (int(match[1]) + 12) % 24}
    return any(f"{hour}:{match[2]}" in known or (match[2] == "00" and str(hour) in known) for hour in hours)


def _resolved_numbers(said: AnalysedText, days: Collection[date]) -> Iterator[str]:
    """The numbers of dates that are near one of the days: of whole dates, and of days and years beside a month."""
    first, last = min(days) - MAX_RESOLVED_DATE_DISTANCE, max(days) + MAX_RESOLVED_DATE_DISTANCE
    months = [word for word in said.words if word.stem in all_words_of_lexicon_lists(said.lexicons, "months")]
    position = 0
    for number in said.numbers:
        start = said.normalized_text.index(number, position)
        position = end = start + len(number)
        if whole_date := _date_of(number):
            is_near = first <= whole_date <= last
        elif number.isdigit() and len(number) == 4:
            is_near = first.year <= int(number) <= last.year
        else:
            beside = any(
                0 <= max(start - word.end, word.start - end) <= _BESIDE_MONTH_CHARS for word in months
            ) or _CALENDAR_SIGN.match(said.normalized_text, end)
            is_near = number.isdigit() and 1 <= int(number) <= 31 and bool(beside)
        if is_near:
            yield number


def _date_of(number: str) -> date | None:
    try:
        if match := _DAY_FIRST_DATE.fullmatch(number):
            return date(int(match[3]), int(match[2]), int(match[1]))
        return date.fromisoformat(number if len(number) > len("2026-03") else f"{number}-01")
    except ValueError:
        return None


def _new_names(said: AnalysedText, shown: AnalysedText, orders: bool, resolves_dates: bool) -> list[str]:
    known = {form for word in shown.words for form in _name_forms(word, shown)}
    calendar = ("days", "months") if resolves_dates else ()
    titles = {title.lower() for title in all_words_of_lexicon_lists(said.lexicons, "title_words")}
    not_new = all_words_of_lexicon_lists(said.lexicons, *calendar) | titles
    names = [word for word in said.possible_names if word.stem not in not_new]
    unknown = [
        word.text
        for word in names
        if not any(_is_known_stem(form, known) for form in _name_forms(word, said))
        and not (word.opens and (orders or word.stem.endswith(_VERB_ENDINGS)))
    ]
    own_nouns = any(one.entries.get("nouns_capitalised") for one in said.lexicons) and len(unknown) * 2 < len(names)
    return [] if own_nouns else unknown


def _name_forms(word: WordInText, reading: AnalysedText) -> set[str]:
    """Without endings and accents, with umlauts as one letter and as two: Müller, Mueller and Muller share a form."""
    stem = _WORD_ENDING.sub("", word.stem)
    forms = {fold_text(stem), fold_text(stem.translate(_UMLAUTS))}
    cases = sorted(all_words_of_lexicon_lists(reading.lexicons, "name_endings"), key=len, reverse=True)
    ending = next((end for end in cases if stem.endswith(end) and len(stem) - len(end) >= _MIN_STEM_CHARS - 1), "")
    return forms | {stem.removesuffix(ending)} if ending else forms


def _is_known_stem(stem: str, known: set[str]) -> bool:
    return stem in known or any(
        len(one) >= _MIN_STEM_CHARS
        and len(stem) >= _MIN_STEM_CHARS
        and (stem.startswith(one) or one.startswith(stem))
        and abs(len(one) - len(stem)) <= _MIN_STEM_CHARS
        for one in known
    )


def _new_values(said: AnalysedText, shown: AnalysedText) -> list[str]:
    known = _casefolded_words(shown.text)
    values = (next(filter(None, match.groups())).rstrip(".!?)") for match in _STATED_VALUE.finditer(said.text))
    return [value for value in values if not _casefolded_words(value) <= known]


def _casefolded_words(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"\w+", text)}
