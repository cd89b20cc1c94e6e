"""Two words of 32,000 letters took minutes to compare."""

from __future__ import annotations

from madeleine.memory.rules.spelling import respelled_words


def test_what_is_longer_than_a_word_is_not_respelled() -> None:
    assert respelled_words(["a" * 32_000], ["a" * 31_999]) == {}
