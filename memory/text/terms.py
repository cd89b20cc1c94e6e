"""The text that BM25 sees: of a memory, and of a query."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from madeleine.memory.model import DatedAction, Memory, first_timeline_period
from madeleine.memory.text.dates import parse_iso_period, weekday_and_date_in_words
from madeleine.memory.text.lexicon import Lexicon, lexicons_for_script_of_text, load_lexicon
from madeleine.memory.text.normalization import without_accents
from madeleine.memory.text.relative_dates import date_texts_meant_by_relative_words
from madeleine.memory.text.written_dates import month_names_replaced_by_english, text_with_iso_dates

ENGLISH_STOP_WORDS = load_lexicon("en").words("stop_words")
"""English function words, question words, pronouns and their contractions without apostrophes. Leaving the question
words and pronouns in costs 3 points of nDCG@10 on LoCoMo."""

LESSON_MARK_TERM = "zqlesson"
"""A word of every memory that has a lesson: a question for what was learnt is one for these (ruling 22)."""
EMOTION_MARK_TERM_PREFIX = "zqemotion"
"""Before the label of an emotion, a word of every memory that has it: "proud", "stolz" and "fière" ask for pride."""
_WORD_PATTERN = re.compile(r"\w+")
_APOSTROPHE_PATTERN = re.compile("['\u2018\u2019\u02bc]")
_ACCENT_USED_AS_APOSTROPHE_PATTERN = re.compile(r"(?<=\w)[\u00b4`\u2032](?=\w)")
"""Accents that some keyboards write for apostrophes; NFKC would make a space of the first."""
_ELIDED_WORD_PATTERN = re.compile(
    "(?:\\b(?:[cdjlmnst]|qu))?['\u2018\u2019\u02bc](?=[a-z\u00c0-\u024f]{3})", re.IGNORECASE
)
"""Of a shortened word before the next: "l'entretien", "dell'acqua". After an English one less follows: don't, we've."""


def normalize_and_drop_apostrophes(text: str) -> str:
    """NFKC, apostrophes dropped (`don't` and `dont` are one word)."""
    return _APOSTROPHE_PATTERN.sub("", unicodedata.normalize("NFKC", _ACCENT_USED_AS_APOSTROPHE_PATTERN.sub("", text)))


def normalize_text_for_bm25(text: str) -> str:
    """The words of a text as BM25 compares them: those of `normalize_and_drop_apostrophes` without accents and elided
    articles. Dates are in English words, with their months in the text's own words beside them."""
    dated = text_with_iso_dates(text)
    plain = normalize_and_drop_apostrophes(
        _ELIDED_WORD_PATTERN.sub(" ", " ".join((dated, *month_names_replaced_by_english(text, dated))))
    )
    return without_accents(_WORD_PATTERN.sub(_base_form_of_irregular_form, plain))


def _base_form_of_irregular_form(word: re.Match[str]) -> str:
    """LED is no form of lead, nor is Stück one of stick."""
    return word[0] if word[0].isupper() else _base_form_by_irregular_form().get(word[0].lower(), word[0])


@cache
def _base_form_by_irregular_form() -> Mapping[str, str]:
    """Of English: `find` by `found`; what endings tell is left to the stemmer."""
    lines = (line.split() for line in load_lexicon("en").entries["irregular_forms"].strip().splitlines())
    return {form: word for word, *forms in lines for form in forms}


def question_words_by_lesson_or_emotion(question: str) -> dict[str, tuple[str, ...]]:
    """The words of a question that ask for what is marked: `learn` for lessons, `proud` for an emotion. By the mark."""
    text = without_accents(normalize_and_drop_apostrophes(question)).lower()
    words = frozenset(_WORD_PATTERN.findall(text))
    asking: dict[str, tuple[str, ...]] = {}
    for lexicon in lexicons_for_script_of_text(text):
        marks_of = _mark_terms_by_lexicon_word(lexicon)
        is_spaced = lexicon.entries.get("spaced", True)
        asked = sorted(words & marks_of.keys() if is_spaced else (word for word in marks_of if word in text))
        for word in asked:
            for mark in marks_of[word]:
                asking[mark] = tuple(dict.fromkeys((*asking.get(mark, ()), word)))
    return asking


@cache
def _mark_terms_by_lexicon_word(lexicon: Lexicon) -> dict[str, list[str]]:
    lists = {
        f"{EMOTION_MARK_TERM_PREFIX}{label}": words for label, words in lexicon.entries.get("emotions", {}).items()
    }
    lists[LESSON_MARK_TERM] = lexicon.entries.get("lesson_words", "")
    marks: dict[str, list[str]] = {}
    for mark, words in lists.items():
        for word in {without_accents(word) for word in words.split()}:
            marks.setdefault(word, []).append(mark)
    return marks


def _mark_terms_of_memory(memory: Memory) -> list[str]:
    lesson = [LESSON_MARK_TERM] if memory.lesson else []
    return lesson + [f"{EMOTION_MARK_TERM_PREFIX}{label}" for label in memory.emotions]


def _names_of_units(texts: Iterable[str]) -> list[str]:
    """`watt` where one has `2200 W` or `2200W`, for a question may ask for watts (ADR 112)."""
    pattern, names_by_sign = _amount_pattern_and_unit_names_by_sign()
    return list(dict.fromkeys(names_by_sign[sign] for text in texts for sign in pattern.findall(text)))


@cache
def _amount_pattern_and_unit_names_by_sign() -> tuple[re.Pattern[str], Mapping[str, str]]:
    names = tomllib.loads((Path(__file__).parent / "units.toml").read_text("utf-8"))
    # A number of its own: neither the end of an identifier ("qx7r2W") nor of a name with a hyphen ("MB-12 g").
    # Signs of scripts without spaces may stand right beside it.
    before, behind = r"(?<![A-Za-z\d.,_])(?<![A-Za-z]-)", r"(?![A-Za-z\d\u00c0-\u024f\u0400-\u04ff_-])"
    return re.compile(rf"{before}\d+(?:[.,]\d+)*\s?({'|'.join(names)}){behind}"), names


def bm25_text_of_memory(memory: Memory) -> str:
    """Dates in words, actors that the action does not name, then everything that was said of the scene, and the units
    of its amounts in words."""
    scene = memory.scene
    period = first_timeline_period(scene.when)
    dates = [period.start_in_words if period else weekday_and_date_in_words(memory.happened_at)]
    for item in (*scene.when, *memory.retold):
        text = item.date if isinstance(item, DatedAction) else item
        if parse_iso_period(text) is None:
            dates.append(text)
        if isinstance(item, DatedAction):
            dates.append(item.action)
    if period is None or period.precision in ("day", "time"):
        dates += date_texts_meant_by_relative_words(
            scene.action, (period.start if period else memory.happened_at).date()
        )
    actors = [actor for actor in scene.actors if actor.casefold() not in scene.action.casefold()]
    parts = (
        *dates, *actors, scene.setting, scene.action, *scene.dialogue, *scene.sensory,
        memory.feeling, *memory.themes, memory.lesson, *_mark_terms_of_memory(memory),
    )  # fmt: skip
    told = [part for part in parts if part]
    return normalize_text_for_bm25(" ".join((*told, *_names_of_units(told))))
