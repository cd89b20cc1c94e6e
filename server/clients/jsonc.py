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
_WHITESPACE_AND_COMMENTS_PATTERN = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*+", re.DOTALL)
_UNQUOTED_JSON_SCALAR_PATTERN = re.compile(r"[^\s,\]}/]+")
_JSON_DECODER = json.JSONDecoder()
MAX_JSON_WITH_COMMENTS_DEPTH = 200


class UnreadableConfiguration(Exception):
    """A file that cannot be read, or not be changed without guessing. The message says why."""


@dataclass(slots=True)
class _JsonNodeWithPosition:
    """A value between `start` and `end` of the text."""

    start: int
    end: int
    value: Any
    children: list[_PositionedJsonMemberOrItem] = field(default_factory=list)


@dataclass(slots=True)
class _PositionedJsonMemberOrItem:
    """A member or an item, from its key or itself on. `comma`: its place, or -1."""

    start: int
    node: _JsonNodeWithPosition
    key: str = ""
    comma: int = -1


def parse_json_with_comments(text: str) -> Any:
    """Raises `UnreadableConfiguration`."""
    return _parse_json_to_positioned_nodes(text).value


def set_json_member(text: str, path: JsonKeyPath, value: Any) -> str:
    """The text with `value` at `path`, in place of what was there. Objects on the way are made. Raises
    `UnreadableConfiguration`."""

    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data.setdefault(key, {})
        data[path[-1]] = value

    root = node = _parse_json_to_positioned_nodes(text)
    for depth, key in enumerate(path):
        _require_json_type(node, dict, path[:depth])
        child = _json_member_with_key(node, key)
        if child is None:
            missing = {key: _wrap_in_nested_objects(path[depth + 1 :], value)}
            return _require_only_intended_json_change(
                _insert_json_members_or_items(text, node, members=missing), root, change
            )
        node = child.node
    changed = (
        text[: node.start] + _render_indented_json(value, _indent_of_line_at(text, node.start), text) + text[node.end :]
    )
    return _require_only_intended_json_change(changed, root, change)


def append_json_item(text: str, path: JsonKeyPath, item: Any) -> str:
    """The text with `item` at the end of the list at `path`, which is made if it is missing."""
    root = _parse_json_to_positioned_nodes(text)
    node = _find_json_node_at_path(root, path)
    if node is None:
        return set_json_member(text, path, [item])
    _require_json_type(node, list, path)

    def change(data: Any) -> None:
        _value_at_key_path(data, path).append(item)

    return _require_only_intended_json_change(_insert_json_members_or_items(text, node, items=[item]), root, change)


def remove_json_member(text: str, path: JsonKeyPath) -> str:
    """The text without the member at `path`; unchanged if there is none."""
    root = _parse_json_to_positioned_nodes(text)
    parent = _find_json_node_at_path(root, path[:-1])
    child = _json_member_with_key(parent, path[-1]) if parent is not None and isinstance(parent.value, dict) else None
    if parent is None or child is None:
        return text

    def change(data: Any) -> None:
        del _value_at_key_path(data, path[:-1])[path[-1]]

    return _require_only_intended_json_change(_remove_json_member_or_item(text, parent, child), root, change)


def json_text_without_unwanted_items(text: str, path: JsonKeyPath, is_unwanted: Callable[[Any], bool]) -> str:
    """The text without the items of the list at `path` that are unwanted."""
    while (
        node := _find_json_node_at_path(root := _parse_json_to_positioned_nodes(text), path)
    ) is not None and isinstance(node.value, list):
        place = next((place for place, item in enumerate(node.value) if is_unwanted(item)), None)
        if place is None:
            break

        def change(data: Any, place: int = place) -> None:
            del _value_at_key_path(data, path)[place]

        text = _require_only_intended_json_change(
            _remove_json_member_or_item(text, node, node.children[place]), root, change
        )
    return text


# --- reading ------------------------------------------------------------------------------------------------------


def _parse_json_to_positioned_nodes(text: str) -> _JsonNodeWithPosition:
    try:
        node, end = _parse_json_value_at(
            text, _position_after_whitespace_and_comments(text, 1 if text.startswith("\ufeff") else 0), 0
        )
    except (ValueError, IndexError) as error:
        raise UnreadableConfiguration(f"it is not JSON: {error}") from error
    if _position_after_whitespace_and_comments(text, end) != len(text):
        raise UnreadableConfiguration(f"it is not JSON: something follows its end at character {end}")
    return node


def _position_after_whitespace_and_comments(text: str, at: int) -> int:
    match = _WHITESPACE_AND_COMMENTS_PATTERN.match(text, at)
    return match.end() if match else at


def _parse_json_value_at(text: str, at: int, depth: int) -> tuple[_JsonNodeWithPosition, int]:
    if depth > MAX_JSON_WITH_COMMENTS_DEPTH:
        raise ValueError("it is nested too deeply")
    opening = text[at]
    if opening in "{[":
        node = _parse_json_object_or_list_at(text, at, depth, closing="}" if opening == "{" else "]")
    elif opening == '"':
        value, end = _JSON_DECODER.raw_decode(text, at)
        node = _JsonNodeWithPosition(at, end, value)
    elif scalar := _UNQUOTED_JSON_SCALAR_PATTERN.match(text, at):
        node = _JsonNodeWithPosition(at, scalar.end(), json.loads(scalar[0]))
    else:
        raise ValueError(f"no value at character {at}")
    return node, node.end


