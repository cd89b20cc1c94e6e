"""What can be said of the list of tools without asking a model: its length, that descriptions are distinct and begin
with what the tool does, that no argument is unexplained."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from madeleine.tools.toolset import Toolset, make_all_tools

MAX_LIST_CHARS = 12_800
"""Some 3,200 tokens: the list is part of every prompt."""
DESCRIPTION_CHARS = (100, 700)
MAX_FIRST_SENTENCE_CHARS = 200
MAX_SHARED_WORDS = 0.5
"""Share of the words of the shorter of two descriptions."""
MIN_WORD_CHARS = 4
SELF_EXPLAINING = frozenset({"query", "text", "id", "ids", "cluster_id"})
"""Names that every description of their tool speaks of."""


def listed_tools() -> list[dict[str, Any]]:
    """The tools as `tools/list` shows them."""
    tools = Toolset(make_all_tools(Random(1)), max_text_chars=32_000).list_tools()
    return [tool.model_dump(by_alias=True, exclude_unset=True, mode="json") for tool in tools]


def list_chars(tools: Sequence[Mapping[str, Any]]) -> int:
    """Characters, as the list goes over the wire."""
    return len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")))


def complaints(tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if (chars := list_chars(tools)) > MAX_LIST_CHARS:
        yield f"the list has {chars:,} characters, more than {MAX_LIST_CHARS:,}"
    for tool in tools:
        name, description = tool["name"], tool["description"]
        first = re.split(r"(?<=[.:;]) ", description)[0]
        least, most = DESCRIPTION_CHARS
        if not least <= len(description) <= most:
            yield f"{name}: the description has {len(description)} characters, not {least} to {most}"
        if len(first) > MAX_FIRST_SENTENCE_CHARS or not re.match(r"[A-Z][a-z]+ ", first):
            yield f"{name}: the description does not begin with a short sentence that says what the tool does"
        for argument in sorted(unexplained_arguments(tool)):
            yield f"{name}: nothing explains the argument {argument}"
    for one, other in itertools.combinations(tools, 2):
        shared = shared_words(one["description"], other["description"])
        if shared > MAX_SHARED_WORDS:
            yield f"{one['name']} and {other['name']}: {shared:.0%} of the words are the same"


def unexplained_arguments(tool: Mapping[str, Any]) -> set[str]:
    """Arguments without a description of their own, in the list of known values, or in the tool's description."""
    schema = tool["inputSchema"]
    definitions = schema.get("$defs", {})

    def resolved(part: Mapping[str, Any]) -> Mapping[str, Any]:
        return definitions[part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part

    return {
        name
        for name, part in schema["properties"].items()
        if name not in SELF_EXPLAINING
        and "description" not in resolved(part)
        and "enum" not in json.dumps(resolved(part))
        and not re.search(rf"\b{name}\b", tool["description"])
    }


def shared_words(one: str, other: str) -> float:
    words = [set(re.findall(rf"[a-z_]{{{MIN_WORD_CHARS},}}", text.casefold())) for text in (one, other)]
    return len(words[0] & words[1]) / min(map(len, words))
