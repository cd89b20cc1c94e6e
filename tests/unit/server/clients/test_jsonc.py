"""Changes to files that people edit: what is not ours stays, to the byte."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.server.clients.jsonc import (
    UnreadableConfiguration,
    append_json_item,
    json_text_without_unwanted_items,
    parse_json_with_comments,
    remove_json_member,
    set_json_member,
)
from tests.rows import for_each_row

ENTRY = {"command": "/opt/m", "args": [], "env": {"MADELEINE_BEING": "ada"}}
PATH = ["mcpServers", "madeleine"]

HAND_MADE = [
    "{}",
    '{"a":1}',
    '{"mcpServers":{"x":{"command":"x"}}}',
    '// mine\n{\n\t"theme": "One", // dark\n\t"mcpServers": {\n\t\t"x": {"command": "x"} // the x\n\t} /* end */\n}\n',
    '{\r\n    "mcpServers": {},\r\n}\r\n',
    '{\n  "url": "http://a/b", /* , } */\n  "mcpServers": { // none yet\n  }\n}',
    '\ufeff{\n "a": [1, 2,],\n "mcpServers": {"x": {}, },\n}\n',
]


@for_each_row("text", HAND_MADE)
def test_an_entry_is_put_in_and_taken_out_and_all_else_stays(text: str) -> None:
    before = parse_json_with_comments(text)
    changed = set_json_member(text, PATH, ENTRY)
    expected = before | {"mcpServers": before.get("mcpServers", {}) | {"madeleine": ENTRY}}
    assert parse_json_with_comments(changed) == expected
    assert [comment for comment in re.findall(r"//.*|/\*.*?\*/", text) if comment not in changed] == []
    assert ("\r\n" in text) == ("\r\n" in changed)
    assert changed == set_json_member(changed, PATH, ENTRY)
    emptied = remove_json_member(changed, PATH)
    assert parse_json_with_comments(emptied) == before | {"mcpServers": before.get("mcpServers", {})}
    if "x" in before.get("mcpServers", {}):
        assert "".join(emptied.replace(",", "").split()) == "".join(text.replace(",", "").split())


@for_each_row(
    ("text", "reason"),
    [
        ("{broken", "it is not JSON"),
        ("", "it is not JSON"),
        ('{"a": 1} {', "something follows its end"),
        ('{"a": 1, "a": 2}', "a key stands twice"),
        ('{"a": 1 "b": 2}', "a comma is missing"),
        ('{"mcpServers": []}', "mcpServers is not an object"),
        ("[]", "the whole is not an object"),
        ("[" * 10_000, "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_refused_and_the_reason_told(text: str, reason: str) -> None:
    with pytest.raises(UnreadableConfiguration, match=reason):
        set_json_member(text, PATH, ENTRY)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)
CONFIGURATIONS = st.dictionaries(
    st.sampled_from(["theme", "mcpServers", "hooks", "z"]),
    st.dictionaries(st.text(max_size=6), JSON_VALUES, max_size=3),
)


def written(value: Any, rng: random.Random, depth: int = 1) -> str:
    """JSON as some hand may have written it: with comments, spaces and commas anywhere."""

    def gap() -> str:
        return rng.choice(["", " ", "\n" + "  " * depth, " // , }\n", "/* ] */", "\t"])

    if not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=rng.random() < 0.5)
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    items = [written(item, rng, depth + 1) for item in (value.values() if isinstance(value, dict) else value)]
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}{gap()}:{gap()}{item}" for key, item in zip(value, items, strict=True)]
    last_comma = "," if items and rng.random() < 0.3 else ""
    return opening + gap() + f"{gap()},{gap()}".join(items) + gap() + last_comma + gap() + closing


@given(CONFIGURATIONS, st.integers(0, 10**6))
def test_any_file_is_changed_in_the_one_place_and_changed_back(data: dict[str, Any], seed: int) -> None:
    text = written(data, random.Random(seed))
    assert parse_json_with_comments(text) == data
    changed = set_json_member(text, PATH, ENTRY)
    servers = data.get("mcpServers", {})
    assert parse_json_with_comments(changed) == data | {"mcpServers": servers | {"madeleine": ENTRY}}
    if "madeleine" not in servers:
        assert parse_json_with_comments(remove_json_member(changed, PATH)) == data | {"mcpServers": servers}
    listed = append_json_item(append_json_item(changed, ["list", "a"], 1), ["list", "a"], ENTRY)
    assert parse_json_with_comments(listed)["list"] == {"a": [1, ENTRY]}
    assert parse_json_with_comments(json_text_without_unwanted_items(listed, ["list", "a"], lambda item: item == 1))[
        "list"
    ]["a"] == [ENTRY]
