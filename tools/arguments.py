"""Strict arguments: the JSON Schema of a tool is what is enforced.

Unknown names, wrong types, text that is too long, blank or not storable, and non-finite numbers are refused before
anything happens, with a message that says what to do.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from madeleine.memory.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MAX_SHORT_TEXT_CHARS = 200
"""Characters of a name, a label or an identifier."""
MAX_SCENE_LINE_CHARS = 2_000
"""Characters of a line of dialogue, a setting or a lesson."""
LONG_TEXT_SCHEMA_KEY = "x-long-text"
"""Marks, inside this module, a schema whose maximum length is the setting `max_text_chars`."""

_NESTED_ARGUMENT_FIELD_NAMES = frozenset(
    "date action offer merges make_dead parts diary think_md summary role text speaker when key importance emotions "
    "lesson messages".split()
)
"""Fields inside the arguments `when` and `decisions`, and inside those of `observe`."""

ARGUMENT_SYNONYMS = {
    **dict.fromkeys(("date", "timestamp", "time", "at"), "when"),
    **dict.fromkeys(("tags", "topics", "labels"), "themes"),
    **dict.fromkeys(("content", "memory", "message", "body", "action"), "text"),
    **dict.fromkeys(("top_k", "k", "n", "max_results", "count"), "limit"),
    **dict.fromkeys(("memory_id", "memory_ids"), "id"),
    **dict.fromkeys(("people", "participants"), "actors"),
    **dict.fromkeys(("from", "start", "after"), "since"),
    **dict.fromkeys(("to", "end", "before"), "until"),
    **dict.fromkeys(("replaces", "supersede"), "supersedes"),
    **dict.fromkeys(("q", "search", "question"), "query"),
    **dict.fromkeys(("reason", "retract"), "retracted"),
    **dict.fromkeys(("max_tokens", "budget_tokens", "budget"), "token_budget"),
}
"""What callers write, and the argument that is meant (ruling 23: one name for one thing)."""

ItemT = TypeVar("ItemT", bound=Hashable)
ValueT = TypeVar("ValueT", bound="DataclassInstance")


class ToolArguments(BaseModel):
    """Base of the arguments of every tool."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_nulls(cls, raw: Any) -> Any:
        if isinstance(raw, dict) and (nulls := [str(name) for name, value in raw.items() if value is None]):
            raise ValueError(f"must not be null, leave it out instead: {excerpt_for_error(', '.join(nulls))}")
        return raw

    @model_validator(mode="before")
    @classmethod
    def _wrap_single_texts_in_lists(cls, raw: Any) -> Any:
        """One text stands for a list of it, wherever an argument is a list of texts."""
        if not isinstance(raw, dict) or not any(isinstance(value, str) for value in raw.values()):
            return raw
        lists = _names_of_text_list_arguments(cls)
        return {name: [value] if isinstance(value, str) and name in lists else value for name, value in raw.items()}

    def to_dataclass(self, value_type: type[ValueT], **other_fields: Any) -> ValueT:
        """A value of this dataclass: the arguments of the same name, lists as tuples, and the `other_fields`."""
        shared = {field.name for field in fields(value_type)} & type(self).model_fields.keys() - other_fields.keys()
        values = {name: getattr(self, name) for name in shared}
        tuples = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return value_type(**values | tuples | other_fields)


@cache
def _names_of_text_list_arguments(model: type[ToolArguments]) -> frozenset[str]:
    """Names of the arguments that are lists of texts or choices."""
    return frozenset(name for name, field in model.model_fields.items() if _is_text_list_annotation(field.annotation))


def _is_text_list_annotation(annotation: Any) -> bool:
    options = [_type_without_annotated(option) for option in get_args(annotation)]
    if get_origin(annotation) in (Union, UnionType):
        return str not in options and any(map(_is_text_list_annotation, options))
    return get_origin(annotation) is list and (options[0] is str or get_origin(options[0]) is Literal)


