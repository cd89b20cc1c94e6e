"""A language is a file of words."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest

from madeleine.memory.rules.feelings import EMOTION_LABELS
from madeleine.memory.text.lexicon import (
    LEXICON_FOLDER,
    lexicons_for_script_of_text,
    load_lexicon,
    load_lexicon_headers,
)
from tests.rows import for_each_row

LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pt", "ru", "zh")
EVERY_LANGUAGE_HAS = (
    "preference", "request", "decision", "plan", "feeling", "person_fact", "correction", "lesson", "date", "span",
    "now", "event", "fact", "question", "command", "oneself", "recalls", "asks_answer", "asks_when", "asks_advice",
    "asks_fact", "asks_feeling",
)  # fmt: skip
HOSTILE = (
    "\n", " ", "a ", "i ", "my ", "1", "1 ", "1. ", "-", "...", ", ", "no, ", "a-", "a'", "i am ", "always ", "not a ",
    "ich ", "ich bin ", "je ", "un ", "я ", "я всегда ", "一", "日", "一月", "从", "가", "用户",
    "사용자는 ", "لا ", "ال",
)  # fmt: skip


def test_there_are_twelve_languages() -> None:
    assert tuple(load_lexicon_headers()) == LANGUAGES


@for_each_row("language", LANGUAGES)
def test_every_language_has_every_pattern_and_they_compile(language: str) -> None:
    entries = load_lexicon(language).entries
    assert set(EVERY_LANGUAGE_HAS) <= set(entries["patterns"])
    assert all(load_lexicon(language).pattern(name) for name in entries["patterns"])
    assert all(load_lexicon(language).pattern(name, cased=True) for name in entries.get("cased", {}))


def test_every_language_has_words_for_the_same_emotions_which_are_labels() -> None:
    """ruling 21"""
    tables = [load_lexicon(language).entries["emotions"] for language in LANGUAGES]
    assert set(tables[0]) <= set(EMOTION_LABELS)
    assert [sorted(table) for table in tables] == [sorted(tables[0])] * len(LANGUAGES)
    assert all(words.strip() for table in tables for words in table.values())


@pytest.mark.slow
@for_each_row("language", LANGUAGES)
def test_the_patterns_take_time_by_the_length_of_a_text_and_not_by_its_square(language: str) -> None:
    one = load_lexicon(language)
    patterns = [(name, one.pattern(name)) for name in one.entries["patterns"]]
    slow = []
    for piece in HOSTILE:
        text = f"{piece * (8_000 // len(piece))}é"
        for name, pattern in patterns:
            begun = time.process_time()
            assert pattern is not None
            pattern.search(text)
            # Quadratic ones took between 0.5 and 80 seconds.
            if time.process_time() - begun > 0.25:
                slow.append((name, piece))
    assert slow == []


def test_all_lexicons_are_read_in_less_than_fifty_milliseconds_of_work() -> None:
    texts = [path.read_text("utf-8") for path in LEXICON_FOLDER.glob("*.toml")]

    def seconds() -> float:
        begun = time.process_time()
        for text in texts:
            tomllib.loads(text)
        return time.process_time() - begun

    assert min(seconds() for _ in range(5)) < 0.05


def test_a_language_added_as_a_file_is_picked_up(tmp_path: Path) -> None:
    (tmp_path / "el.toml").write_text(
        "name = \"Greek\"\nletters = '[α-ω]'\n\nnegations = \"δεν\"\n\n[patterns]\npreference = 'προτιμώ'\n", "utf-8"
    )
    [greek] = lexicons_for_script_of_text("προτιμώ τον καφέ", folder=tmp_path)
    preference = greek.pattern("preference")
    assert greek.words("negations") == {"δεν"}
    assert preference is not None
    assert preference.search("προτιμώ τον καφέ")
    assert greek.pattern("decision") is None
    assert lexicons_for_script_of_text("I prefer coffee", folder=tmp_path) == ()
