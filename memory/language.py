"""Prompts for a language model, their cost, and why an answer was rejected (spec P6 ❶ ❹ ❻, P8, L3, O10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import BaseModel

Size = Literal["small", "large"]
"""A small model classifies; a large one consolidates, splits and writes."""

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Rejected:
    """An answer that cannot be used. `reason`: for people and logs, quotes nothing of the answer. `complaint`: for the
    model alone, "" if the reason says it all. `text`: the answer as the model wrote it, "" if its schema was right."""

    reason: str
    complaint: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """`system` holds the instructions, `text` the data, which is never an instruction. `purpose` is for the cost
    record: classify, consolidate, split, diary, compress, extract, reformulate."""

    purpose: str
    system: str
    text: str
    size: Size
    max_tokens: int = 4_000
    """Of the answer."""
    rejected: Rejected | None = None
    """The previous answer to this prompt, with its `text`."""


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
