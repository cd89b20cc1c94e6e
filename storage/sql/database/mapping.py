"""Values as rows, and rows as values, by the names of fields and the types of columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from pydantic import BaseModel
from sqlalchemy import Boolean, ColumnElement, LargeBinary, Table, Update, bindparam, update

from madeleine.memory.model import Scope, Vector
from madeleine.storage.sql.database.dialect import JsonTextColumnType, TextListColumnType, UtcMicrosColumnType
from madeleine.storage.sql.database.engine import Row

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


# --- columns ------------------------------------------------------------------------------------------------------


def microseconds_from_moment(moment: datetime) -> int:
    """Whole microseconds since 1970, exactly: a float of seconds would lose the last digit."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_from_microseconds(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def decode_json_list(stored: str) -> tuple[Any, ...]:
    # Most lists of most memories are empty.
    return () if stored == "[]" else tuple(json.loads(stored))


@lru_cache(maxsize=8192)
def decode_json_list_cached(stored: str) -> tuple[Any, ...]:
    """`decode_json_list` for lists that many memories have in common: who was there, labels."""
    return decode_json_list(stored)


_encode_json = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder at each call


def encode_json_list(values: Sequence[str]) -> str:
    return _encode_json(values) if values else "[]"


def bytes_from_vector(vector: Vector) -> bytes:
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()


def vector_from_bytes(stored: bytes) -> Vector:
    """Read-only: a view of the bytes."""
    return np.frombuffer(stored, dtype="<f4")


def compact_bytes_from_vector(vector: Vector) -> bytes:
    """A quarter of the size: the step, float32, and each value in steps, int8. Nothing for an empty vector."""
    if not vector.size:
        return b""
    step = float(np.abs(vector).max()) / 127 or 1.0
    steps: bytes = np.rint(vector / step).astype(np.int8).tobytes()
    return bytes_from_vector(np.array([step], np.float32)) + steps


def vector_from_compact_bytes(stored: bytes) -> Vector:
    if not stored:
        return np.zeros(0, np.float32)
    step = float(vector_from_bytes(stored[:4])[0])
    return np.asarray(np.frombuffer(stored, np.int8, offset=4) * step, np.float32)


_DECODER_BY_COLUMN_TYPE: Mapping[type, Callable[[Any], Any]] = {
    UtcMicrosColumnType: moment_from_microseconds,
    TextListColumnType: decode_json_list,
    JsonTextColumnType: json.loads,
    Boolean: bool,
    LargeBinary: vector_from_bytes,
}
"""Decoders of stored values, by the type of the column; values of other types are as they are stored."""


_ENCODER_BY_VALUE_TYPE: Mapping[type, Callable[[Any], Any]] = {
    datetime: microseconds_from_moment,
    tuple: encode_json_list,
    dict: _encode_json,
    np.ndarray: bytes_from_vector,
}


def encode_column_value(value: Any) -> Any:
    """A field's value as its column holds it."""
    return encode(value) if (encode := _ENCODER_BY_VALUE_TYPE.get(type(value))) else value


def first_column_of_row(row: Row) -> Any:
    return row[0]


def first_two_columns_of_row(row: Row) -> tuple[Any, Any]:
    return row[0], row[1]


# --- rows ---------------------------------------------------------------------------------------------------------


class RowMapper(Generic[T]):
    """A dataclass or a pydantic model and the columns of its fields: those of `table` that have a field's name, and
    `expressions`.

    `decoders`: of fields that are not read as the type of their column says.
    """

    def __init__(
        self,
        make: type[T],
        table: Table | None = None,
        *,
        decoders: Mapping[str, Callable[[Any], Any]] | None = None,
        **expressions: Any,
    ) -> None:
        self._make = make
        known: dict[str, Any] = ({} if table is None else {**table.c}) | expressions
        names = [name for name in _field_names(make) if name in known]
        self.columns: tuple[ColumnElement[Any], ...] = tuple(known[name] for name in names)
        self._names = tuple(names)
        self._stored_names = tuple(name for name in names if table is not None and name in table.c)
        by_name = {name: _DECODER_BY_COLUMN_TYPE.get(type(known[name].type)) for name in names} | dict(decoders or {})
        self._decoders = [(place, decode) for place, name in enumerate(names) if (decode := by_name[name])]

    def from_row(self, row: Row, **others: Any) -> T:
        values = list(row)
        for place, decode in self._decoders:
            if (stored := values[place]) is not None:
                values[place] = decode(stored)
        others.update(zip(self._names, values, strict=True))
        return self._make(**others)

    def to_row(self, record: T, **others: Any) -> dict[str, Any]:
        """The fields that are columns of the table, and `others`, as columns hold them."""
        row = {name: getattr(record, name) for name in self._stored_names} | others
        return {name: encode_column_value(value) for name, value in row.items()}


def _field_names(make: type) -> Iterable[str]:
    if issubclass(make, BaseModel):
        return make.model_fields
    return [field.name for field in fields(make)]  # type: ignore[arg-type]


def conditions_for_row_by_key_and_being(
    table: Table, key: str = "id"
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """The row with the key `target`, if it is of the being that is asked for (`row_of_being_binds`)."""
    return table.c[key] == bindparam("target"), table.c.being_id == bindparam("being")


def update_row_of_being_statement(table: Table, *names: str, key: str = "id") -> Update:
    """Set these columns of an own row; for the binds see `row_of_being_binds`."""
    return (
        update(table)
        .where(*conditions_for_row_by_key_and_being(table, key))
        .values({name: bindparam(f"new_{name}") for name in names})
    )


def row_of_being_binds(
    scope: Scope, key: str, record: object = None, names: Iterable[str] = (), **values: Any
) -> dict[str, Any]:
    """Binds of `conditions_for_row_by_key_and_being`, and of `update_row_of_being_statement` for the fields `names` of
    `record` and the values."""
    values |= {name: getattr(record, name) for name in names}
    return {"target": key, "being": scope.being_id} | {
        f"new_{name}": encode_column_value(value) for name, value in values.items()
    }


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


HasIdT = TypeVar("HasIdT", bound=_HasId)


def records_in_order_of_ids(ids: Iterable[str], records: Iterable[HasIdT]) -> list[HasIdT]:
    """Each record once, in the order of `ids`; ids without a record are skipped."""
    by_id = {record.id: record for record in records}
    return [by_id[id_] for id_ in dict.fromkeys(ids) if id_ in by_id]