def _parse_json_object_or_list_at(text: str, at: int, depth: int, *, closing: str) -> _JsonNodeWithPosition:
    children: list[_PositionedJsonMemberOrItem] = []
    end = _position_after_whitespace_and_comments(text, at + 1)
    while text[end] != closing:
        if children and children[-1].comma < 0:
            raise ValueError(f"a comma is missing at character {end}")
        child_start, key = end, ""
        if closing == "}":
            if text[end] != '"':
                raise ValueError(f"no key at character {end}")
            key, end = _JSON_DECODER.raw_decode(text, end)
            end = _position_after_whitespace_and_comments(text, end)
            if text[end] != ":":
                raise ValueError(f"no colon at character {end}")
            end = _position_after_whitespace_and_comments(text, end + 1)
        node, end = _parse_json_value_at(text, end, depth + 1)
        child = _PositionedJsonMemberOrItem(child_start, node, key)
        end = _position_after_whitespace_and_comments(text, end)
        if text[end] == ",":
            child.comma, end = end, _position_after_whitespace_and_comments(text, end + 1)
        children.append(child)
    value: Any = [child.node.value for child in children]
    if closing == "}":
        value = {child.key: child.node.value for child in children}
        if len(value) < len(children):
            raise ValueError("a key stands twice in one object")
    return _JsonNodeWithPosition(at, end + 1, value, children)


def _json_member_with_key(node: _JsonNodeWithPosition, key: str) -> _PositionedJsonMemberOrItem | None:
    return next((child for child in node.children if child.key == key), None)


def _find_json_node_at_path(root: _JsonNodeWithPosition, path: JsonKeyPath) -> _JsonNodeWithPosition | None:
    node = root
    for key in path:
        child = _json_member_with_key(node, key) if isinstance(node.value, dict) else None
        if child is None:
            return None
        node = child.node
    return node


def _value_at_key_path(data: Any, path: JsonKeyPath) -> Any:
    for key in path:
        data = data[key]
    return data


def _require_json_type(node: _JsonNodeWithPosition, kind: type, path: JsonKeyPath) -> None:
    if not isinstance(node.value, kind):
        name = "an object" if kind is dict else "a list"
        raise UnreadableConfiguration(f"{'.'.join(path) or 'the whole'} is not {name}")


def _wrap_in_nested_objects(path: JsonKeyPath, value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _require_only_intended_json_change(text: str, root: _JsonNodeWithPosition, change: Callable[[Any], None]) -> str:
    meant = deepcopy(root.value)
    change(meant)
    if parse_json_with_comments(text) != meant:
        raise UnreadableConfiguration("it cannot be changed without touching something else")
    return text


# --- writing ------------------------------------------------------------------------------------------------------


def _insert_json_members_or_items(
    text: str, node: _JsonNodeWithPosition, *, members: dict[str, Any] | None = None, items: Sequence[Any] = ()
) -> str:
    """New children stand on lines of their own, behind the last one and its comment."""
    closing = node.end - 1
    outer = _indent_of_line_at(text, node.start)
    inner = outer + _indent_unit(text)
    if node.children and "\n" in text[node.start : node.children[0].start]:
        inner = _indent_of_line_at(text, node.children[-1].start)
    content_end = len(text[:closing].rstrip())
    end_of_line = _line_ending_of_text(text)
    rendered = [_render_indented_json(item, inner, text) for item in items]
    rendered += [
        f"{json.dumps(key, ensure_ascii=False)}: {_render_indented_json(value, inner, text)}"
        for key, value in (members or {}).items()
    ]
    added = f"{end_of_line}{inner}" + f",{end_of_line}{inner}".join(rendered)
    rest = text[content_end:]
    if "\n" not in text[content_end:closing]:
        rest = f"{end_of_line}{outer}{text[closing:]}"
    if node.children and (last := node.children[-1]).comma < 0:
        return text[: last.node.end] + "," + text[last.node.end : content_end] + added + rest
    return text[:content_end] + added + rest


def _remove_json_member_or_item(text: str, parent: _JsonNodeWithPosition, child: _PositionedJsonMemberOrItem) -> str:
    place = parent.children.index(child)
    start, end = len(text[: child.start].rstrip()), child.node.end
    if child.comma >= 0:
        end = child.comma + 1
    elif place:  # the last one, without a comma: the one before loses its own
        comma = parent.children[place - 1].comma
        return text[:comma] + text[comma + 1 : start] + text[end:]
    return text[:start] + text[end:]


def _render_indented_json(value: Any, indent: str, text: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=_indent_unit(text)).split("\n")
    return f"{_line_ending_of_text(text)}{indent}".join(lines)


def _line_ending_of_text(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_unit(text: str) -> str:
    indented = re.search(r"^(\t| +)\S", text, re.MULTILINE)
    return indented[1] if indented else "  "


def _indent_of_line_at(text: str, at: int) -> str:
    """Of the line that holds this place."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]
