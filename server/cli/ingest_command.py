"""`madeleine ingest`: ingest files (spec L1). The host does it.

Texts, and conversations as JSON lines, are read as a stream of parts that fit a call each, a few in flight: while one
is embedded, the one before is stored and the next is cut.

A part's key is a digest of its document up to the part's end: the same beginning of a document has the same keys,
whatever the file is called, so that a second run continues where the first one stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import codecs
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, dropwhile
from pathlib import Path
from typing import IO, Any, get_args

from pydantic import TypeAdapter, ValidationError

from madeleine.memory.errors import ConnectionLost, InvalidInput, MadeleineError
from madeleine.memory.model import Category
from madeleine.memory.text.normalization import storable_text
from madeleine.memory.text.sentences import best_cut_position
from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server import EXIT_FAILURE
from madeleine.server.attach.client import ToolClient
from madeleine.server.cli.output import (
    ShowByteProgress,
    open_tool_client,
    print_json,
    redacted_secrets_sentence,
    show_byte_progress,
)
from madeleine.server.settings.environment import DEFAULT_MAX_TEXT_CHARS
from madeleine.server.settings.settings import Settings

MAX_DOCUMENT_PART_CHARS = 16_000
"""Of a part: about 30 chunks, for which the model takes a second; a recall in the meantime waits no longer."""
MAX_DOCUMENT_PARTS_IN_FLIGHT = 3
INGEST_CONNECTION_LOST_HINT = "Run the same command again: it continues where it stopped."
CHUNK_STATUS_LABELS = {
    "stored": "stored",
    "reinforced": "known already and reinforced",
    "dropped": "not worth keeping",
    "already": "ingested before",
}
"""Status of a chunk → its label in reports. `already`: an earlier run has ingested it."""


class DocumentPartRefused(MadeleineError):
    """The host refused a part."""


@dataclass(slots=True)
class IngestFileReport:
    """What became of one file, in chunks. `without_text`: empty messages."""

    file: str
    counts: Counter[str] = field(default_factory=Counter)
    parts: int = 0
    without_text: int = 0
    redacted: Counter[str] = field(default_factory=Counter)
    notice: str = ""

    def add_part_answer(self, answer: dict[str, Any]) -> None:
        self.parts += 1
        if answer.get("repeated"):
            self.counts["already"] += len(answer["chunks"])
            return
        self.counts.update({status: answer.get(status, 0) for status in CHUNK_STATUS_LABELS})
        self.redacted.update(answer.get("redacted", {}))
        self.notice = answer.get("notice", self.notice)

    def as_json(self) -> dict[str, Any]:
        counts = {status: self.counts[status] for status in CHUNK_STATUS_LABELS}
        optional = {"redacted": dict(self.redacted), "notice": self.notice, "without_text": self.without_text}
        present = {name: value for name, value in optional.items() if value}
        return {"file": self.file, "parts": self.parts} | counts | present

    def counts_text(self) -> str:
        counts = ((self.counts[status], label) for status, label in CHUNK_STATUS_LABELS.items())
        return ", ".join(f"{count} {label}" for count, label in counts if count) or "nothing"

    def summary(self) -> str:
        lines = [f"{terminal_safe_line(self.file)}: {self.counts_text()}."]
        lines += [f"  Lines without a text: {self.without_text}."] if self.without_text else []
        lines += [f"  {redacted_secrets_sentence(self.redacted)}"] if self.redacted else []
        lines += [f"  {terminal_safe_line(self.notice)}"] if self.notice else []
        return "\n".join(lines)


async def ingest_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """The exit code: 1 if the host went away or refused a part. Raises `HostRefused`, `InvalidInput`."""
    categories = get_args(Category)
    if arguments.category not in (None, *categories):
        raise InvalidInput(f"--category: there is no {arguments.category!r}. Known are {', '.join(categories)}.")
    if arguments.session is not None and not 0 < len(arguments.session.strip()) <= 200:
        raise InvalidInput("--session: give 1 to 200 characters.")
    defaults = {"session_id": arguments.session, "category": arguments.category}
    key_prefix = json.dumps([arguments.session, arguments.category])
    reports: list[IngestFileReport] = []
    try:
        with ExitStack() as stack:
            # All are opened before the first is read.
            files = [stack.enter_context(open_file_or_stdin(name)) for name in arguments.files]
            show = stack.enter_context(show_byte_progress(sum(os.fstat(file.fileno()).st_size for file in files)))
            async with open_tool_client(
                settings, "ingest", command="madeleine ingest", lost_hint=INGEST_CONNECTION_LOST_HINT
            ) as call:
                most_chars = min(await ask_memory_server_for_max_text_chars(call), MAX_DOCUMENT_PART_CHARS)
                for path, file in zip(arguments.files, files, strict=True):
                    name = "standard input" if path == "-" else path
                    reports.append(IngestFileReport(name))
                    document = DocumentPartReader(file, name, about=key_prefix, most_chars=most_chars)
                    await ingest_document(call, document, reports[-1], show, defaults)
    except (MadeleineError, ExceptionGroup) as error:
        print_ingest_reports([report for report in reports if report.parts], as_json=arguments.json)
        reason: Exception = error
        while isinstance(reason, ExceptionGroup):
            reason = reason.exceptions[0]
        if not isinstance(reason, ConnectionLost | DocumentPartRefused):
            raise reason from error
        print(f"madeleine: {terminal_safe_line(reason)}", file=sys.stderr)
        return EXIT_FAILURE
    print_ingest_reports(reports, as_json=arguments.json)
    return 0


def print_ingest_reports(reports: list[IngestFileReport], *, as_json: bool) -> None:
    if as_json:
        print_json([report.as_json() for report in reports])
    else:
        for report in reports:
            print(report.summary())


async def ingest_document(
    call: ToolClient,
    document: DocumentPartReader,
    report: IngestFileReport,
    show: ShowByteProgress,
    defaults: Mapping[str, str | None],
) -> None:
    """`defaults`: arguments of the tool for parts that have none of their own. Raises `DocumentPartRefused`,
    `ConnectionLost`, in a group."""
    slots = asyncio.Semaphore(MAX_DOCUMENT_PARTS_IN_FLIGHT)
    parts = document.parts()

    async def ingest(part: DocumentPart) -> None:
        try:
            if part.text:
                report.add_part_answer(await ingest_document_part(call, part, defaults))
            else:
                report.without_text += 1
            show(report.file, part.size, report.counts_text())
        finally:
            slots.release()

    async with asyncio.TaskGroup() as tasks:
        while True:
            await slots.acquire()
            # In a thread: standard input may block.
            part = await asyncio.to_thread(next, parts, None)
            if part is None:
                break
            tasks.create_task(ingest(part))


async def ingest_document_part(
    call: ToolClient, part: DocumentPart, defaults: Mapping[str, str | None]
) -> dict[str, Any]:
    own = {"session_id": part.session_id, "when": part.when, "actors": [part.speaker] if part.speaker else None}
    arguments: dict[str, Any] = {"text": part.text, "key": part.key}
    for optional in (defaults, own):
        arguments |= {name: value for name, value in optional.items() if value}
    try:
        return await call("ingest", arguments)
    except ConnectionLost:
        raise
    except MadeleineError as error:
        raise DocumentPartRefused(f"{part.location}: {error}") from error


async def ask_memory_server_for_max_text_chars(call: ToolClient) -> int:
    """The server's limit, which is that of each text; its settings may differ from ours. A server over HTTP need not
    list the tool."""
    for tool in (await call.request("tools/list", {}))["tools"]:
        if tool["name"] in ("ingest", "store"):
            return int(tool["inputSchema"]["properties"]["text"]["maxLength"])
    return DEFAULT_MAX_TEXT_CHARS


def open_file_or_stdin(name: str) -> IO[bytes]:
    """Standard input for "-"."""
    try:
        return sys.stdin.buffer if name == "-" else Path(name).open("rb")
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}. Nothing was ingested.") from error


FILE_READ_CHUNK_BYTES = 64 * 1024
MAX_MESSAGE_LINE_BYTES = 16 * 1024 * 1024
DOCUMENT_PART_KEY_HEX_DIGITS = 40
MAX_MESSAGE_SPEAKER_OR_SESSION_CHARS = 200
"""Of a speaker, a time or a session."""
_MESSAGE_TEXT_FIELD_NAMES = ("text", "content", "message", "body")
_MESSAGE_SPEAKER_FIELD_NAMES = ("speaker", "author", "name", "sender", "role")
_MESSAGE_TIME_FIELD_NAMES = ("ts", "timestamp", "created_at", "time", "date", "when")
_MESSAGE_SESSION_FIELD_NAMES = ("session_id", "session", "conversation_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPart:
    """`size`: its bytes of the file. `text` is "" for a message without text. `location`: its origin, for errors."""

    text: str
    key: str
    size: int
    when: str = ""
    speaker: str = ""
    session_id: str = ""
    location: str = ""


class DocumentPartReader:
    """`name` is used in errors; the keys depend on `about` as well."""

    def __init__(self, file: IO[bytes], name: str, *, about: str, most_chars: int) -> None:
        self._file = file
        self._name = name
        self._digest = hashlib.sha256(about.encode())
        self._most_chars = most_chars

    def parts(self) -> Iterator[DocumentPart]:
        """Raises `InvalidInput` for content that is not text; parts before it may be ingested already."""
        blocks = dropwhile(lambda block: not block.strip(), self._read_byte_blocks())
        first = next(blocks, b"")
        if not first:
            raise InvalidInput(f"{self._name} is empty. There is nothing to ingest.")
        if _is_conversation(self._name, first):
            yield from self._parts_of_conversation(chain([first.removeprefix(codecs.BOM_UTF8)], blocks))
            return
        if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise self._not_utf8_error("it is UTF-16")
        for text in self._split_to_size(self._decode_utf8_blocks(chain([first], blocks))):
            if storable_text(text):
                yield self._make_part_with_key(text, len(text.encode()), self._name)

    def _read_byte_blocks(self) -> Iterator[bytes]:
        try:
            while block := self._file.read(FILE_READ_CHUNK_BYTES):
                yield block
        except OSError as error:
            raise InvalidInput(f"{self._name} cannot be read: {error.strerror or error}.") from error

    def _make_part_with_key(self, text: str, size: int, place: str, **about: str) -> DocumentPart:
        self._digest.update(json.dumps([text, about]).encode())
        key = f"file-{self._digest.hexdigest()[:DOCUMENT_PART_KEY_HEX_DIGITS]}"
        return DocumentPart(text=text, key=key, size=size, location=place, **about)

    # --- texts ----------------------------------------------------------------------------------------------------

    def _decode_utf8_blocks(self, blocks: Iterable[bytes]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        offset = 0
        for block in chain(blocks, [b""]):
            if b"\0" in block:
                raise InvalidInput(f"{self._name} is a binary file, not a text. Give a text in UTF-8.")
            try:
                yield decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                raise self._not_utf8_error(f"byte {offset + error.start:,}") from error
            offset += len(block)

    def _split_to_size(self, texts: Iterable[str]) -> Iterator[str]:
        buffer = ""
        for text in texts:
            buffer += text
            while len(buffer) > self._most_chars:
                end = best_cut_position(buffer, self._most_chars)
                yield buffer[:end]
                buffer = buffer[end:]
        if buffer:
            yield buffer

    # --- conversations --------------------------------------------------------------------------------------------

    def _parts_of_conversation(self, blocks: Iterable[bytes]) -> Iterator[DocumentPart]:
        for number, line in enumerate(self._split_blocks_into_lines(blocks), start=1):
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except UnicodeDecodeError as error:
                raise self._not_utf8_error(f"line {number:,}") from error
            except (ValueError, RecursionError) as error:
                raise self._invalid_line_error(number, f"is not JSON ({error})") from error
            if not isinstance(message, dict):
                raise self._invalid_line_error(number, "is not a JSON object")
            text = storable_text(_text_of_message_content(_first_nonempty_field(message, _MESSAGE_TEXT_FIELD_NAMES)))
            if not text:
                yield DocumentPart(text="", key="", size=len(line) + 1)
                continue
            about = {
                "when": _moment_as_iso_text(_first_nonempty_field(message, _MESSAGE_TIME_FIELD_NAMES)),
                "speaker": _truncated_metadata_text(_first_nonempty_field(message, _MESSAGE_SPEAKER_FIELD_NAMES) or ""),
                "session_id": _truncated_metadata_text(
                    _first_nonempty_field(message, _MESSAGE_SESSION_FIELD_NAMES) or ""
                ),
            }
            texts = [part for part in self._split_to_size([text]) if storable_text(part)]
            for part in texts:
                size = len(line) + 1 if part is texts[-1] else 0
                yield self._make_part_with_key(part, size, f"Line {number:,} of {self._name}", **about)

    def _split_blocks_into_lines(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        unfinished = b""
        count = 0
        for block in blocks:
            *lines, unfinished = (unfinished + block).split(b"\n")
            yield from lines
            count += len(lines)
            if len(unfinished) > MAX_MESSAGE_LINE_BYTES:
                raise self._invalid_line_error(count + 1, f"has more than {MAX_MESSAGE_LINE_BYTES // 1024 // 1024} MB")
        yield unfinished

    def _not_utf8_error(self, where: str) -> InvalidInput:
        return InvalidInput(
            f"{self._name} is not UTF-8 ({where}). Convert it, as with iconv -f UTF-16 -t UTF-8, and try again."
        )

    def _invalid_line_error(self, number: int, reason: str) -> InvalidInput:
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
    return isinstance(message, dict) and any(name in message for name in _MESSAGE_TEXT_FIELD_NAMES)


def _first_nonempty_field(message: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((message[name] for name in names if message.get(name) not in (None, "")), None)


def _truncated_metadata_text(value: Any) -> str:
    return storable_text(str(value).strip()[:MAX_MESSAGE_SPEAKER_OR_SESSION_CHARS])


def _text_of_message_content(content: Any) -> str:
    """A text, or the texts among the parts of a message."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n\n".join(text for part in content if (text := _text_of_message_content(part)))
    if isinstance(content, dict):
        return _text_of_message_content(content.get("text", content.get("content")))
    return ""


def _moment_as_iso_text(value: Any) -> str:
    """A text as it is; a number counts seconds since 1970, or milliseconds."""
    if isinstance(value, str):
        return _truncated_metadata_text(value)
    try:
        return TypeAdapter(datetime).validate_python(value).isoformat()
    except ValidationError:
        return ""
