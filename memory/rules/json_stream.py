"""Elements of a JSON array, one after the other, however long it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_BETWEEN = re.compile(r"[\s,]*")
_NEAR_THE_END = 16
"""What is cut off fails within the last few characters; or it is a text, which fails where it begins."""
_DECODER = json.JSONDecoder(strict=False)


def elements(chunks: Iterable[str]) -> Iterator[Any]:
    """Of the array that `chunks` make together; where they make one object, that. No more is held than the longest
    element, twice.

    Raises `ValueError` that says after how many characters it cannot be read.
    """
    source = iter(chunks)
    buffer, at, gone = "", 0, 0
    alone = opened = False
    more = True
    while True:
        at = _skip(buffer, at)
        if at < len(buffer) and not opened:
            opened, alone = True, buffer[at] != "["
            at = at if alone else at + 1
            continue
        if at < len(buffer) and buffer[at] == "]" and not alone:
            return
        try:
            found, end = _DECODER.raw_decode(buffer, at)
        except json.JSONDecodeError as error:
            cut_off = error.msg.startswith("Unterminated string") or error.pos >= len(buffer) - _NEAR_THE_END
            if not (more and cut_off):
                ends = "it ends too early" if not more and cut_off else f"it is damaged ({error.msg})"
                raise ValueError(f"{ends} after {gone + error.pos:,} characters") from error
            end = len(buffer)
        except RecursionError as error:
            raise ValueError(f"it is nested too deeply after {gone + at:,} characters") from error
        else:
            # At the end of what is here even a number may go on.
            if end < len(buffer) or not more:
                yield found
                if alone:
                    return
                at = end
                continue
        buffer, gone = buffer[at:], gone + at
        at = 0
        # Twice as much, so that what is long is not tried again at every chunk.
        wanted = 2 * len(buffer) + 1
        parts = [buffer]
        while sum(map(len, parts)) < wanted and more:
            chunk = next(source, None)
            more = chunk is not None
            parts.append(chunk or "")
        buffer = "".join(parts)


def _skip(buffer: str, at: int) -> int:
    found = _BETWEEN.match(buffer, at)
    return found.end() if found else at
