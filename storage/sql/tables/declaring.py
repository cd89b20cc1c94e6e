"""How tables are declared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Column, MetaData, Table
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from madeleine.storage.sql.tables.lifecycle import TableLifecycleRule

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def declare_table(name: str, *items: SchemaItem, lifecycle: list[TableLifecycleRule]) -> Table:
    # Numbers of rows are not given out again.
    return Table(name, metadata, *items, info={"lifecycle": lifecycle}, sqlite_autoincrement=True)


def make_primary_key_columns(type_: type[TypeEngine[Any]], *names: str) -> Iterator[Column[Any]]:
    """The columns of the primary key."""
    return (Column(name, type_, primary_key=True) for name in names)


def make_not_null_columns(type_: type[TypeEngine[Any]], *names: str) -> Iterator[Column[Any]]:
    """Columns that are never NULL."""
    return (Column(name, type_, nullable=False) for name in names)


def make_nullable_columns(type_: type[TypeEngine[Any]], *names: str) -> Iterator[Column[Any]]:
    return (Column(name, type_) for name in names)
