"""Text from outside, made storable. Imports the standard library alone (see `memory.watch.transcripts`)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_LEAST_SHARE = 0.5
"""Of its limit, that a part has at least, wherever a line or a word ends."""


def storable_text(text: str) -> str:
    """Replace halves of surrogate pairs and drop NUL, which cannot be stored; "" if nothing visible is left."""
    clean = text.encode(errors="replace").decode().replace("\x00", "")
    return clean if any(unicodedata.category(char)[0] in "LNPS" for char in clean) else ""


def split_by_length(text: str, limit: int) -> Iterator[str]:
    """Yield the text in parts of at most `limit` characters that join back to it: cut after a line if one ends in the
    second half, else after a word, else anywhere."""
    start = 0
    while len(text) - start > limit:
        end = start + limit
        least = start + int(limit * _LEAST_SHARE)
        cut = max(text.rfind("\n", least, end), 0) or max(text.rfind(" ", least, end), 0) or end - 1
        yield text[start : cut + 1]
        start = cut + 1
    yield text[start:]
