"""What of a message a recall is about (ADR 41)."""

from dataclasses import replace

import numpy as np

from madeleine.memory.recall.query_reading import (
    closing_text_of_message,
    query_without_names_and_dates,
    without_unknown_words_for_the_past,
)
from tests.rows import for_each_row
from tests.unit.memory.rules.ranking.test_blended import PLAIN
from tests.unit.memory.rules.ranking.test_matching import pool

CANDIDATES = [replace(PLAIN, actors=("Will Kern",)), replace(PLAIN, actors=("user",))]


@for_each_row(
    ("message", "end"),
    [
        ("Where does Tom live? I forgot.", ""),
        ("Ich hab vergessen, wann die Chorprobe ist.", "wann die Chorprobe ist."),
        ("Please look at it, where does Tom live?", "where does Tom live?"),
        ("When does Tom leave for Rome, and where does Ann live?", ""),
        ("Tom lives in Rome, which is warm.", ""),
        ("For my trip to Rome, what does Tom pack?", ""),
        ("Hi! I slept badly. Which train does Tom take?", "Which train does Tom take?"),
        ("Hi! I slept badly. My train to Rome is late. What can I do?", "My train to Rome is late. What can I do?"),
        ("こんにちは。雨ですね。トムはどの電車に乗りますか？", "トムはどの電車に乗りますか？"),
    ],
)
def test_what_a_longer_message_comes_to_is_its_last_question_or_its_last_two_sentences(message: str, end: str) -> None:
    assert closing_text_of_message(message) == end


@for_each_row(
    ("message", "subject"),
    [
        ("Where did Will's sister go?", "Where did sister go?"),
        ("Where will the user go?", ""),
        ("Will Kern?", ""),
        ("Hi! I slept badly. What did Will Kern cook?", "What did cook?"),
    ],
)
def test_names_of_those_who_act_are_no_part_of_the_subject(message: str, subject: str) -> None:
    assert query_without_names_and_dates(message, CANDIDATES) == subject


@for_each_row(
    ("question", "words", "kept"),
    [
        ("Dove lavorava Davide prima?", ("lavorava", "davide", "prima"), ("lavorava", "davide")),
        ("What did we use originally for mail?", ("originally", "mail"), ("mail",)),
        ("Which provider did we have first?", ("provider", "first"), ("provider",)),
        ("Was hatten wir ursprünglich?", ("ursprünglich",), ("ursprünglich",)),
        ("Where is the first-aid kit?", ("first", "aid", "kit"), ("first", "aid", "kit")),
    ],
)
def test_a_word_for_what_was_first_is_not_unknown(question: str, words: tuple[str, ...], kept: tuple[str, ...]) -> None:
    """ruling 19: it names nothing that could be known, unless it is all that is asked. What memories hold stays."""
    named = replace(pool([[0] * len(words)], unknown=[1] * len(words)), words=words)
    assert without_unknown_words_for_the_past(named, question).words == kept
    known = replace(named, unknown=np.zeros(len(words), np.bool_))
    assert without_unknown_words_for_the_past(known, question).words == words
