"""Strict arguments: the JSON Schema of a tool is what is enforced.

Unknown names, wrong types, text that is too long, blank or not storable, and non-finite numbers are refused before
anything happens, with a message that says what to do.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import Emotion

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MAX_SHORT_TEXT_CHARS = 200
"""Characters of a name, a label or an identifier."""
MAX_LINE_CHARS = 2_000
"""Characters of a line of dialogue, a setting or a lesson."""
LONG_TEXT_MARK = "x-long-text"
"""Marks, inside this module, a schema whose maximum length is the setting `max_text_chars`."""

_NESTED_FIELDS = frozenset(
    "date action offer merges make_dead parts diary think_md summary role text speaker when key importance emotions "
    "lesson messages".split()
)
"""Fields inside the arguments `when` and `decisions`, and inside those of `observe`."""

ItemT = TypeVar("ItemT", bound=Hashable)
ValueT = TypeVar("ValueT", bound="DataclassInstance")


class ToolArguments(BaseModel):
    """Base of the arguments of every tool."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_nulls(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and (nulls := [str(name) for name, value in raw.items() if value is None]):
            raise ValueError(f"must not be null, leave it out instead: {printable(', '.join(nulls))}")
        return raw

    def to_value(self, value_type: type[ValueT], **other_fields: Any) -> ValueT:
        """A value of this dataclass: the arguments of the same name, lists as tuples, and the `other_fields`."""
        shared = {field.name for field in fields(value_type)} & type(self).model_fields.keys() - other_fields.keys()
        values = {name: getattr(self, name) for name in shared}
        tuples = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return value_type(**values | tuples | other_fields)


def require_storable_text(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                "contains half of a surrogate pair, which is not text; send the whole character or leave it out"
            ) from error
        if "\x00" in value:
            raise ValueError("contains a NUL character, which cannot be stored; leave it out")
    return value


def require_visible_text(value: str) -> str:
    if not any(unicodedata.category(char)[0] in "LNPS" for char in value):  # zero-width characters are invisible
        raise ValueError("is empty; give a text, or leave the argument out if it is optional")
    return value


def _within_max_text_chars(value: str, info: ValidationInfo) -> str:
    limit = (info.context or {}).get("max_text_chars", 32_000)
    if len(value) > limit:
        raise ValueError(f"has {len(value):,} characters, at most {limit:,} are accepted; split it into several calls")
    return value


Text = Annotated[str, BeforeValidator(require_storable_text), AfterValidator(require_visible_text), Field(min_length=1)]
"""A text that a caller leaves out is "" as a value: an empty one is refused."""
ShortText = Annotated[Text, Field(max_length=MAX_SHORT_TEXT_CHARS)]
LineText = Annotated[Text, Field(max_length=MAX_LINE_CHARS)]
LongText = Annotated[Text, AfterValidator(_within_max_text_chars), Field(json_schema_extra={LONG_TEXT_MARK: True})]
Details = Annotated[bool, Field(description="All fields, with provenance.")]
ZeroToOne = Annotated[float, Field(ge=0, le=1)]
EmotionLabels = Annotated[
    list[Annotated[Emotion, WithJsonSchema({"type": "string", "maxLength": 20})]],
    Field(max_length=3, description="GoEmotions labels, such as joy, fear, pride."),
]
"""The 27 labels are not in the schema, which is part of every prompt; an unknown label is refused with the list."""

ArgumentsT = TypeVar("ArgumentsT", bound=ToolArguments)


def validate_tool_arguments(model: type[ArgumentsT], raw: Mapping[str, Any], *, max_text_chars: int) -> ArgumentsT:
    """Raises `InvalidInput`, which names every invalid argument and says what to do."""
    try:
        return model.model_validate(dict(raw), context={"max_text_chars": max_text_chars})
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=True)
        complaints = unique(_argument_complaint(model, dict(detail)) for detail in details)
        raise InvalidInput(f"Nothing was done. {' '.join(complaints[:5])}") from error


def _argument_complaint(model: type[ToolArguments], error: Mapping[str, Any]) -> str:
    location = error["loc"]
    fields = _NESTED_FIELDS.union(model.model_fields)  # other names in a location are pydantic's, of unions
    path = [part for part in location if isinstance(part, int) or part in fields or len(location) == 1]
    where = printable(".".join(map(str, path or location[:1]))) or "arguments"
    match error["type"]:
        case "extra_forbidden":
            name = printable(".".join(map(str, location)))
            known = model.model_fields if len(location) == 1 else ("those of its schema",)
            return f"Unknown argument {name!r}: leave it out. Known are {', '.join(known)}."
        case "missing":
            return f"{where}: is required."
        case "value_error":
            return f"{where}: {error['ctx']['error']}."
        case "too_long" | "string_too_long" if isinstance(error.get("input"), str):
            limit = error["ctx"]["max_length"]
            return f"{where}: has {len(error['input']):,} characters, at most {limit:,} are accepted; shorten it."
        case "string_unicode":
            return f"{where}: contains half of a surrogate pair, which is not text; send the whole character."
        case _ if isinstance(error.get("input"), float) and not math.isfinite(error["input"]):
            return f"{where}: must be a finite number, not NaN or infinity."
        case _:
            return f"{where}: {printable(error['msg'])}."


def unique(items: Iterable[ItemT]) -> tuple[ItemT, ...]:
    """Each item once, in order."""
    return tuple(dict.fromkeys(items))


def printable(text: str) -> str:
    """Truncated, and without characters that cannot be sent."""
    return text.encode(errors="replace").decode()[:300]


class _ArgumentsSchema(GenerateJsonSchema):
    """JSON Schema 2020-12 without titles and nulls."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
        """An argument is left out, never null."""
        return self.generate_inner(schema["schema"])


def tool_input_schema(model: type[ToolArguments], *, max_text_chars: int) -> dict[str, Any]:
    """The schema as a client sees it: with every bound, without titles, nulls, references and minimum lengths of 1."""
    raw = model.model_json_schema(schema_generator=_ArgumentsSchema)
    definitions: dict[str, Any] = raw.pop("$defs", {})
    cleaned = _clean_schema(raw, definitions, max_text_chars)
    cleaned.pop("description", None)
    assert isinstance(cleaned, dict)
    return cleaned


def _clean_schema(schema: Any, definitions: Mapping[str, Any], max_text_chars: int) -> Any:
    if isinstance(schema, list):
        return [_clean_schema(item, definitions, max_text_chars) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if reference := schema.get("$ref"):
        return _clean_schema(definitions[reference.rsplit("/", 1)[1]], definitions, max_text_chars)
    result = {
        key: (
            {name: _clean_schema(sub, definitions, max_text_chars) for name, sub in value.items()}
            if key == "properties"
            else _clean_schema(value, definitions, max_text_chars)
        )
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
        and key != LONG_TEXT_MARK
        and not (key == "default" and (not value or isinstance(value, list)))
        and not (key == "minLength" and value == 1)
    }
    if schema.get("default", False) in ("", None) and "description" in result:
        result["description"] = result.pop("description")
    if schema.get(LONG_TEXT_MARK):
        result["maxLength"] = max_text_chars
    return result
