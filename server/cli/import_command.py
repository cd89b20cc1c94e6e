"""`madeleine import`: exports of Madeleine; conversations that Claude or ChatGPT exported, into the chat history."""

from __future__ import annotations

import argparse
import asyncio
import io
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import BeingId, Scope
from madeleine.memory.text.structure import visible_line
from madeleine.memory.watch.exports import UnreadableConversation, read_exported_conversations
from madeleine.memory.watch.observe import Observation, ObserveConversation
from madeleine.server import EXIT_FAILURE, EXIT_NOTHING
from madeleine.server.cli.export_import import import_export, is_export_file, print_imports, undo_import
from madeleine.server.cli.output import byte_progress, redacted_secrets_sentence
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.data_directory import open_ledger_without_index
from madeleine.server.wiring.open_memory import redaction_from_settings

EXPORT_READ_CHARS = 1024 * 1024
MAX_REPORTED_REASONS = 20
MAX_EXPORT_FILES = 1_000
"""Files of conversations in one archive."""
_CONVERSATIONS_FILE = re.compile(r"(?:.*/)?conversations(?:[-_]\d+)?\.json")
"""ChatGPT splits a large export into several."""


async def import_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """The exit code: 1 if some was left out, `EXIT_NOTHING` if nothing was new in exports. Raises `InvalidInput` for a
    file that can be neither."""
    if arguments.list:
        await print_imports(settings, as_json=arguments.json)
        return 0
    if arguments.undo:
        return await undo_import(settings, arguments.undo, as_json=arguments.json)
    if not arguments.files:
        raise InvalidInput("Give the files to import.")
    files = [Path(file) for file in arguments.files]
    exports = [file for file in files if await asyncio.to_thread(is_export_file, file)]
    conversations = [file for file in files if file not in exports]
    if conversations and arguments.dry_run:
        raise InvalidInput(f"{conversations[0]} is no export of Madeleine, and only for these there is --dry-run.")
    codes = [await import_export(settings, file, arguments) for file in exports]
    if conversations:
        if arguments.being:
            settings = settings.model_copy(update={"being": arguments.being})
        codes.append(await _import_conversations(settings, conversations, remember=arguments.remember))
    return EXIT_FAILURE if EXIT_FAILURE in codes else min(codes)


async def _import_conversations(settings: Settings, files: Sequence[Path], *, remember: bool) -> int:
    async with open_ledger_without_index(settings) as ledger:
        observe = ObserveConversation(ledger.conversations, now=utc_now, redact=redaction_from_settings(settings))
        importer = ConversationImporter(observe, settings, remember=remember)
        is_complete = False
        try:
            for file in files:
                await importer.import_file(file)
            is_complete = True
        finally:
            # An unreadable file undoes nothing of those before it.
            if is_complete or importer.counts or importer.unreadable_count:
                importer.print_report()
    if importer.unreadable_count:
        return EXIT_FAILURE
    return 0 if importer.counts["conversations"] or importer.counts["known"] else EXIT_NOTHING


