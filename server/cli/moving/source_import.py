"""Imports from other programs: their files are read here, the memories are stored by the host, and the conversations
beside it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from madeleine.memory.errors import MadeleineError
from madeleine.memory.model import BeingId, Scope
from madeleine.memory.moving.import_sources import (
    MAX_IMPORT_PROBLEMS_NAMED,
    ImportFilesOfOtherPrograms,
    ImportReportOfFileFormat,
    OtherProgramsImportReport,
)
from madeleine.memory.moving.sources.registry import IMPORT_FILE_FORMATS
from madeleine.memory.moving.sources.values import FileToImport, ImportedStatement, ImportFileUnreadable
from madeleine.memory.moving.statements import StatementImportCounts
from madeleine.memory.text.structure import terminal_safe_line
from madeleine.memory.watch.observe import ObserveConversation
from madeleine.server import EXIT_FAILURE, EXIT_NOTHING_TO_DO, EXIT_USAGE
from madeleine.server.cli.moving.export_import import run_import_command_on_host
from madeleine.server.cli.output import print_json, redacted_secrets_sentence, show_byte_progress
from madeleine.server.counted import count_phrase
from madeleine.server.moving_in.source_files import DiskOrArchiveFile, find_import_files
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.data_directory import ledger_path, open_ledger_without_index
from madeleine.server.wiring.open_memory import redaction_from_settings
from madeleine.storage.sql.ledger import LedgerRepositories

IMPORT_CLIENT_NAME = "madeleine import"
IMPORTED_CONVERSATIONS_HINT = (
    "madeleine: conversations are found by search_memory, by their words. recall has what became memories: --remember "
    "makes them, with a language model."
)
_STATEMENTS_TYPE_ADAPTER = TypeAdapter(dict[str, ImportedStatement])
MAX_IMPORT_NAME_CHARS = 500


async def import_files_of_other_programs(
    settings: Settings, paths: Sequence[Path], *, dry_run: bool, remember: bool, as_json: bool, source: str = ""
) -> int:
    """The exit code: 0 if something was new, 1 if something was damaged, 2 if a file cannot be used, 3 if nothing was
    new. `source`: what the import is called in the list, by default its files."""
    source = source or ", ".join(str(path.absolute()) for path in paths)[:MAX_IMPORT_NAME_CHARS]
    scope = Scope(BeingId(settings.being), IMPORT_CLIENT_NAME)
    import_id, counts = "", {}
    async with _open_ledger_or_temporary_one(settings, dry_run=dry_run) as ledger:
        if not dry_run:
            import_id = await ledger.imports.begin_or_resume_import(scope, source, at=utc_now())
        report = OtherProgramsImportReport()
        try:
            with show_byte_progress(
                sum(file.size for file in _find_files_to_import(paths, on_error=lambda _: None))
            ) as show:
                await ImportFilesOfOtherPrograms(
                    imports=ledger.imports,
                    memories=ledger.memories,
                    conversations=ledger.conversations,
                    observe=ObserveConversation(
                        ledger.conversations, now=utc_now, redact=redaction_from_settings(settings)
                    ),
                    send=None if dry_run else _make_statement_sender(settings, import_id),
                    redact=redaction_from_settings(settings),
                    max_text_chars=settings.max_text_chars,
                    remember=remember,
                    import_id=import_id,
                    on_file=_make_file_progress_callback(show),
                    report=report,
                )(scope, _find_files_to_import(paths, on_error=lambda error: report.unusable.append(str(error))))
            if import_id:
                counts = await ledger.imports.end_import_and_count_added_by_type(scope, import_id, at=utc_now())
        except MadeleineError as error:
            print(f"madeleine: {terminal_safe_line(error)} Run the same command again: it continues.", file=sys.stderr)
            return EXIT_FAILURE
    import_id = import_id if counts else ""
    if as_json:
        print_json(_report_as_json(report, import_id))
    else:
        print_import_report(report, being=settings.being, is_dry_run=dry_run, import_id=import_id)
        if not remember and any(of_format.messages for of_format in report.formats.values()):
            print(IMPORTED_CONVERSATIONS_HINT, file=sys.stderr)
    print_import_problems(report)
    if report.unusable or (report.unrecognised_count and not report.formats):
        return EXIT_USAGE
    if report.damaged_count:
        return EXIT_FAILURE
    return 0 if report.new_item_count else EXIT_NOTHING_TO_DO


@asynccontextmanager
async def _open_ledger_or_temporary_one(settings: Settings, *, dry_run: bool) -> AsyncIterator[LedgerRepositories]:
    """A dry run before there is a memory looks at an empty one, and makes none."""
    if not dry_run or settings.database_url or ledger_path(settings).exists():
        async with open_ledger_without_index(settings) as ledger:
            yield ledger
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
        empty = settings.model_copy(update={"data_dir": Path(folder)})
        async with open_ledger_without_index(empty) as ledger:
            yield ledger


def _find_files_to_import(
    paths: Iterable[Path], *, on_error: Callable[[ImportFileUnreadable], None]
) -> Iterator[DiskOrArchiveFile]:
    for path in paths:
        yield from find_import_files(path, on_error)


def _make_statement_sender(settings: Settings, import_id: str) -> Callable[[Mapping[str, ImportedStatement]], Any]:
    async def send(statements: Mapping[str, ImportedStatement]) -> StatementImportCounts:
        command = {"command": "store_statements", "import": import_id, "being": settings.being}
        command["statements"] = _STATEMENTS_TYPE_ADAPTER.dump_json(dict(statements)).decode()
        return StatementImportCounts(**await run_import_command_on_host(settings, command))

    return send


def _make_file_progress_callback(show: Callable[[str, int, str], None]) -> Callable[[FileToImport, str], None]:
    shown: dict[str, int] = {}

    def on_file(file: FileToImport, state: str) -> None:
        position = file.position if isinstance(file, DiskOrArchiveFile) else 0
        before = shown.get(file.display_path, 0)
        if file.display_path not in shown:
            shown.clear()
        shown[file.display_path] = max(position, before)
        show(file.display_path.rpartition("/")[2], max(0, position - before), state)

    return on_file


# --- the report ---------------------------------------------------------------------------------------------------


def print_import_report(report: OtherProgramsImportReport, *, being: str, is_dry_run: bool, import_id: str) -> None:
    for name, of_format in report.formats.items():
        counts = _imported_counts_text(of_format, is_dry_run=is_dry_run)
        print(f"{name}, {count_phrase(of_format.files, 'file')}: {counts}.")
        if is_dry_run:
            for sample in of_format.samples:
                print(f"  for example: {terminal_safe_line(sample)}")
        if left_out := _counts_text(of_format.not_taken):
            print(f"  Not taken: {left_out}.")
        if newer := of_format.statements["may_supersede"]:
            print(f"  {newer:,} may be newer than what is true here; the next patrol offers them to be decided.")
    if report.redacted:
        print(redacted_secrets_sentence(report.redacted))
    if not report.new_item_count and report.formats:
        print(f"Nothing {'would be' if is_dry_run else 'was'} new for {being!r}.")
    if import_id:
        print(f"To undo it: madeleine import --undo {import_id}")


def _imported_counts_text(report: ImportReportOfFileFormat, *, is_dry_run: bool) -> str:
    statements = report.statements
    new = "would be new" if is_dry_run else "new"
    parts = [
        f"{count_phrase(statements['stored'], 'memory', 'memories')} {new}" if statements["stored"] else "",
        f"{statements['reinforced']:,} that reinforce a memory which says the same" if statements["reinforced"] else "",
        f"{count_phrase(report.messages, 'message')} of {count_phrase(report.conversations, 'conversation')} {new}"
        if report.messages
        else "",
        f"{count_phrase(statements['known'], 'memory', 'memories')} here already" if statements["known"] else "",
        f"{count_phrase(report.known_messages, 'message')} here already" if report.known_messages else "",
        f"{statements['forgotten']:,} were forgotten here and do not come back" if statements["forgotten"] else "",
    ]
    return ", ".join(filter(None, parts)) or "nothing to take"


def _counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items())


def print_import_problems(report: OtherProgramsImportReport) -> None:
    lines = [f"left out {problem}" for problem in report.damaged]
    if (more := report.damaged_count - len(report.damaged)) > 0:
        lines.append(f"left out {more:,} more entries")
    lines += [f"{problem} What came before is taken." for problem in report.unusable[:MAX_IMPORT_PROBLEMS_NAMED]]
    if (more := len(report.unusable) - MAX_IMPORT_PROBLEMS_NAMED) > 0:
        lines.append(f"{more:,} more files cannot be read")
    if report.unrecognised_count:
        names = ", ".join(name.rpartition("/")[2] for name in report.unrecognised[:5])
        more_names = ", …" if report.unrecognised_count > len(report.unrecognised[:5]) else ""
        known = ", ".join(dict.fromkeys(format_.name for format_ in IMPORT_FILE_FORMATS if not format_.is_part))
        hint = "" if report.formats else f" Known are: {known}. For texts there is `madeleine ingest`."
        lines.append(
            f"{count_phrase(report.unrecognised_count, 'file')} of no known shape left out: {names}{more_names}.{hint}"
        )
    for line in lines:
        print(f"madeleine: {terminal_safe_line(line)}", file=sys.stderr)


def _report_as_json(report: OtherProgramsImportReport, import_id: str) -> dict[str, Any]:
    return {
        "import": import_id,
        "new": report.new_item_count,
        "formats": {
            name: {
                "files": of_format.files,
                "memories": dict(+of_format.statements),
                "conversations": of_format.conversations,
                "messages": of_format.messages,
                "known_messages": of_format.known_messages,
                "not_taken": dict(of_format.not_taken),
                "samples": of_format.samples,
            }
            for name, of_format in report.formats.items()
        },
        "unrecognised": report.unrecognised_count,
        "damaged": report.damaged_count,
        "unusable": report.unusable[:MAX_IMPORT_PROBLEMS_NAMED],
        "redacted": dict(report.redacted),
    }
