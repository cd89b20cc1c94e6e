"""Several ranked lists made one (spec O12): Reciprocal Rank Fusion."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

RRF_K = 60
"""Smoothing: how much less a later place counts."""

T = TypeVar("T", bound=Hashable)


def fused_by_rrf(*lists: Sequence[T], k: int = RRF_K) -> list[tuple[T, float]]:
    """Best first: each item with Σ 1 / (k + rank) over the lists that hold it, rank from 1, min-max normalised to
    [0, 1]; 1 for all where all are equal. Equals stand in the order in which they first come."""
    sums: dict[T, float] = {}
    for ranked in lists:
        for rank, item in enumerate(dict.fromkeys(ranked), start=1):
            sums[item] = sums.get(item, 0.0) + 1 / (k + rank)
    if not sums:
        return []
    least, most = min(sums.values()), max(sums.values())
    span = most - least
    scored = [(item, (value - least) / span if span > 0 else 1.0) for item, value in sums.items()]
    return sorted(scored, key=lambda scored_item: -scored_item[1])
