"""Stems of words, by Snowball's English rules: `travelling` and `travels` are `travel`."""

from __future__ import annotations

from functools import cache

from py_rust_stemmers import SnowballStemmer  # type: ignore[import-untyped]


@cache
def _english() -> SnowballStemmer:
    return SnowballStemmer("english")


def stem(word: str) -> str:
    """Of a lower-case word. The rules know English endings alone; words in other scripts come back as they are."""
    return str(_english().stem_word(word))
