"""`madeleine ingest`: ingest files (spec L1). The host does it.

Files are read as a stream, a few parts in flight: while one is embedded, the one before is stored and the next is cut.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, get_args

from madeleine.memory.errors import ConnectionLost, InvalidInput, MadeleineError
from madeleine.memory.model import Category
from madeleine.server import EXIT_FAILURE
from madeleine.server.attach.client import HostClient
from madeleine.server.cli.ingest_reading import Document, DocumentPart
from madeleine.server.cli.output import ShowBytes, byte_progress, host_tool, print_json, printable, redaction_note
from madeleine.server.settings.settings import Settings

MAX_PART_CHARS = 16_000
"""Of a part: about 30 chunks, for which the model takes a second; a recall in the meantime waits no longer."""
MAX_PARTS_IN_FLIGHT = 3
CONNECTION_LOST_HINT = "Run the same command again: it continues where it stopped."
STATUS_LABELS = {
    "stored": "stored",
    "reinforced": "known already and reinforced",
    "dropped": "not worth keeping",
    "already": "ingested before",
}
"""Status of a chunk → its label in reports. `already`: an earlier run has ingested it."""


class PartRefused(MadeleineError):
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

    def add(self, answer: dict[str, Any]) -> None:
        self.parts += 1
        if answer.get("repeated"):
            self.counts["already"] += len(answer["chunks"])
            return
        self.counts.update({status: answer.get(status, 0) for status in STATUS_LABELS})
        self.redacted.update(answer.get("redacted", {}))
        self.notice = answer.get("notice", self.notice)

    def as_json(self) -> dict[str, Any]:
        counts = {status: self.counts[status] for status in STATUS_LABELS}
        optional = {"redacted": dict(self.redacted), "notice": self.notice, "without_text": self.without_text}
        present = {name: value for name, value in optional.items() if value}
        return {"file": self.file, "parts": self.parts} | counts | present

    def counts_text(self) -> str:
        counts = ((self.counts[status], label) for status, label in STATUS_LABELS.items())
        return ", ".join(f"{count} {label}" for count, label in counts if count) or "nothing"

    def summary(self) -> str:
        lines = [f"{printable(self.file)}: {self.counts_text()}."]
        lines += [f"  Lines without a text: {self.without_text}."] if self.without_text else []
        lines += [f"  {redaction_note(self.redacted)}"] if self.redacted else []
        lines += [f"  {printable(self.notice)}"] if self.notice else []
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
            files = [stack.enter_context(open_file(name)) for name in arguments.files]
            show = stack.enter_context(byte_progress(sum(os.fstat(file.fileno()).st_size for file in files)))
            async with host_tool(
                settings, "ingest", command="madeleine ingest", when_lost=CONNECTION_LOST_HINT
            ) as call:
                most_chars = min(await max_text_chars(call), MAX_PART_CHARS)
                for path, file in zip(arguments.files, files, strict=True):
                    name = "standard input" if path == "-" else path
                    reports.append(IngestFileReport(name))
                    document = Document(file, name, about=key_prefix, most_chars=most_chars)
                    await ingest_document(call, document, reports[-1], show, defaults)
    except (MadeleineError, ExceptionGroup) as error:
        print_reports([report for report in reports if report.parts], as_json=arguments.json)
        reason: Exception = error
        while isinstance(reason, ExceptionGroup):
            reason = reason.exceptions[0]
        if not isinstance(reason, ConnectionLost | PartRefused):
            raise reason from error
        print(f"madeleine: {reason}", file=sys.stderr)
        return EXIT_FAILURE
    print_reports(reports, as_json=arguments.json)
    return 0


def print_reports(reports: list[IngestFileReport], *, as_json: bool) -> None:
    if as_json:
        print_json([report.as_json() for report in reports])
    else:
        for report in reports:
            print(report.summary())


async def ingest_document(
    call: HostClient, document: Document, report: IngestFileReport, show: ShowBytes, defaults: Mapping[str, str | None]
) -> None:
    """`defaults`: arguments of the tool for parts that have none of their own. Raises `PartRefused`, `ConnectionLost`,
    in a group."""
    slots = asyncio.Semaphore(MAX_PARTS_IN_FLIGHT)
    parts = document.parts()

    async def ingest(part: DocumentPart) -> None:
        try:
            if part.text:
                report.add(await ingest_part(call, part, defaults))
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


async def ingest_part(call: HostClient, part: DocumentPart, defaults: Mapping[str, str | None]) -> dict[str, Any]:
    own = {"session_id": part.session_id, "when": part.when, "actors": [part.speaker] if part.speaker else None}
    arguments: dict[str, Any] = {"text": part.text, "key": part.key}
    for optional in (defaults, own):
        arguments |= {name: value for name, value in optional.items() if value}
    try:
        return await call("ingest", arguments)
    except ConnectionLost:
        raise
    except MadeleineError as error:
        raise PartRefused(f"{part.place}: {error}") from error


async def max_text_chars(call: HostClient) -> int:
    """The host's limit; its settings may differ from ours."""
    if schema := await call.input_schema("ingest"):
        return int(schema["properties"]["text"]["maxLength"])
    raise PartRefused("This connection may only read: unset MADELEINE_READ_ONLY and MADELEINE_EXCLUDE_TOOLS.")


def open_file(name: str) -> IO[bytes]:
    """Standard input for "-"."""
    try:
        return sys.stdin.buffer if name == "-" else Path(name).open("rb")
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}. Nothing was ingested.") from error
