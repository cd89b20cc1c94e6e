"""ADR 0064: a text in pieces, each with a vector of its own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.text.pieces import MAX_TEXT_PIECE_CHARS, split_into_text_pieces
from tests.rows import for_each_row


def test_the_sentences_of_a_short_text_are_its_pieces() -> None:
    """One that is shorter than a third of the text goes with the next."""
    assert split_into_text_pieces("I moved to Lyon in May. My sister has a bakery.") == [
        "I moved to Lyon in May.",
        "My sister has a bakery.",
    ]
    assert split_into_text_pieces("Good to see you! I moved to Lyon in May. My sister has a bakery.") == [
        "Good to see you! I moved to Lyon in May.",
        "My sister has a bakery.",
    ]


@for_each_row("text", ["", "I moved to Lyon in May.", "Hi! I moved to Lyon in May.", "Yes. No. Yes."])
def test_a_text_that_says_one_thing_has_no_pieces(text: str) -> None:
    """Its whole stands for it; a greeting says nothing by itself."""
    assert split_into_text_pieces(text) == []


def test_a_longer_text_has_three_pieces_of_like_length() -> None:
    text = " ".join(f"On day {number} we walked to the harbour." for number in range(30))
    assert [len(piece) // 100 for piece in split_into_text_pieces(text)] == [3, 3, 3]


def test_no_piece_exceeds_what_the_model_reads() -> None:
    text = "harbour " * 1_000
    assert max(map(len, split_into_text_pieces(text))) <= MAX_TEXT_PIECE_CHARS


@given(st.text(max_size=4_000))
def test_pieces_hold_the_whole_text(text: str) -> None:
    pieces = split_into_text_pieces(text)
    assert not pieces or "".join("".join(pieces).split()) == "".join(text.split())
