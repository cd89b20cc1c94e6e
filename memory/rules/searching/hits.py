"""Hits of a search: their snippets (spec H3), deduplication and order (spec H4)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.text.normalization import fold_text

SNIPPET_CHARS = 400
"""Length of a snippet at most (spec H3)."""
LEAD_CHARS = 100
"""Characters of a snippet before the match."""
ELLIPSIS = "…"
_WORD_SLACK = 40
"""Characters given up at most to begin and end with a whole word."""

MatchFinder = Callable[[str], int]
"""Position of the first match in a folded text; -1 for none."""


def first_term_finder(terms: Iterable[str]) -> MatchFinder:
    """Find the first of the terms. Not a pattern: two long terms that differ at their ends would be compared anew at
    each character."""
    folded_terms = [fold_text(term) for term in terms]
    return lambda folded: min((at for at in map(folded.find, folded_terms) if at >= 0), default=-1)


def excerpt(text: str, find_match: MatchFinder) -> str:
    """Return a short text whole; of a longer one up to `SNIPPET_CHARS` characters around the match, or its beginning
    without a match. An ellipsis marks what is left out."""
    if len(text) <= SNIPPET_CHARS:
        return text
    folded = fold_text(text)
    at = _unfolded_position(text, folded, max(0, find_match(folded)))
    room = SNIPPET_CHARS - 2 * len(ELLIPSIS)
    start = max(0, min(at - LEAD_CHARS, len(text) - room))
    if start > 0:
        start = _next_word_start(text, start, at)
    end = min(len(text), start + room)
    if end < len(text):
        end = _last_word_end(text, end, at)
    return f"{ELLIPSIS if start else ''}{text[start:end]}{ELLIPSIS if end < len(text) else ''}"


def _unfolded_position(text: str, folded: str, at: int) -> int:
    """Position in `text` of the character at `at` in its folded form, where `ß` takes two and an accent none."""
    if len(folded) == len(text):
        return at
    return bisect_right(range(1, len(text)), at, key=lambda end: len(fold_text(text[:end])))


def _next_word_start(text: str, start: int, at: int) -> int:
    spaces = (position for position in range(start, min(at, start + _WORD_SLACK)) if text[position].isspace())
    return next(spaces, start - 1) + 1


def _last_word_end(text: str, end: int, at: int) -> int:
    slack = range(end, max(at + 1, end - _WORD_SLACK), -1)
    return next((position for position in slack if text[position].isspace()), end)


DUPLICATE_PREFIX_CHARS = 100
"""Beginning of the snippet that tells two hits apart."""


def deduplicated_hits(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Keep the first of the hits with the same source, id and beginning of the snippet, in the given order."""
    unique: dict[tuple[str, str, str], SearchHit] = {}
    for hit in hits:
        unique.setdefault((hit.source, hit.id, hit.snippet[:DUPLICATE_PREFIX_CHARS]), hit)
    return list(unique.values())


def newest_hits_first(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Sort by time, equal times by id."""
    return sorted(hits, key=lambda hit: (-hit.position[0], hit.position[1]))
