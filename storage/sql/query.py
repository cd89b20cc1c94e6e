"""Core statements, compiled once and then sent to the driver as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import ColumnElement, Table, bindparam, func, insert, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.elements import ClauseElement, UnaryExpression
from sqlalchemy.sql.operators import custom_op

_DIALECT = sqlite.dialect(paramstyle="named")


class Query:
    """A Core statement with named binds, compiled at its first use. `IN` takes a list by `among`, not literals.

    Executing through SQLAlchemy's engine takes four to five thread hops and its own cache lookup for each statement,
    0.4 ms here; the compiled text sent straight to the driver takes one hop of 0.08 ms. The columns are of types
    that need no conversion on the way, so both give the same rows.
    """

    def __init__(self, statement: ClauseElement, columns: Sequence[str] | None = None) -> None:
        self._statement = statement
        self._columns = columns

    @cached_property
    def _compiled(self) -> tuple[str, dict[str, Any]]:
        compiled = self._statement.compile(dialect=_DIALECT, column_keys=self._columns)
        return str(compiled), {name: value for name, value in compiled.params.items() if value is not None}

    @property
    def sql(self) -> str:
        return self._compiled[0]

    def bind(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        constants = self._compiled[1]
        return {**constants, **values} if constants else values

    def bind_each(self, rows: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
        constants = self._compiled[1]
        return ({**constants, **row} for row in rows) if constants else rows


def insert_into(table: Table) -> Query:
    """Binds are named after the columns; a column the database numbers is left to it."""
    columns = [column.name for column in table.columns if column.name not in {"seq", "mark"}]
    return Query(insert(table), columns)


def among(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """`column` is in the list bound to `name` by `as_list`: one bind, one compiled text, whatever the length."""
    return column.in_(select(func.json_each(bindparam(name)).table_valued("value").c.value))


def as_list(values: Iterable[str]) -> str:
    return json.dumps(list(values))


def unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """`+column`: without statistics SQLite takes an index on the being for as good as the unique index on the id,
    and would walk all of the being's memories to fetch ten."""
    return UnaryExpression(column, operator=custom_op("+"), type_=column.type)
