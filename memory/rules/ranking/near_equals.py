"""The order of memories that are nearly as relevant and speak of the same (ruling 24): the newer comes first.

What speaks of the same was found when the newer one was stored (`rules.storing.supersession`), so a recall compares no
texts. A question that wishes for the past ("before", "at first", "used to") is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from madeleine.memory.model import MemoryId
from madeleine.memory.text.reading import Reading

NEAR_EQUAL_SHARE = 0.5
"""Share of the older one's score from which the newer one is moved before it. Blended scores of two wordings of one
fact lie far apart: at 0.8 of the score a quarter fewer of the changed facts come first (`benchmarks/truth`)."""
MAX_REORDERED = 40
"""Best candidates among which an order is changed."""


def asks_for_past(query: Reading) -> bool:
    """It asks what was, or what was first, so that the older memory may be the answer."""
    return query.matches("asks_past")


def newer_first(scores: Mapping[MemoryId, float], older: Mapping[MemoryId, MemoryId]) -> dict[MemoryId, float]:
    """Scores, best first: each newer memory that is nearly as relevant as the older one stands just before it, with its
    score. `scores`: best first. `older`: what a newer memory may supersede, of those that may; chains of them count."""
    raised = dict(scores)
    reordered = frozenset(list(scores)[:MAX_REORDERED])
    for newer in _oldest_first([id_ for id_ in older if id_ in reordered], older):
        before = older[newer]
        if (
            before in reordered
            and raised[newer] < raised[before]
            and (scores[newer] >= NEAR_EQUAL_SHARE * scores[before])
        ):
            raised[newer] = raised[before]
    if raised == scores:
        return raised
    depth = {id_: _versions_before(id_, older) for id_ in older}
    order = sorted(raised, key=lambda id_: (-raised[id_], -depth.get(id_, 0)))  # stable
    return {id_: raised[id_] for id_ in order}


def _oldest_first(newer: list[MemoryId], older: Mapping[MemoryId, MemoryId]) -> list[MemoryId]:
    return sorted(newer, key=lambda id_: _versions_before(id_, older))


def _versions_before(id_: MemoryId, older: Mapping[MemoryId, MemoryId]) -> int:
    """How many memories lie before it; each was stored before the next, so there is no circle."""
    count = 0
    while id_ in older:
        id_, count = older[id_], count + 1
    return count
