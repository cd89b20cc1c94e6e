"""Which of the texts that hold some tags of a message are most about it (spec H2: a pool larger than the limit)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from heapq import nsmallest
from math import log2

from madeleine.memory.keyword_search import Position, SearchHit, SearchSource, TagMatches

POOL = 4
"""Times the limit: of so many of the best at most those that are near the best one are put in order of time."""
NEAR = 0.5
"""Of the best one's weight: those below it fill up what is left of the limit, and no more."""

Place = tuple[SearchSource, str]
"""A source, and an id in it."""
Weight = tuple[bool, float]
"""Of a text: whether it holds a tag of the message itself, which goes before one that has a related theme alone; and
the sum of the weights of what it holds."""


def tag_weights(matches: Sequence[TagMatches], tags: int) -> tuple[float, ...]:
    """1 / log2(2 + n) for each tag, and for the related themes behind them, which n texts hold: one that one text holds
    weighs 0.63, one that a thousand hold 0.10."""
    numbers = [0] * (tags + 1)
    for of_source in matches:
        for mask, number in of_source.numbers.items():
            for bit in range(tags + 1):
                numbers[bit] += number * (mask >> bit & 1)
    return tuple(1 / log2(2 + number) for number in numbers)


def ranked(matches: Sequence[TagMatches], tags: int, most: int) -> list[tuple[Place, Weight]]:
    """The best `most`, best first; the newest of equals first."""
    weights = tag_weights(matches, tags)
    own = (1 << tags) - 1

    @cache
    def weight(mask: int) -> Weight:
        return bool(mask & own), sum(weights[bit] for bit in range(tags + 1) if mask >> bit & 1)

    def rank(found: tuple[Position, int, SearchSource]) -> tuple[bool, float, int, str, str]:
        (at, id_), mask, source = found
        is_own, weighs = weight(mask)
        return not is_own, -weighs, -at, id_, source

    all_found = ((position, mask, of_source.source) for of_source in matches for position, mask in of_source.found)
    best = nsmallest(most, all_found, key=rank)
    return [((source, id_), weight(mask)) for (_, id_), mask, source in best]


def pooled(hits: Sequence[tuple[SearchHit, Weight]], limit: int) -> list[SearchHit]:
    """Of hits that come best first those near the best one; as many as `limit` where they are fewer."""
    if not hits:
        return []
    _, (of_best, weighs_best) = hits[0]
    near = sum(is_own == of_best and weighs >= NEAR * weighs_best for _, (is_own, weighs) in hits)
    return [hit for hit, _ in hits[: max(limit, near)]]
