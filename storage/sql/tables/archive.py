"""The tables of the archive (spec O8): a group of memories that went together, and each memory with all its parts."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Text

from madeleine.storage.sql.database.dialect import PackedRecordsColumnType, TextListColumnType, UtcMicrosColumnType
from madeleine.storage.sql.tables import declaring
from madeleine.storage.sql.tables.lifecycle import ForgottenRemovedByNamedFunction, UntouchedByPatrolUndo

_ARCHIVE_ERASURE_RULE = ForgottenRemovedByNamedFunction("archive.erasing.rearchive_after_erasure")
_ARCHIVE_PATROL_UNDO_RULE = UntouchedByPatrolUndo(
    "an undo brings back what its run has archived (archive.restoring.restore_memories_archived_by_run)"
)

archive_groups_table = declaring.declare_table(
    "archive_groups",
    Column("id", Text, primary_key=True),
    *declaring.make_not_null_columns(Text, "being_id", "run_id", "category", "mode", "digest"),
    *declaring.make_not_null_columns(Boolean, "is_summary"),
    *declaring.make_not_null_columns(UtcMicrosColumnType, "archived_at"),
    Index("ix_archive_groups_being", "being_id", "archived_at"),
    lifecycle=[_ARCHIVE_ERASURE_RULE, _ARCHIVE_PATROL_UNDO_RULE],
)

archived_memories_table = declaring.declare_table(
    "archived_memories",
    Column("id", Text, primary_key=True),
    Column("memory_id", Text, nullable=False, unique=True),
    Column("group_id", Text, ForeignKey("archive_groups.id"), nullable=False, index=True),
    *declaring.make_not_null_columns(Text, "being_id", "run_id", "reason"),
    Column("number", Integer, nullable=False),
    Column("project", Text),
    # Memories that it was absorbed into or is summarised by, and its next version: they came back with it, and those
    # that point to a forgotten one come back for it to be erased.
    *declaring.make_not_null_columns(TextListColumnType, "refers_to"),
    *declaring.make_nullable_columns(Text, "superseded_by"),
    *declaring.make_not_null_columns(UtcMicrosColumnType, "happened_at", "archived_at"),
    # For keyword search, as in the table of memories; and records of an export, compressed.
    *declaring.make_not_null_columns(Text, "folded"),
    *declaring.make_not_null_columns(PackedRecordsColumnType, "records"),
    Index("ix_archived_memories_number", "being_id", "number"),
    Index("ix_archived_memories_run", "being_id", "run_id"),
    lifecycle=[_ARCHIVE_ERASURE_RULE, _ARCHIVE_PATROL_UNDO_RULE],
)
