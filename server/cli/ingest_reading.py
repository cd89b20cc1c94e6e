"""Files as parts that fit a call each, read as a stream: texts, and conversations as JSON lines.

A part's key is a digest of its document up to the part's end: the same beginning of a document has the same keys,
whatever the file is called, so that a second run continues where the first one stopped.
"""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, dropwhile
from typing import IO, Any

from pydantic import TypeAdapter, ValidationError

from madeleine.memory.errors import InvalidInput
from madeleine.memory.text.normalization import storable_text
from madeleine.memory.text.sentences import best_cut

BLOCK_BYTES = 64 * 1024
MAX_LINE_BYTES = 16 * 1024 * 1024
KEY_DIGITS = 40
MAX_LABEL_CHARS = 200
"""Of a speaker, a time or a session."""
_TEXT_FIELDS = ("text", "content", "message", "body")
_SPEAKER_FIELDS = ("speaker", "author", "name", "sender", "role")
_TIME_FIELDS = ("ts", "timestamp", "created_at", "time", "date", "when")
_SESSION_FIELDS = ("session_id", "session", "conversation_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPart:
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

    def parts(self) -> Iterator[DocumentPart]:
        """Raises `InvalidInput` for content that is not text; parts before it may be ingested already."""
        blocks = dropwhile(lambda block: not block.strip(), self._blocks())
        first = next(blocks, b"")
        if not first:
            raise InvalidInput(f"{self._name} is empty. There is nothing to ingest.")
        if _is_conversation(self._name, first):
            yield from self._messages(chain([first.removeprefix(codecs.BOM_UTF8)], blocks))
            return
        if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise self._not_utf8("it is UTF-16")
        for text in self._cut(self._decoded(chain([first], blocks))):
            if storable_text(text):
                yield self._part(text, len(text.encode()), self._name)

    def _blocks(self) -> Iterator[bytes]:
        try:
            while block := self._file.read(BLOCK_BYTES):
                yield block
        except OSError as error:
            raise InvalidInput(f"{self._name} cannot be read: {error.strerror or error}.") from error

    def _part(self, text: str, size: int, place: str, **about: str) -> DocumentPart:
        self._digest.update(json.dumps([text, about]).encode())
        key = f"file-{self._digest.hexdigest()[:KEY_DIGITS]}"
        return DocumentPart(text=text, key=key, size=size, place=place, **about)

    # --- texts ----------------------------------------------------------------------------------------------------

    def _decoded(self, blocks: Iterable[bytes]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        offset = 0
        for block in chain(blocks, [b""]):
            if b"\0" in block:
                raise InvalidInput(f"{self._name} is a binary file, not a text. Give a text in UTF-8.")
            try:
                yield decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                raise self._not_utf8(f"byte {offset + error.start:,}") from error
            offset += len(block)

    def _cut(self, texts: Iterable[str]) -> Iterator[str]:
        buffer = ""
        for text in texts:
            buffer += text
            while len(buffer) > self._most_chars:
                end = best_cut(buffer, self._most_chars)
                yield buffer[:end]
                buffer = buffer[end:]
        if buffer:
            yield buffer

    # --- conversations --------------------------------------------------------------------------------------------

    def _messages(self, blocks: Iterable[bytes]) -> Iterator[DocumentPart]:
        for number, line in enumerate(self._lines(blocks), start=1):
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except UnicodeDecodeError as error:
                raise self._not_utf8(f"line {number:,}") from error
            except (ValueError, RecursionError) as error:
                raise self._invalid_line(number, f"is not JSON ({error})") from error
            if not isinstance(message, dict):
                raise self._invalid_line(number, "is not a JSON object")
            text = storable_text(_message_text(_first_value(message, _TEXT_FIELDS)))
            if not text:
                yield DocumentPart(text="", key="", size=len(line) + 1)
                continue
            about = {
                "when": _iso_moment(_first_value(message, _TIME_FIELDS)),
                "speaker": _shortened(_first_value(message, _SPEAKER_FIELDS) or ""),
                "session_id": _shortened(_first_value(message, _SESSION_FIELDS) or ""),
            }
            texts = [part for part in self._cut([text]) if storable_text(part)]
            for part in texts:
                size = len(line) + 1 if part is texts[-1] else 0
                yield self._part(part, size, f"Line {number:,} of {self._name}", **about)

    def _lines(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        unfinished = b""
        count = 0
        for block in blocks:
            *lines, unfinished = (unfinished + block).split(b"\n")
            yield from lines
            count += len(lines)
            if len(unfinished) > MAX_LINE_BYTES:
                raise self._invalid_line(count + 1, f"has more than {MAX_LINE_BYTES // 1024 // 1024} MB")
        yield unfinished

    def _not_utf8(self, where: str) -> InvalidInput:
        return InvalidInput(
            f"{self._name} is not UTF-8 ({where}). Convert it, as with iconv -f UTF-16 -t UTF-8, and try again."
        )

    def _invalid_line(self, number: int, reason: str) -> InvalidInput:
        return InvalidInput(
            f"Line {number:,} of {self._name} {reason}. One message per line is expected, as "
            '{"speaker": "Ada", "text": "Hello.", "ts": "2026-03-01T12:00:00Z"}. Correct it and run the same command '
            "again: what came before it is not ingested twice."
        )


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
    return isinstance(message, dict) and any(name in message for name in _TEXT_FIELDS)


def _first_value(message: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((message[name] for name in names if message.get(name) not in (None, "")), None)


def _shortened(value: Any) -> str:
    return storable_text(str(value).strip()[:MAX_LABEL_CHARS])


def _message_text(content: Any) -> str:
    """A text, or the texts among the parts of a message."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n\n".join(text for part in content if (text := _message_text(part)))
    if isinstance(content, dict):
        return _message_text(content.get("text", content.get("content")))
    return ""


def _iso_moment(value: Any) -> str:
    """A text as it is; a number counts seconds since 1970, or milliseconds."""
    if isinstance(value, str):
        return _shortened(value)
    try:
        return TypeAdapter(datetime).validate_python(value).isoformat()
    except ValidationError:
        return ""
