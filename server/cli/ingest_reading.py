"""Files as parts that fit a call each, read as a stream: texts, and conversations as JSON lines.

A part's key is a digest of its document up to the part's end: the same beginning of a document has the same keys,
whatever the file is called, so that a second run continues where the first one stopped.
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
from madeleine.memory.text.normalization import storable_text
from madeleine.memory.text.sentences import last_break

BLOCK_BYTES = 64 * 1024
MAX_LINE_BYTES = 16 * 1024 * 1024
KEY_DIGITS = 40

_TEXTS = ("text", "content", "message", "body")
_SPEAKERS = ("speaker", "author", "name", "sender", "role")
_TIMES = ("ts", "timestamp", "created_at", "time", "date", "when")
_SESSIONS = ("session_id", "session", "conversation_id")
MAX_SHORT_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`size`: its bytes of the file. `text` is "" for a message without text. `place`: its origin, for errors."""

    text: str
    key: str
    size: int
    when: str = ""
    speaker: str = ""
    session_id: str = ""
    place: str = ""


class Document:
    """`name` is used in errors; the keys depend on `about` as well."""

    def __init__(self, file: IO[bytes], name: str, *, about: str, most_chars: int) -> None:
        self._file = file
        self._name = name
        self._digest = hashlib.sha256(about.encode())
        self._most_chars = most_chars

    def parts(self) -> Iterator[Part]:
        """Raises `InvalidInput` for content that is not text; parts before it may be ingested already."""
        first = self._read()
        while first and not first.strip():
            first = self._read()
        if not first:
            raise InvalidInput(f"{self._name} is empty. There is nothing to ingest.")
        if _is_conversation(self._name, first):
            yield from self._messages(first)
        else:
            for text in self._cut(self._decoded(first)):
                if storable_text(text):
                    yield self._part(text, len(text.encode()), self._name)

    def _read(self) -> bytes:
        try:
            return self._file.read(BLOCK_BYTES)
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
        while True:
            if b"\0" in block:
                raise InvalidInput(f"{self._name} is a binary file, not a text. Give a text in UTF-8.")
            try:
                yield decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                raise _not_utf8(self._name, f"byte {offset + (error.start if block else 0):,}") from error
            if not block:
                return
            offset += len(block)
            block = self._read()

    def _cut(self, texts: Iterator[str]) -> Iterator[str]:
        buffer = ""
        for text in texts:
            buffer += text
            while len(buffer) > self._most_chars:
                end = last_break(buffer, self._most_chars)
                yield buffer[:end]
                buffer = buffer[end:]
        if buffer:
            yield buffer

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
                raise self._invalid_line(number, f"is not JSON ({error})") from error
            if not isinstance(message, dict):
                raise self._invalid_line(number, "is not a JSON object")
            text = storable_text(_text_of(_first(message, _TEXTS)))
            if not text:
                yield Part(text="", key="", size=len(line))
                continue
            about = {
                "when": _moment(_first(message, _TIMES)),
                "speaker": _short(_first(message, _SPEAKERS) or ""),
                "session_id": _short(_first(message, _SESSIONS) or ""),
            }
            texts = [part for part in self._cut(iter([text])) if storable_text(part)]
            for part in texts:
                place = f"Line {number:,} of {self._name}"
                yield self._part(part, len(line) if part is texts[-1] else 0, place, **about)

    def _lines(self, first: bytes) -> Iterator[bytes]:
        buffer = first.removeprefix(codecs.BOM_UTF8)
        number = 1
        while True:
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                yield line + b"\n"
            number += len(lines)
            if len(buffer) > MAX_LINE_BYTES:
                raise self._invalid_line(number, f"has more than {MAX_LINE_BYTES // 1024 // 1024} MB")
            block = self._read()
            if not block:
                break
            buffer += block
        if buffer:
            yield buffer

    def _invalid_line(self, number: int, reason: str) -> InvalidInput:
        return InvalidInput(
            f"Line {number:,} of {self._name} {reason}. One message per line is expected, as "
            '{"speaker": "Ada", "text": "Hello.", "ts": "2026-03-01T12:00:00Z"}. Correct it and run the same command '
            "again: what came before it is not ingested twice."
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
        message = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and any(name in message for name in _TEXTS)


def _first(message: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((message[name] for name in names if message.get(name) not in (None, "")), None)


def _short(value: Any) -> str:
    return storable_text(str(value).strip()[:MAX_SHORT_CHARS])


def _text_of(content: Any) -> str:
    """A text, or the texts among the parts of a message."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n\n".join(text for part in content if (text := _text_of(part)))
    if isinstance(content, dict):
        return _text_of(content.get("text", content.get("content")))
    return ""


def _moment(value: Any) -> str:
    """A text as it is; a number counts seconds since 1970, or milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return ""
    if isinstance(value, str):
        return _short(value)
    try:
        return datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
