"""`madeleine import`: conversations that Claude or ChatGPT exported, into the chat history."""

from __future__ import annotations

import argparse
import asyncio
import io
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import BeingId
from madeleine.memory.scope import Scope
from madeleine.memory.watch.exports import Exported, Unreadable, conversations
from madeleine.memory.watch.observe import Observation, Observe
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.ledgers import ledger_alone
from madeleine.server.wiring.use_cases import redaction

NAME = "madeleine import"
CHUNK = 1024 * 1024
_CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:[-_]\d+)?\.json")
"""ChatGPT cuts a large export into several."""


@dataclass(slots=True)
class Imported:
    """`known` conversations had nothing new. `unreadable`: what is wrong with each of those that were left out."""

    conversations: int = 0
    messages: int = 0
    known: int = 0
    empty: int = 0
    unreadable: list[str] = field(default_factory=list)
    redacted: Counter[str] = field(default_factory=Counter)


async def import_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """The exit code: 1 if some could not be read. Raises `InvalidInput` for a file that is no export."""
    done = Imported()
    read_all = False
    try:
        async with ledger_alone(settings) as ledger:
            observe = Observe(ledger.conversations, now=utc_now, redact=redaction(settings))
            for file in arguments.files:
                await _import_file(Path(file), observe, done, settings, remember=arguments.remember)
        read_all = True
    finally:
        # A file that cannot be read undoes nothing of what came before it.
        if read_all or done != Imported():
            _show(done, settings.being)
    return 1 if done.unreadable else 0


async def _import_file(path: Path, observe: Observe, done: Imported, settings: Settings, *, remember: bool) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    before = done.conversations + done.known + done.empty
    unreadable = len(done.unreadable)
    console = Console(stderr=True)
    shown = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with _opened(path) as texts, shown as bar:
        for name, size, binary in texts:
            task = bar.add_task(name, total=size)
            found = conversations(_chunks(path, binary), max_text_chars=settings.max_text_chars)
            while (one := await asyncio.to_thread(_next, found, path)) is not None:
                await _take_in(one, path, observe, done, settings, remember=remember)
                bar.update(task, completed=binary.tell())
            bar.update(task, completed=size)
    own = done.unreadable[unreadable:]
    if done.conversations + done.known + done.empty == before and own:
        del done.unreadable[unreadable:]  # said here
        raise InvalidInput(
            f"{path} holds no conversations of Claude or ChatGPT that can be read: {own[-1]}. "
            "Give the .zip that they sent, or the conversations.json in it."
        )


async def _take_in(
    one: Exported | Unreadable, path: Path, observe: Observe, done: Imported, settings: Settings, *, remember: bool
) -> None:
    if isinstance(one, Unreadable):
        named = f"conversation {one.place}" + (f" ({one.title[:80]!r})" if one.title else "")
        done.unreadable.append(f"{path.name}: {named}: {one.reason}")
        return
    if not one.messages:
        done.empty += 1
        return
    seen = Observation(
        session_id=one.session_id,
        messages=one.messages,
        title=one.title,
        interface=one.interface,
        watched=not remember,
    )
    observed = await observe(Scope(BeingId(settings.being), NAME), seen)
    done.conversations += bool(observed.new)
    done.known += not observed.new
    done.messages += len(observed.new)
    done.redacted.update(observed.redacted if observed.new else {})


def _show(done: Imported, being: str) -> None:
    rest = [
        f"{done.known:,} were here already" if done.known else "",
        f"{done.empty:,} are empty" if done.empty else "",
    ]
    others = f" ({', '.join(part for part in rest if part)})" if any(rest) else ""
    print(f"{done.messages:,} messages of {done.conversations:,} conversations were imported for {being!r}{others}.")
    if done.redacted:
        print(f"Redacted: {', '.join(f'{count} {kind}' for kind, count in done.redacted.items())}.")
    for reason in done.unreadable:
        print(f"madeleine: left out {reason}", file=sys.stderr)


# --- reading ----------------------------------------------------------------------------------------------------


@contextmanager
def _opened(path: Path) -> Iterator[Iterator[tuple[str, int, IO[bytes]]]]:
    """(name, bytes, content) of the conversations in an export: a .zip, or a file out of one."""
    with ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(path)) if zipfile.is_zipfile(path) else None
            file = stack.enter_context(path.open("rb"))
        except (OSError, zipfile.BadZipFile) as error:
            raise InvalidInput(f"{path} cannot be read: {error}.") from error
        if archive is None:
            yield iter([(path.name, path.stat().st_size, file)])
            return
        inside = [one for one in archive.infolist() if _CONVERSATIONS.fullmatch(one.filename)]
        if not inside:
            raise InvalidInput(f"{path} has no conversations.json in it. Give an export of Claude or ChatGPT.")
        yield ((one.filename, one.file_size, stack.enter_context(_member(path, archive, one))) for one in inside)


def _member(path: Path, archive: zipfile.ZipFile, one: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(one)
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:  # RuntimeError: it asks for a password
        raise InvalidInput(f"{one.filename} in {path} cannot be read: {error}.") from error


def _chunks(path: Path, binary: IO[bytes]) -> Iterator[str]:
    text = io.TextIOWrapper(binary, encoding="utf-8-sig")
    try:
        while chunk := text.read(CHUNK):
            yield chunk
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not text in UTF-8 ({error.reason}). Give the file as it was sent.") from error
    except (OSError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidInput(f"{path} cannot be read to its end: {error}. What came before is imported.") from error


def _next(found: Iterator[Exported | Unreadable], path: Path) -> Exported | Unreadable | None:
    """In a thread: JSON of some megabytes takes a while."""
    try:
        return next(found, None)
    except ValueError as error:
        raise InvalidInput(f"{path} is not a whole JSON file: {error}. What came before is imported.") from error
