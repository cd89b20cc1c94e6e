"""Changes to the text of a JSON file that people edit: comments, order, spacing and all other keys stay as they are.

Comments and trailing commas are read as VS Code, Zed and others allow them. Every change is checked: the new text, read
again, must hold exactly what was meant, else it is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

JsonKeyPath = Sequence[str]
_TRIVIA = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*+", re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}/]+")
_DECODER = json.JSONDecoder()
MAX_JSON_WITH_COMMENTS_DEPTH = 200


class UnreadableConfiguration(Exception):
    """A file that cannot be read, or not be changed without guessing. The message says why."""


@dataclass(slots=True)
class _Node:
    """A value between `start` and `end` of the text."""

    start: int
    end: int
    value: Any
    children: list[_Child] = field(default_factory=list)


@dataclass(slots=True)
class _Child:
    """A member or an item, from its key or itself on. `comma`: its place, or -1."""

    start: int
    node: _Node
    key: str = ""
    comma: int = -1


def parse_json_with_comments(text: str) -> Any:
    """Raises `UnreadableConfiguration`."""
    return _parse(text).value


def set_json_member(text: str, path: JsonKeyPath, value: Any) -> str:
    """The text with `value` at `path`, in place of what was there. Objects on the way are made. Raises
    `UnreadableConfiguration`."""

    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data.setdefault(key, {})
        data[path[-1]] = value

    root = node = _parse(text)
    for depth, key in enumerate(path):
        _require(node, dict, path[:depth])
        child = _child_of(node, key)
        if child is None:
            missing = {key: _nested(path[depth + 1 :], value)}
            return _checked(_with_children(text, node, members=missing), root, change)
        node = child.node
    changed = text[: node.start] + _rendered(value, _indent_at(text, node.start), text) + text[node.end :]
    return _checked(changed, root, change)


def append_json_item(text: str, path: JsonKeyPath, item: Any) -> str:
    """The text with `item` at the end of the list at `path`, which is made if it is missing."""
    root = _parse(text)
    node = _at(root, path)
    if node is None:
        return set_json_member(text, path, [item])
    _require(node, list, path)

    def change(data: Any) -> None:
        _value_at(data, path).append(item)

    return _checked(_with_children(text, node, items=[item]), root, change)


def remove_json_member(text: str, path: JsonKeyPath) -> str:
    """The text without the member at `path`; unchanged if there is none."""
    root = _parse(text)
    parent = _at(root, path[:-1])
    child = _child_of(parent, path[-1]) if parent is not None and isinstance(parent.value, dict) else None
    if parent is None or child is None:
        return text

    def change(data: Any) -> None:
        del _value_at(data, path[:-1])[path[-1]]

    return _checked(_without_child(text, parent, child), root, change)


def json_text_without_unwanted_items(text: str, path: JsonKeyPath, is_unwanted: Callable[[Any], bool]) -> str:
    """The text without the items of the list at `path` that are unwanted."""
    while (node := _at(root := _parse(text), path)) is not None and isinstance(node.value, list):
        place = next((place for place, item in enumerate(node.value) if is_unwanted(item)), None)
        if place is None:
            break

        def change(data: Any, place: int = place) -> None:
            del _value_at(data, path)[place]

        text = _checked(_without_child(text, node, node.children[place]), root, change)
    return text


# --- reading ------------------------------------------------------------------------------------------------------


def _parse(text: str) -> _Node:
    try:
        node, end = _parse_value(text, _after_trivia(text, 1 if text.startswith("\ufeff") else 0), 0)
    except (ValueError, IndexError) as error:
        raise UnreadableConfiguration(f"it is not JSON: {error}") from error
    if _after_trivia(text, end) != len(text):
        raise UnreadableConfiguration(f"it is not JSON: something follows its end at character {end}")
    return node


def _after_trivia(text: str, at: int) -> int:
    match = _TRIVIA.match(text, at)
    return match.end() if match else at


def _parse_value(text: str, at: int, depth: int) -> tuple[_Node, int]:
    if depth > MAX_JSON_WITH_COMMENTS_DEPTH:
        raise ValueError("it is nested too deeply")
    opening = text[at]
    if opening in "{[":
        node = _parse_container(text, at, depth, closing="}" if opening == "{" else "]")
    elif opening == '"':
        value, end = _DECODER.raw_decode(text, at)
        node = _Node(at, end, value)
    elif scalar := _SCALAR.match(text, at):
        node = _Node(at, scalar.end(), json.loads(scalar[0]))
    else:
        raise ValueError(f"no value at character {at}")
    return node, node.end


def _parse_container(text: str, at: int, depth: int, *, closing: str) -> _Node:
    children: list[_Child] = []
    end = _after_trivia(text, at + 1)
    while text[end] != closing:
        if children and children[-1].comma < 0:
            raise ValueError(f"a comma is missing at character {end}")
        child_start, key = end, ""
        if closing == "}":
            if text[end] != '"':
                raise ValueError(f"no key at character {end}")
            key, end = _DECODER.raw_decode(text, end)
            end = _after_trivia(text, end)
            if text[end] != ":":
                raise ValueError(f"no colon at character {end}")
            end = _after_trivia(text, end + 1)
        node, end = _parse_value(text, end, depth + 1)
        child = _Child(child_start, node, key)
        end = _after_trivia(text, end)
        if text[end] == ",":
            child.comma, end = end, _after_trivia(text, end + 1)
        children.append(child)
    value: Any = [child.node.value for child in children]
    if closing == "}":
        value = {child.key: child.node.value for child in children}
        if len(value) < len(children):
            raise ValueError("a key stands twice in one object")
    return _Node(at, end + 1, value, children)


def _child_of(node: _Node, key: str) -> _Child | None:
    return next((child for child in node.children if child.key == key), None)


def _at(root: _Node, path: JsonKeyPath) -> _Node | None:
    node = root
    for key in path:
        child = _child_of(node, key) if isinstance(node.value, dict) else None
        if child is None:
            return None
        node = child.node
    return node


def _value_at(data: Any, path: JsonKeyPath) -> Any:
    for key in path:
        data = data[key]
    return data


def _require(node: _Node, kind: type, path: JsonKeyPath) -> None:
    if not isinstance(node.value, kind):
        name = "an object" if kind is dict else "a list"
        raise UnreadableConfiguration(f"{'.'.join(path) or 'the whole'} is not {name}")


def _nested(path: JsonKeyPath, value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _checked(text: str, root: _Node, change: Callable[[Any], None]) -> str:
    meant = deepcopy(root.value)
    change(meant)
    if parse_json_with_comments(text) != meant:
        raise UnreadableConfiguration("it cannot be changed without touching something else")
    return text


# --- writing ------------------------------------------------------------------------------------------------------


def _with_children(text: str, node: _Node, *, members: dict[str, Any] | None = None, items: Sequence[Any] = ()) -> str:
    """New children stand on lines of their own, behind the last one and its comment."""
    closing = node.end - 1
    outer = _indent_at(text, node.start)
    inner = outer + _indent_unit(text)
    if node.children and "\n" in text[node.start : node.children[0].start]:
        inner = _indent_at(text, node.children[-1].start)
    content_end = len(text[:closing].rstrip())
    end_of_line = _end_of_line(text)
    rendered = [_rendered(item, inner, text) for item in items]
    rendered += [
        f"{json.dumps(key, ensure_ascii=False)}: {_rendered(value, inner, text)}"
        for key, value in (members or {}).items()
    ]
    added = f"{end_of_line}{inner}" + f",{end_of_line}{inner}".join(rendered)
    rest = text[content_end:]
    if "\n" not in text[content_end:closing]:
        rest = f"{end_of_line}{outer}{text[closing:]}"
    if node.children and (last := node.children[-1]).comma < 0:
        return text[: last.node.end] + "," + text[last.node.end : content_end] + added + rest
    return text[:content_end] + added + rest


def _without_child(text: str, parent: _Node, child: _Child) -> str:
    place = parent.children.index(child)
    start, end = len(text[: child.start].rstrip()), child.node.end
    if child.comma >= 0:
        end = child.comma + 1
    elif place:  # the last one, without a comma: the one before loses its own
        comma = parent.children[place - 1].comma
        return text[:comma] + text[comma + 1 : start] + text[end:]
    return text[:start] + text[end:]


def _rendered(value: Any, indent: str, text: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=_indent_unit(text)).split("\n")
    return f"{_end_of_line(text)}{indent}".join(lines)


def _end_of_line(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_unit(text: str) -> str:
    indented = re.search(r"^(\t| +)\S", text, re.MULTILINE)
    return indented[1] if indented else "  "


def _indent_at(text: str, at: int) -> str:
    """Of the line that holds this place."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]
