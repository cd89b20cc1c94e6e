"""Which language model, and how to ask it. No key: whose it is differs from call to call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LanguageModelApi = Literal["anthropic", "openai"]
ModelPrices = tuple[tuple[str, tuple[float, float]], ...]
"""Beginning of a model's name → US dollars per million tokens of input and of output."""


DEFAULT_LLM_TIMEOUT_SECONDS = 120.0
DEFAULT_LLM_RETRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModelConfig:
    protocol: LanguageModelApi
    small_model: str
    large_model: str
    url: str = ""
    """Of the API, as its SDK wants it; "" for the provider's own."""
    timeout_seconds: float = DEFAULT_LLM_TIMEOUT_SECONDS
    """Of one try."""
    retries: int = DEFAULT_LLM_RETRIES
    prices: ModelPrices = ()
    """Before those that are known here."""
