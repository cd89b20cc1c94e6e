"""What kind of file a file is, told from its first bytes and from no more."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from madeleine.memory.moving.sources.values import MAX_LINE_BYTES, DamagedEntry, JsonObject, Shape, SourceFile

MAX_SHAPE_LINES = 40
"""A transcript begins with a few lines that are not typical of it."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]', re.DOTALL)


def read_file_shape(file: SourceFile) -> Shape:
    """Raises `UnreadableSource`."""
    head = file.head()
    if head.startswith(b"SQLite format 3\0"):
        return Shape(name=file.name, head=head, tables=file.tables())
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    return Shape(name=file.name, head=head, keys=top_level_keys(text), lines=tuple(_objects(text)), tables={})


def top_level_keys(text: str) -> frozenset[str]:
    """Keys of the object that a JSON text is or that its array begins with, as far as the text goes."""
    depth_of_object = {"{": 1, "[": 2}.get(text.lstrip()[:1], 0)
    if not depth_of_object:
        return frozenset()
    keys: set[str] = set()
    depth, last_string = 0, ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
            if depth < depth_of_object:
                break
        elif token == ":" and depth == depth_of_object:
            keys.add(last_string)
        elif token[0] == '"':
            last_string = token[1:-1]
    return frozenset(keys)


def _objects(text: str) -> Iterator[JsonObject]:
    for line in text.split("\n", MAX_SHAPE_LINES)[:MAX_SHAPE_LINES]:
        if isinstance(value := parse_json(line), dict):
            yield value


def parse_json(text: str | bytes) -> Any:
    """None for what is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def json_lines(file: SourceFile) -> Iterator[tuple[int, JsonObject] | DamagedEntry]:
    """(number, object) of each line; empty ones are skipped."""
    for number, line in file.lines():
        if line is None:
            yield DamagedEntry(f"line {number:,}", f"it has more than {MAX_LINE_BYTES // 1024 // 1024} MB")
        elif line.strip():
            value = parse_json(line.removeprefix(codecs.BOM_UTF8))
            yield (
                (number, value) if isinstance(value, dict) else DamagedEntry(f"line {number:,}", "it is no JSON object")
            )
