"""The table of lessons: what a failure taught, beside the memory that is found (spec O11)."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Integer, Text

from madeleine.storage.sql.database.dialect import TextListColumnType
from madeleine.storage.sql.tables import declaring
from madeleine.storage.sql.tables.lifecycle import (
    ArchiveWithMemoryRule,
    DeleteRowsNamingForgotten,
    UntouchedByPatrolUndo,
)

lessons_table = declaring.declare_table(
    "lessons",
    Column("memory_id", Text, ForeignKey("memories.id"), primary_key=True),
    Column("being_id", Text, nullable=False, index=True),
    *declaring.make_not_null_columns(Text, "discovery", "condition", "action", "rationale"),
    *declaring.make_not_null_columns(TextListColumnType, "steps"),
    *declaring.make_not_null_columns(Float, "confidence"),
    # How often following it helped and failed.
    Column("helped", Integer, nullable=False, server_default="0"),
    Column("failed", Integer, nullable=False, server_default="0"),
    lifecycle=[
        DeleteRowsNamingForgotten(),
        ArchiveWithMemoryRule(),
        UntouchedByPatrolUndo("no patrol changes it"),
    ],
)
