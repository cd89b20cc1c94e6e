"""Text from outside, made such that it can be kept. Standard library alone (see `memory.watch.transcripts`)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_NEAR = 0.5
"""A part is not cut before this share of its limit, wherever a line or a word ends."""


def storable(text: str) -> str:
    """Without what cannot be stored, halves of surrogate pairs and NUL; "" where nothing is left that can be seen."""
    told = text.encode(errors="replace").decode().replace("\x00", "")
    return told if any(unicodedata.category(sign)[0] in "LNPS" for sign in told) else ""


def in_parts(text: str, limit: int) -> Iterator[str]:
    """`text` in parts of at most `limit` characters, which together are the text: cut after a line where one ends in
    time, else after a word, else anywhere."""
    start = 0
    while len(text) - start > limit:
        end = start + limit
        least = start + int(limit * _NEAR)
        cut = max(text.rfind("\n", least, end), 0) or max(text.rfind(" ", least, end), 0) or end - 1
        yield text[start : cut + 1]
        start = cut + 1
    yield text[start:]