class ConversationImporter:
    """Counts `conversations` and `messages` that were new, and conversations that were `known` or `empty`."""

    def __init__(self, observe: ObserveConversation, settings: Settings, *, remember: bool) -> None:
        self._observe = observe
        self._scope = Scope(BeingId(settings.being), "madeleine import")
        self._max_text_chars = settings.max_text_chars
        self._remember = remember
        self.counts: Counter[str] = Counter()
        self.redacted: Counter[str] = Counter()
        self.unreadable_count = 0
        self.unreadable_reasons: list[str] = []
        """Of the first conversations that were left out, at most `MAX_REPORTED_REASONS`."""

    async def import_file(self, path: Path) -> None:
        """Raises `InvalidInput` if it holds no readable conversation."""
        imported_before, unreadable_before = self.counts.total(), self.unreadable_count
        reasons_before = len(self.unreadable_reasons)
        with ExitStack() as stack:
            with raise_read_errors_as_invalid_input(path):
                exports = open_conversation_export(path, stack)
            show = stack.enter_context(byte_progress(sum(size for _, size, _ in exports)))
            for name, _, open_binary in exports:
                with ExitStack() as file_stack:
                    with raise_read_errors_as_invalid_input(path):
                        binary = file_stack.enter_context(open_binary())
                    await self._import_conversations(path, binary, partial(show, name))
        if self.unreadable_count > unreadable_before and self.counts.total() == imported_before:
            reasons = self.unreadable_reasons[reasons_before:] or ["none has their shape"]
            del self.unreadable_reasons[reasons_before:]  # reported here
            self.unreadable_count = unreadable_before
            raise InvalidInput(
                f"{path} holds no conversations of Claude or ChatGPT that can be read: {reasons[-1]}. "
                "Give the .zip that they sent, or the conversations.json in it."
            )

    async def _import_conversations(self, path: Path, binary: IO[bytes], show: Callable[[int, str], None]) -> None:
        position = 0
        chunks = iter(partial(io.TextIOWrapper(binary, encoding="utf-8-sig").read, EXPORT_READ_CHARS), "")
        exported = read_exported_conversations(chunks, max_text_chars=self._max_text_chars)
        next_conversation = raise_read_errors_as_invalid_input(path)(partial(self._next_with_messages, path, exported))
        # In a thread: JSON of some megabytes takes a while, and so do a million conversations without a message.
        while (conversation := await asyncio.to_thread(next_conversation)) is not None:
            await self._import_conversation(conversation)
            show(binary.tell() - position, f"{self.counts['messages']} messages")
            position = binary.tell()

    def _next_with_messages(
        self, path: Path, exported: Iterator[Observation | UnreadableConversation]
    ) -> Observation | None:
        for conversation in exported:
            if isinstance(conversation, UnreadableConversation):
                self._leave_out(path, conversation)
            elif conversation.messages:
                return conversation
            else:
                self.counts["empty"] += 1
        return None

    def _leave_out(self, path: Path, conversation: UnreadableConversation) -> None:
        self.unreadable_count += 1
        if len(self.unreadable_reasons) < MAX_REPORTED_REASONS:
            title = f" ({conversation.title[:80]!r})" if conversation.title else ""
            place = f"{path.name}: conversation {conversation.number}{title}"
            self.unreadable_reasons.append(f"{place}: {conversation.reason}")

    async def _import_conversation(self, conversation: Observation) -> None:
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
            print(redacted_secrets_sentence(self.redacted))
        for reason in self.unreadable_reasons:
            print(f"madeleine: left out {visible_line(reason)}", file=sys.stderr)
        if more := self.unreadable_count - len(self.unreadable_reasons):
            print(f"madeleine: left out {more:,} more conversations", file=sys.stderr)


def open_conversation_export(path: Path, stack: ExitStack) -> list[tuple[str, int, Callable[[], IO[bytes]]]]:
    """(name, bytes, how to open it) of each file of conversations in an export, a .zip or a file out of one; `stack`
    closes the archive. Archives that another program compresses in its own way are refused: a dictionary of LZMA may
    take gigabytes."""
    if not zipfile.is_zipfile(path):
        return [(path.name, path.stat().st_size, lambda: path.open("rb"))]
    archive = stack.enter_context(zipfile.ZipFile(path))
    members = [member for member in archive.infolist() if _CONVERSATIONS_FILE.fullmatch(member.filename)]
    if not members:
        inner = next((name for name in archive.namelist() if name.lower().endswith(".zip")), "")
        hint = (
            f"Unpack the archive in it ({inner[:80]!r}) and give that."
            if inner
            else "Give an export of Claude or ChatGPT."
        )
        raise InvalidInput(f"{path} has no conversations.json in it. {hint}")
    if len(members) > MAX_EXPORT_FILES:
        raise InvalidInput(
            f"{path} has {len(members):,} files of conversations; at most {MAX_EXPORT_FILES:,} are read."
        )
    if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
        raise InvalidInput(
            f"{path} is compressed in a way that no export is. Unpack it and give its conversations.json."
        )
    return [(member.filename, member.file_size, partial(archive.open, member)) for member in members]


@contextmanager
def raise_read_errors_as_invalid_input(path: Path) -> Iterator[None]:
    """Raise errors of files, archives and JSON as `InvalidInput`."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not text in UTF-8 ({error.reason}). Give the file as it was sent.") from error
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        # RuntimeError: it asks for a password.
        raise InvalidInput(f"{path} cannot be read: {error}. What came before is imported.") from error
    except ValueError as error:
        raise InvalidInput(f"{path} is not a whole JSON file: {error}. What came before is imported.") from error
