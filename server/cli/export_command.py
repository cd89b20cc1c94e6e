"""`madeleine export`: all that is kept of one being or of all, as one file, or as Markdown to read."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import BeingId, Scope
from madeleine.memory.moving.counts import describe_record_counts
from madeleine.memory.moving.export_file import is_export_header
from madeleine.memory.moving.ports import LedgerCopyFileRecord, LedgerCopyRegister
from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server import EXIT_NOTHING_TO_DO
from madeleine.server.cli.output import absolute_path, print_json
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.data_directory import ledger_location, open_ledger_without_index
from madeleine.storage.sql.database.opening import LedgerLocation
from madeleine.storage.sql.moving.export import LedgerExport, open_ledger_snapshot_for_export

STANDARD_OUTPUT_ARGUMENT = "-"
MAX_EXPORT_HEADER_BYTES = 1_000_000


async def export_command(settings: Settings, arguments: argparse.Namespace) -> int:
    """The exit code: `EXIT_NOTHING_TO_DO` if there is nothing to export. Raises `InvalidInput`, `StorageError`."""
    is_piped = arguments.target == STANDARD_OUTPUT_ARGUMENT
    if is_piped and arguments.format == "markdown":
        raise InvalidInput("The Markdown view is a folder of files: give its name instead of -.")
    target = absolute_path(arguments.target)
    if not is_piped:
        require_usable_export_target(target, is_folder=arguments.format == "markdown")
    async with open_ledger_without_index(settings, create=False) as ledger:
        await ledger.audit.record_audit_event(
            Scope(BeingId(arguments.being or ""), "madeleine export"), "export", at=utc_now()
        )
        if not is_piped:
            await _record_export_file(ledger.copies, target, arguments.being)
        return await asyncio.to_thread(
            _export_to_target_and_print_result, ledger_location(settings), target, arguments, is_piped=is_piped
        )


async def _record_export_file(copies: LedgerCopyRegister, target: Path, being: str | None) -> None:
    """Before it is written, so that a killed process leaves no copy that nobody knows of."""
    await copies.record_ledger_copy(
        LedgerCopyFileRecord(path=str(target), kind="export", being_id=BeingId(being or ""), made_at=utc_now())
    )


def _export_to_target_and_print_result(
    ledger: LedgerLocation, target: Path, arguments: argparse.Namespace, *, is_piped: bool
) -> int:
    with open_ledger_snapshot_for_export(ledger, arguments.being, journal=arguments.journal) as export:
        header = export.header()
        if not header.beings:
            whose = f" of {terminal_safe_line(repr(arguments.being))}" if arguments.being else ""
            print(f"madeleine: there is nothing{whose} to export", file=sys.stderr)
            return EXIT_NOTHING_TO_DO
        if arguments.format == "markdown":
            count = _write_markdown_files_and_count(export, target)
            if arguments.json:
                print_json({"folder": str(target), "files": count})
            else:
                print(f"{count:,} files were written to {target}.")
            return 0
        if is_piped:
            for line in export.lines():
                sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            return 0
        write_export_file(target, export.lines())
        if arguments.json:
            print_json({"file": str(target), "counts": dict(header.counts)})
        else:
            print(f"Exported to {target}: {describe_record_counts(header.counts)}.")
        return 0


def require_usable_export_target(target: Path, *, is_folder: bool) -> None:
    """Raises `InvalidInput` where something else than an earlier export is."""
    if not target.exists():
        return
    if is_folder:
        if not target.is_dir() or any(target.iterdir()):
            raise InvalidInput(f"{target} is there already. Give the name of a new or an empty folder.")
        return
    try:
        with target.open("rb") as other:
            if is_export_header(other.readline(MAX_EXPORT_HEADER_BYTES)):
                return
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written: {error}.") from error
    raise InvalidInput(f"{target} is there already, and no export. Give another name.")


def write_export_file(target: Path, lines: Iterable[bytes]) -> None:
    """For its owner alone, whole or not at all. Raises `InvalidInput` where it cannot be written."""
    draft = target.with_name(f"{target.name}.part")
    try:
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)
        with draft.open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InvalidInput(f"{target} cannot be written: {error}.") from error


def _write_markdown_files_and_count(export: LedgerExport, target: Path) -> int:
    from madeleine.memory.moving.markdown import MarkdownExportBuilder

    view = MarkdownExportBuilder()
    for record in export.records():
        view.add(record)
    try:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in view.files():
            path = target / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written: {error}.") from error
    return view.count
