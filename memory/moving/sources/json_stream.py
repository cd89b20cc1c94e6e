"""Elements of a JSON array, one at a time: however long the text is, little of it is held."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_OPTIONAL_SPACES_PATTERN = re.compile(r"\s*")
_SPACES_AND_COMMAS_PATTERN = re.compile(r"[\s,]*")
_MAX_CUT_OFF_ERROR_DISTANCE_CHARS = 16
"""JSON that is cut off fails within its last characters; a string that is cut off fails where it begins."""
MAX_JSON_ELEMENT_CHARS = 16 * 1024 * 1024
"""Of an element's JSON: what is read of it takes up to some 700 MB. The longest known conversations have 5 million."""
_MAX_INT_DIGITS = 300
_JSON_DECODER = json.JSONDecoder(
    strict=False, parse_int=lambda digits: int(digits) if len(digits) <= _MAX_INT_DIGITS else float(digits)
)
"""No number needs more digits; Python refuses to read one of thousands."""


def iterate_json_array(chunks: Iterable[str]) -> Iterator[Any]:
    """Yield the elements of the array that `chunks` make together; if they make one object, that object. At most twice
    the longest element is held, and an element has at most `MAX_JSON_ELEMENT_CHARS`.

    Raises `ValueError` that says after how many characters it cannot be read.
    """
    buffer = _JsonBuffer(chunks)
    if buffer.skip_to_next_char(_OPTIONAL_SPACES_PATTERN) != "[":
        yield buffer.decode_element(alone=True)
        return
    buffer.position += 1
    while buffer.skip_to_next_char(_SPACES_AND_COMMAS_PATTERN) != "]":
        yield buffer.decode_element(alone=False)


class _JsonBuffer:
    """The part of a text that is held; what lies before `position` may be dropped."""

    def __init__(self, chunks: Iterable[str]) -> None:
        self.position = 0
        self._chunks = iter(chunks)
        self._text = ""
        self._dropped_chars = 0
        self._has_more = True

    def skip_to_next_char(self, skipped: re.Pattern[str]) -> str:
        """Move behind what is skipped; the character that stands there."""
        while True:
            match = skipped.match(self._text, self.position)
            self.position = match.end() if match else self.position
            if self.position < len(self._text):
                return self._text[self.position]
            if not self._has_more:
                raise self._unreadable_json_error("it ends too early", self.position)
            self._read_more()

    def decode_element(self, *, alone: bool) -> Any:
        """Decode the element at `position` and move behind it. `alone`: it is no element of an array."""
        while True:
            try:
                value, end = _JSON_DECODER.raw_decode(self._text, self.position)
            except json.JSONDecodeError as error:
                cut_off = error.msg.startswith("Unterminated string") or self._is_near_buffer_end(error.pos)
                if not cut_off:
                    raise self._unreadable_json_error(f"it is damaged ({error.msg})", error.pos) from error
                if not self._has_more:
                    raise self._unreadable_json_error("it ends too early", error.pos) from error
            except RecursionError as error:
                raise self._unreadable_json_error("it is nested too deeply", self.position) from error
            else:
                following = self._next_char_after_spaces(end)
                if alone or following in (",", "]") or not (following or self._has_more):
                    self.position = end
                    return value
                # A number that is cut off is a number, too.
                if not (self._has_more and self._is_near_buffer_end(end)):
                    raise self._unreadable_json_error("it is damaged (no comma)", end)
            self._read_more()

    def _next_char_after_spaces(self, position: int) -> str:
        match = _OPTIONAL_SPACES_PATTERN.match(self._text, position)
        return self._text[match.end() : match.end() + 1] if match else ""

    def _is_near_buffer_end(self, position: int) -> bool:
        return position >= len(self._text) - _MAX_CUT_OFF_ERROR_DISTANCE_CHARS

    def _read_more(self) -> None:
        """Read until twice as much is held, so that a long element is not decoded again at every chunk."""
        parts = [self._text[self.position :]]
        most = MAX_JSON_ELEMENT_CHARS
        if len(parts[0]) > most:
            raise self._unreadable_json_error(f"one entry has more than {most:,} characters, counted", self.position)
        self._dropped_chars, self.position = self._dropped_chars + self.position, 0
        missing = min(2 * len(parts[0]), most - len(parts[0])) + 1
        while self._has_more and missing > 0:
            chunk = next(self._chunks, None)
            self._has_more = chunk is not None
            parts.append(chunk or "")
            missing -= len(parts[-1])
        self._text = "".join(parts)

    def _unreadable_json_error(self, reason: str, position: int) -> ValueError:
        return ValueError(f"{reason} after {self._dropped_chars + position:,} characters")
