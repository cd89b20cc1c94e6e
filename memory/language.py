"""What a language model is asked, and what it costs (spec P6 ❶ ❹ ❻, P8, L3, O10). Adapters in `inference`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import BaseModel

Size = Literal["small", "large"]
"""A small model classifies; a large one consolidates, splits and writes."""

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """`system` says what to do, `text` is what to do it with: data, never instructions. `purpose` is for the record:
    classify, consolidate, split, diary, compress, extract."""

    purpose: str
    system: str
    text: str
    size: Size
    max_tokens: int = 4_000
    """Of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """One call: tokens as the API counted them, and US dollars, None where the price is not known."""

    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    usd: float | None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens
