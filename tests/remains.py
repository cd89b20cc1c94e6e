"""Looking for what was forgotten in the raw bytes of files."""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from madeleine.memory.model import Vector
from tests.doubles import WordEmbedder

PIECE = 32
"""Bytes of a vector that are looked for at once: a page may end in the middle of one."""
PAGE = 4096
EMPTY_PAGE = b"\0" * PAGE


class DenseWords(WordEmbedder):
    """Vectors that no two texts have a part of in common, as a real model's; texts that share words are alike."""

    def vector(self, text: str) -> Vector:
        words = [
            np.random.default_rng(zlib.crc32(word.encode())).normal(size=self.dim) for word in text.split() or [""]
        ]
        row = np.sum(words, axis=0)
        return np.asarray(row / np.linalg.norm(row), np.float32)


def spellings(text: str) -> set[bytes]:
    """In UTF-8, UTF-16 and escaped as JSON, as it stands and in lower case."""
    forms = {text, text.casefold()}
    escaped = {json.dumps(form)[1:-1] for form in forms}
    return {form.encode() for form in forms | escaped} | {form.encode("utf-16-le") for form in forms}


def pieces(vector: Vector) -> set[bytes]:
    stored = np.ascontiguousarray(vector, "<f4").tobytes()
    return {stored[start : start + PIECE] for start in range(0, len(stored) - PIECE + 1, PIECE)}


def found_in(directory: Path, texts: Iterable[str] = (), vectors: Iterable[Vector] = ()) -> dict[str, set[str]]:
    """What is found of each text, and of the vectors under "vector": in which files."""
    wanted = {text: spellings(text) for text in texts}
    wanted |= {"vector": {piece for vector in vectors for piece in pieces(vector)}}
    found: dict[str, set[str]] = {}
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        for part in written_parts(path):
            for name, forms in wanted.items():
                if any(form in part for form in forms):
                    found.setdefault(name, set()).add(path.relative_to(directory).as_posix())
    return found


def written_parts(path: Path) -> Iterator[bytes]:
    """All of the file but its holes and pages of zeros, of which the index's files mostly consist.

    Nothing of a file that is gone since it was listed, such as the marker of a flush in a running host.
    """
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        return
    with file:
        end = 0
        while True:
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return
                raise
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            file.seek(start)
            yield without_empty_pages(file.read(end - start))


def without_empty_pages(content: bytes) -> bytes:
    """What is left of an empty page is too few zeros to join its neighbours, and enough to end a text in UTF-16."""
    pages = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]
    return b"".join(b"\0" * PIECE if page == EMPTY_PAGE else page for page in pages)
