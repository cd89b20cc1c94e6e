from __future__ import annotations

import numpy as np
import pytest

from madeleine.memory.model import MemoryId
from madeleine.memory.rules.ranking.near_equals import asks_for_past, newer_first, say_the_same
from madeleine.memory.rules.storing.supersession import Statement
from madeleine.memory.text.reading import Reading

LYON, PARIS, ROME, SOUP = map(MemoryId, ("lyon", "paris", "rome", "soup"))


def test_the_newest_of_a_chain_comes_first_among_near_equals() -> None:
    order = newer_first({LYON: 0.8, SOUP: 0.7, PARIS: 0.6, ROME: 0.5}, {PARIS: LYON, ROME: PARIS})
    assert list(order) == [ROME, PARIS, LYON, SOUP]
    assert list(order.values()) == sorted(order.values(), reverse=True)


def test_what_is_far_less_relevant_stays_behind() -> None:
    scores = {LYON: 0.8, SOUP: 0.7, PARIS: 0.3}
    assert newer_first(scores, {PARIS: LYON}) == scores


def test_a_newer_one_that_leads_already_changes_nothing() -> None:
    scores = {PARIS: 0.8, LYON: 0.7}
    assert newer_first(scores, {PARIS: LYON}) == scores


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
    asked, new, old = Statement(question), Statement(newer), Statement(older)
    holds = (np.array([word in text.content for word in asked.content]) for text in (new, old))
    assert say_the_same(asked, new, old, *holds) is same


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
