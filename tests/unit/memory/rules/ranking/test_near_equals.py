from __future__ import annotations

import pytest

from madeleine.memory.model import MemoryId
from madeleine.memory.rules.ranking.near_equals import (
    asks_for_past,
    may_both_be_true,
    only_older_answers_question,
    order_newer_before_older,
)
from madeleine.memory.rules.storing.statements import Statement
from madeleine.memory.text.reading import Reading

LYON, PARIS, ROME, SOUP = map(MemoryId, ("lyon", "paris", "rome", "soup"))


def test_what_says_it_anew_comes_first_with_the_same_score_whether_it_matched_or_not() -> None:
    scores = {LYON: 0.8, SOUP: 0.7, ROME: 0.3}
    ordered = order_newer_before_older(scores, {LYON: [PARIS], PARIS: [ROME]}, max_corrected=2)
    assert list(ordered.items()) == [(ROME, 0.8), (PARIS, 0.8), (LYON, 0.8), (SOUP, 0.7)]
    assert order_newer_before_older(scores, {ROME: [PARIS]}, max_corrected=2) == scores
    assert list(order_newer_before_older({PARIS: 0.8, LYON: 0.7}, {LYON: [PARIS]}, max_corrected=2)) == [PARIS, LYON]


@pytest.mark.parametrize(
    ("question", "newer", "older", "alone"),
    [
        ("Where does Ada live?", "Ada lives in Paris now", "Ada lives in Lyon", False),
        ("Foy's address", "Foy writes from foy@mail.org these days", "Foy's address is foy@shop.ie", False),
        ("hotfixes", "Features branch off main, merged the same day", "Hotfixes branch off tags, merged at once", True),
    ],
)
def test_of_two_things_told_in_one_form_the_older_one_answers_what_it_alone_names(
    question: str, newer: str, older: str, alone: bool
) -> None:
    assert only_older_answers_question(Statement(question), Statement(newer), Statement(older)) is alone


@pytest.mark.parametrize(
    ("question", "newer", "older", "both"),
    [
        ("Who is Tom's teacher?", "Herr Yildiz teaches Tom's class", "Tom's class teacher is Frau Pohl", False),
        ("Where is the office?", "Kranich works from Main Street 21", "The office of Kranich is at Elm Road 8", False),
        ("The York train?", "The train from York leaves at 18:21", "The train to York leaves at 08:12", False),
        ("Ada's phone", "The phone number of Ben, Ada's son, is 171 02", "Ada's phone number is 171 01", True),
        ("Who looks after Lund?", "Olsen looks after Nord", "Petersen looks after Lund", True),
        ("Is the port 8080?", "The server now listens on 8091", "The server listens on port 8080", True),
        (
            "Which days does the childminder look after Leo?",
            "Half-term in the cottage near Brecon, rain on five days out of five, Leo learned to play chess there",
            "Ruth Bellamy is the childminder; she has Leo on Mondays and Wednesdays until half past five, 0117 496",
            True,
        ),
    ],
)
def test_of_two_that_resemble_each_other_both_may_be_true(question: str, newer: str, older: str, both: bool) -> None:
    assert may_both_be_true(Statement(question), Statement(newer), Statement(older)) is both


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
