"""What of a long text a hit shows (spec H3): the place where the words were found."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from memory.rules.folding import fold

SNIPPET = 400
"""Characters of a snippet at most (spec H3)."""
LEAD = 100
"""Of them before what was found."""
_CUT = "…"
_TO_A_WORD = 40
"""So many characters are given up at most to begin and end with a whole word."""

Wanted = re.Pattern[str]
"""What is looked for in folded text."""


def any_of(terms: Iterable[str]) -> Wanted:
    """One that stands nowhere for no terms."""
    return re.compile("|".join(re.escape(fold(term)) for term in terms) or "(?!)")


def excerpt(text: str, wanted: Wanted) -> str:
    """A short text whole; of a longer one up to `SNIPPET` characters around the first place of `wanted`, the beginning
    where it stands nowhere. Where something is left out stands an ellipsis."""
    if len(text) <= SNIPPET:
        return text
    found = wanted.search(fold(text))
    at = _before_folding(text, found.start()) if found else 0
    room = SNIPPET - 2 * len(_CUT)
    start = max(0, min(at - LEAD, len(text) - room))
    if start > 0:
        start = _next_word(text, start, at)
    end = min(len(text), start + room)
    if end < len(text):
        end = _last_word(text, end, at)
    return f"{_CUT if start else ''}{text[start:end]}{_CUT if end < len(text) else ''}"


def _before_folding(text: str, at: int) -> int:
    """The character of `text` that stands at `at` when it is folded: `ß` is two there, and an accent is none."""
    if text.isascii():
        return at
    ends = list(accumulate(len(fold(sign)) for sign in text))
    return min(bisect_right(ends, at), len(text) - 1)


def _next_word(text: str, start: int, at: int) -> int:
    for place in range(start, min(at, start + _TO_A_WORD)):
        if text[place].isspace():
            return place + 1
    return start


def _last_word(text: str, end: int, at: int) -> int:
    for place in range(end, max(at + 1, end - _TO_A_WORD), -1):
        if text[place].isspace():
            return place
    return end
