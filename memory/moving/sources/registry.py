"""All formats that an import recognises, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Iterator

from madeleine.memory.moving.record_base import EXPORT_FORMAT_NAME
from madeleine.memory.moving.sources.chat_exports import CHAT_EXPORT_FORMATS
from madeleine.memory.moving.sources.coding_agents import CODING_AGENT_FORMATS
from madeleine.memory.moving.sources.markdown import MARKDOWN_FORMATS
from madeleine.memory.moving.sources.memory_stores import OTHER_MEMORY_PROGRAM_FORMATS
from madeleine.memory.moving.sources.shapes import read_structure_of_file_to_import
from madeleine.memory.moving.sources.values import (
    FileToImport,
    ImportFileFormat,
    ImportItem,
    UnreadableImportEntryReport,
)


def _report_own_export_as_unreadable(file: FileToImport, max_text_chars: int) -> Iterator[ImportItem]:
    yield UnreadableImportEntryReport(
        "the file", "it is an export of Madeleine: give it to `madeleine import` by its own name"
    )


_OWN_EXPORT_FORMAT = ImportFileFormat(
    "Madeleine",
    lambda shape: bool(shape.lines) and shape.lines[0].get("format") == EXPORT_FORMAT_NAME,
    _report_own_export_as_unreadable,
    is_part=True,
)
IMPORT_FILE_FORMATS: tuple[ImportFileFormat, ...] = (
    _OWN_EXPORT_FORMAT,
    *CODING_AGENT_FORMATS,
    *OTHER_MEMORY_PROGRAM_FORMATS,
    *CHAT_EXPORT_FORMATS,
    *MARKDOWN_FORMATS,
)


def recognise_import_file_format(file: FileToImport) -> ImportFileFormat | None:
    """Raises `ImportFileUnreadable`."""
    shape = read_structure_of_file_to_import(file)
    return next((format_ for format_ in IMPORT_FILE_FORMATS if format_.recognises(shape)), None)
