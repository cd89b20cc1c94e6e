"""Files as parts that fit a call each, read as a stream: texts, and conversations as JSON lines.

A part's key is a digest of all that was read of its document up to its end: the same beginning of a document has the
same keys, whatever the file is called, so that a second run goes on where the first one was.
"""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any

from madeleine.memory.errors import InvalidInput
from madeleine.memory.text.clipping import storable
from madeleine.memory.text.cutting import last_cut

READ_AT_ONCE = 64 * 1024
LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line of JSON."""
KEY_DIGITS = 40

_TEXTS = ("text", "content", "message", "body")
_SPEAKERS = ("speaker", "author", "name", "sender", "role")
_TIMES = ("ts", "timestamp", "created_at", "time", "date", "when")
_SESSIONS = ("session_id", "session", "conversation_id")
_SHORT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`size`: bytes of the file that it is. `text` "" for a line of a conversation in which nothing is said. `place`:
    where it is from, for messages."""

    text: str
    key: str
    size: int
    when: str = ""
    speaker: str = ""
    session_id: str = ""
    place: str = ""


class Document:
    """`name` for messages; `about` is what else the keys depend on."""

    def __init__(self, file: IO[bytes], name: str, *, about: str, most_chars: int) -> None:
        self._file = file
        self._name = name
        self._digest = hashlib.sha256(about.encode())
        self._most = most_chars

    def parts(self) -> Iterator[Part]:
        """Raises `InvalidInput` for what is not text; what came before it may be poured in already."""
        first = self._read()
        while first and not first.strip():
            first = self._read()
        if not first:
            raise InvalidInput(f"{self._name} is empty. There is nothing to pour in.")
        if _is_conversation(self._name, first):
            yield from self._messages(first)
        else:
            for text in self._cut(self._decoded(first)):
                if storable(text):
                    yield self._part(text, len(text.encode()), self._name)

    def _read(self) -> bytes:
        try:
            return self._file.read(READ_AT_ONCE)
        except OSError as error:
            raise InvalidInput(f"{self._name} cannot be read: {error.strerror or error}.") from error

    def _part(self, text: str, size: int, place: str, **about: str) -> Part:
        self._digest.update(json.dumps([text, about]).encode())
        key = f"file-{self._digest.hexdigest()[:KEY_DIGITS]}"
        return Part(text=text, key=key, size=size, place=place, **about)

    # --- texts ----------------------------------------------------------------------------------------------------

    def _decoded(self, first: bytes) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        block, offset = first, 0
        if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise _not_utf8(self._name, "it is UTF-16")
        while block:
            if b"\0" in block:
                raise InvalidInput(f"{self._name} is a binary file, not a text. Give a text in UTF-8.")
            try:
                yield decoder.decode(block)
            except UnicodeDecodeError as error:
                raise _not_utf8(self._name, f"byte {offset + error.start:,}") from error
            offset += len(block)
            block = self._read()
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise _not_utf8(self._name, f"byte {offset:,}") from error

    def _cut(self, texts: Iterator[str]) -> Iterator[str]:
        held = ""
        for text in texts:
            held += text
            while len(held) > self._most:
                end = last_cut(held, self._most)
                yield held[:end]
                held = held[end:]
        if held:
            yield held

    # --- conversations --------------------------------------------------------------------------------------------

    def _messages(self, first: bytes) -> Iterator[Part]:
        for number, line in enumerate(self._lines(first), start=1):
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except UnicodeDecodeError as error:
                raise _not_utf8(self._name, f"line {number:,}") from error
            except (ValueError, RecursionError) as error:
                raise self._unusable(number, f"is not JSON ({error})") from error
            if not isinstance(message, dict):
                raise self._unusable(number, "is not a JSON object")
            text = storable(_text_of(_first(message, _TEXTS)))
            if not text:
                yield Part(text="", key="", size=len(line))
                continue
            about = {
                "when": _moment(_first(message, _TIMES)),
                "speaker": _short(_first(message, _SPEAKERS) or ""),
                "session_id": _short(_first(message, _SESSIONS) or ""),
            }
            texts = [part for part in self._cut(iter([text])) if storable(part)]
            for part in texts:
                place = f"Line {number:,} of {self._name}"
                yield self._part(part, len(line) if part is texts[-1] else 0, place, **about)

    def _lines(self, first: bytes) -> Iterator[bytes]:
        held = first.removeprefix(codecs.BOM_UTF8)
        number = 1
        while True:
            *whole, held = held.split(b"\n")
            for line in whole:
                yield line + b"\n"
                number += 1
            if len(held) > LONGEST_LINE:
                raise self._unusable(number, f"has more than {LONGEST_LINE // 1024 // 1024} MB")
            block = self._read()
            if not block:
                break
            held += block
        if held:
            yield held

    def _unusable(self, number: int, why: str) -> InvalidInput:
        return InvalidInput(
            f"Line {number:,} of {self._name} {why}. One message a line is expected, as "
            '{"speaker": "Ada", "text": "Hello.", "ts": "2026-03-01T12:00:00Z"}. Mend it and run the same command '
            "again: what came before it is not done twice."
        )


def _not_utf8(name: str, where: str) -> InvalidInput:
    return InvalidInput(f"{name} is not UTF-8 ({where}). Convert it, as with iconv -f UTF-16 -t UTF-8, and try again.")


def _is_conversation(name: str, first: bytes) -> bool:
    if name.lower().endswith((".jsonl", ".ndjson")):
        return True
    line = first.removeprefix(codecs.BOM_UTF8).lstrip().split(b"\n", 1)[0]
    if not line.startswith(b"{"):
        return False
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and any(name in found for name in _TEXTS)


def _first(message: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((message[name] for name in names if message.get(name) not in (None, "")), None)


def _short(given: Any) -> str:
    return storable(str(given).strip()[:_SHORT])


def _text_of(content: Any) -> str:
    """A text, or the texts among the parts of a message."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n\n".join(text for part in content if (text := _text_of(part)))
    if isinstance(content, dict):
        return _text_of(content.get("text", content.get("content")))
    return ""


def _moment(given: Any) -> str:
    """As it was written; a number is of seconds since 1970, or of milliseconds."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return ""
    if isinstance(given, str):
        return _short(given)
    try:
        return datetime.fromtimestamp(given / 1000 if abs(given) > 1e11 else given, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
