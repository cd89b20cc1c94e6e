"""What an answer costs."""

from __future__ import annotations

import pytest

from madeleine.inference.language.prices import TOKENS_PER_PRICE, model_call_cost_in_usd
from tests.rows import for_each_row


@for_each_row(
    ("model", "both"),
    [
        ("claude-haiku-4-5", 6.0),
        ("claude-haiku-4-5-20251001", 6.0),
        ("claude-haiku-5-5", 0.6),
        ("claude-sonnet-4-5", 18.0),
        ("claude-sonnet-5", 12.0),
        ("claude-sonnet-5-5", 12.0),
        ("claude-opus-4-5", 30.0),
        ("claude-opus-5", 30.0),
        ("claude-opus-5-20260724", 30.0),
        ("claude-opus-5-5", 24.0),
    ],
)
def test_a_known_model_has_its_list_price(model: str, both: float) -> None:
    assert model_call_cost_in_usd(model, TOKENS_PER_PRICE, TOKENS_PER_PRICE) == pytest.approx(both)


@for_each_row("model", ["claude-opus-5-7", "claude-sonnet-5.6", "claude-opus-4-50", "gpt-9", ""])
def test_nobody_guesses_the_price_of_another_version(model: str) -> None:
    assert model_call_cost_in_usd(model, TOKENS_PER_PRICE, TOKENS_PER_PRICE) is None


def test_configured_prices_come_first_and_the_longest_name_wins() -> None:
    prices = (("claude", (1.0, 1.0)), ("claude-haiku", (7.0, 0.0)), ("qwen", (0.0, 0.0)))
    assert model_call_cost_in_usd("claude-haiku-4-5", TOKENS_PER_PRICE, 0, prices) == 7.0
    assert model_call_cost_in_usd("claude-opus-5-7", TOKENS_PER_PRICE, 0, prices) == 1.0
    assert model_call_cost_in_usd("qwen3:8b", TOKENS_PER_PRICE, TOKENS_PER_PRICE, prices) == 0.0
    assert model_call_cost_in_usd("gemma", TOKENS_PER_PRICE, 0, prices) is None
