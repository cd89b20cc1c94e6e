"""Whether two texts have the same words, seen fast for those that do not."""

from __future__ import annotations

import string
from functools import lru_cache

from madeleine.memory.text.wording import WordingForComparison

_BYTES_EXCEPT_LOWERCASE_ASCII_LETTERS = bytes({*range(256)} - {*string.ascii_lowercase.encode()})


@lru_cache(maxsize=500)
def wording_comparison_key(text: str) -> str:
    """`WordingForComparison.comparison_key`."""
    return WordingForComparison(text).comparison_key


def differ_only_in_case_or_punctuation(first: str, second: str) -> bool:
    """Whether they differ in case and punctuation alone. That letters differ is seen sooner."""
    if first.isascii() and second.isascii() and _lowercase_ascii_letters(first) != _lowercase_ascii_letters(second):
        return False
    return wording_comparison_key(first) == wording_comparison_key(second)


def _lowercase_ascii_letters(text: str) -> bytes:
    return text.lower().encode().translate(None, _BYTES_EXCEPT_LOWERCASE_ASCII_LETTERS)
