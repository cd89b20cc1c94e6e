"""spec O12, ruling 9: what the wording of a query asks for."""

from __future__ import annotations

import pytest

from madeleine.memory.rules.ranking.asking import (
    asks_about_oneself,
    asks_for_advice,
    asks_what_you_said,
    asks_when,
    feeling_in,
)


@pytest.mark.parametrize(
    "query",
    [
        "What did I say about Rome?",
        "where do my keys hang",
        "When did we meet?",
        "Which of our plans failed?",
        "I'm looking for the recipe",
        "I’ve lost the recipe",
        "Do you know what I like?",
        "Tell me about my sister",
        "I'm planning my week. How would you suggest I begin?",
    ],
)
def test_a_query_in_the_first_person_asks_about_oneself(query: str) -> None:
    """ruling 9: the role."""
    assert asks_about_oneself(query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "Where does Hashi live?",
        "What did you suggest to me?",
        "You told me about a book, which one?",
        "What have you recommended for my back?",
        "remind me of what you just mentioned",
        "the list you gave me",
        "the miners of Wales",
        "the museum",
        "Iowa weather",
    ],
)
def test_a_query_about_others_or_about_what_you_said_does_not_ask_about_oneself(query: str) -> None:
    """ruling 9: the role."""
    assert not asks_about_oneself(query)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("What did you recommend for my back?", True),
        ("the list you gave me", True),
        ("You've told me of a book", True),
        ("Have you ever really suggested it?", True),
        ("What would you recommend?", False),
        ("Can you explain it?", False),
        ("What did she tell you?", False),
        ("", False),
    ],
)
def test_what_was_said_is_told_from_what_is_to_be_said(query: str, asked: bool) -> None:
    assert asks_what_you_said(query) is asked


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("When did Ann move?", True),
        ("  and when was that?", True),
        ("Since when does she know?", True),
        ("How long did it take?", True),
        ("how old is Bo?", True),
        ("In which year was he born?", True),
        ("What time is the train?", True),
        ("Tell me when it was", True),
        ("What did Ann say when she left?", False),
        ("Whenever I eat, what hurts?", False),
        ("How many did I buy?", False),
        ("What happened last year?", False),
        ("", False),
    ],
)
def test_a_question_for_a_time_is_known_by_how_it_begins(query: str, asked: bool) -> None:
    assert asks_when(query) is asked


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("Any tips for Rome?", True),
        ("How should I begin?", True),
        ("Should we buy it?", True),
        ("I need an idea. Could you help?", True),
        ("What did you suggest to me?", False),
        ("Where is Rome?", False),
        ("", False),
    ],
)
def test_a_question_for_advice_is_told_from_one_for_what_was_advised(query: str, asked: bool) -> None:
    assert asks_for_advice(query) is asked


@pytest.mark.parametrize(
    ("query", "feeling"),
    [
        ("How was the concert with Bo?", "asked"),
        ("Where did I feel at home?", "asked"),
        ("How did it go? I mean, how were you?", "asked"),
        ("Where was the concert?", "beside"),
        ("How many came?", "beside"),
        ("What is the name of it?", "beside"),
        ("The concert with Bo again", "there"),
        ("Tell me about the concert", "there"),
        ("", "there"),
    ],
)
def test_a_feeling_is_asked_for_or_there_or_beside_the_point(query: str, feeling: str) -> None:
    """spec T7"""
    assert feeling_in(query) == feeling


@pytest.mark.parametrize("run", [" ", ".", "and ", "\t\n", "\u200b"])
def test_a_long_run_of_anything_is_read_at_once(run: str) -> None:
    """A pattern that tries a run again from every place in it would hold up everybody for seconds."""
    asked = run * 500_000 + "when did you tell me what to do, how was it?"
    assert asks_when(asked) is asks_for_advice(asked) is asks_what_you_said(asked) is False
    assert feeling_in(asked) == "there"
    assert asks_when(" " * 1_000 + "when was it?")
