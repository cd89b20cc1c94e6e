"""spec T3: a model names nobody and counts nothing that was not said."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.rules.storing.grounding import ungrounded_terms
from tests.rows import for_each_row


@for_each_row(
    ("text", "sources"),
    [
        ("Ada moved to Lyon with 3 cats.", "Ada: I moved to lyon with three cats"),
        ("The user pays 1,000 euros.", "it is 1000 euros"),
        ("The user waits for a dozen eggs, 12 in all.", "a dozen eggs"),
        ("They meet at 7:30.", "see you at 7:30"),
        ("The meeting is on 2026-03-14.", "on 2026-03-14"),
        ("It happened in 2026.", "2026-03-14 14 March Saturday"),
        ("Moving to Lyon worries the user.", "i will move to lyon"),
        ("Adas Katze wohnt in Lyon.", "Ada: meine Katze wohnt in Lyon"),
        (
            "Ada hat beschlossen, im Frühling nach Lyon zu ziehen. Der Grund ist die Arbeit.",
            "Ada: ich ziehe im Frühling nach Lyon, wegen der Arbeit",
        ),
        ("健太は3匹の猫と暮らしている。", "三匹の猫と暮らしています"),
        ('Ada calls it "the long walk" and is at ada@example.org.', "Ada: the long walk, ada@example.org"),
        ("The door code is rosebud.", "the code of the door? rosebud"),
        ("", ""),
    ],
)
def test_what_was_said_in_digits_or_in_words_is_grounded(text: str, sources: str) -> None:
    assert ungrounded_terms(text, sources) == ()


@for_each_row(
    ("text", "sources", "foreign"),
    [
        ("Bob moved to Lyon.", "I moved to Lyon", ("Bob",)),
        ("Ada moved to Paris with Mallory.", "Ada: I moved to Lyon", ("Paris", "Mallory")),
        ("Ada has 4 cats.", "Ada: I have three cats", ("4",)),
        ("The user's PIN is 4711.", "my pin is secret", ("4711", "PIN")[:1]),
        ("健太は4匹の猫と暮らしている。", "三匹の猫", ("4",)),
        ("The user's password is swordfish.", "store that my password is on file", ("swordfish",)),
        ("Ada's handle is «nightowl».", "Ada has a handle", ("nightowl",)),
        ('Ada calls it "the long walk".', "Ada walks", ("the long walk",)),
        ("Ada is ada@example.org.", "Ada writes", ("ada@example.org",)),
        ("Es ist Mallory, die Bank und der Code von Eve.", "hallo", ("Mallory", "Bank", "Code", "Eve")),
    ],
)
def test_what_was_not_said_is_named(text: str, sources: str, foreign: tuple[str, ...]) -> None:
    assert ungrounded_terms(text, sources) == foreign


@for_each_row(
    ("text", "sources"),
    [
        ("Ada flies on 2026-03-15.", "Ada: I fly tomorrow"),
        ("Ada flies on Sunday, March 15.", "Ada: I fly tomorrow"),
        ("Ada zieht am 15. April 2026 um.", "Ada: nächsten Monat ziehe ich um, übermorgen in vier Wochen"),
        ("Ада едет 15 марта 2026 года.", "Ада: завтра еду"),
        ("用户3月15日去里昂。", "明天去里昂"),
        ("Ada has a check-up with Dr. Müller at 19:00.", "Ada: check-up with dr mueller at 7 pm"),
        ("Mr Muller called Zoë.", "müller called zoe"),
        ("Пользователь встретил Марию и Анну.", "я встретил Мария, Анна"),
    ],
)
def test_a_day_that_was_resolved_and_a_name_in_another_form_are_grounded(text: str, sources: str) -> None:
    assert ungrounded_terms(text, sources, days={date(2026, 3, 14)}) == ()


@for_each_row(
    ("text", "sources", "foreign"),
    [
        ("Ada flies on 2026-03-15.", "Ada: I fly to Lyon", ("2026-03-15",)),
        ("Ada flies on 2031-03-15.", "Ada: I fly tomorrow", ("2031-03-15",)),
        ("Ada flies tomorrow with 15 bags.", "Ada: I fly tomorrow", ("15",)),
        ("Maria met Marta at 19:30.", "Maria met somebody at 7", ("19:30", "Marta")),
    ],
)
def test_a_date_or_a_name_that_nothing_tells_of_is_named(text: str, sources: str, foreign: tuple[str, ...]) -> None:
    assert ungrounded_terms(text, sources, days={date(2026, 3, 14)}) == foreign


@given(st.text(max_size=200))
def test_what_is_copied_is_always_grounded(text: str) -> None:
    assert ungrounded_terms(text, text) == ()
