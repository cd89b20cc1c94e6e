"""Changes to the text of a TOML file that people edit, a table at a time. Checked as in `jsonc`."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from madeleine.server.clients.jsonc import UnreadableConfiguration

_TOML_TABLE_HEADER_PATTERN = re.compile(r"^[ \t]*\[")


def parse_toml(text: str) -> dict[str, Any]:
    """Raises `UnreadableConfiguration`."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise UnreadableConfiguration(f"it is not TOML: {error}") from error


def set_toml_table(text: str, path: Sequence[str], table: Mapping[str, Any]) -> str:
    """The text with `table` under the header `path`, at the end. Raises `UnreadableConfiguration`."""
    meant = deepcopy(parse_toml(text))
    parent = meant
    for key in path[:-1]:
        parent = parent.setdefault(key, {})
        if not isinstance(parent, dict):
            raise UnreadableConfiguration(f"{key} is not a table")
    rest = (_remove_toml_sections(text, path) if path[-1] in parent else text).rstrip()
    parent[path[-1]] = dict(table)
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {_render_toml_value(value)}" for key, value in table.items()), ""]
    return _require_toml_text_parses_to((f"{rest}{end_of_line * 2}" if rest else "") + end_of_line.join(lines), meant)


def remove_toml_table(text: str, path: Sequence[str]) -> str:
    """The text without the table at `path` and those below it."""
    meant = deepcopy(parse_toml(text))
    parent: Any = meant
    for key in path[:-1]:
        parent = parent.get(key) if isinstance(parent, dict) else None
    if not isinstance(parent, dict) or path[-1] not in parent:
        return text
    del parent[path[-1]]
    if not parent:  # it stood for what was in it
        meant.pop(path[0], None)
    return _require_toml_text_parses_to(_remove_toml_sections(text, path), meant)


def _remove_toml_sections(text: str, path: Sequence[str]) -> str:
    """Without the lines from a header of the path to the next header. Comments before that one stay with it."""
    name = r"[ \t]*\.[ \t]*".join(rf'(?:{re.escape(key)}|"{re.escape(key)}")' for key in path)
    own_header = re.compile(rf"^[ \t]*\[[ \t]*{name}[ \t]*(?:\.[^\]]*)?\][ \t]*(?:#.*)?$")
    kept: list[str] = []
    held_back: list[str] = []
    within = False
    for line in text.splitlines(keepends=True):
        if _TOML_TABLE_HEADER_PATTERN.match(line):
            within = bool(own_header.match(line.rstrip("\r\n")))
            kept += held_back if not within else []
            held_back = []
        if not within:
            kept.append(line)
        elif not line.strip() or line.lstrip().startswith("#"):
            held_back.append(line)
        else:
            held_back = []
    return "".join(kept)


def _require_toml_text_parses_to(text: str, meant: Mapping[str, Any]) -> str:
    if parse_toml(text) != meant:
        raise UnreadableConfiguration("it cannot be changed without touching something else")
    return text


def _render_toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _render_toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_render_toml_key(key)} = {_render_toml_value(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_render_toml_value, value))}]"
    # A string in JSON is one in TOML, but for this character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
