"""The use case: what other programs keep is taken over, file by file, and nothing twice however often it is run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Protocol

from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.ports import MemoryAndIdempotencyKeyReader
from madeleine.memory.model import Scope
from madeleine.memory.moving.ports import OtherProgramImportLedger
from madeleine.memory.moving.sources.registry import recognise_import_file_format
from madeleine.memory.moving.sources.values import (
    FileToImport,
    ImportedStatement,
    ImportFileUnreadable,
    ImportItem,
    SkippedContent,
    UnreadableImportEntryReport,
    imported_statement_key,
)
from madeleine.memory.moving.statements import StatementImportCounts, never_imported_keys_and_counts_of_others
from madeleine.memory.rules.storing.secrets import CountingRedactor, RedactText
from madeleine.memory.text.normalization import split_by_length, storable_text
from madeleine.memory.watch.observe import ObserveConversation, ObservedConversationPart, redact_observation

MAX_STATEMENTS_PER_IMPORT_BATCH = 100
MAX_MESSAGES_PER_IMPORT_BATCH = 1_000
MAX_ITEMS_PER_IMPORT_BATCH = 5_000
"""Items of a batch, most of which say what is not taken."""
MAX_IMPORTED_STATEMENT_CHARS = 4_000
"""A longer text becomes several memories: no model reads more of one."""
MAX_THEMES_PER_IMPORTED_STATEMENT = 20
"""As many as a store takes."""
MAX_IMPORT_SAMPLES_SHOWN_PER_FORMAT = 3
"""Statements and conversations of a format that a report shows."""
MAX_IMPORT_PROBLEMS_NAMED = 20
ImportedStatementSender = Callable[[Mapping[str, ImportedStatement]], Awaitable[StatementImportCounts]]
"""Have statements stored, by their keys (`StoreImportedStatements`)."""
ReportImportFileState = Callable[[FileToImport, str], None]
"""(file that is being read, state)."""


class MessageKeyReader(Protocol):
    async def known_message_keys(self, scope: Scope, session_id: str, keys: Iterable[str]) -> set[str]:
        """Those that the session has, or had before their messages were forgotten."""


@dataclass(slots=True)
class ImportReportOfFileFormat:
    """What came of the files of one format. `statements`: by outcome, the fields of `StatementImportCounts`."""

    files: int = 0
    statements: Counter[str] = field(default_factory=Counter)
    conversations: int = 0
    messages: int = 0
    known_messages: int = 0
    not_taken: Counter[str] = field(default_factory=Counter)
    samples: list[str] = field(default_factory=list)

    @property
    def new_item_count(self) -> int:
        return self.statements["stored"] + self.statements["reinforced"] + self.messages


@dataclass(slots=True)
class OtherProgramsImportReport:
    """`unusable`: files that could not be read to their end, with the reason. `damaged`: the first
    `MAX_IMPORT_PROBLEMS_NAMED` entries that could not be read."""

    formats: dict[str, ImportReportOfFileFormat] = field(default_factory=dict)
    unrecognised: list[str] = field(default_factory=list)
    unrecognised_count: int = 0
    unusable: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    damaged_count: int = 0
    redacted: Counter[str] = field(default_factory=Counter)

    @property
    def new_item_count(self) -> int:
        return sum(report.new_item_count for report in self.formats.values())


@dataclass(frozen=True, eq=False)
class ImportFilesOfOtherPrograms:
    """The use case. Without `send` nothing is stored: what would come is counted."""

    imports: OtherProgramImportLedger
    memories: MemoryAndIdempotencyKeyReader
    conversations: MessageKeyReader
    observe: ObserveConversation
    send: ImportedStatementSender | None
    _: KW_ONLY
    redact: RedactText
    max_text_chars: int
    remember: bool = False
    """The memory thread reads the conversations."""
    import_id: str = ""
    on_file: ReportImportFileState = lambda file, state: None
    report: OtherProgramsImportReport = field(default_factory=OtherProgramsImportReport)

    async def __call__(self, scope: Scope, files: Iterable[FileToImport]) -> OtherProgramsImportReport:
        """Take over all that is new. `files` is read in a thread. Raises what a store raises; what came before stays,
        and the same call continues."""
        each = iter(files)
        while (file := await asyncio.to_thread(next, each, None)) is not None:
            try:
                await self._import_file(scope, file)
            except ImportFileUnreadable as error:
                self.report.unusable.append(str(error))
        return self.report

    async def _import_file(self, scope: Scope, file: FileToImport) -> None:
        format_ = await asyncio.to_thread(recognise_import_file_format, file)
        if format_ is None:
            self.report.unrecognised_count += 1
            if len(self.report.unrecognised) < MAX_IMPORT_PROBLEMS_NAMED:
                self.report.unrecognised.append(file.display_path)
            return
        report = self.report.formats.setdefault(format_.name, ImportReportOfFileFormat())
        report.files += 1
        items = format_.read(file, self.max_text_chars)
        last_session = ""
        while batch := await asyncio.to_thread(self._next_batch, format_.name, file, items, report):
            if batch.statements:
                await self._import_statements(scope, batch.statements, report)
            for observation in batch.observations:
                new = await self._import_messages(scope, observation, report)
                if new and observation.session_id != last_session:
                    report.conversations += 1
                    last_session = observation.session_id
            self.on_file(file, f"{report.messages:,} messages, {report.statements['stored']:,} memories")
            if batch.error:
                raise batch.error

    def _next_batch(
        self, format_name: str, file: FileToImport, items: Iterator[ImportItem], report: ImportReportOfFileFormat
    ) -> _ImportBatch | None:
        """Read on, until there is enough to store; redacted. None at the end."""
        batch = _ImportBatch()
        messages = 0
        for _ in range(MAX_ITEMS_PER_IMPORT_BATCH):
            try:
                item = next(items, None)
            except ImportFileUnreadable as error:
                batch.error = error
                return batch
            match item:
                case None:
                    return batch if batch.has_items else None
                case SkippedContent(reason, count):
                    report.not_taken[reason] += count
                case UnreadableImportEntryReport():
                    self._report_damaged_entry(file, item)
                case ImportedStatement():
                    for part in self._redact_and_split_statement(item):
                        key = imported_statement_key(format_name, part)
                        report.statements["known"] += key in batch.statements
                        batch.statements[key] = part
                        _add_import_sample(report, part.text, part.when)
                case ObservedConversationPart():
                    try:
                        batch.observations.append(self._redact_and_mark_observation(item))
                    except InvalidInput:
                        self._report_damaged_entry(
                            file,
                            UnreadableImportEntryReport("a conversation", "its id, or one of a message, is a secret"),
                        )
                        continue
                    messages += len(item.messages)
                    if report.messages + report.known_messages == 0:
                        _add_import_sample(report, item.messages[0].text, "", title=item.title)
            batch.has_items = True
            if len(batch.statements) >= MAX_STATEMENTS_PER_IMPORT_BATCH or messages >= MAX_MESSAGES_PER_IMPORT_BATCH:
                break
        return batch

    def _report_damaged_entry(self, file: FileToImport, damaged: UnreadableImportEntryReport) -> None:
        self.report.damaged_count += 1
        if len(self.report.damaged) < MAX_IMPORT_PROBLEMS_NAMED:
            self.report.damaged.append(f"{file.display_path}, {damaged.place}: {damaged.reason}")

    def _redact_and_split_statement(self, statement: ImportedStatement) -> Iterator[ImportedStatement]:
        redaction = CountingRedactor(self.redact)
        clean = redaction.redact_fields(statement, "text", "id", "lesson", "themes", "actors")
        self.report.redacted.update(redaction.found)
        for text in split_by_length(clean.text, MAX_IMPORTED_STATEMENT_CHARS):
            if storable_text(text).strip():
                yield replace(
                    clean, text=storable_text(text).strip(), themes=clean.themes[:MAX_THEMES_PER_IMPORTED_STATEMENT]
                )

    def _redact_and_mark_observation(self, observation: ObservedConversationPart) -> ObservedConversationPart:
        observation, redacted = redact_observation(observation, self.redact)
        self.report.redacted.update(redacted)
        return replace(observation, watched=not self.remember, import_id=self.import_id)

    async def _import_statements(
        self, scope: Scope, statements: Mapping[str, ImportedStatement], report: ImportReportOfFileFormat
    ) -> None:
        if self.send:
            outcomes = await self.send(statements)
        else:
            new, others = await never_imported_keys_and_counts_of_others(
                self.memories, self.imports, scope, list(statements)
            )
            outcomes = replace(others, stored=len(new))
        for name in ("stored", "reinforced", "known", "forgotten", "may_supersede"):
            report.statements[name] += getattr(outcomes, name)

    async def _import_messages(
        self, scope: Scope, observation: ObservedConversationPart, report: ImportReportOfFileFormat
    ) -> int:
        count = len(observation.messages)
        if self.send:
            new = len((await self.observe(scope, observation)).new_messages)
        else:
            keys = [message.key for message in observation.messages if message.key is not None]
            new = count - len(await self.conversations.known_message_keys(scope, observation.session_id, keys))
        report.messages += new
        report.known_messages += count - new
        return new


@dataclass(slots=True)
class _ImportBatch:
    statements: dict[str, ImportedStatement] = field(default_factory=dict)
    observations: list[ObservedConversationPart] = field(default_factory=list)
    has_items: bool = False
    error: ImportFileUnreadable | None = None


def _add_import_sample(report: ImportReportOfFileFormat, text: str, when: str, *, title: str = "") -> None:
    if len(report.samples) < MAX_IMPORT_SAMPLES_SHOWN_PER_FORMAT:
        line = " ".join(text.split())
        about = ": ".join(part for part in (when[:10], title) if part)
        shown = f"{line[:119]}…" if len(line) > 120 else line
        report.samples.append(f"{about} — {shown}" if about else shown)
