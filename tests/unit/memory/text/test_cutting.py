"""Parts of a text that goes on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.text.sentences import best_cut_position


def after(text: str, most: int) -> str:
    return text[: best_cut_position(text, most)]


def test_the_last_paragraph_that_fits_ends_a_part() -> None:
    assert after("one two\n\nthree four\n\nfive six", 24) == "one two\n\nthree four\n\n"


def test_a_blank_line_inside_of_a_block_of_code_does_not() -> None:
    assert after("before it\n\n```\na\n\nb\n```\nafter", 20) == "before it\n\n```\na\n\n"[:11]


def test_without_a_paragraph_a_line_ends_it_then_a_sentence_then_a_word_then_anything() -> None:
    assert after("one two\nthree four\nfive six", 20) == "one two\nthree four\n"
    assert after("It rained. We stayed. Nobody came", 25) == "It rained. We stayed. "
    assert after("one two three four five six", 20) == "one two three four "
    assert after("x" * 30, 20) == "x" * 20


@given(st.text(st.sampled_from("aB. \n`"), min_size=1), st.integers(1, 40))
def test_a_part_is_never_empty_nor_too_long(text: str, most: int) -> None:
    assert 0 < best_cut_position(text, min(most, len(text))) <= most
