"""Types of settings: what several of them share in how they are written."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError


def _split(names: object) -> object:
    return tuple(name for part in names.split(",") if (name := part.strip())) if isinstance(names, str) else names


def _lowered(written: object) -> object:
    return written.lower() if isinstance(written, str) else written


def from_json(example: str) -> BeforeValidator:
    """JSON in the environment, a table in the file."""

    def parse(written: object) -> object:
        if not isinstance(written, str):
            return written
        try:
            return json.loads(written)
        except ValueError:
            raise PydanticCustomError("json", "write it as JSON: {example}", {"example": example}) from None

    return BeforeValidator(parse)


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
"""In the environment separated by commas, in the file a list or the same."""
AnyCase = BeforeValidator(_lowered)
Share = Annotated[float, Field(ge=0, le=1)]
TokenBudget = Annotated[int, Field(ge=0, le=10**12)]
"""0: no limit."""
Seconds = Annotated[float, Field(gt=0, le=86_400)]
