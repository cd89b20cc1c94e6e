"""spec P9, ruling 8."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.index import CandidatePool, RankingFeatures
from madeleine.memory.model import MemoryId
from madeleine.memory.rules.ranking.profiles import MatchThresholds, matching_candidates, query_word_coverage


def pool(
    cosine: Sequence[float],
    held: Sequence[Sequence[int]] = (),
    idf: Sequence[float] = (),
    numbers: Sequence[bool] | None = None,
) -> CandidatePool:
    """`held`: 1 for each query term that a candidate has. `numbers`: of the terms; None: none is one."""
    weights = np.asarray(held, np.float32).reshape(len(cosine), len(idf))
    return CandidatePool(
        ids=tuple(MemoryId(str(i)) for i in range(len(cosine))),
        features=tuple(RankingFeatures("", 0, (), (), 0, 0) for _ in cosine),
        cosine=np.asarray(cosine, np.float32),
        weights=weights,
        idf=np.asarray(idf, np.float32),
        numbers=np.asarray([False] * len(idf) if numbers is None else numbers, np.bool_),
    )


def matched(candidates: CandidatePool, dense_trust: float = 1.0) -> list[int]:
    found = matching_candidates(candidates, dense_trust=dense_trust, thresholds=MatchThresholds())
    assert found.dtype == np.bool_
    assert found.shape == (len(candidates.ids),)
    return [int(i) for i in np.flatnonzero(found)]


@pytest.mark.parametrize(("cosine", "anchors"), [(0.36, True), (0.35001, True), (0.34, False), (-1.0, False)])
def test_a_cosine_at_the_threshold_is_a_match_without_any_word(cosine: float, anchors: bool) -> None:
    """spec P9: threshold 0.35."""
    assert matched(pool([cosine])) == ([0] if anchors else [])


def test_half_of_the_querys_words_are_a_match_without_any_likeness() -> None:
    """ruling 8: a memory may match by its words alone; 2 of 4 equal words are 0.5 ≥ 0.45."""
    assert matched(pool([0.0], [[1, 1, 0, 0]], [2, 2, 2, 2])) == [0]


def test_a_number_is_no_match_where_other_words_are_asked_for() -> None:
    """ruling 8: of "12 red apples" the first holds 12, the second 12 and red, 2 / 7 of the IDF without 12."""
    idf, numbers = [3.0, 2.0, 2.0], [True, False, False]
    assert matched(pool([0.0, 0.0], [[1, 0, 0], [1, 1, 0]], idf, numbers)) == []
    assert matched(pool([0.0, 0.0], [[0, 1, 1], [1, 0, 0]], idf, numbers)) == [0, 1], "4 / 7, and its companion"


def test_of_numbers_alone_all_are_a_match_and_some_are_none() -> None:
    """ruling 8: "12 + 7", and "4711"."""
    assert matched(pool([0.0, 0.0], [[1, 0], [0, 1]], [3, 2], [True, True])) == []
    assert matched(pool([0.0, 0.0, 0.0], [[1, 0], [1, 1], [0, 1]], [3, 2], [True, True])) == [0, 1, 2]
    assert matched(pool([0.0, 0.0], [[1], [0]], [3], [True])) == [0]


def test_one_common_word_of_many_is_no_match() -> None:
    """ruling 8: an unrelated query gives nothing; 1 / 10 of the IDF."""
    assert matched(pool([0.2], [[1, 0, 0, 0]], [1, 3, 3, 3])) == []


def test_three_words_are_enough_at_a_quarter_of_the_querys_weight_and_two_are_not() -> None:
    """ruling 8: 3 of 10 words are 0.3, which needs three words; 3 of 10 held as two heavy ones do not anchor."""
    ten = [1.0] * 10
    assert matched(pool([0.0], [[1, 1, 1, 0, 0, 0, 0, 0, 0, 0]], ten)) == [0]
    heavy = [1.5, 1.5, *[1.0] * 7]
    assert matched(pool([0.0], [[1, 1, 0, 0, 0, 0, 0, 0, 0]], heavy)) == []


def test_words_that_no_memory_holds_weigh_against_a_match() -> None:
    """ruling 8: the same word matches a short query about it, and not a query about something else."""
    assert matched(pool([0.0], [[1]], [2.0])) == [0]
    assert matched(pool([0.0], [[1, 0, 0]], [2.0, 5.0, 5.0])) == []


def test_companions_come_with_an_anchor_and_not_without_one() -> None:
    """ruling 8: cosine 0.2 or coverage 0.1 beside an anchor."""
    held = [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    idf = [1.0] * 5
    assert matched(pool([0.5, 0.21, 0.0, 0.19], held, idf)) == [0, 1, 2]
    assert matched(pool([0.3, 0.21, 0.0, 0.19], held, idf)) == []


def test_an_empty_pool_has_no_match() -> None:
    """spec P9: no match gives an empty result."""
    assert matched(pool([], [], [1.0, 2.0])) == []
    assert matched(pool([])) == []


def test_a_query_without_terms_is_matched_by_meaning_alone() -> None:
    """ruling 8: "the", or emoji."""
    assert matched(pool([0.5, 0.1])) == [0]
    assert query_word_coverage(pool([0.5, 0.1])).tolist() == [0.0, 0.0]


def test_terms_that_are_worth_nothing_cover_nothing() -> None:
    """ruling 8: a query of stop words has an IDF of zero, and no share of it can be held."""
    assert matched(pool([0.1], [[1, 1]], [0.0, 0.0])) == []


def test_without_trust_in_the_vectors_only_words_match() -> None:
    """ruling 8: a query in a script that the model never saw has a vector that means nothing."""
    candidates = pool([0.99, 0.0], [[0], [1]], [3.0])
    assert matched(candidates, dense_trust=0.0) == [1]
    assert matched(candidates) == [0, 1]


@pytest.mark.parametrize(("trust", "anchors"), [(1.0, True), (0.6, True), (0.58, False)])
def test_half_a_trust_halves_the_cosine(trust: float, anchors: bool) -> None:
    """ruling 8: 0.6 × 0.6 = 0.36, 0.58 × 0.6 = 0.348."""
    assert matched(pool([0.6]), dense_trust=trust) == ([0] if anchors else [])


def test_coverage_is_the_share_of_the_idf_that_is_held() -> None:
    """ruling 8: (1 + 3) / 8, (4) / 8, nothing."""
    found = query_word_coverage(pool([0, 0, 0], [[1, 1, 0], [0, 0, 1], [0, 0, 0]], [1, 3, 4]))
    assert found.tolist() == [0.5, 0.5, 0.0]


@given(
    st.integers(0, 8).flatmap(
        lambda n: st.tuples(
            st.lists(st.floats(-1, 1, width=32), min_size=n, max_size=n),
            st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=n, max_size=n),
        )
    ),
    st.permutations(range(8)),
)
def test_whether_a_candidate_matches_does_not_depend_on_its_place(
    candidates: tuple[list[float], list[list[int]]], order: list[int]
) -> None:
    """ruling 8"""
    cosine, held = candidates
    places = [i for i in order if i < len(cosine)]
    found = set(matched(pool(cosine, held, [1.0, 2.0, 3.0])))
    moved = matched(pool([cosine[i] for i in places], [held[i] for i in places], [1.0, 2.0, 3.0]))
    assert {places[i] for i in moved} == found
