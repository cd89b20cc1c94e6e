"""The schemas of the tools are what is enforced, and their list is short."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from madeleine.tools.arguments import tool_input_schema, validate_tool_arguments
from madeleine.tools.toolset import Toolset, make_all_tools
from tests.rows import for_each_row
from tests.unit.tools.test_arguments import FORGIVING, MAX_LENGTH, MAX_TEXT, TOOLS, schema, with_definitions_in_place


def parts(part: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema within a schema, with its path."""
    yield path, part
    for name, sub in part.get("properties", {}).items():
        yield from parts(sub, f"{path}.{name}")
    if "items" in part:
        yield from parts(part["items"], f"{path}[]")
    for n, sub in enumerate(part.get("anyOf", [])):
        yield from parts(sub, f"{path}|{n}")


@for_each_row("tool", TOOLS)
def test_a_schema_has_every_bound_and_only_plain_keywords(tool: str) -> None:
    """JSON Schema 2020-12 without title or null, and with references to `$defs` alone: what clients know."""
    raw = tool_input_schema(TOOLS[tool].arguments, max_text_chars=MAX_TEXT)
    jsonschema.Draft202012Validator.check_schema(raw)
    assert len(json.dumps(raw)) <= len(json.dumps(schema(tool)))
    jsonschema.Draft202012Validator.check_schema(dict(TOOLS[tool].output_schema))
    for path, part in parts(schema(tool), tool):
        assert set(part) <= {
            "type", "description", "default", "enum", "properties", "required", "additionalProperties", "items",
            "anyOf", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems",
        }, path  # fmt: skip
        assert part.get("type") != "null", path
        assert isinstance(part.get("type", ""), str), path
        assert "type" in part or "anyOf" in part, path
        match part.get("type"):
            case "object":
                assert part.get("additionalProperties") is False or path.endswith((".scenes[]", ".emotion_vector")), (
                    path
                )
            case "string":
                assert "maxLength" in part or "enum" in part, path
            case "number" | "integer":
                assert {"minimum", "maximum"} <= set(part), path
            case "array":
                assert {"items", "maxItems"} <= set(part), path


def test_the_maximum_length_of_long_texts_follows_the_setting() -> None:
    for (tool, name), most in MAX_LENGTH.items():
        length = 777 if most == MAX_TEXT else most
        whole = tool_input_schema(TOOLS[tool].arguments, max_text_chars=777)
        part = with_definitions_in_place(whole)["properties"][name]
        assert length in [part.get("maxLength"), *(option.get("maxLength") for option in part.get("anyOf", []))]


PLAIN_TEXTS = st.sampled_from(["ramen", "Day7", "2026-02-27", "joy", "東京", "a b", "🙂", "x" * 200])


def examples(part: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit a schema: texts that are not blank, and labels for emotions."""
    if "enum" in part:
        return st.sampled_from(part["enum"])
    if "anyOf" in part:
        return st.one_of([examples(option) for option in part["anyOf"]])
    match part["type"]:
        case "string":
            return st.just("joy") if part["maxLength"] < 200 else PLAIN_TEXTS
        case "integer":
            return st.integers(part["minimum"], part["maximum"])
        case "number":
            return st.floats(part["minimum"], part["maximum"]) | st.sampled_from([0, 1])
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(
                examples(part["items"]),
                min_size=part.get("minItems", 0),
                max_size=min(4, part["maxItems"]),
                unique="enum" in part["items"] or part["items"].get("maxLength", 200) < 200,
            )
        case "object":
            required = set(part.get("required", []))
            return st.fixed_dictionaries(
                {name: examples(sub) for name, sub in part["properties"].items() if name in required},
                optional={
                    name: examples(sub)
                    for name, sub in part["properties"].items()
                    if name not in required and name not in FORGIVING
                },
            )
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize("tool", TOOLS)
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(data=st.data())
def test_a_call_that_fits_the_schema_is_accepted_unchanged(tool: str, data: st.DataObject) -> None:
    arguments = data.draw(examples(schema(tool)))
    jsonschema.validate(arguments, schema(tool), jsonschema.Draft202012Validator)
    read_back = validate_tool_arguments(TOOLS[tool].arguments, arguments, max_text_chars=MAX_TEXT)
    assert read_back.model_dump(exclude_unset=True) == arguments


# --- the list of tools ------------------------------------------------------------------------------------------


def listed() -> list[dict[str, Any]]:
    tools = Toolset(make_all_tools(Random(1)), max_text_chars=32_000).list_tools()
    return [tool.model_dump(by_alias=True, exclude_unset=True, mode="json") for tool in tools]


def test_the_five_tools_of_the_spec_and_those_that_correct_are_listed() -> None:
    """spec P9 to P12, T4; ruling 11"""
    assert [tool["name"] for tool in listed()] == [
        "recall", "recall_memory", "search_memory", "store", "update_memory", "forget", "run_patrol",
    ]  # fmt: skip


def test_the_list_of_tools_costs_a_client_at_most_3200_tokens() -> None:
    """Every client puts it into every prompt; this JSON is 4.0 characters a token. As it goes over the wire."""
    assert len(json.dumps(listed(), ensure_ascii=False, separators=(",", ":"))) <= 12_800


@for_each_row("tool", listed())
def test_a_listed_tool_has_a_short_description_both_schemas_and_all_hints(tool: dict[str, Any]) -> None:
    """MCP tool annotations: each has a default otherwise, and destructive is true by default."""
    assert 100 < len(tool["description"].encode()) < 2_048
    assert tool["outputSchema"]["type"] == tool["inputSchema"]["type"] == "object"
    hints = tool["annotations"]
    assert set(hints) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert all(isinstance(hint, bool) for hint in hints.values())
    assert hints["destructiveHint"] == (tool["name"] == "forget")
    assert not hints["openWorldHint"]
