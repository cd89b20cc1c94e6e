"""Two words of 32,000 letters took minutes to compare."""

from __future__ import annotations

from madeleine.memory.rules.spelling import spelling_corrections_from_texts


def test_what_is_longer_than_a_word_is_not_respelled() -> None:
    assert spelling_corrections_from_texts(["a" * 32_000], ["a" * 31_999]) == {}
