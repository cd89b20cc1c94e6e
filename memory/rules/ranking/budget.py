"""Ranked memories that fit into a token budget (spec L2)."""

from __future__ import annotations

from collections.abc import Sequence


def within_budget(tokens: Sequence[int], *, limit: int, budget: int) -> list[int]:
    """Positions of those taken, in order: each that still fits is taken, until there are `limit`.

    The sum of their tokens never exceeds `budget`.
    """
    taken: list[int] = []
    used = 0
    for position, cost in enumerate(tokens):
        if len(taken) == limit:
            break
        if used + cost <= budget:
            taken.append(position)
            used += cost
    return taken
