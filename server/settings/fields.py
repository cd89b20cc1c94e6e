"""Types of settings: what several of them share in how they are written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError


def split_comma_separated_names(text: str) -> tuple[str, ...]:
    """The names between commas."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def text_parsing_validator(parse: Callable[[str], object]) -> BeforeValidator:
    """Parse a text, as the environment has it; leave the values of the file as they are."""
    return BeforeValidator(lambda written: parse(written) if isinstance(written, str) else written)


def valid_if_set_validator(is_valid: Callable[[Any], bool], message: str) -> AfterValidator:
    """Refuse a value that is neither empty nor valid. The message never holds the value: it may be a secret."""

    def check(value: Any) -> Any:
        if value and not is_valid(value):
            raise PydanticCustomError("invalid", "{message}", {"message": message})
        return value

    return AfterValidator(check)


def validator_parsing_json_text(example: str) -> BeforeValidator:
    """JSON in the environment, a table in the file."""

    def parse(written: str) -> object:
        try:
            return json.loads(written)
        except ValueError:
            raise PydanticCustomError("json", "write it as JSON: {example}", {"example": example}) from None

    return text_parsing_validator(parse)


CommaSeparatedNames = Annotated[tuple[str, ...], text_parsing_validator(split_comma_separated_names)]
"""In the environment separated by commas, in the file a list or the same."""
LowercaseValidator = text_parsing_validator(str.lower)
UnitFraction = Annotated[float, Field(ge=0, le=1)]
TokenBudgetSetting = Annotated[int, Field(ge=0, le=10**12)]
"""0: no limit."""
SecondsUpToOneDay = Annotated[float, Field(gt=0, le=86_400)]
