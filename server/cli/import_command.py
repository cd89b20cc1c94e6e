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
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import BeingId, Scope
from madeleine.memory.watch.exports import UnreadableConversation, read_exported_conversations
from madeleine.memory.watch.observe import Observation, Observe
from madeleine.server import EXIT_FAILURE
from madeleine.server.cli.output import byte_progress, redaction_note
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.data_directory import open_ledger_without_index
from madeleine.server.wiring.open_memory import redaction_from_settings

EXPORT_READ_CHARS = 1024 * 1024
_CONVERSATIONS_FILE = re.compile(r"(?:.*/)?conversations(?:[-_]\d+)?\.json")
"""ChatGPT splits a large export into several."""


async def import_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """The exit code: 1 if some could not be read. Raises `InvalidInput` for a file that is no export."""
    async with open_ledger_without_index(settings) as ledger:
        observe = Observe(ledger.conversations, now=utc_now, redact=redaction_from_settings(settings))
        importer = ConversationImporter(observe, settings, remember=arguments.remember)
        is_complete = False
        try:
            for file in arguments.files:
                await importer.import_file(Path(file))
            is_complete = True
        finally:
            # An unreadable file undoes nothing of those before it.
            if is_complete or importer.counts or importer.unreadable:
                importer.print_report()
    return EXIT_FAILURE if importer.unreadable else 0


class ConversationImporter:
    """Counts `conversations` and `messages` that were new, and conversations that were `known` or `empty`."""

    def __init__(self, observe: Observe, settings: Settings, *, remember: bool) -> None:
        self._observe = observe
        self._scope = Scope(BeingId(settings.being), "madeleine import")
        self._max_text_chars = settings.max_text_chars
        self._remember = remember
        self.counts: Counter[str] = Counter()
        self.redacted: Counter[str] = Counter()
        self.unreadable: list[str] = []
        """The reason for each conversation that was left out."""

    async def import_file(self, path: Path) -> None:
        """Raises `InvalidInput` if it holds no readable conversation."""
        imported_before, unreadable_before = self.counts.total(), len(self.unreadable)
        with ExitStack() as stack:
            with raise_read_errors_as_invalid_input(path):
                exports = open_conversation_export(path, stack)
            show = stack.enter_context(byte_progress(sum(size for _, size, _ in exports)))
            for name, _, binary in exports:
                position = 0
                chunks = iter(partial(io.TextIOWrapper(binary, encoding="utf-8-sig").read, EXPORT_READ_CHARS), "")
                exported = read_exported_conversations(chunks, max_text_chars=self._max_text_chars)
                next_conversation = raise_read_errors_as_invalid_input(path)(partial(next, exported, None))
                # In a thread: JSON of some megabytes takes a while.
                while (conversation := await asyncio.to_thread(next_conversation)) is not None:
                    if isinstance(conversation, UnreadableConversation):
                        title = f" ({conversation.title[:80]!r})" if conversation.title else ""
                        place = f"{path.name}: conversation {conversation.number}{title}"
                        self.unreadable.append(f"{place}: {conversation.reason}")
                        continue
                    await self._import_conversation(conversation)
                    show(name, binary.tell() - position, f"{self.counts['messages']} messages")
                    position = binary.tell()
        reasons = self.unreadable[unreadable_before:]
        if reasons and self.counts.total() == imported_before:
            del self.unreadable[unreadable_before:]  # reported here
            raise InvalidInput(
                f"{path} holds no conversations of Claude or ChatGPT that can be read: {reasons[-1]}. "
                "Give the .zip that they sent, or the conversations.json in it."
            )

    async def _import_conversation(self, conversation: Observation) -> None:
        if not conversation.messages:
            self.counts["empty"] += 1
            return
        observed = await self._observe(self._scope, replace(conversation, watched=not self._remember))
        self.counts["conversations" if observed.new_messages else "known"] += 1
        if observed.new_messages:
            self.counts["messages"] += len(observed.new_messages)
            self.redacted.update(observed.redacted)

    def print_report(self) -> None:
        messages, new = self.counts["messages"], self.counts["conversations"]
        labels = {"known": "were here already", "empty": "are empty"}
        others = ", ".join(f"{self.counts[name]:,} {label}" for name, label in labels.items() if self.counts[name])
        skipped = f" ({others})" if others else ""
        print(f"{messages:,} messages of {new:,} conversations were imported for {self._scope.being_id!r}{skipped}.")
        if self.redacted:
            print(redaction_note(self.redacted))
        for reason in self.unreadable:
            print(f"madeleine: left out {reason}", file=sys.stderr)


def open_conversation_export(path: Path, stack: ExitStack) -> list[tuple[str, int, IO[bytes]]]:
    """(name, bytes, content) of the conversations in an export, a .zip or a file out of one; `stack` closes them."""
    if not zipfile.is_zipfile(path):
        return [(path.name, path.stat().st_size, stack.enter_context(path.open("rb")))]
    archive = stack.enter_context(zipfile.ZipFile(path))
    members = [member for member in archive.infolist() if _CONVERSATIONS_FILE.fullmatch(member.filename)]
    if not members:
        raise InvalidInput(f"{path} has no conversations.json in it. Give an export of Claude or ChatGPT.")
    return [(member.filename, member.file_size, stack.enter_context(archive.open(member))) for member in members]


@contextmanager
def raise_read_errors_as_invalid_input(path: Path) -> Iterator[None]:
    """Raise errors of files, archives and JSON as `InvalidInput`."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not text in UTF-8 ({error.reason}). Give the file as it was sent.") from error
    except (OSError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:  # RuntimeError: it asks for a password
        raise InvalidInput(f"{path} cannot be read: {error}. What came before is imported.") from error
    except ValueError as error:
        raise InvalidInput(f"{path} is not a whole JSON file: {error}. What came before is imported.") from error
