"""spec L2: "always include procedural memories first"; half of the places stay with the best matches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.recall.selection import order_with_preferences_first


@pytest.mark.parametrize(
    ("ranked", "preferences", "limit", "taken"),
    [
        pytest.param("abP", "P", 3, "Pab", id="the only one that matches leads"),
        pytest.param("abcP", "P", 3, "Pab", id="also if others match better"),
        pytest.param("abcdP", "PXY", 3, "Pab", id="one of three places for those that match less, or not"),
        pytest.param("abc", "XY", 3, "Xab", id="one of three for those that do not match"),
        pytest.param("a", "XY", 3, "Xa", id="no more, though there is room"),
        pytest.param("P", "PXY", 3, "PX", id="where there is room, beside one that matches"),
        pytest.param("PQRa", "PQR", 3, "PQR", id="what matches best is recalled, whatever it is"),
        pytest.param("aPQb", "PQ", 3, "PQa", id="two of the best three"),
        pytest.param("abcdefPQRS", "PQRSX", 6, "PQRabc", id="half for those that match less"),
        pytest.param("abcdefP", "PXYZ", 6, "PXYabc", id="a third for those that do not"),
        pytest.param("aP", "P", 1, "a", id="one place is the best match's"),
        pytest.param("abP", "PX", 2, "Pa", id="one of two"),
        pytest.param("ab", "X", 2, "ab", id="a third of two is none"),
        pytest.param("abc", "", 3, "abc", id="no preferences"),
        pytest.param("", "XY", 3, "", id="nothing comes to mind, and nothing comes with it"),
    ],
)
def test_preferences_lead_within_their_share(ranked: str, preferences: str, limit: int, taken: str) -> None:
    """spec L2, ruling 8"""
    assert "".join(order_with_preferences_first(ranked, preferences, limit=limit)[:limit]) == taken


@given(st.integers(0, 12), st.integers(0, 12), st.sets(st.integers(0, 11)), st.integers(1, 15))
def test_no_match_is_lost_and_half_of_the_places_stay_with_the_best(
    matching: int, standing: int, preferred: set[int], limit: int
) -> None:
    ranked = list(range(matching))
    preferences = [i for i in ranked if i in preferred] + list(range(100, 100 + standing))
    order = order_with_preferences_first(ranked, preferences, limit=limit)
    assert len(order) == len(set(order))
    assert set(ranked) <= set(order) <= set(ranked) | set(preferences)
    taken = order[:limit]
    assert len(set(taken) & set(ranked[:limit])) >= min(len(ranked), limit - limit // 2)
    assert sum(i >= 100 for i in taken) <= limit // 3
    others = [i for i in order if i not in preferences]
    assert others == [i for i in ranked if i not in preferences]
    assert set(ranked[:limit]) & set(preferences) <= set(taken)
