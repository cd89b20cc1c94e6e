"""spec O12: score = Σ 1 / (k + rank), min-max normalised. Worked by hand with k = 60."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.recall.rank_fusion import fuse_rankings_by_rrf

LISTS = st.lists(st.lists(st.sampled_from("abcdef"), unique=True, max_size=6), max_size=4)


def test_what_both_lists_hold_is_first() -> None:
    """a: 1/61; b: 1/62 + 1/61; c: 1/62. Least 1/62 = 0.016129, most 0.032522: a has (1/61 − 1/62) / (1/61)."""
    fused = fuse_rankings_by_rrf(["a", "b"], ["b", "c"])
    assert [item for item, _ in fused] == ["b", "a", "c"]
    assert [score for _, score in fused] == pytest.approx([1.0, 1 / 62, 0.0], abs=1e-9)


def test_a_greater_k_brings_the_places_closer() -> None:
    """k = 1: a 1/2, b 1/3, c 1/4 → (1/3 − 1/4) / (1/2 − 1/4) = 1/3; k = 60: 0.4918."""
    assert dict(fuse_rankings_by_rrf(["a", "b", "c"], k=1))["b"] == pytest.approx(1 / 3)
    assert dict(fuse_rankings_by_rrf(["a", "b", "c"]))["b"] == pytest.approx((1 / 62 - 1 / 63) / (1 / 61 - 1 / 63))


def test_nothing_is_fused_to_nothing_and_equals_all_have_one() -> None:
    assert fuse_rankings_by_rrf() == fuse_rankings_by_rrf([], []) == []
    assert fuse_rankings_by_rrf(["a"]) == [("a", 1.0)]
    assert fuse_rankings_by_rrf(["a"], ["b"]) == [("a", 1.0), ("b", 1.0)]


@given(LISTS)
def test_each_item_comes_once_with_a_share_best_first(lists: list[list[str]]) -> None:
    fused = fuse_rankings_by_rrf(*lists)
    assert sorted(item for item, _ in fused) == sorted({item for one in lists for item in one})
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@given(LISTS)
def test_the_order_of_the_lists_does_not_matter(lists: list[list[str]]) -> None:
    again = dict(fuse_rankings_by_rrf(*lists[::-1]))
    assert {item: pytest.approx(score) for item, score in fuse_rankings_by_rrf(*lists)} == again
