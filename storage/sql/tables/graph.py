"""The tables of the entity graph (spec O14): what was drawn from memories, which can be drawn anew at any time, and
what callers have stated of them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text

from madeleine.storage.sql.database.dialect import UtcMicrosColumnType
from madeleine.storage.sql.tables import declaring
from madeleine.storage.sql.tables.lifecycle import (
    ArchiveWithMemoryRule,
    DeletedWithUndoneMemory,
    DeleteRowsNamingForgotten,
    TableLifecycleRule,
)

_LIFECYCLE_FOLLOWING_MEMORY: list[TableLifecycleRule] = [
    DeleteRowsNamingForgotten(),
    DeletedWithUndoneMemory(),
    ArchiveWithMemoryRule(),
]


def _memory_id_key_column() -> Column[str]:
    return Column("memory_id", Text, ForeignKey("memories.id"), primary_key=True)


# The text that each memory had when it was drawn, by its hash, and the version of the rules.
graph_extractions_table = declaring.declare_table(
    "drawn_memories",
    _memory_id_key_column(),
    *declaring.make_not_null_columns(Text, "content_hash"),
    *declaring.make_not_null_columns(Integer, "version"),
    lifecycle=_LIFECYCLE_FOLLOWING_MEMORY,
)

mentions_table = declaring.declare_table(
    "mentions",
    _memory_id_key_column(),
    Column("entity", Text, primary_key=True),
    *declaring.make_not_null_columns(Text, "being_id", "name", "kind"),
    Index("ix_mentions_entity", "being_id", "entity"),
    lifecycle=_LIFECYCLE_FOLLOWING_MEMORY,
)


def _declare_relations_table(name: str, *others: Column[Any]) -> Table:
    """`subject_key` and `object_key`: of the entities, by which they are found."""
    return declaring.declare_table(
        name,
        _memory_id_key_column(),
        *declaring.make_primary_key_columns(Text, "subject_key", "relation", "object_key"),
        *declaring.make_not_null_columns(Text, "being_id", "subject", "object"),
        *others,
        Index(f"ix_{name}_subject", "being_id", "subject_key"),
        Index(f"ix_{name}_object", "being_id", "object_key"),
        lifecycle=_LIFECYCLE_FOLLOWING_MEMORY,
    )


extracted_relations_table = _declare_relations_table("drawn_relations")
stated_relations_table = _declare_relations_table(
    "stated_relations",
    *declaring.make_not_null_columns(Text, "client"),
    *declaring.make_not_null_columns(UtcMicrosColumnType, "at"),
)
