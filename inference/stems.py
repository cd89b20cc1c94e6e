"""Stems of words, by Snowball's English rules: `travelling` and `travels` are `travel`."""

from __future__ import annotations

from collections.abc import Callable

from py_rust_stemmers import SnowballStemmer  # type: ignore[import-untyped]

stem_english_word: Callable[[str], str] = SnowballStemmer("english").stem_word
"""The stem of a lower-case word. The rules know English endings alone; words in other scripts come back unchanged."""
