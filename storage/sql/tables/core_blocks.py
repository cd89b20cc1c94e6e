"""The table of core blocks: a row a version, of which the last one is current (spec O12)."""

from __future__ import annotations

from sqlalchemy import Column, Integer, Text

from madeleine.storage.sql.database.dialect import UtcMicrosColumnType
from madeleine.storage.sql.tables import declaring
from madeleine.storage.sql.tables.lifecycle import KeepAllRowsWhenForgetting, UntouchedByPatrolUndo

core_blocks_table = declaring.declare_table(
    "core_blocks",
    *declaring.make_primary_key_columns(Text, "being_id", "name"),
    Column("version", Integer, primary_key=True, autoincrement=False),
    *declaring.make_not_null_columns(Text, "text", "description", "client"),
    *declaring.make_not_null_columns(Integer, "max_chars"),
    *declaring.make_not_null_columns(UtcMicrosColumnType, "written_at"),
    lifecycle=[
        KeepAllRowsWhenForgetting("the agent's own words, drawn from no memory; a block is erased by its name"),
        UntouchedByPatrolUndo("no patrol changes it"),
    ],
)