def _type_without_annotated(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


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


def _require_within_max_text_chars(value: str, info: ValidationInfo) -> str:
    limit = (info.context or {}).get("max_text_chars", 32_000)
    if len(value) > limit:
        raise ValueError(f"has {len(value):,} characters, at most {limit:,} are accepted; split it into several calls")
    return value


NonEmptyText = Annotated[
    str, BeforeValidator(require_storable_text), AfterValidator(require_visible_text), Field(min_length=1)
]
"""A text that a caller leaves out is "" as a value: an empty one is refused."""
ShortText = Annotated[NonEmptyText, Field(max_length=MAX_SHORT_TEXT_CHARS)]
SceneLengthText = Annotated[NonEmptyText, Field(max_length=MAX_SCENE_LINE_CHARS)]
LongText = Annotated[
    NonEmptyText, AfterValidator(_require_within_max_text_chars), Field(json_schema_extra={LONG_TEXT_SCHEMA_KEY: True})
]
DetailsFlag = Annotated[bool, Field(description="All fields.")]
ZeroToOne = Annotated[float, Field(ge=0, le=1)]
ArgumentsT = TypeVar("ArgumentsT", bound=ToolArguments)


def validate_tool_arguments(
    model: type[ArgumentsT], raw: Mapping[str, Any], *, max_text_chars: int, notices: list[str] | None = None
) -> ArgumentsT:
    """Raises `InvalidInput`, which names every invalid argument and says what to do. What was left out of an argument
    that was used all the same is added to `notices`."""
    context = {"max_text_chars": max_text_chars, NOTICES_VALIDATION_CONTEXT_KEY: [] if notices is None else notices}
    try:
        return model.model_validate(dict(raw), context=context)
    except ValidationError as error:
        raise InvalidInput(f"Nothing was done. {_invalid_arguments_message(model, error)}") from error


NOTICES_VALIDATION_CONTEXT_KEY = "notices"
"""Key of the validation's context: a list of sentences."""


def add_notice_to_validation_context(info: ValidationInfo, sentence: str) -> None:
    (info.context or {}).get(NOTICES_VALIDATION_CONTEXT_KEY, []).append(sentence)


MAX_ARGUMENT_ERRORS_EXAMINED = 50
"""Finding the name that is meant takes 0.1 ms for each unknown one."""


def _invalid_arguments_message(model: type[ToolArguments], error: ValidationError) -> str:
    details = error.errors(include_url=False, include_input=True)[:MAX_ARGUMENT_ERRORS_EXAMINED]
    complaints = unique(_argument_complaint(model, dict(detail)) for detail in details)[:5]
    unknown = any(detail["type"] == "extra_forbidden" for detail in details)
    return " ".join((*complaints, *(["All arguments: tools/list."] if unknown else [])))


def replace_invalid_item_by_error(model: type[ToolArguments]) -> WrapValidator:
    """For the items of a list: one that cannot be used is an `InvalidInput` in its place, and the others count."""

    def validated(raw: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate(raw)
        except ValidationError as error:
            return InvalidInput(_invalid_arguments_message(model, error))

    return WrapValidator(validated)


def _argument_complaint(model: type[ToolArguments], error: Mapping[str, Any]) -> str:
    location = error["loc"]
    fields = _NESTED_ARGUMENT_FIELD_NAMES.union(
        model.model_fields
    )  # other names in a location are pydantic's, of unions
    path = [part for part in location if isinstance(part, int) or part in fields or len(location) == 1]
    where = excerpt_for_error(".".join(map(str, path or location[:1]))) or "arguments"
    match error["type"]:
        case "extra_forbidden":
            return _unknown_argument_complaint(model, location)
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
            return f"{where}: {excerpt_for_error(error['msg'])}."


def _unknown_argument_complaint(model: type[ToolArguments], location: tuple[int | str, ...]) -> str:
    """Names the nearest argument, not all: `tools/list` has those (ruling 23)."""
    name, last = excerpt_for_error(".".join(map(str, location))), excerpt_for_error(str(location[-1]))
    known = model.model_fields if len(location) == 1 else sorted(_NESTED_ARGUMENT_FIELD_NAMES)
    near = get_close_matches(ARGUMENT_SYNONYMS.get(last, last), known, n=1, cutoff=0.7)
    return f"Unknown argument {name!r}: " + (f"is {near[0]!r} meant?" if near else "leave it out.")


def unique(items: Iterable[ItemT]) -> tuple[ItemT, ...]:
    """Each item once, in order."""
    return tuple(dict.fromkeys(items))


def excerpt_for_error(text: str) -> str:
    """Truncated, and without characters that cannot be sent."""
    return text.encode(errors="replace").decode()[:300]


class _ArgumentsSchemaGenerator(GenerateJsonSchema):
    """JSON Schema 2020-12 without titles and nulls."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
        """An argument is left out, never null."""
        return self.generate_inner(schema["schema"])


@cache
def tool_input_schema(model: type[ToolArguments], *, max_text_chars: int) -> dict[str, Any]:
    """The schema as a client sees it: with every bound, without titles, nulls and minimum lengths of 1. What stands in
    it several times is in `$defs`. Made once: it takes some milliseconds, and each connection has its tools. Not to be
    changed."""
    raw = model.model_json_schema(schema_generator=_ArgumentsSchemaGenerator)
    definitions: dict[str, Any] = raw.pop("$defs", {})
    cleaned = _clean_schema(raw, definitions, max_text_chars)
    cleaned.pop("description", None)
    assert isinstance(cleaned, dict)
    return _with_shared_definitions(cleaned)


def _with_shared_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Equal subschemas are replaced by a reference to one definition where that is shorter."""
    names: dict[str, set[str]] = defaultdict(set)
    counts: Counter[str] = Counter()

    def count(part: Any, name: str) -> None:
        if isinstance(part, dict):
            key = json.dumps(part)
            counts[key] += 1
            names[key].add(name)
            for sub_name, sub in _subschemas(part):
                count(sub, sub_name or name)

    count(schema, "")
    shared: dict[str, str] = {}
    for key in sorted(counts, key=len, reverse=True):
        name = _definition_name(names[key], json.loads(key))
        reference = len('{"$ref":"#/$defs/"}') + len(name)
        saved = counts[key] * (len(key) - reference) - len(key) - len(name)
        if counts[key] > 1 and saved > 0 and name not in shared.values():
            shared[key] = name

    def referring(part: Any, *, whole: bool = False) -> Any:
        if isinstance(part, list):
            return [referring(item) for item in part]
        if not isinstance(part, dict):
            return part
        if not whole and (name := shared.get(json.dumps(part))):
            return {"$ref": f"#/$defs/{name}"}
        return {
            key: {name: referring(sub) for name, sub in value.items()} if key == "properties" else referring(value)
            for key, value in part.items()
        }

    definitions = {name: referring(json.loads(key), whole=True) for key, name in shared.items()}
    result: dict[str, Any] = referring(schema, whole=True)
    return result | ({"$defs": definitions} if definitions else {})


def _definition_name(arguments: Collection[str], part: Mapping[str, Any]) -> str:
    """The name of the argument, or, where several share it, the type with its bound."""
    if len(arguments) == 1:
        return next(iter(arguments))
    return f"{part.get('type', 'any')}{part.get('maxLength', part.get('maxItems', ''))}"


def _subschemas(part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(name of the property, or "", schema)."""
    yield from part.get("properties", {}).items()
    if "items" in part:
        yield "", part["items"]
    for option in part.get("anyOf", ()):
        yield "", option


def _clean_schema(schema: Any, definitions: Mapping[str, Any], max_text_chars: int) -> Any:
    if isinstance(schema, list):
        return [_clean_schema(item, definitions, max_text_chars) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if reference := schema.get("$ref"):
        siblings = {key: value for key, value in schema.items() if key in ("description", "default")}
        return _clean_schema(definitions[reference.rsplit("/", 1)[1]] | siblings, definitions, max_text_chars)
    result = {
        key: (
            {name: _clean_schema(sub, definitions, max_text_chars) for name, sub in value.items()}
            if key == "properties"
            else _clean_schema(value, definitions, max_text_chars)
        )
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
        and key != LONG_TEXT_SCHEMA_KEY
        and not (key == "default" and (not value or isinstance(value, list)))
        and not (key == "minLength" and value == 1)
    }
    if schema.get("default", False) in ("", None) and "description" in result:
        result["description"] = result.pop("description")
    if schema.get(LONG_TEXT_SCHEMA_KEY):
        result["maxLength"] = max_text_chars
    return result
