"""Which of the texts that hold some tags of a message are most about it (spec H2: a pool larger than the limit)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from heapq import nsmallest
from math import log2

from memory.ports import SearchSource
from memory.tagging import Position, TagMatches

POOL = 4
"""Times the limit: so many of the best are put in order of time."""
NEAR = 0.5
"""Of the best one's weight: those below it fill up what is left of the limit, and no more."""

Place = tuple[SearchSource, str]
"""A source, and an id in it."""


def tag_weights(matches: Sequence[TagMatches], tags: int) -> tuple[float, ...]:
    """1 / log2(2 + n) for each tag, and for the related themes behind them, which n texts hold: one that one text holds
    weighs 0.63, one that a thousand hold 0.10."""
    numbers = [0] * (tags + 1)
    for of_source in matches:
        for mask, number in of_source.numbers.items():
            for bit in range(tags + 1):
                numbers[bit] += number * (mask >> bit & 1)
    return tuple(1 / log2(2 + number) for number in numbers)


def pool(matches: Sequence[TagMatches], tags: int, limit: int) -> list[Place]:
    """The best, at least `limit` where there are so many, at most `POOL` × `limit`.

    A text's weight is the sum of its tags'. What holds a tag of the message itself goes before what has a related theme
    alone; the newest of equals first.
    """
    weights = tag_weights(matches, tags)
    own = (1 << tags) - 1

    @cache
    def weight(mask: int) -> tuple[bool, float]:
        return bool(mask & own), sum(weights[bit] for bit in range(tags + 1) if mask >> bit & 1)

    def rank(found: tuple[Position, int, SearchSource]) -> tuple[bool, float, int, str, str]:
        (at, id_), mask, source = found
        is_own, weighs = weight(mask)
        return not is_own, -weighs, -at, id_, source

    all_found = ((position, mask, of_source.source) for of_source in matches for position, mask in of_source.found)
    ranked = nsmallest(POOL * limit, all_found, key=rank)
    if not ranked:
        return []
    is_own, best = weight(ranked[0][1])
    near = sum(1 for _, mask, _ in ranked if weight(mask)[0] == is_own and weight(mask)[1] >= NEAR * best)
    return [(source, id_) for (_, id_), _, source in ranked[: max(limit, near)]]
