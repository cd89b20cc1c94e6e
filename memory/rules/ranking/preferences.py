"""Preferences first (spec L2, ruling 15): the places of procedural memories in an answer, and their number.

They are to shape whatever is said, so they lead. But the weaker ones, which match less than others or not at all, would
drive out what was asked for: half of the places at least stay with the best matches, and preferences that do not match
take a third of the places at most.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def preferences_first(ranked: Sequence[T], preferences: Sequence[T], *, limit: int) -> list[T]:
    """All of `ranked`, best first, and some of `preferences`, the first ones first: in the order in which they are to
    be taken until there are `limit`.

    Preferences among the best `limit` lead, then preferences that match less, then such as do not match.
    """
    if not ranked or not preferences:
        return list(ranked)
    known = set(preferences)
    earned = [id_ for id_ in ranked[:limit] if id_ in known]
    room = max(0, limit // 2 - len(earned))
    weaker = [id_ for id_ in ranked[limit:] if id_ in known][:room]
    room = max(room - len(weaker), limit - len(ranked))
    matching = set(ranked)
    others = [id_ for id_ in preferences if id_ not in matching][: max(0, min(room, limit // 3))]
    return _leading([*earned, *weaker, *others], ranked)


def _leading(first: Sequence[T], then: Collection[T]) -> list[T]:
    return list(dict.fromkeys([*first, *then]))
