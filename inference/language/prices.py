"""What an answer costs."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from madeleine.inference.language.config import ModelPrices

TOKENS_PER_PRICE = 1_000_000
_MODEL_VERSION_SUFFIX_PATTERN = re.compile(r"[-.]?\d{1,2}(?!\d)")
"""`claude-opus-5` tells nothing of the price of a `claude-opus-5-7`; of `claude-opus-5-20260724` it does."""


@cache
def _usd_prices_by_model_name_prefix() -> dict[str, tuple[float, float]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def model_call_cost_in_usd(model: str, input_tokens: int, output_tokens: int, prices: ModelPrices = ()) -> float | None:
    """By the longest name in `prices` that `model` begins with, else in the known prices. None if there is none."""
    configured = {name: price for name, price in prices if model.startswith(name)}
    known = {
        name: price
        for name, price in _usd_prices_by_model_name_prefix().items()
        if model.startswith(name) and not _MODEL_VERSION_SUFFIX_PATTERN.match(model.removeprefix(name))
    }
    if not (matching := configured or known):
        return None
    input_price, output_price = matching[max(matching, key=len)]
    return (input_tokens * input_price + output_tokens * output_price) / TOKENS_PER_PRICE
