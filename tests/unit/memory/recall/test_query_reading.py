"""What of a message a recall is about (ADR 41)."""

from dataclasses import replace

from madeleine.memory.recall.query_reading import closing_text_of_message, query_without_names_and_dates
from tests.rows import for_each_row
from tests.unit.memory.rules.ranking.test_blended import PLAIN

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
