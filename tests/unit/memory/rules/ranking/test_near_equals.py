from __future__ import annotations

import pytest

from madeleine.memory.model import MemoryId
from madeleine.memory.rules.ranking.near_equals import asks_for_past, newer_first, say_the_same, says_it_anew
from madeleine.memory.rules.storing.supersession import Statement
from madeleine.memory.text.reading import Reading

LYON, PARIS, ROME, SOUP = map(MemoryId, ("lyon", "paris", "rome", "soup"))


def test_what_says_it_anew_comes_first_with_the_same_score_whether_it_matched_or_not() -> None:
    scores = {LYON: 0.8, SOUP: 0.7, ROME: 0.3}
    led = newer_first(scores, {LYON: [PARIS], PARIS: [ROME]}, most=2)
    assert list(led.items()) == [(ROME, 0.8), (PARIS, 0.8), (LYON, 0.8), (SOUP, 0.7)]
    assert newer_first(scores, {ROME: [PARIS]}, most=2) == scores
    assert list(newer_first({PARIS: 0.8, LYON: 0.7}, {LYON: [PARIS]}, most=2)) == [PARIS, LYON]


@pytest.mark.parametrize(
    ("score", "proposed", "anew"), [(0.1, True, True), (-1.5, True, False), (-0.5, False, True), (-1.5, False, False)]
)
def test_two_that_answer_one_question_need_less_in_common(score: float, proposed: bool, anew: bool) -> None:
    newer, older = Statement("Bryony's grinder stood at step 14"), Statement("Bryony has the Corvo of 2019 in black")
    assert says_it_anew(Statement("Who is Bryony?"), newer, older, score=score, proposed=proposed) is anew


@pytest.mark.parametrize(
    ("question", "newer", "older", "same"),
    [
        ("Where does Ada live?", "Ada moved, she lives in Paris now", "Ada lives in Lyon", True),
        ("What is Foy's address?", "Foy writes from foy@mail.org these days", "Foy's address is foy@shop.ie", True),
        (
            "Who is Emma Lind?",
            "Sofia Lind, Emma's mum, drives both",
            "Emma Lind is in class 4B, Maya's best friend",
            False,
        ),
        (
            "pressure gauge",
            "Bryony couldn't get any pressure, her grinder stood at step 14",
            "Pressure gauge of the Corvo should stand between 8 and 10 bar while brewing",
            False,
        ),
    ],
)
def test_what_only_mentions_the_subject_says_another_thing(question: str, newer: str, older: str, same: bool) -> None:
    assert say_the_same(Statement(question), Statement(newer), Statement(older)) is same


@pytest.mark.parametrize(
    ("question", "past"),
    [
        ("Where does Ada live?", False),
        ("Where did Ada live before Paris?", True),
        ("Wo hat Ada ursprünglich gewohnt?", True),
        ("Où habitait Ada avant ?", True),
        ("アダは最初どこに住んでいた?", True),
        ("Wo wohnt Ada?", False),
    ],
)
def test_a_question_for_the_past_is_told_by_its_wording(question: str, past: bool) -> None:
    assert asks_for_past(Reading(question)) is past
