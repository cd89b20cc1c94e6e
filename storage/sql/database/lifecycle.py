"""How a table's rows are erased when memories are forgotten, and restored when a patrol is undone (rulings 11 and 25).

Each table says both once, in its `info` (`tables`); forgetting, the journal and undo work through these declarations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeVar

from sqlalchemy import MetaData, Table

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """Rows whose `column` names a forgotten memory are deleted."""

    column: str = "memory_id"


@dataclass(frozen=True, slots=True)
class ClearReference:
    """`column` becomes NULL where it names a forgotten memory."""

    column: str


@dataclass(frozen=True, slots=True)
class EraseListing:
    """Rows whose `column`, a JSON list, names a forgotten memory: set to `values`, deleted if there are none."""

    column: str
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Redact:
    """The function takes out what tells of a forgotten memory or message."""

    function: str


@dataclass(frozen=True, slots=True)
class KeepRows:
    """Nothing to erase."""

    reason: str


@dataclass(frozen=True, slots=True)
class Journal:
    """Changes of `columns` are journalled under `kind` by `key`; undo puts back what is still as the run left it."""

    kind: str
    key: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteWithMemory:
    """Rows go with the memory that a run had made and its undo takes back."""

    column: str = "memory_id"


@dataclass(frozen=True, slots=True)
class LeftByUndo:
    """A patrol does not change it, or undo is not to take that back."""

    reason: str


Erasure = DeleteRows | ClearReference | EraseListing | Redact | KeepRows
Restoration = Journal | DeleteWithMemory | LeftByUndo


class Lifecycle(TypedDict):
    """A table's `info`."""

    erasure: tuple[Erasure, ...]
    restoration: tuple[Restoration, ...]


def lifecycle(erasure: Erasure | tuple[Erasure, ...], restoration: Restoration | tuple[Restoration, ...]) -> Any:
    return Lifecycle(
        erasure=erasure if isinstance(erasure, tuple) else (erasure,),
        restoration=restoration if isinstance(restoration, tuple) else (restoration,),
    )


def tables_declaring(metadata: MetaData, kind: type[T]) -> list[tuple[Table, T]]:
    """Tables that refer to others before those."""
    return [
        (table, one)
        for table in reversed(metadata.sorted_tables)
        for one in (*table.info["erasure"], *table.info["restoration"])
        if isinstance(one, kind)
    ]
