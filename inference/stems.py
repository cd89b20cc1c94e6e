"""Stems of words, by Snowball's rules: `travelling` and `travels` are `travel`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from py_rust_stemmers import SnowballStemmer  # type: ignore[import-untyped]

stem_english_word: Callable[[str], str] = SnowballStemmer("english").stem_word
"""The stem of a lower-case word. The rules know English endings alone; words in other scripts come back unchanged."""


def stem_word_of_language(word: str, language: str) -> str:
    """The stem of a lower-case word; the word itself in a language without rules. `language`: its English name."""
    stemmer = _snowball_stemmer_of_language(language.lower())
    return word if stemmer is None else str(stemmer.stem_word(word))


@cache
def _snowball_stemmer_of_language(language: str) -> SnowballStemmer | None:
    try:
        return SnowballStemmer(language)
    except ValueError:
        return None
