"""A memory and all that is kept of it as lines of an export, compressed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from madeleine.memory.moving.record_base import ExportRecord
from madeleine.memory.moving.records import AnyExportRecord, parse_export_record
from madeleine.storage.sql.moving.exported_tables import EXPORT_COMPRESSION_LEVEL

MEMORY_PART_RECORD_TYPES = ("reinforcement", "revision", "truth_act", "lesson", "stated_relation", "profile")
"""Types of records that go with a memory, in the order in which they stand behind it."""


def pack_archive_records(records: Iterable[ExportRecord]) -> bytes:
    return zlib.compress(b"".join(record.json_line() for record in records), EXPORT_COMPRESSION_LEVEL)


def unpack_archive_records(packed: bytes) -> list[AnyExportRecord]:
    """The memory's record, then its parts."""
    lines = zlib.decompress(packed).splitlines(keepends=True)
    return [parse_export_record(line) for line in lines]
