"""Each table says how it is erased and how it is restored (rulings 11 and 25)."""

from __future__ import annotations

import pkgutil

from sqlalchemy import Table

from madeleine.storage.sql.database.tables import metadata
from madeleine.storage.sql.tables.lifecycle import (
    ColumnJournalingRule,
    DeletedWithUndoneMemory,
    DeleteRowsNamingForgotten,
    EraseRowsListingForgotten,
    ErasureRule,
    ForgottenRemovedByNamedFunction,
    KeepAllRowsWhenForgetting,
    PatrolUndoRule,
    ReferenceClearedWhenForgetting,
    UntouchedByPatrolUndo,
)
from tests.rows import for_each_row

TABLES = list(metadata.tables.values())
REFERENCES = {
    "memory_id",
    "may_supersede",
    "resembles",
    "absorbed_into",
    "compressed_into",
    "superseded_by",
    "sources",
    "think_sources",
}
"""Columns that name memories."""


@for_each_row("table", TABLES)
def test_a_table_says_how_it_is_erased_and_restored(table: Table) -> None:
    assert any(isinstance(declaration, ErasureRule) for declaration in table.info["lifecycle"])
    assert any(isinstance(declaration, PatrolUndoRule) for declaration in table.info["lifecycle"])
    columns = set(table.columns.keys())
    for one in table.info["lifecycle"]:
        match one:
            case DeleteRowsNamingForgotten() | ReferenceClearedWhenForgetting() | DeletedWithUndoneMemory():
                assert one.column in columns
            case EraseRowsListingForgotten():
                assert {one.column, *(one.values or ())} <= columns
            case ColumnJournalingRule():
                assert {one.key, *one.columns} <= columns
            case ForgottenRemovedByNamedFunction():
                assert callable(pkgutil.resolve_name(f"madeleine.storage.sql.{one.function}"))
            case KeepAllRowsWhenForgetting() | UntouchedByPatrolUndo():
                assert one.reason


@for_each_row("table", TABLES)
def test_a_table_that_names_memories_does_not_keep_its_rows(table: Table) -> None:
    if REFERENCES.intersection(table.columns.keys()) and table.name != "forgotten":
        assert not any(isinstance(one, KeepAllRowsWhenForgetting) for one in table.info["lifecycle"])
