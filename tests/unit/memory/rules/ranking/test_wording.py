"""What the wording of a memory and of a query tells (spec O12, ruling 9): hand-worked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.index import MemoryWordingTraits
from madeleine.memory.rules.ranking.blended import (
    analyse_query,
    asks_about_oneself,
    asks_for_advice,
    asks_what_assistant_said,
    asks_when,
    detect_wording_signals_in_text,
    role_of_feelings_in_query,
)
from madeleine.storage.qdrant.schema import pack_wording_signals_into_integer, unpack_wording_signals
from tests.rows import for_each_row


@for_each_row(
    ("text", "asks"),
    [
        ("Where were you?", True),
        ('She said "really?"  ', True),
        ("Really?) ", True),
        ("何が好きですか？", True),
        ("Where were you? I waited.", False),
        ("I waited", False),
        ("", False),
    ],
)
def test_a_question_at_the_end_asks(text: str, asks: bool) -> None:
    assert detect_wording_signals_in_text(text).asks is asks


@for_each_row(
    ("text", "tells"),
    [
        ("I went yesterday", True),
        ("Yesterday was fun", True),
        ("Ann came last week", True),
        ("for a few months", True),
        ("on Fridays", True),
        ("in May", True),
        ("it may rain", False),
        ("back in 1987", True),
        ("the 3rd of it", True),
        ("room 2240", False),
        ("at last she came", False),
        ("", False),
    ],
)
def test_a_day_or_a_span_of_time_is_told(text: str, tells: bool) -> None:
    assert detect_wording_signals_in_text(text).tells_when is tells


@for_each_row(
    ("text", "prefers"),
    [
        ("I prefer tea", True),
        ("I really love rain", True),
        ("we always walk", True),
        ("I'd rather stay", True),
        ("i do not like it, but my favourite is red", True),
        ("my favorite colour", True),
        ("I prefer Flask, but how would you test the routes?", True),
        ("She prefers tea", False),
        ("I am like you", False),
        ("", False),
    ],
)
def test_a_preference_is_told(text: str, prefers: bool) -> None:
    """spec L1: the preference signals, among them."""
    assert detect_wording_signals_in_text(text).prefers is prefers


@for_each_row(
    ("text", "share"),
    [
        ("I went home", 1.0),
        (" ".join(["I", *["word"] * 19]), 1.0),
        (" ".join(["I", *["word"] * 39]), 0.5),
        ("He is in the i7 group", 0.0),
        ("", 0.0),
    ],
)
def test_one_word_in_twenty_makes_a_text_of_the_first_person(text: str, share: float) -> None:
    assert detect_wording_signals_in_text(text).first_person == pytest.approx(share)


@given(st.text())
def test_any_text_can_be_read_and_kept_in_one_number(text: str) -> None:
    found = detect_wording_signals_in_text(text)
    assert 0 <= found.first_person <= 1
    back = unpack_wording_signals(pack_wording_signals_into_integer(found))
    assert (back.asks, back.tells_when, back.prefers) == (found.asks, found.tells_when, found.prefers)
    assert back.first_person == pytest.approx(found.first_person, abs=0.005)


def test_every_sign_has_a_bit_of_its_own() -> None:
    each = [
        MemoryWordingTraits(asks=True),
        MemoryWordingTraits(tells_when=True),
        MemoryWordingTraits(prefers=True),
        MemoryWordingTraits(first_person=1.0),
    ]
    assert [unpack_wording_signals(pack_wording_signals_into_integer(one)) for one in each] == each


@for_each_row(
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
    assert asks_about_oneself(analyse_query(query))


@for_each_row(
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
    assert not asks_about_oneself(analyse_query(query))


@for_each_row(
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
    assert asks_what_assistant_said(analyse_query(query)) is asked


@for_each_row(
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
    assert asks_when(analyse_query(query)) is asked


@for_each_row(
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
    assert asks_for_advice(analyse_query(query)) is asked


@for_each_row(
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
    assert role_of_feelings_in_query(analyse_query(query)) == feeling


@for_each_row("run", [" ", ".", "and ", "\t\n", "\u200b"])
def test_a_long_run_of_anything_is_read_at_once(run: str) -> None:
    """A pattern that tries a run again from every place in it would hold up everybody for seconds."""
    query = analyse_query(run * 500_000 + "when did you tell me what to do, how was it?")
    assert asks_when(query) is asks_for_advice(query) is asks_what_assistant_said(query) is False
    assert role_of_feelings_in_query(query) == "there"
    assert asks_when(analyse_query(" " * 1_000 + "when was it?"))
