"""Values as rows, and rows as values, by the names of fields and the types of columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, Generic, TypeVar

import numpy as np
from sqlalchemy import Boolean, ColumnElement, LargeBinary, Table, Update, bindparam, update

from madeleine.memory.model import Scope
from madeleine.storage.sql.database.dialect import JsonRecord, Moment, TextList
from madeleine.storage.sql.database.engine import Row
from madeleine.storage.sql.database.times import from_micros, to_micros
from madeleine.storage.sql.database.values import decode_texts, json_texts, to_bytes, to_vector

T = TypeVar("T")
_READERS: Mapping[type, Callable[[Any], Any]] = {
    Moment: from_micros,
    TextList: decode_texts,
    JsonRecord: json.loads,
    Boolean: bool,
    LargeBinary: to_vector,
}
"""How a stored value is read, by the type of its column; those of other types are as they are stored."""


def stored(value: Any) -> Any:
    """A field's value as its column holds it."""
    if isinstance(value, datetime):
        return to_micros(value)
    if isinstance(value, tuple):
        return json_texts(value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return to_bytes(value) if isinstance(value, np.ndarray) else value


class Mapped(Generic[T]):
    """A dataclass and the columns of its fields: those of `table` that have a field's name, and `expressions`."""

    def __init__(self, make: type[T], table: Table | None = None, **expressions: Any) -> None:
        self._make = make
        self._table = table
        names = [one.name for one in fields(make)]  # type: ignore[arg-type]
        of_table: Mapping[str, Any] = {} if table is None else {**table.c}
        known = {name: expressions.get(name, of_table.get(name)) for name in names}
        by_field: dict[str, ColumnElement[Any]] = {name: one for name, one in known.items() if one is not None}
        self.columns = tuple(by_field.values())
        self._names = tuple(by_field)
        self._readers = [(name, read) for name, column in by_field.items() if (read := _READERS.get(type(column.type)))]

    def from_row(self, row: Row) -> T:
        values = dict(zip(self._names, row, strict=True))
        for name, read in self._readers:
            if values[name] is not None:
                values[name] = read(values[name])
        return self._make(**values)

    def to_row(self, record: T, **others: Any) -> dict[str, Any]:
        """The fields that are columns of the table, and `others`."""
        assert self._table is not None
        names = [name for name in self._names if name in self._table.c and name not in others]
        return {name: stored(getattr(record, name)) for name in names} | others


def own_row(table: Table, key: str = "id") -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """The row with the key `target`, if it is of the being that is asked for (`target`)."""
    return table.c[key] == bindparam("target"), table.c.being_id == bindparam("being")


def update_own_row(table: Table, *names: str, key: str = "id") -> Update:
    """Set these columns of an own row; for the binds see `target`."""
    return update(table).where(*own_row(table, key)).values({name: bindparam(f"new_{name}") for name in names})


def target(scope: Scope, key: str, **values: Any) -> dict[str, Any]:
    """Binds of `own_row`, and of `update_own_row` for the values."""
    return {"target": key, "being": scope.being_id} | {f"new_{name}": stored(value) for name, value in values.items()}
