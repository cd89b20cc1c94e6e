"""Fusion of the rankings of two queries (spec O12)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TypeVar

from madeleine.memory.recall.selection import RankedCandidates

RRF_K = 60
"""Smoothing: how much less a later place counts."""

RankedItemT = TypeVar("RankedItemT", bound=Hashable)


def merge_rankings(first: RankedCandidates, second: RankedCandidates) -> RankedCandidates:
    """Fuse both lists by Reciprocal Rank Fusion: scores of two queries are not comparable (spec O12)."""
    notices = tuple(dict.fromkeys((*first.notices, *second.notices)))
    if first.has_no_match or second.has_no_match:
        return replace(second if first.has_no_match and second.scores else first, notices=notices)
    return replace(
        first,
        scores={id_: round(score, 4) for id_, score in fuse_rankings_by_rrf(first.ids, second.ids)},
        tokens={**first.tokens, **second.tokens},
        words_only_reason=first.words_only_reason or second.words_only_reason,
        notices=notices,
        procedural=first.procedural | second.procedural,
        rescored_by="fusion",
    )


def fuse_rankings_by_rrf(*lists: Sequence[RankedItemT], k: int = RRF_K) -> list[tuple[RankedItemT, float]]:
    """Best first: each item with Σ 1 / (k + rank) over the lists that hold it, rank from 1, min-max normalised to
    [0, 1]; 1 for all where all are equal. Equals stand in the order in which they first come."""
    sums: dict[RankedItemT, float] = {}
    for ranked in lists:
        for rank, item in enumerate(dict.fromkeys(ranked), start=1):
            sums[item] = sums.get(item, 0.0) + 1 / (k + rank)
    if not sums:
        return []
    least, most = min(sums.values()), max(sums.values())
    span = most - least
    scored = [(item, (value - least) / span if span > 0 else 1.0) for item, value in sums.items()]
    return sorted(scored, key=lambda scored_item: -scored_item[1])
