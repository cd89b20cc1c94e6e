"""Text from outside, made such that it can be kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.text.normalization import split_by_length, storable_text
from tests.rows import for_each_row


@given(st.text(st.sampled_from("ab \nü🙂"), max_size=80), st.integers(1, 20))
def test_the_parts_are_the_text_and_none_is_too_long(text: str, limit: int) -> None:
    parts = list(split_by_length(text, limit))
    assert "".join(parts) == text
    assert all(0 < len(part) <= limit for part in parts) or text == ""


def test_it_is_cut_after_a_line_else_after_a_word_else_anywhere() -> None:
    assert list(split_by_length("one two\nthree four", 12)) == ["one two\n", "three four"]
    assert list(split_by_length("one two three four", 12)) == ["one two ", "three four"]
    assert list(split_by_length("a\nabcdefghijklm", 12)) == ["a\nabcdefghij", "klm"]


@for_each_row(
    ("text", "kept"),
    [("a\x00b", "ab"), ("\ud83d half", "? half"), ("\u200b\u200d", ""), (" \n", ""), ("", ""), ("🙂", "🙂")],
)
def test_what_cannot_be_stored_or_seen_is_taken_out(text: str, kept: str) -> None:
    assert storable_text(text) == kept
