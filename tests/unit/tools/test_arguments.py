"""What a tool is given is checked before anything happens; what its schema says is what is enforced."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from random import Random
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from madeleine.memory.context.values import ContextFlags
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import CATEGORIES
from madeleine.tools.arguments import Arguments, input_schema, read_arguments
from madeleine.tools.tool import Tool
from madeleine.tools.toolset import Toolset, default_tools

MAX_TEXT = 1_000
TOOLS: dict[str, Tool] = {tool.name: tool for tool in default_tools(Random(1))}
REQUIRED: dict[str, dict[str, Any]] = {
    "recall": {"query": "ramen"},
    "recall_memory": {},
    "search_memory": {"query": "ramen"},
    "store": {"text": "We shared ramen."},
    "update_memory": {"memory_id": "a"},
    "forget": {"memory_ids": ["a"]},
    "run_patrol": {},
    "observe": {"session_id": "s"},
    "ingest": {"text": "We shared ramen."},
    "context": {},
    "profile": {},
}
ARGUMENTS = [(tool.name, name) for tool in TOOLS.values() for name in tool.arguments.model_fields]
SHORT_TEXTS = [
    ("recall_memory", "cluster_id"), ("recall_memory", "cursor"), ("search_memory", "since"),
    ("search_memory", "until"), ("search_memory", "cursor"), ("store", "when"), ("store", "session_id"),
    ("store", "key"), ("update_memory", "memory_id"),
    ("run_patrol", "undo"), ("observe", "session_id"), ("observe", "title"), ("observe", "interface"),
    ("context", "session_id"), ("profile", "name"),
    ("ingest", "session_id"), ("ingest", "key"), ("ingest", "when"),
]  # fmt: skip
LINES = [("store", "setting"), ("store", "feeling"), ("store", "lesson")]
LONG_TEXTS = [
    ("recall", "query"), ("search_memory", "query"), ("store", "text"), ("update_memory", "text"),
    ("context", "message"), ("ingest", "text"),
]  # fmt: skip
VALUES = [("profile", "value")]
"""Of a length of their own."""
TEXTS = SHORT_TEXTS + LINES + LONG_TEXTS + VALUES
TEXT_LISTS = [
    ("recall_memory", "memory_ids", 50), ("search_memory", "themes", 20), ("store", "actors", 50),
    ("store", "dialogue", 50), ("store", "sensory", 50), ("store", "themes", 20), ("store", "when", 50),
    ("update_memory", "themes", 20), ("forget", "memory_ids", 50), ("ingest", "actors", 50),
    ("recall", "themes", 20),
]  # fmt: skip
CHOICE_LISTS = [
    ("recall", "categories"), ("recall", "emotions"), ("search_memory", "categories"), ("search_memory", "sources"),
    ("store", "emotions"), ("run_patrol", "steps"), ("context", "blocks"),
]  # fmt: skip
CHOICES = [
    ("recall", "format"),
    ("recall", "ranking"),
    ("search_memory", "mode"),
    ("store", "category"),
    ("ingest", "category"),
    ("recall", "ranking"),
    ("profile", "action"),
    ("profile", "kind"),
]
NUMBERS = [
    ("recall", "limit", 1, 50), ("recall", "token_budget", 1, 100_000), ("recall_memory", "limit", 1, 100),
    ("search_memory", "limit", 1, 100), ("store", "importance", 0, 1),
    ("update_memory", "importance", 0, 1), ("context", "token_limit", 1, 1_000_000),
    ("context", "context_verbosity", 0, 50),
]  # fmt: skip
FLAGS = [
    ("search_memory", "include_dead"), ("search_memory", "include_compressed"), ("store", "pinned"),
    ("run_patrol", "dry_run"), ("update_memory", "pinned"),
    *(("context", name) for name in ContextFlags.__dataclass_fields__ if name != "context_verbosity"),
]  # fmt: skip


def read(tool: str, **given: Any) -> Arguments:
    return read_arguments(TOOLS[tool].arguments, REQUIRED[tool] | given, max_text_chars=MAX_TEXT)


def refused(tool: str, **given: Any) -> str:
    """The sentence that the caller is told."""
    with pytest.raises(InvalidInput) as caught:
        read(tool, **given)
    words = str(caught.value)
    assert words.startswith("Nothing was done. ")
    assert words.endswith((".", "…"))
    assert len(words) < 3_000
    assert words.encode()
    return words


def schema(tool: str) -> dict[str, Any]:
    return input_schema(TOOLS[tool].arguments, max_text_chars=MAX_TEXT)


def test_these_tables_name_every_argument_of_every_tool() -> None:
    """A new argument must be put to the tests below."""
    named = {(row[0], row[1]) for row in (*TEXTS, *TEXT_LISTS, *CHOICE_LISTS, *CHOICES, *NUMBERS, *FLAGS)}
    named.add(("run_patrol", "decisions"))  # tests/unit/patrol/deciding
    named |= {("observe", "messages"), ("observe", "memories")}  # tests/unit/tools/test_observe.py
    assert named == set(ARGUMENTS)
    assert set(TOOLS) == set(REQUIRED)


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", TOOLS)
def test_an_unknown_argument_is_named_and_the_known_ones_are_told(tool: str) -> None:
    words = refused(tool, colour="red")
    assert "'colour'" in words
    assert all(name in words for name in TOOLS[tool].arguments.model_fields)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_being_cannot_be_chosen_by_an_argument(tool: str) -> None:
    """spec P1, ruling 12"""
    assert "being_id" in refused(tool, being_id="bob")


@pytest.mark.parametrize("tool", [name for name, needed in REQUIRED.items() if needed])
def test_a_missing_argument_is_named(tool: str) -> None:
    [name] = REQUIRED[tool]
    with pytest.raises(InvalidInput, match=f"{name}: is required"):
        read_arguments(TOOLS[tool].arguments, {}, max_text_chars=MAX_TEXT)


WRONG: dict[str, list[Any]] = {
    "text": [3, 1.5, True, ["a"], {"a": 1}, b"a"],
    "texts": ["a", 3, True, {"a": 1}, [3], [["a"]], [{"a": 1}], [True]],
    "number": ["3", "", [3], {"a": 3}, True, False],
    "flag": ["true", "yes", 0, 1, 1.0, [True], {}],
}
TYPED = [
    *((tool, name, value) for tool, name in TEXTS if (tool, name) != ("store", "when") for value in WRONG["text"]),
    *((tool, name, value) for tool, name, _ in TEXT_LISTS for value in WRONG["texts"]),
    *((tool, name, value) for tool, name in CHOICE_LISTS for value in WRONG["texts"]),
    *((tool, name, value) for tool, name in CHOICES for value in [*WRONG["text"], "else", "", "EPISODIC"]),
    *((tool, name, value) for tool, name, *_ in NUMBERS for value in WRONG["number"]),
    *((tool, name, value) for tool, name in FLAGS for value in WRONG["flag"]),
]


@pytest.mark.parametrize(
    ("tool", "name", "value"), [row for row in TYPED if (row[1], row[2]) != ("when", "a")], ids=repr
)
def test_a_value_of_the_wrong_type_is_refused_by_name(tool: str, name: str, value: Any) -> None:
    assert name in refused(tool, **{name: value})


@pytest.mark.parametrize(("tool", "name"), ARGUMENTS)
def test_null_is_refused_with_the_advice_to_leave_it_out(tool: str, name: str) -> None:
    words = refused(tool, **{name: None})
    assert name in words
    assert "null" in words
    assert "leave it out" in words


@pytest.mark.parametrize(("tool", "name"), [(tool, name) for tool, name, _ in TEXT_LISTS] + CHOICE_LISTS)
def test_null_in_a_list_is_refused(tool: str, name: str) -> None:
    assert name in refused(tool, **{name: [None]})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("tool", "name"), [(tool, name) for tool, name, *_ in NUMBERS])
def test_what_is_not_a_finite_number_is_refused(tool: str, name: str, value: float) -> None:
    words = refused(tool, **{name: value})
    assert name in words
    assert "finite" in words


@pytest.mark.parametrize(("tool", "name"), ARGUMENTS)
@pytest.mark.parametrize("value", [math.nan, [math.nan], {"a": math.inf}])
def test_no_argument_takes_nan(tool: str, name: str, value: Any) -> None:
    assert name in refused(tool, **{name: value})


@pytest.mark.parametrize(("tool", "name", "least", "most"), NUMBERS)
def test_a_number_out_of_range_is_refused_with_the_range(tool: str, name: str, least: int, most: int) -> None:
    assert str(least) in refused(tool, **{name: least - 1})
    assert str(most) in refused(tool, **{name: most + 1})


@pytest.mark.parametrize("value", [10**20, -(10**20), 10**400, 10**5000], ids=["e20", "-e20", "e400", "e5000"])
@pytest.mark.parametrize(("tool", "name"), [(tool, name) for tool, name, *_ in NUMBERS])
def test_a_huge_number_is_refused(tool: str, name: str, value: int) -> None:
    assert name in refused(tool, **{name: value})


@pytest.mark.parametrize("value", [2**70, 10**5000], ids=["2^70", "e5000"])
@pytest.mark.parametrize(("tool", "name"), ARGUMENTS)
def test_no_argument_fails_at_a_huge_number(tool: str, name: str, value: int) -> None:
    assert name in refused(tool, **{name: value})


@pytest.mark.parametrize(("tool", "name"), TEXTS)
@pytest.mark.parametrize("blank", ["", " ", "\n\t ", "\u3000", "\u200b\u200b"])
def test_blank_text_is_refused(tool: str, name: str, blank: str) -> None:
    assert name in refused(tool, **{name: blank})


@pytest.mark.parametrize(("tool", "name", "most"), TEXT_LISTS)
@pytest.mark.parametrize(
    "bad", ["", " ", "x" * 2_001, "\ud83d", "a\x00b"], ids=["empty", "blank", "long", "half", "nul"]
)
def test_bad_text_in_a_list_is_refused_with_its_place(tool: str, name: str, most: int, bad: str) -> None:
    assert f"{name}.1" in refused(tool, **{name: ["good", bad]})


LENGTHS = [
    *((tool, name, 200) for tool, name in SHORT_TEXTS),
    *((tool, name, 2_000) for tool, name in LINES),
    *((tool, name, MAX_TEXT) for tool, name in LONG_TEXTS),
    *((tool, name, 8_000) for tool, name in VALUES),
]


@pytest.mark.parametrize(("tool", "name", "most"), LENGTHS)
def test_text_is_taken_up_to_its_greatest_length_and_not_beyond(tool: str, name: str, most: int) -> None:
    read(tool, **{name: "x" * most})
    words = refused(tool, **{name: "x" * (most + 1)})
    assert name in words
    assert str(most) in words.replace(",", "")


def test_a_text_that_is_far_too_long_does_not_come_back_in_the_answer() -> None:
    assert len(refused("store", text="x" * 10_000_000)) < 300


@pytest.mark.parametrize(("tool", "name", "most"), TEXT_LISTS)
def test_a_list_is_taken_up_to_its_greatest_length_and_not_beyond(tool: str, name: str, most: int) -> None:
    read(tool, **{name: ["x"] * most})
    assert str(most) in refused(tool, **{name: ["x"] * (most + 1)})


@pytest.mark.parametrize("bad", ["\ud83d", "a\ud800b", "\ude00\ud83d"], ids=["one", "inside", "the wrong way round"])
@pytest.mark.parametrize(("tool", "name"), TEXTS)
def test_half_of_a_surrogate_pair_is_refused_with_words_that_can_be_sent(tool: str, name: str, bad: str) -> None:
    words = refused(tool, **{name: bad})
    assert name in words
    assert "surrogate" in words


@pytest.mark.parametrize(("tool", "name"), TEXTS)
def test_a_nul_character_is_refused(tool: str, name: str) -> None:
    words = refused(tool, **{name: "a\x00b"})
    assert name in words
    assert "NUL" in words


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "key",
    ["\ud83d", "a\ud800", "", "\x00", "x" * 100_000, "\n", "query\n", "Text"],
    ids=["half", "ends in half", "empty", "nul", "long", "line end", "known and line end", "capital"],
)
@pytest.mark.parametrize("value", ["a", None, 1])
def test_no_name_of_an_argument_makes_reading_fail(tool: str, key: str, value: Any) -> None:
    refused(tool, **{key: value})


@pytest.mark.parametrize(("tool", "name"), CHOICE_LISTS + CHOICES)
def test_a_surrogate_among_choices_is_refused(tool: str, name: str) -> None:
    bad: Any = "\ud800" if (tool, name) in CHOICES else ["\ud800"]
    assert name in refused(tool, **{name: bad})


@pytest.mark.parametrize(
    "entry",
    [
        {}, {"date": "2026-02-27"}, {"action": "a"}, {"date": 3, "action": "a"}, {"date": "d", "action": None},
        {"date": "d", "action": "a", "mood": "b"}, {"date": " ", "action": "a"}, {"date": "d", "action": "\ud800"},
        {"date": "d" * 201, "action": "a"}, {"date": "d", "action": "a" * 2_001}, {"date": "d", "action": "a\x00"},
        {"date": "d", "action": "a", "\ud800": 1}, [], 3, None, True,
    ],
)  # fmt: skip
def test_a_bad_entry_of_a_timeline_is_refused_with_its_place(entry: Any) -> None:
    """spec P4: `when` is a string or {date, action}."""
    assert "when.1" in refused("store", when=["2026-02-27", entry])


def test_several_mistakes_are_told_at_once() -> None:
    words = refused("store", importance=2, pinned="yes", actors=[3])
    assert all(name in words for name in ("importance", "pinned", "actors.0"))


def test_an_empty_list_of_what_is_looked_for_is_refused() -> None:
    refused("recall_memory", memory_ids=[])
    refused("run_patrol", steps=[])
    refused("search_memory", sources=[])
    refused("store", when=[])


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(categories=None), max_size=8)
    | st.sampled_from(["joy", "episodic", "assign", "memories", "or", "2026-02-27"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["date", "action", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
ANY_CALL = st.sampled_from(list(TOOLS)).flatmap(
    lambda name: st.tuples(
        st.just(name),
        st.dictionaries(
            st.sampled_from(list(TOOLS[name].arguments.model_fields))
            | st.text(st.characters(categories=None), max_size=5),
            JSON,
            max_size=5,
        ),
    )
)


@settings(max_examples=400)
@given(ANY_CALL)
def test_any_json_is_read_or_refused_and_nothing_else(call: tuple[str, dict[str, Any]]) -> None:
    """Never another exception, and the refusal can be sent."""
    tool, given = call
    found = read_or_refused(tool, given)
    if isinstance(found, Arguments):
        jsonschema.validate(given, schema(tool), jsonschema.Draft202012Validator)
    else:
        assert found.encode()


def read_or_refused(tool: str, given: dict[str, Any]) -> Arguments | str:
    try:
        return read_arguments(TOOLS[tool].arguments, given, max_text_chars=MAX_TEXT)
    except InvalidInput as error:
        return str(error)


# --- schemas ----------------------------------------------------------------------------------------------------


def parts(found: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema in a schema, with its path."""
    yield path, found
    for name, sub in found.get("properties", {}).items():
        yield from parts(sub, f"{path}.{name}")
    if "items" in found:
        yield from parts(found["items"], f"{path}[]")
    for i, sub in enumerate(found.get("anyOf", [])):
        yield from parts(sub, f"{path}|{i}")


