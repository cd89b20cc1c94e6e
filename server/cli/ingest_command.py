"""`madeleine ingest`: pour files into memory (spec L1). A client of the host, which does it.

Read as a stream, a few parts in flight: while one is embedded, the one before is stored and the next one is cut.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, get_args

from madeleine.memory.errors import ConnectionLost, InvalidInput, MadeleineError
from madeleine.memory.model import Category
from madeleine.server.cli.ingest_display import Display, display, summary
from madeleine.server.cli.ingest_reading import Document, Part
from madeleine.server.settings.environment import environment, given
from madeleine.server.settings.settings import Settings

if TYPE_CHECKING:
    from madeleine.server.attach.client import HostClient

NAME = "madeleine ingest"
PART_CHARS = 16_000
"""Of a part: about 30 chunks, for which the model takes a second; who recalls meanwhile waits no longer."""
IN_FLIGHT = 3
WHEN_LOST = "Run the same command again: it goes on where it was."
STATUSES = ("stored", "reinforced", "dropped")


class Interrupted(MadeleineError):
    """The host refused a part."""


@dataclass(slots=True)
class Tally:
    """Of one file. `already`: chunks that an earlier run has poured in. `silent`: messages that say nothing."""

    file: str
    counts: Counter[str] = field(default_factory=Counter)
    parts: int = 0
    silent: int = 0
    redacted: Counter[str] = field(default_factory=Counter)
    notice: str = ""

    def add(self, answer: dict[str, Any]) -> None:
        self.parts += 1
        if answer.get("repeated"):
            self.counts["already"] += len(answer["chunks"])
            return
        for status in STATUSES:
            self.counts[status] += answer[status]
        self.redacted.update(answer.get("redacted", {}))
        self.notice = answer.get("notice", self.notice)

    def as_json(self) -> dict[str, Any]:
        counts = {name: self.counts[name] for name in (*STATUSES, "already")}
        rest = {"redacted": dict(self.redacted), "notice": self.notice, "without_text": self.silent}
        return (
            {"file": self.file, "parts": self.parts} | counts | {name: value for name, value in rest.items() if value}
        )


async def ingest_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """The exit code: 1 if the host went away or refused a part. Raises `HostRefused`, `InvalidInput`."""
    from madeleine.server.attach.client import host_client

    category: str | None = arguments.category
    if category is not None and category not in get_args(Category):
        raise InvalidInput(f"--category: there is no {category!r}. Known are {', '.join(get_args(Category))}.")
    if arguments.session is not None and not 0 < len(arguments.session.strip()) <= 200:
        raise InvalidInput("--session: give 1 to 200 characters.")
    tallies: list[Tally] = []
    try:
        with opened(arguments.files) as files, display(sum(size or 0 for _, _, size in files)) as show:
            async with host_client(settings.data_dir, environment(), brought(), NAME, when_lost=WHEN_LOST) as call:
                most = await longest_text(call)
                for name, file, _ in files:
                    tallies.append(Tally(name))
                    about = json.dumps([arguments.session, category])
                    document = Document(file, name, about=about, most_chars=min(most, PART_CHARS))
                    await Pouring(call, tallies[-1], show, session=arguments.session, category=category)(document)
    except (MadeleineError, ExceptionGroup) as error:
        report([one for one in tallies if one.parts], arguments)
        reason = innermost(error)
        if not isinstance(reason, ConnectionLost | Interrupted):
            raise reason from error
        print(f"madeleine: {reason}", file=sys.stderr)
        return 1
    report(tallies, arguments)
    return 0


def innermost(error: Exception) -> Exception:
    """The first of a group, of the group in it, and so on."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def report(tallies: list[Tally], arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(json.dumps([one.as_json() for one in tallies], ensure_ascii=False, indent=2))
    else:
        for one in tallies:
            print(summary(one.as_json()))


class Pouring:
    """One document, part by part."""

    def __init__(
        self, call: HostClient, tally: Tally, show: Display, *, session: str | None, category: str | None
    ) -> None:
        self._call = call
        self._tally = tally
        self._show = show
        self._session = session
        self._category = category

    async def __call__(self, document: Document) -> None:
        free = asyncio.Semaphore(IN_FLIGHT)
        parts = document.parts()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await free.acquire()
                # In a thread: standard input may keep us waiting.
                part = await asyncio.to_thread(next, parts, None)
                if part is None:
                    break
                tasks.create_task(self._pour(part, free))

    async def _pour(self, part: Part, free: asyncio.Semaphore) -> None:
        try:
            if part.text:
                self._tally.add(await self._ask(part))
            else:
                self._tally.silent += 1
            self._show(self._tally.file, part.size, self._tally.counts)
        finally:
            free.release()

    async def _ask(self, part: Part) -> dict[str, Any]:
        about = {
            "session_id": part.session_id or self._session,
            "category": self._category,
            "when": part.when,
            "actors": [part.speaker] if part.speaker else None,
        }
        words = {"text": part.text, "key": part.key} | {name: value for name, value in about.items() if value}
        try:
            return await self._call("ingest", words)
        except ConnectionLost:
            raise
        except MadeleineError as error:
            raise Interrupted(f"{part.place}: {error}") from error


async def longest_text(call: HostClient) -> int:
    """As the host has it, whose settings may be others than ours."""
    if schema := await call.input_schema("ingest"):
        return int(schema["properties"]["text"]["maxLength"])
    raise Interrupted("This connection may only read: unset MADELEINE_READ_ONLY and MADELEINE_EXCLUDE_TOOLS.")


def brought() -> dict[str, str]:
    """As every client of the host brings its own settings; this one needs one tool."""
    own = {name: value for name, value in given(environment()).items() if name not in ("data_dir", "toolsets")}
    return own | {"tools": "ingest"}


@contextmanager
def opened(names: list[str]) -> Iterator[list[tuple[str, IO[bytes], int | None]]]:
    """(name, file, bytes), all of them before the first is read; bytes None where it cannot be known."""
    with ExitStack() as stack:
        found: list[tuple[str, IO[bytes], int | None]] = []
        for name in names:
            if name == "-":
                found.append(("standard input", sys.stdin.buffer, None))
                continue
            try:
                file = stack.enter_context(Path(name).open("rb"))
                size = Path(name).stat().st_size if Path(name).is_file() else None
            except OSError as error:
                raise InvalidInput(f"{name} cannot be read: {error.strerror}. Nothing was poured in.") from error
            found.append((name, file, size))
        yield found
