"""What of a long text a hit shows (spec H3): the place where the words were found."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from madeleine.memory.text.folding import fold

SNIPPET = 400
"""Characters of a snippet at most (spec H3)."""
LEAD = 100
"""Of them before what was found."""
_CUT = "…"
_TO_A_WORD = 40
"""So many characters are given up at most to begin and end with a whole word."""

Place = Callable[[str], int]
"""Where in a folded text what is looked for stands first; -1 for nowhere."""


def first_of(terms: Iterable[str]) -> Place:
    """Not a pattern: two long terms that differ at their ends would be compared anew at each character."""
    wanted = [fold(term) for term in terms]
    return lambda folded: min((at for at in map(folded.find, wanted) if at >= 0), default=-1)


def excerpt(text: str, place: Place) -> str:
    """A short text whole; of a longer one up to `SNIPPET` characters around what is looked for, the beginning where it
    stands nowhere. Where something is left out stands an ellipsis."""
    if len(text) <= SNIPPET:
        return text
    folded = fold(text)
    at = _before_folding(text, folded, max(0, place(folded)))
    room = SNIPPET - 2 * len(_CUT)
    start = max(0, min(at - LEAD, len(text) - room))
    if start > 0:
        start = _next_word(text, start, at)
    end = min(len(text), start + room)
    if end < len(text):
        end = _last_word(text, end, at)
    return f"{_CUT if start else ''}{text[start:end]}{_CUT if end < len(text) else ''}"


def _before_folding(text: str, folded: str, at: int) -> int:
    """The character of `text` that stands at `at` when it is folded: `ß` is two there, and an accent is none."""
    if len(folded) == len(text):
        return at
    return bisect_right(range(1, len(text)), at, key=lambda end: len(fold(text[:end])))


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