EVERY_PART = [(f"{tool}{path}", part) for tool in TOOLS for path, part in parts(schema(tool))]
by_path = pytest.mark.parametrize("part", [part for _, part in EVERY_PART], ids=[path for path, _ in EVERY_PART])


@pytest.mark.parametrize("tool", TOOLS)
def test_a_schema_is_json_schema_2020_12(tool: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(tool))
    jsonschema.Draft202012Validator.check_schema(dict(TOOLS[tool].answers))


@by_path
def test_a_schema_uses_only_words_that_every_client_knows(part: dict[str, Any]) -> None:
    """No $ref, no title, no null, nothing of ours."""
    assert set(part) <= {
        "type", "description", "default", "enum", "properties", "required", "additionalProperties", "items", "anyOf",
        "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems",
    }  # fmt: skip
    assert part.get("type") != "null"
    assert isinstance(part.get("type", ""), str)
    assert "type" in part or "anyOf" in part


@by_path
def test_every_bound_is_in_the_schema(part: dict[str, Any]) -> None:
    match part.get("type"):
        case "object":
            assert part["additionalProperties"] is False
        case "string":
            assert "maxLength" in part or "enum" in part
        case "number" | "integer":
            assert {"minimum", "maximum"} <= set(part)
        case "array":
            assert {"items", "maxItems"} <= set(part)


