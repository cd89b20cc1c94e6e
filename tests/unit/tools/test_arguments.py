"""Arguments are checked before anything happens, and the schema is what is enforced.

Types, bounds and choices are pydantic's work; that every argument has them is read off the schema. What is ours is
tabled here: text that cannot be stored, blank text, nulls, unknown arguments, and the wording of each refusal.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madeleine.memory.context.values import ContextFlags
from madeleine.memory.errors import InvalidInput
from madeleine.tools.arguments import ToolArguments, tool_input_schema, validate_tool_arguments
from madeleine.tools.tool import Tool
from madeleine.tools.toolset import make_all_tools
from tests.rows import for_each_row

MAX_TEXT = 1_000
TOOLS: dict[str, Tool] = {tool.name: tool for tool in make_all_tools(Random(1))}
REQUIRED: dict[str, dict[str, Any]] = {
    "recall": {"query": "ramen"},
    "recall_memory": {},
    "search_memory": {"query": "ramen"},
    "store": {"text": "We shared ramen."},
    "update_memory": {"id": "a"},
    "forget": {"ids": ["a"]},
    "run_patrol": {},
    "observe": {"session_id": "s"},
    "ingest": {"text": "We shared ramen."},
    "context": {},
    "profile": {},
    "share": {"text": "We deploy on Tuesdays."},
    "search_shared": {},
    "retract": {"id": "s1"},
    "report_failure": {"task": "Deploy", "error": "It broke"},
    "lessons": {"task": "Deploy"},
    "related": {"entity": "Ada"},
    "relate": {"memory": "m1", "relations": [{"subject": "Ada", "relation": "knows", "object": "Ben"}]},
    "core_memory": {},
    "edit_core_memory": {"name": "human", "text": "Ada"},
    "archive": {},
}
Argument = tuple[str, str]
ARGUMENTS: list[Argument] = [(tool.name, name) for tool in TOOLS.values() for name in tool.arguments.model_fields]
MAX_LENGTH: dict[Argument, int] = {
    ("recall_memory", "cluster_id"): 200, ("recall_memory", "cursor"): 200, ("search_memory", "since"): 200,
    ("search_memory", "until"): 200, ("search_memory", "cursor"): 200, ("store", "when"): 200,
    ("recall", "since"): 200, ("recall", "until"): 200,
    ("store", "session_id"): 200, ("store", "key"): 200, ("update_memory", "id"): 200,
    ("store", "supersedes"): 200, ("update_memory", "when"): 200, ("update_memory", "retracted"): 2_000,
    ("recall", "as_of"): 200, ("search_memory", "as_of"): 200,
    ("run_patrol", "undo"): 200, ("observe", "session_id"): 200, ("observe", "title"): 200,
    ("observe", "interface"): 200, ("context", "session_id"): 200, ("profile", "name"): 200,
    ("ingest", "session_id"): 200, ("ingest", "key"): 200, ("ingest", "when"): 200,
    ("store", "setting"): 2_000, ("store", "feeling"): 2_000, ("store", "lesson"): 2_000,
    ("recall", "query"): MAX_TEXT, ("search_memory", "query"): MAX_TEXT, ("store", "text"): MAX_TEXT,
    ("update_memory", "text"): MAX_TEXT, ("context", "message"): MAX_TEXT, ("ingest", "text"): MAX_TEXT,
    ("profile", "text"): 8_000, ("share", "text"): MAX_TEXT, ("search_shared", "query"): MAX_TEXT,
    ("share", "memory"): 200, ("share", "when"): 200, ("share", "supersedes"): 200, ("share", "key"): 200,
    ("report_failure", "session_id"): 200, ("report_failure", "task"): 2_000, ("report_failure", "error"): 2_000,
    ("lessons", "task"): 2_000, ("lessons", "id"): 200,
    ("archive", "query"): MAX_TEXT, ("archive", "text"): MAX_TEXT, ("archive", "group"): 200,
    ("archive", "session_id"): 200, ("archive", "project"): 200,
    ("recall", "project"): 200, ("search_memory", "project"): 200, ("store", "project"): 200,
    ("observe", "project"): 200, ("context", "project"): 200,
    ("search_shared", "as_of"): 200, ("search_shared", "id"): 200, ("retract", "id"): 200, ("retract", "reason"): 2_000,
    ("related", "entity"): 200, ("related", "as_of"): 200, ("relate", "memory"): 200, ("core_memory", "name"): 200,
    ("edit_core_memory", "name"): 60, ("edit_core_memory", "text"): 8_000, ("edit_core_memory", "old"): 8_000,
    ("edit_core_memory", "description"): 200,
}  # fmt: skip
"""Characters of each text."""
MAX_ITEMS: dict[Argument, int] = {
    ("recall_memory", "ids"): 50, ("search_memory", "themes"): 20, ("store", "actors"): 50,
    ("store", "dialogue"): 50, ("store", "sensory"): 50, ("store", "themes"): 20, ("store", "when"): 50,
    ("update_memory", "themes"): 20, ("forget", "ids"): 50, ("ingest", "actors"): 50, ("recall", "themes"): 20,
    ("share", "themes"): 20, ("report_failure", "tool_calls"): 50, ("archive", "ids"): 200,
}  # fmt: skip
"""Items of each list of texts."""
RANGES: dict[Argument, tuple[int, int]] = {
    ("recall", "limit"): (1, 50), ("recall", "token_budget"): (1, 100_000), ("recall_memory", "limit"): (1, 100),
    ("search_memory", "limit"): (1, 100), ("store", "importance"): (0, 1), ("update_memory", "importance"): (0, 1),
    ("context", "token_limit"): (1, 1_000_000), ("context", "context_verbosity"): (0, 50),
    ("report_failure", "retries"): (0, 1_000), ("report_failure", "turns"): (0, 10_000), ("lessons", "limit"): (1, 20),
    ("search_shared", "limit"): (1, 50), ("search_shared", "token_budget"): (1, 100_000),
    ("related", "limit"): (1, 50), ("related", "hops"): (1, 2), ("edit_core_memory", "version"): (0, 1_000_000),
    ("edit_core_memory", "max_chars"): (1, 8_000),
    ("archive", "limit"): (1, 200), ("archive", "position"): (0, 10**9),
}  # fmt: skip
CHOICES: list[Argument] = [
    ("recall", "format"), ("recall", "ranking"), ("search_memory", "mode"), ("store", "category"),
    ("ingest", "category"), ("profile", "action"), ("profile", "kind"), ("share", "kind"),
    ("lessons", "outcome"), ("search_shared", "scope"), ("archive", "action"),
    ("store", "level"),
]  # fmt: skip
CHOICE_LISTS: list[Argument] = [
    ("recall", "categories"), ("search_memory", "categories"), ("search_memory", "sources"), ("run_patrol", "steps"),
    ("context", "blocks"), ("search_shared", "kinds"),
]  # fmt: skip
FLAGS: list[Argument] = [
    ("search_memory", "include_dead"), ("search_memory", "include_compressed"), ("store", "pinned"),
    ("store", "distinct"), ("run_patrol", "dry_run"), ("run_patrol", "details"), ("update_memory", "pinned"),
    ("update_memory", "undo"), ("forget", "wait"), ("recall", "details"), ("recall_memory", "details"),
    ("search_memory", "details"), ("recall", "include_compressed"), ("retract", "undo"), ("retract", "erase"),
    ("relate", "remove"), ("edit_core_memory", "append"), ("edit_core_memory", "erase"),
    *(("context", name) for name in ContextFlags.model_fields if name != "context_verbosity"),
]  # fmt: skip
TESTED_ELSEWHERE: set[Argument] = {
    ("run_patrol", "decisions"), ("observe", "messages"), ("observe", "memories"), ("store", "scenes"),
    ("store", "emotions"), ("store", "emotion_vector"), ("recall", "emotions"), ("recall", "explain"),
    ("report_failure", "lesson"), ("relate", "relations"),
}  # fmt: skip
FORGIVING = {"scenes", "emotions", "emotion_vector", "decisions"}
"""More is read than the schema says: what is unknown is named in the answer, and a wrong decision is rejected there."""


def read(tool: str, **given: Any) -> ToolArguments:
    return validate_tool_arguments(TOOLS[tool].arguments, REQUIRED[tool] | given, max_text_chars=MAX_TEXT)


def refusal(tool: str, **given: Any) -> str:
    """The message that the caller gets."""
    with pytest.raises(InvalidInput) as caught:
        read(tool, **given)
    message = str(caught.value)
    assert message.startswith("Nothing was done. ")
    assert message.endswith((".", "…"))
    assert len(message) < 3_000
    assert message.encode()
    return message


def schema(tool: str) -> dict[str, Any]:
    whole: dict[str, Any] = with_definitions_in_place(tool_input_schema(TOOLS[tool].arguments, max_text_chars=MAX_TEXT))
    return whole


def with_definitions_in_place(part: Any, definitions: dict[str, Any] | None = None) -> Any:
    if isinstance(part, list):
        return [with_definitions_in_place(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    definitions = part.get("$defs", {}) if definitions is None else definitions
    if "$ref" in part:
        return with_definitions_in_place(definitions[part["$ref"].removeprefix("#/$defs/")], definitions)
    return {name: with_definitions_in_place(sub, definitions) for name, sub in part.items() if name != "$defs"}


def test_the_tables_name_every_argument_of_every_tool() -> None:
    """A new argument must be put to the tests below."""
    named = {*MAX_LENGTH, *MAX_ITEMS, *RANGES, *CHOICES, *CHOICE_LISTS, *FLAGS, *TESTED_ELSEWHERE}
    assert named == set(ARGUMENTS)
    assert set(TOOLS) == set(REQUIRED)


# --- refusals that are ours -------------------------------------------------------------------------------------

SURROGATE = "contains half of a surrogate pair"
MESSAGES: list[tuple[str, dict[str, Any], str]] = [
    (
        "store",
        {"colour": "red"},
        "Nothing was done. Unknown argument 'colour': leave it out. All arguments: tools/list.",
    ),
    ("store", {"tags": ["a"]}, "Unknown argument 'tags': is 'themes' meant?"),
    ("search_memory", {"query": "a", "untill": "2026"}, "Unknown argument 'untill': is 'until' meant?"),
    ("store", {"text\n": "a"}, "Unknown argument 'text\\n': is 'text' meant?"),
    ("store", {"\ud83d": "a"}, f"arguments: {SURROGATE}"),
    ("store", {"x" * 100_000: "a"}, f"Unknown argument '{'x' * 300}': leave it out."),
    ("store", {"when": [{"date": "d", "action": "a", "mood": 1}]}, "Unknown argument 'when."),
    ("store", {"setting": None}, "arguments: must not be null, leave it out instead: setting."),
    ("store", {"\ud83d": None}, "must not be null, leave it out instead: ?."),
    ("store", {"when": [{"date": "d", "action": None}]}, "when.0: must not be null, leave it out instead: action."),
    ("store", {"themes": [None]}, "themes.0: "),
    ("store", {"text": "\ud83d"}, f"text: {SURROGATE}"),
    ("store", {"text": "a\ud800b"}, f"text: {SURROGATE}"),
    ("store", {"category": "\ud800"}, "category: "),
    ("recall", {"categories": ["\ud800"]}, "categories.0: "),
    ("store", {"setting": "\ude00\ud83d"}, f"setting: {SURROGATE}"),
    ("store", {"text": "a\x00b"}, "text: contains a NUL character, which cannot be stored; leave it out."),
    ("store", {"text": ""}, "text: is empty; give a text, or leave the argument out if it is optional."),
    ("store", {"text": "\n\t "}, "text: is empty"),
    ("store", {"feeling": "\u3000"}, "feeling: is empty"),
    ("store", {"key": "\u200b\u200b"}, "key: is empty"),
    ("profile", {"text": " "}, "text: is empty"),
    ("store", {"themes": ["good", " "]}, "themes.1: is empty"),
    ("store", {"when": ["2026-02-27", {"date": " ", "action": "a"}]}, "when.1.date: is empty"),
    ("store", {"when": ["2026-02-27", {"date": "d"}]}, "when.1.action: is required."),
    ("store", {"text": "x" * 1_001}, "text: has 1,001 characters, at most 1,000 are accepted; split it into several"),
    ("store", {"setting": "x" * 2_001}, "setting: has 2,001 characters, at most 2,000 are accepted; shorten it."),
    ("store", {"importance": math.nan}, "importance: must be a finite number, not NaN or infinity."),
    ("recall", {"limit": math.inf}, "limit: must be a finite number, not NaN or infinity."),
    ("recall", {"limit": [math.nan]}, "limit: "),
    ("recall", {"limit": 10**5000}, "limit: "),
    ("store", {"importance": 10**400}, "importance: "),
    ("store", {"text": 10**5000}, "text: "),
    ("store", {"emotions": 3}, "emotions: Input should be a valid list."),
    ("store", {"emotion_vector": 3}, "emotion_vector: "),
    ("store", {"scenes": {}}, "scenes: "),
    ("forget", {"ids": []}, "ids: "),
    ("recall_memory", {"ids": []}, "ids: "),
    ("run_patrol", {"steps": []}, "steps: "),
    ("search_memory", {"sources": []}, "sources: "),
    ("store", {"when": []}, "when: "),
]


@for_each_row(("tool", "given", "message"), MESSAGES)
def test_a_refusal_names_the_argument_and_says_what_to_do(tool: str, given: dict[str, Any], message: str) -> None:
    assert message in refusal(tool, **given)


@for_each_row("tool", TOOLS)
def test_unknown_arguments_are_refused_and_the_being_is_one(tool: str) -> None:
    """spec P1, ruling 12: who a caller is comes from the connection."""
    message = refusal(tool, being_id="bob")
    assert message == "Nothing was done. Unknown argument 'being_id': leave it out. All arguments: tools/list."


def test_required_arguments_are_named() -> None:
    for tool, required in REQUIRED.items():
        for name in required.keys() & set(schema(tool).get("required", [])):
            with pytest.raises(InvalidInput, match=f"{name}: is required"):
                validate_tool_arguments(TOOLS[tool].arguments, {}, max_text_chars=MAX_TEXT)


def test_several_mistakes_are_reported_at_once() -> None:
    message = refusal("store", importance=2, pinned="yes", actors=[3])
    assert all(name in message for name in ("importance", "pinned", "actors.0"))


def test_a_text_that_is_far_too_long_is_not_repeated_in_the_refusal() -> None:
    assert len(refusal("store", text="x" * 10_000_000)) < 300


# --- properties, one for each type of argument ------------------------------------------------------------------

BAD_CHARACTER = st.sampled_from(["\ud83d", "\ude00", "\x00"])
BLANK = st.text(" \t\n\u3000\u200b\u2060", max_size=5)
NOT_TEXT = st.integers() | st.floats() | st.booleans() | st.lists(st.text(), max_size=2) | st.binary(max_size=2)


@given(st.sampled_from(list(MAX_LENGTH)), st.data())
def test_a_text_is_accepted_up_to_its_length_if_it_can_be_stored(argument: Argument, data: st.DataObject) -> None:
    (tool, name), most = argument, MAX_LENGTH[argument]
    text = "x" * data.draw(st.integers(1, 50) | st.just(most))
    assert getattr(read(tool, **{name: text}), name) == text
    assert f"{most:,}" in refusal(tool, **{name: "x" * (most + 1)}).replace(f"most {most} ", f"most {most:,} ")
    assert name in refusal(tool, **{name: f"a{data.draw(BAD_CHARACTER)}b"})
    assert name in refusal(tool, **{name: data.draw(BLANK)})
    value = data.draw(NOT_TEXT)
    if argument != ("store", "when") or not isinstance(value, list):
        assert name in refusal(tool, **{name: value})


@given(st.sampled_from(list(MAX_ITEMS)), st.data())
def test_a_list_is_accepted_up_to_its_length_if_every_item_is(argument: Argument, data: st.DataObject) -> None:
    (tool, name), most = argument, MAX_ITEMS[argument]
    texts = ["x"] * data.draw(st.integers(1, most))
    assert getattr(read(tool, **{name: texts}), name) == texts
    assert str(most) in refusal(tool, **{name: ["x"] * (most + 1)})
    bad = data.draw(BAD_CHARACTER | BLANK | st.just("x" * 2_001) | st.none() | st.booleans() | st.just(["a"]))
    assert f"{name}.1" in refusal(tool, **{name: ["good", bad]})
    if argument != ("store", "when"):
        assert getattr(read(tool, **{name: "x"}), name) == ["x"]
        assert name in refusal(tool, **{name: data.draw(st.integers() | st.booleans())})


@given(st.sampled_from(list(RANGES)), st.data())
def test_a_number_is_accepted_within_its_range(argument: Argument, data: st.DataObject) -> None:
    (tool, name), (least, most) = argument, RANGES[argument]
    value = data.draw(st.integers(least, most))
    assert getattr(read(tool, **{name: value}), name) == value
    assert str(least) in refusal(tool, **{name: least - data.draw(st.integers(1, 10**30))})
    assert str(most) in refusal(tool, **{name: most + data.draw(st.integers(1, 10**30))})
    assert "finite" in refusal(tool, **{name: data.draw(st.sampled_from([math.nan, math.inf, -math.inf]))})
    assert name in refusal(tool, **{name: data.draw(st.text() | st.booleans() | st.lists(st.integers(), max_size=1))})


@given(st.sampled_from(CHOICES + CHOICE_LISTS), st.text(st.characters(categories=None), max_size=9))
def test_a_choice_is_one_of_its_options(argument: Argument, value: str) -> None:
    tool, name = argument
    part = schema(tool)["properties"][name]
    options = (part if argument in CHOICES else part["items"])["enum"]
    for option in options:
        read(tool, **{name: option if argument in CHOICES else [option]})
    if value not in options:
        assert name in refusal(tool, **{name: value if argument in CHOICES else [value]})


@given(st.sampled_from(FLAGS), st.integers() | st.floats() | st.text() | st.lists(st.booleans(), max_size=1))
def test_a_flag_is_a_boolean_and_nothing_like_one(argument: Argument, value: Any) -> None:
    tool, name = argument
    for flag in (True, False):
        assert getattr(read(tool, **{name: flag}), name) is flag
    assert name in refusal(tool, **{name: value})


@given(
    st.sampled_from([argument for argument in ARGUMENTS if argument[1] not in FORGIVING]),
    st.sampled_from([None, math.nan, [math.nan], {"a": math.inf}, 2**70, 10**5000]),
)
def test_no_argument_accepts_null_nan_or_a_huge_number(argument: Argument, value: Any) -> None:
    tool, name = argument
    message = refusal(tool, **{name: value})
    assert name in message
    assert value is not None or "must not be null, leave it out instead" in message


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
    """Never another exception; the refusal can be sent, and what is read agrees with the schema."""
    tool, arguments = call
    outcome = read_or_refused(tool, arguments)
    if isinstance(outcome, ToolArguments):
        as_read = {  # one text stands for a list of it
            name: [value] if isinstance(value, str) and isinstance(getattr(outcome, name), list) else value
            for name, value in arguments.items()
        }
        arguments = {name: value for name, value in as_read.items() if name not in FORGIVING}
        jsonschema.validate(arguments, schema(tool), jsonschema.Draft202012Validator)
    else:
        assert outcome.encode()


def read_or_refused(tool: str, arguments: dict[str, Any]) -> ToolArguments | str:
    try:
        return validate_tool_arguments(TOOLS[tool].arguments, arguments, max_text_chars=MAX_TEXT)
    except InvalidInput as error:
        return str(error)
