"""Looking for what was forgotten in the raw bytes of files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from memory.model import Vector

PIECE = 32
"""Bytes of a vector that are looked for at once: a page may end in the middle of one."""


def files_of(data_dir: Path) -> Iterator[Path]:
    yield from (path for path in sorted(data_dir.rglob("*")) if path.is_file())


def spellings(text: str) -> set[bytes]:
    """In UTF-8, UTF-16 and escaped as JSON, as it stands and in lower case."""
    forms = {text, text.casefold()}
    escaped = {json.dumps(form)[1:-1] for form in forms}
    return {form.encode() for form in forms | escaped} | {form.encode("utf-16-le") for form in forms}


def pieces(vector: Vector) -> set[bytes]:
    stored = np.ascontiguousarray(vector, "<f4").tobytes()
    cut = {stored[start : start + PIECE] for start in range(0, len(stored) - PIECE + 1, PIECE)}
    return {piece for piece in cut if len(set(piece)) > 4}  # zeros and the like are anywhere


def found_in(data_dir: Path, texts: Iterable[str] = (), vectors: Iterable[Vector] = ()) -> set[tuple[str, bytes]]:
    """(file, what it holds)."""
    wanted = {form for text in texts for form in spellings(text)} | {part for v in vectors for part in pieces(v)}
    found = set()
    for path in files_of(data_dir):
        content = path.read_bytes()
        found |= {(path.relative_to(data_dir).as_posix(), one) for one in wanted if one in content}
    return found