def test_the_length_of_long_texts_follows_the_setting() -> None:
    for tool, name in LONG_TEXTS:
        found = input_schema(TOOLS[tool].arguments, max_text_chars=777)
        assert found["properties"][name]["maxLength"] == 777


GOOD: list[tuple[str, dict[str, Any]]] = [
    (
        "recall",
        {
            "limit": 50,
            "categories": list(CATEGORIES),
            "themes": ["a"],
            "emotions": ["joy"],
            "ranking": "linear",
            "token_budget": 1,
            "format": "prompt",
        },
    ),
    ("recall_memory", {"memory_ids": ["a", "b"], "limit": 1}),
    ("recall_memory", {"cluster_id": "c", "cursor": "d", "limit": 100}),
    (
        "search_memory",
        {
            "mode": "and",
            "themes": ["a"],
            "since": "2026-01-01",
            "sources": ["notes"],
            "include_dead": False,
            "cursor": "x",
        },
    ),
    ("store", {"when": "2026-02-27", "importance": 1, "emotions": ["joy", "love", "fear"], "pinned": True, "key": "k"}),
    ("store", {"when": ["Day7", {"date": "2026-02-27", "action": "a"}], "importance": 0.0, "category": "social"}),
    ("update_memory", {"text": "b", "importance": 1, "themes": [], "pinned": False}),
    ("forget", {"memory_ids": ["a", "b"]}),
    ("run_patrol", {"steps": ["merge", "assign"], "dry_run": True}),
    ("observe", {"messages": [{"role": "user", "text": "Hi", "at": "2026-03-01T12:00:00Z", "key": "k"}], "title": "T"}),
    ("ingest", {"category": "semantic", "when": "2026-02-27", "actors": ["Ann"], "session_id": "s", "key": "k"}),
    ("context", {"message": "Hi", "token_limit": 100, "blocks": ["snapshot", "memories"], "prompt_lite_mode": True}),
    ("profile", {"action": "set", "kind": "notes", "name": "todo", "value": "Buy bread"}),
    ("observe", {"memories": [{"essence": "We met.", "weight": 1, "emotions": ["joy"], "messages": ["k", 0]}]}),
]


