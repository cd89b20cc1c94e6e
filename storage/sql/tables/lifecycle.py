"""How a table's rows are erased when memories are forgotten, and restored when a patrol is undone (rulings 11 and 25).

Each table says both once (`tables`); forgetting, the journal and undo work through these rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Delete, MetaData, Table, Update, delete, update

from madeleine.storage.sql.database.dialect import in_bound_list_condition

T = TypeVar("T")


class DeleteRowsNamingForgotten(NamedTuple):
    """Rows whose `column` names a forgotten memory are deleted."""

    column: str = "memory_id"


class ReferenceClearedWhenForgetting(NamedTuple):
    """`column` becomes NULL where it names a forgotten memory."""

    column: str


class EraseRowsListingForgotten(NamedTuple):
    """Rows whose `column`, a JSON list, names a forgotten memory: set to `values`, deleted if there are none."""

    column: str
    values: Mapping[str, Any] | None = None


class ForgottenRemovedByNamedFunction(NamedTuple):
    """The function takes out what tells of a forgotten memory or message."""

    function: str


class KeepAllRowsWhenForgetting(NamedTuple):
    """Nothing to erase."""

    reason: str


class ColumnJournalingRule(NamedTuple):
    """Changes of `columns` are journalled under `kind` by `key`; undo puts back what is still as the run left it."""

    kind: str
    key: str
    columns: tuple[str, ...]


class DeletedWithUndoneMemory(NamedTuple):
    """Rows go with the memory that a run had made and its undo takes back."""

    column: str = "memory_id"


class UntouchedByPatrolUndo(NamedTuple):
    """A patrol does not change it, or undo is not to take that back."""

    reason: str


class ArchiveWithMemoryRule(NamedTuple):
    """Rows go into the archive with the memory that `column` names, and come back with it (spec O8)."""

    column: str = "memory_id"


ErasureRule = (
    DeleteRowsNamingForgotten
    | ReferenceClearedWhenForgetting
    | EraseRowsListingForgotten
    | ForgottenRemovedByNamedFunction
    | KeepAllRowsWhenForgetting
)
PatrolUndoRule = ColumnJournalingRule | DeletedWithUndoneMemory | UntouchedByPatrolUndo
TableLifecycleRule = ErasureRule | PatrolUndoRule | ArchiveWithMemoryRule


def tables_and_their_lifecycle_rules(metadata: MetaData, kind: type[T]) -> list[tuple[Table, T]]:
    """Tables with their rules of that kind; tables that refer to others before those."""
    return [
        (table, rule)
        for table in reversed(metadata.sorted_tables)
        for rule in table.info["lifecycle"]
        if isinstance(rule, kind)
    ]


def archival_delete_statements(metadata: MetaData) -> list[Delete]:
    """Delete the rows that are declared to go into the archive with the memories of `ids`."""
    return [
        delete(table).where(in_bound_list_condition(table.c[rows.column], "ids"))
        for table, rows in tables_and_their_lifecycle_rules(metadata, ArchiveWithMemoryRule)
    ]


def dependent_rows_removal_statements(
    metadata: MetaData, kind: type[DeleteRowsNamingForgotten] | type[DeletedWithUndoneMemory]
) -> list[Update | Delete]:
    """Clear the references to the memories of `ids`, then delete the rows that are declared to go with them."""
    declared: list[tuple[Table, DeleteRowsNamingForgotten | DeletedWithUndoneMemory]] = [
        *tables_and_their_lifecycle_rules(metadata, kind)
    ]
    return [
        *(
            update(table)
            .where(in_bound_list_condition(table.c[reference.column], "ids"))
            .values({reference.column: None})
            for table, reference in tables_and_their_lifecycle_rules(metadata, ReferenceClearedWhenForgetting)
        ),
        *(delete(table).where(in_bound_list_condition(table.c[rows.column], "ids")) for table, rows in declared),
    ]
