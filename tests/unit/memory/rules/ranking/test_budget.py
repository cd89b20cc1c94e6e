"""spec L2, step 5."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.rules.ranking.budget import positions_within_token_budget, result_count_when_no_limit_is_set
from tests.rows import for_each_row

COSTS = st.lists(st.integers(0, 500), max_size=30)
LIMITS = st.integers(0, 10)
BUDGETS = st.integers(0, 2000)


@for_each_row(
    ("tokens", "limit", "budget", "taken"),
    [
        ([], 3, 100, []),
        ([10, 20, 30], 3, 60, [0, 1, 2]),
        ([10, 20, 31], 3, 60, [0, 1]),
        ([100, 20, 30], 3, 60, [1, 2]),
        ([10, 60, 20], 2, 50, [0, 2]),
        ([1, 1, 1, 1], 2, 50, [0, 1]),
        ([60], 1, 60, [0]),
        ([61], 1, 60, []),
        ([0, 0], 5, 0, [0, 1]),
    ],
)
def test_each_memory_that_still_fits_is_taken_in_order(
    tokens: list[int], limit: int, budget: int, taken: list[int]
) -> None:
    """spec L2: too long a one is passed over, and shorter ones after it may still fit."""
    assert positions_within_token_budget(tokens, limit=limit, budget=budget) == taken


@given(COSTS, LIMITS, BUDGETS)
def test_the_budget_is_never_exceeded_nor_the_limit(tokens: list[int], limit: int, budget: int) -> None:
    """spec L2"""
    taken = positions_within_token_budget(tokens, limit=limit, budget=budget)
    assert sum(tokens[i] for i in taken) <= budget
    assert len(taken) <= limit


@given(COSTS, LIMITS, BUDGETS)
def test_those_taken_keep_their_order_and_none_comes_twice(tokens: list[int], limit: int, budget: int) -> None:
    """spec L2"""
    taken = positions_within_token_budget(tokens, limit=limit, budget=budget)
    assert taken == sorted(set(taken))


@given(COSTS, LIMITS, BUDGETS)
def test_one_is_left_out_only_if_it_did_not_fit_any_more(tokens: list[int], limit: int, budget: int) -> None:
    """spec L2: "if tokens_used + chunk_tokens <= token_budget: selected.append(chunk)"."""
    taken = positions_within_token_budget(tokens, limit=limit, budget=budget)
    for i, cost in enumerate(tokens):
        before = [j for j in taken if j < i]
        if i not in taken and len(before) < limit:
            assert sum(tokens[j] for j in before) + cost > budget


@for_each_row(
    ("scores", "tokens", "whole_list", "count"),
    [
        ([], 10, False, 3),
        ([0.8, 0.2], 10, False, 3),
        ([0.8, 0.2, 0.1, 0.05], 10, False, 3),
        ([0.8, 0.7, 0.65, 0.61, 0.59, 0.58], 10, False, 4),
        ([0.8, 0.7, 0.65, 0.61, 0.2, 0.1], 10, True, 6),
        ([0.8] * 10, 200, False, 5),
        ([0.8] * 10, 900, True, 3),
    ],
)
def test_an_answer_without_a_limit_ends_where_scores_fall_or_tokens_are_spent(
    scores: list[float], tokens: int, whole_list: bool, count: int
) -> None:
    scored = [(score, tokens) for score in scores]
    assert result_count_when_no_limit_is_set(scored, least=3, whole_list=whole_list) == count


def test_beside_a_preference_that_answers_memories_that_match_less_are_left_out() -> None:
    scored = [(score, 10) for score in (0.4, 0.38, 0.36, 0.35, 0.34)]
    assert result_count_when_no_limit_is_set(scored, least=3) == 5
    assert result_count_when_no_limit_is_set(scored, least=3, best=0.9) == 3
