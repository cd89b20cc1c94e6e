"""Rank texts by the tags of a message that they hold (spec H2: a pool larger than the limit)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from heapq import nsmallest
from math import log2

from madeleine.memory.keyword_search import Position, SearchHit, SearchSource, TagMatches

POOL_FACTOR = 4
"""Pool size as a multiple of the limit: of the pool, texts near the best one are sorted by time."""
NEAR_SHARE = 0.5
"""Share of the best weight from which a text counts as near; weaker ones only fill up the limit."""

SourceRef = tuple[SearchSource, str]
"""A source and an id in it."""
Weight = tuple[bool, float]
"""Whether a text holds a tag of the message itself (these come before texts with a related theme alone), and the sum of
the weights of its tags."""


def tag_weights(matches: Sequence[TagMatches], tags: int) -> tuple[float, ...]:
    """1 / log2(2 + n) for each tag that n texts hold, and last for the related themes: 0.63 for n = 1, 0.10 for a
    thousand."""
    counts = [0] * (tags + 1)
    for source_matches in matches:
        for mask, count in source_matches.numbers.items():
            for bit in range(tags + 1):
                counts[bit] += count * (mask >> bit & 1)
    return tuple(1 / log2(2 + count) for count in counts)


def best_matches(matches: Sequence[TagMatches], tags: int, limit: int) -> list[tuple[SourceRef, Weight]]:
    """The best `limit` texts, best first; the newest of equals first."""
    weights = tag_weights(matches, tags)
    own_tags = (1 << tags) - 1

    @cache
    def weight(mask: int) -> Weight:
        return bool(mask & own_tags), sum(weights[bit] for bit in range(tags + 1) if mask >> bit & 1)

    def sort_key(match: tuple[Position, int, SearchSource]) -> tuple[bool, float, int, str, str]:
        (at, id_), mask, source = match
        is_own, total = weight(mask)
        return not is_own, -total, -at, id_, source

    texts = ((position, mask, of_source.source) for of_source in matches for position, mask in of_source.found)
    best = nsmallest(limit, texts, key=sort_key)
    return [((source, id_), weight(mask)) for (_, id_), mask, source in best]


def pooled(hits: Sequence[tuple[SearchHit, Weight]], limit: int) -> list[SearchHit]:
    """The hits near the best one, given best first; `limit` hits where fewer are near."""
    if not hits:
        return []
    _, (best_is_own, best_weight) = hits[0]
    near = sum(is_own == best_is_own and weight >= NEAR_SHARE * best_weight for _, (is_own, weight) in hits)
    return [hit for hit, _ in hits[: max(limit, near)]]
