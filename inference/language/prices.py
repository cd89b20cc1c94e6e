"""What an answer costs."""

from __future__ import annotations

import re

from madeleine.inference.language.config import Prices

MILLION = 1_000_000
KNOWN_PRICES: Prices = (
    ("claude-haiku-4-5", (1.0, 5.0)),
    # Of prompts up to 100,000 tokens, as all of ours are.
    ("claude-haiku-5-5", (0.1, 0.5)),
    ("claude-sonnet-4-5", (3.0, 15.0)),
    ("claude-sonnet-4-6", (3.0, 15.0)),
    ("claude-sonnet-5", (2.0, 10.0)),
    ("claude-sonnet-5-5", (2.0, 10.0)),
    ("claude-opus-4-5", (5.0, 25.0)),
    ("claude-opus-4-6", (5.0, 25.0)),
    ("claude-opus-4-7", (5.0, 25.0)),
    ("claude-opus-5", (5.0, 25.0)),
    ("claude-opus-5-5", (4.0, 20.0)),
    ("claude-fable-5-1", (10.0, 50.0)),
)
"""List prices of November 2026, without caches and batches: Madeleine uses neither."""
_NEXT_VERSION = re.compile(r"[-.]?\d{1,2}(?!\d)")
"""`claude-opus-5` tells nothing of the price of a `claude-opus-5-7`; of `claude-opus-5-20260724` it does."""


def cost_in_usd(model: str, input_tokens: int, output_tokens: int, prices: Prices = ()) -> float | None:
    """The longest name that fits, those of `prices` before the known ones. None if nobody knows."""
    configured = {name: price for name, price in prices if model.startswith(name)}
    known = {
        name: price
        for name, price in KNOWN_PRICES
        if model.startswith(name) and not _NEXT_VERSION.match(model.removeprefix(name))
    }
    if not (matching := configured or known):
        return None
    input_price, output_price = matching[max(matching, key=len)]
    return (input_tokens * input_price + output_tokens * output_price) / MILLION
