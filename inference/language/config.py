"""Which language model, and how to ask it. No key: whose it is differs from call to call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Protocol = Literal["anthropic", "openai"]
Prices = tuple[tuple[str, tuple[float, float]], ...]
"""Beginning of a model's name → US dollars per million tokens of input and of output."""


TIMEOUT_SECONDS = 120.0
RETRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageConfig:
    protocol: Protocol
    small_model: str
    large_model: str
    url: str = ""
    """Of the API, as its SDK wants it; "" for the provider's own."""
    timeout_seconds: float = TIMEOUT_SECONDS
    """Of one try."""
    retries: int = RETRIES
    prices: Prices = ()
    """Before those that are known here."""