@pytest.mark.parametrize(("tool", "given"), GOOD)
def test_a_good_call_is_read_and_agrees_with_the_schema(tool: str, given: dict[str, Any]) -> None:
    jsonschema.validate(REQUIRED[tool] | given, schema(tool), jsonschema.Draft202012Validator)
    found = read(tool, **given)
    for name, value in given.items():
        if not (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
            assert getattr(found, name) == value


SOME_WORDS = st.sampled_from(["ramen", "Day7", "2026-02-27", "joy", "東京", "a b", "🙂", "x" * 200])


def like(found: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Examples of a schema, simple ones: words that are not blank; labels for emotions."""
    if "enum" in found:
        return st.sampled_from(found["enum"])
    if "anyOf" in found:
        return st.one_of([like(option) for option in found["anyOf"]])
    match found["type"]:
        case "string":
            return st.just("joy") if found["maxLength"] < 200 else SOME_WORDS
        case "integer":
            return st.integers(found["minimum"], found["maximum"])
        case "number":
            return st.floats(found["minimum"], found["maximum"]) | st.sampled_from([0, 1])
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(like(found["items"]), min_size=found.get("minItems", 0), max_size=min(4, found["maxItems"]))
        case "object":
            needed = set(found.get("required", []))
            return st.fixed_dictionaries(
                {name: like(sub) for name, sub in found["properties"].items() if name in needed},
                optional={name: like(sub) for name, sub in found["properties"].items() if name not in needed},
            )
        case other:
            raise AssertionError(other)


@pytest.mark.parametrize("tool", TOOLS)
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(data=st.data())
def test_what_the_schema_accepts_is_accepted(tool: str, data: st.DataObject) -> None:
    """A client that keeps to the schema is never told off."""
    arguments = data.draw(like(schema(tool)))
    jsonschema.validate(arguments, schema(tool), jsonschema.Draft202012Validator)
    read_arguments(TOOLS[tool].arguments, arguments, max_text_chars=MAX_TEXT)


# --- the list of tools ------------------------------------------------------------------------------------------


def listed() -> list[dict[str, Any]]:
    tools = Toolset(default_tools(Random(1)), max_text_chars=32_000).list()
    return [tool.model_dump(by_alias=True, exclude_unset=True, mode="json") for tool in tools]


def test_the_five_tools_of_the_spec_and_those_that_mend_are_there() -> None:
    """spec P9 to P12, T4; ruling 11"""
    assert [tool["name"] for tool in listed()] == [
        "recall", "recall_memory", "search_memory", "store", "update_memory", "forget", "run_patrol",
    ]  # fmt: skip


def test_the_list_of_tools_costs_a_client_about_2500_tokens() -> None:
    """Every client puts it into every prompt; this JSON is 4.0 characters a token. As it goes over the wire."""
    assert len(json.dumps(listed(), ensure_ascii=False, separators=(",", ":"))) <= 10_000


@pytest.mark.parametrize("tool", listed(), ids=lambda tool: str(tool["name"]))
def test_a_description_is_short_enough_for_every_client(tool: dict[str, Any]) -> None:
    assert 100 < len(tool["description"].encode()) < 2_048


@pytest.mark.parametrize("tool", listed(), ids=lambda tool: str(tool["name"]))
def test_all_four_hints_are_given(tool: dict[str, Any]) -> None:
    """MCP tool annotations; each is worth its default otherwise, and destructive is true by default."""
    hints = tool["annotations"]
    assert set(hints) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert all(isinstance(hint, bool) for hint in hints.values())
    assert hints["destructiveHint"] == (tool["name"] == "forget")
    assert not hints["openWorldHint"]


@pytest.mark.parametrize("tool", listed(), ids=lambda tool: str(tool["name"]))
def test_an_answers_schema_is_given_for_every_tool(tool: dict[str, Any]) -> None:
    assert tool["outputSchema"]["type"] == "object"
    assert tool["inputSchema"]["type"] == "object"
