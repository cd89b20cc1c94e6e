"""Typing errors in a query, forgiven when nothing else is found (ruling 19, ADR 0034)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from madeleine.memory.rules.searching import SPACED_SCRIPT_CHAR_CLASS, UNSPACED_SCRIPT_RUN_PATTERN

MIN_CORRECTED_WORD_CHARS = 6
"""A shorter word has too many neighbours: `port` is `post`, `part` and `sort` at one error, `Mario` is `Maria`."""
MAX_CORRECTED_WORD_CHARS = 60
"""A longer one is no word; to compare two takes the product of their lengths."""
MIN_WORD_CHARS_FOR_TWO_TYPING_ERRORS = 9

_WORD = re.compile(f"[{SPACED_SCRIPT_CHAR_CLASS}]+")


def spelling_corrections_from_texts(words: Sequence[str], texts: Iterable[str]) -> Mapping[str, str]:
    """The word of `texts` that each of these words was probably meant to be; no entry for a word that the texts hold,
    nor for one with nothing like it. All are folded.

    A word like another begins with the same letter and is one error away, or two from 9 letters: a letter that is
    missing, added, replaced, or swapped with its neighbour. The commonest of equally near words is taken. Words with
    digits are names of other things, not typing errors.
    """
    unknown = [word for word in dict.fromkeys(words) if _may_be_misspelt(word)]
    if not unknown:
        return {}
    counts = Counter(word for text in texts for word in _WORD.findall(text))
    known = "\n".join(counts)
    return {
        word: nearest for word in unknown if word not in known and (nearest := _nearest_word(word, counts)) is not None
    }


def _may_be_misspelt(word: str) -> bool:
    return (
        MIN_CORRECTED_WORD_CHARS <= len(word) <= MAX_CORRECTED_WORD_CHARS
        and word.isalpha()
        and not UNSPACED_SCRIPT_RUN_PATTERN.search(word)
    )


def _nearest_word(word: str, counts: Mapping[str, int]) -> str | None:
    most = 1 + (len(word) >= MIN_WORD_CHARS_FOR_TWO_TYPING_ERRORS)
    near = (
        (errors, -count, other)
        for other, count in counts.items()
        if other[0] == word[0]
        and abs(len(other) - len(word)) <= most
        and other.isalpha()
        and (errors := typing_error_count(word, other)) <= most
    )
    return min(near, default=(0, 0, None))[2]


def typing_error_count(word: str, other: str) -> int:
    """Optimal string alignment distance: the fewest letters to insert, delete, replace or swap with their neighbour,
    none of them twice."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(word, start=1):
        row = [i]
        for j, facing in enumerate(other, start=1):
            errors = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != facing))
            if i > 1 and j > 1 and letter == other[j - 2] and facing == word[i - 2]:
                errors = min(errors, before[j - 2] + 1)
            row.append(errors)
        before, last = last, row
    return last[-1]
