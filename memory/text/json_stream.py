"""Elements of a JSON array, one after the other, however long it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_SPACE = re.compile(r"\s*")
_BETWEEN = re.compile(r"[\s,]*")
_NEAR_THE_END = 16
"""What is cut off fails within the last few characters; or it is a text, which fails where it begins."""
_DECODER = json.JSONDecoder(strict=False)


def elements(chunks: Iterable[str]) -> Iterator[Any]:
    """Of the array that `chunks` make together; where they make one object, that. No more is held than the longest
    element, twice.

    Raises `ValueError` that says after how many characters it cannot be read.
    """
    text = _Window(chunks)
    while (start := text.skip(_SPACE)) is None:
        pass
    alone = start != "["
    if not alone:
        text.at += 1
    while alone or not text.closes():
        yield text.element(alone=alone)
        if alone:
            return


class _Window:
    """What is held of a text: from `at` on nothing is lost."""

    def __init__(self, chunks: Iterable[str]) -> None:
        self.at = 0
        self._chunks = iter(chunks)
        self._held = ""
        self._gone = 0
        """Characters before those that are held."""
        self._more = True

    def skip(self, what: re.Pattern[str]) -> str | None:
        """What stands behind it; None if that is not here yet."""
        found = what.match(self._held, self.at)
        self.at = found.end() if found else self.at
        if self.at < len(self._held):
            return self._held[self.at]
        if not self._more:
            raise self._broken("it ends too early", self.at)
        self._read_on()
        return None

    def closes(self) -> bool:
        while (next_ := self.skip(_BETWEEN)) is None:
            pass
        return next_ == "]"

    def element(self, *, alone: bool) -> Any:
        while True:
            try:
                found, end = _DECODER.raw_decode(self._held, self.at)
            except json.JSONDecodeError as error:
                cut_off = error.msg.startswith("Unterminated string") or self._is_near_the_end(error.pos)
                if not cut_off:
                    raise self._broken(f"it is damaged ({error.msg})", error.pos) from error
                if not self._more:
                    raise self._broken("it ends too early", error.pos) from error
            except RecursionError as error:
                raise self._broken("it is nested too deeply", self.at) from error
            else:
                behind = _SPACE.match(self._held, end)
                next_ = self._held[behind.end() : behind.end() + 1] if behind else ""
                if alone or next_ in (",", "]") or not (next_ or self._more):
                    self.at = end
                    return found
                # A number that is cut off is a number, too.
                if not (self._more and self._is_near_the_end(end)):
                    raise self._broken("it is damaged (no comma)", end)
            self._read_on()

    def _is_near_the_end(self, place: int) -> bool:
        return place >= len(self._held) - _NEAR_THE_END

    def _read_on(self) -> None:
        """To twice as much, so that what is long is not tried again at every chunk."""
        parts = [self._held[self.at :]]
        self._gone, self.at = self._gone + self.at, 0
        wanted = 2 * len(parts[0]) + 1
        while self._more and wanted > 0:
            chunk = next(self._chunks, None)
            self._more = chunk is not None
            parts.append(chunk or "")
            wanted -= len(parts[-1])
        self._held = "".join(parts)

    def _broken(self, how: str, place: int) -> ValueError:
        return ValueError(f"{how} after {self._gone + place:,} characters")
