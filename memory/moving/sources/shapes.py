"""What kind of file a file is, told from its first bytes and from no more."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from madeleine.memory.moving.sources.values import (
    MAX_IMPORTED_LINE_BYTES,
    FileShape,
    FileToImport,
    JsonObject,
    UnreadableImportEntryReport,
)

MAX_LINES_READ_FOR_FILE_SHAPE = 40
"""A transcript begins with a few lines that are not typical of it."""
_JSON_TOKEN_PATTERN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]', re.DOTALL)


def read_structure_of_file_to_import(file: FileToImport) -> FileShape:
    """Raises `ImportFileUnreadable`."""
    head = file.head()
    if head.startswith(b"SQLite format 3\0"):
        return FileShape(name=file.display_path, head=head, tables=file.sqlite_columns_by_table())
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    return FileShape(
        name=file.display_path,
        head=head,
        keys=top_level_json_keys(text),
        lines=tuple(_json_objects_on_first_lines(text)),
        tables={},
    )


def top_level_json_keys(text: str) -> frozenset[str]:
    """Keys of the object that a JSON text is or that its array begins with, as far as the text goes."""
    depth_of_object = {"{": 1, "[": 2}.get(text.lstrip()[:1], 0)
    if not depth_of_object:
        return frozenset()
    keys: set[str] = set()
    depth, last_string = 0, ""
    for match in _JSON_TOKEN_PATTERN.finditer(text):
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


def _json_objects_on_first_lines(text: str) -> Iterator[JsonObject]:
    for line in text.split("\n", MAX_LINES_READ_FOR_FILE_SHAPE)[:MAX_LINES_READ_FOR_FILE_SHAPE]:
        if isinstance(value := parse_json_or_none(line), dict):
            yield value


def parse_json_or_none(text: str | bytes) -> Any:
    """None for what is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_numbered_json_object_lines(
    file: FileToImport,
) -> Iterator[tuple[int, JsonObject] | UnreadableImportEntryReport]:
    """(number, object) of each line; empty ones are skipped."""
    for number, line in file.numbered_lines():
        if line is None:
            yield UnreadableImportEntryReport(
                f"line {number:,}", f"it has more than {MAX_IMPORTED_LINE_BYTES // 1024 // 1024} MB"
            )
        elif line.strip():
            value = parse_json_or_none(line.removeprefix(codecs.BOM_UTF8))
            yield (
                (number, value)
                if isinstance(value, dict)
                else UnreadableImportEntryReport(f"line {number:,}", "it is no JSON object")
            )
