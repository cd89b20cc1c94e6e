"""The records of the archive in an export file (spec O8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from madeleine.memory.model import Category
from madeleine.memory.moving.record_base import Count, ExportRecord, Moment, RecordId, Texts, Uuid
from madeleine.memory.rules.archiving.density import ArchivalMode
from madeleine.memory.rules.archiving.retention import RetentionArchiveReason


class ArchiveGroupExportRecord(ExportRecord):
    """Memories that went into the archive together, and what is told of them there (spec O8)."""

    type: Literal["archive_group"] = "archive_group"
    id: RecordId
    run_id: str
    category: Category
    mode: ArchivalMode
    digest: str
    is_summary: bool
    archived_at: Moment


class ArchivedMemoryExportRecord(ExportRecord):
    """A memory in the archive. `records`: that of the memory, then those of its parts, as they were."""

    id_fields = ("id", "memory_id", "group_id", "refers_to", "superseded_by")
    type: Literal["archived_memory"] = "archived_memory"
    id: RecordId
    memory_id: Uuid
    group_id: RecordId
    run_id: str
    reason: RetentionArchiveReason
    number: Count
    project: str | None = None
    refers_to: Texts
    superseded_by: RecordId | None = None
    happened_at: Moment
    archived_at: Moment
    records: tuple[Mapping[str, Any], ...]
