"""SQL that differs between SQLite and PostgreSQL. It stands here, in the engine and in the schema only; all other
statements are the same in both. Lists and records are JSON text in both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

from sqlalchemy import (
    Column,
    ColumnElement,
    Function,
    Select,
    Table,
    bindparam,
    case,
    func,
    literal_column,
    null,
    or_,
    select,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.sql.selectable import TableValuedAlias
from sqlalchemy.types import Float, Integer, LargeBinary, Text

DialectName = Literal["sqlite", "postgresql"]

MIN_INT, MAX_INT = -(2**63), 2**63 - 1
"""The limits of an integer column: before and after every moment."""


class UtcMicrosColumnType(Integer):
    """Microseconds since 1970, UTC; more than PostgreSQL's INTEGER holds."""


@compiles(UtcMicrosColumnType, "postgresql")
def _compile_utc_micros_as_bigint(type_: UtcMicrosColumnType, compiler: Any, **options: Any) -> str:
    return "BIGINT"


class HashBytesColumnType(LargeBinary):
    """A hash as it is; other binary columns hold vectors."""


class PackedRecordsColumnType(LargeBinary):
    """Lines of an export, compressed (`archive.packing`)."""


class TextListColumnType(Text):
    """A JSON list of texts."""


class JsonTextColumnType(Text):
    """A JSON object."""


def partial_index_options(condition: str) -> dict[str, Any]:
    """Options of an index that holds only the rows that meet the condition."""
    other = condition.replace("compressed = 0", "NOT compressed")
    return {"sqlite_where": text(condition), "postgresql_where": text(other)}


# --- inserts that may find the row there --------------------------------------------------------------------------


def columns_of_row_proposed_for_insertion(table: Table) -> Any:
    """The columns of the row that an `upsert_statement` was to insert."""
    # PostgreSQL's construct compiles for SQLite too, which spells `ON CONFLICT` alike; not the other way round.
    return postgresql.insert(table).excluded


def upsert_statement(table: Table, *names: str, where: ColumnElement[bool] | None = None, **values: Any) -> Insert:
    """Insert a row; where one with its primary key is there, set `names` as in the new row, and `values`."""
    changes = {name: columns_of_row_proposed_for_insertion(table)[name] for name in names} | values
    return postgresql.insert(table).on_conflict_do_update(
        index_elements=list(table.primary_key), set_=changes, where=where
    )


def insert_if_missing_statement(table: Table) -> Insert:
    """Insert a row unless one with its primary key is there."""
    return postgresql.insert(table).on_conflict_do_nothing(index_elements=list(table.primary_key))


# --- functions ----------------------------------------------------------------------------------------------------


def _make_sql_function_for_both_dialects(
    name: str, type_: Any = None, *, sqlite: str, postgresql: str
) -> Callable[..., Function[Any]]:
    """An SQL function by its text in both dialects; `{0}` is its first argument. None is typed as a truth value: for
    SQLite, which has none, such a one is compared with 1, which keeps partial indexes from being used."""

    attributes = {"name": name, "_register": False, "inherit_cache": True} | ({"type": type_} if type_ else {})
    function_class: Any = type(name, (GenericFunction,), attributes)

    def compiled_as(template: str, dialect: str) -> None:
        @compiles(function_class, dialect)
        def compile_(function: Function[Any], compiler: SQLCompiler, **options: Any) -> str:
            return template.format(*(compiler.process(clause, **options) for clause in function.clauses))

    compiled_as(sqlite, "sqlite")
    compiled_as(postgresql, "postgresql")
    return function_class  # type: ignore[no-any-return]


sql_contains_text = _make_sql_function_for_both_dialects(
    "contains_text", sqlite="(instr({0}, {1}) > 0)", postgresql="(strpos({0}, {1}) > 0)"
)
"""A text contains another. Unlike LIKE, the part needs no escaping and may be of any length."""
sql_greatest = _make_sql_function_for_both_dialects("greatest", sqlite="max({0}, {1})", postgresql="greatest({0}, {1})")
sql_least = _make_sql_function_for_both_dialects("least", sqlite="min({0}, {1})", postgresql="least({0}, {1})")
"""The greater and the lesser of two values in a row."""
sql_text_start = _make_sql_function_for_both_dialects(
    "text_start", Text(), sqlite="substr({0}, 1, {1})", postgresql="left({0}, CAST({1} AS INTEGER))"
)
"""(text, number): its first characters."""
sql_text_after_first_character = _make_sql_function_for_both_dialects(
    "text_after_first", Text(), sqlite="substr({0}, 2)", postgresql="substr({0}, 2)"
)
"""A text without its first character."""
sql_utc_day = _make_sql_function_for_both_dialects(
    "utc_day",
    Text(),
    sqlite="strftime('%Y-%m-%d', {0} / 1000000, 'unixepoch')",
    postgresql="to_char(to_timestamp({0} / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
)
"""The day of a moment in microseconds, as 2026-03-01."""
sql_last_sequence_number = _make_sql_function_for_both_dialects(
    "last_number",
    Integer(),
    sqlite="coalesce((SELECT seq FROM sqlite_sequence WHERE name = {0}), 0)",
    postgresql="coalesce(pg_sequence_last_value(pg_get_serial_sequence({0}, {1})::regclass), 0)",
)
"""(table, its numbered column): the last number that was given; numbers are not used again."""
sql_last_audit_number = _make_sql_function_for_both_dialects(
    "last_audit_number",
    Integer(),
    sqlite="coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'audit'), 0)",
    postgresql="(SELECT last FROM audit_numbers)",
)
"""The last number of the audit. PostgreSQL's sequences leave gaps where a transaction was rolled back: the audit has a
counter of its own there."""

_unindexed_function = _make_sql_function_for_both_dialects("unindexed", sqlite="+{0}", postgresql="{0}")
_json_array_as_rows = _make_sql_function_for_both_dialects(
    "items",
    sqlite="json_each({0})",
    postgresql='LATERAL (SELECT position - 1 AS key, value COLLATE "C" AS value'
    " FROM jsonb_array_elements_text(CAST({0} AS JSONB)) WITH ORDINALITY AS item (value, position))",
)
_json_field = _make_sql_function_for_both_dialects(
    "field", Text(), sqlite="json_extract({0}, '$.' || {1})", postgresql="(CAST({0} AS JSONB) ->> {1})"
)
_json_with_field = _make_sql_function_for_both_dialects(
    "with_field",
    Text(),
    sqlite="json_set({0}, '$.' || {1}, {2})",
    postgresql="CAST(jsonb_set(CAST({0} AS JSONB), ARRAY[{1}], coalesce(to_jsonb(CAST({2} AS TEXT)), 'null')) AS TEXT)",
)
_json_without_field = _make_sql_function_for_both_dialects(
    "without_field", Text(), sqlite="json_remove({0}, '$.' || {1})", postgresql="CAST(CAST({0} AS JSONB) - {1} AS TEXT)"
)
json_item_as_float = _make_sql_function_for_both_dialects(
    "number", Float(), sqlite="{0}", postgresql="CAST({0} AS DOUBLE PRECISION)"
)
sql_json_item_cast_to_integer = _make_sql_function_for_both_dialects(
    "integer", Integer(), sqlite="{0}", postgresql="CAST({0} AS BIGINT)"
)
"""The value of an item that is a number, or a whole number."""
json_list_number_at = _make_sql_function_for_both_dialects(
    "number_at",
    Float(),
    sqlite="json_extract({0}, '$[' || ({1}) || ']')",
    postgresql="CAST(CAST({0} AS JSONB) ->> CAST({1} AS INTEGER) AS DOUBLE PRECISION)",
)
"""The number at a place in a JSON list; NULL beyond its end."""


def json_list_item_rows(json_list: Any, name: str | None = None) -> TableValuedAlias:
    """The items of a JSON list as rows: `key`, from 0, and `value`. Of a list in a table they come after it in FROM."""
    return _json_array_as_rows(json_list).table_valued("key", "value", name=name)


def sql_json_field(json_object: Any, name: str) -> ColumnElement[Any]:
    return _json_field(json_object, literal_column(f"'{name}'"))


def expression_setting_json_key(json_object: Any, name: str, value: Any = None) -> ColumnElement[Any]:
    """The object with the field set to a text, or to null. NULL stays NULL."""
    return _json_with_field(json_object, literal_column(f"'{name}'"), null() if value is None else value)


def sql_json_without_field(json_object: Any, name: str) -> ColumnElement[Any]:
    return _json_without_field(json_object, literal_column(f"'{name}'"))


def in_bound_list_condition(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """`column` is in the list bound to `name` by `json_list_bind_value`: one bind, one text, whatever the length. An
    expanding `IN` would have to be cut up at SQLite's limit of variables, and costs 0.1 ms more for 200 ids."""
    value = json_list_item_rows(bindparam(name)).c.value
    return column.in_(select(sql_json_item_cast_to_integer(value) if isinstance(column.type, Integer) else value))


def json_list_bind_value(values: Iterable[str]) -> str:
    """The value to bind for `in_bound_list_condition`, as JSON."""
    return json.dumps(list(values))


# --- patterns -----------------------------------------------------------------------------------------------------

sql_matches_pattern = _make_sql_function_for_both_dialects(
    "matches_pattern", sqlite="({0} GLOB {1})", postgresql="({0} ~ {1})"
)
"""A text matches one of the patterns below, which are of the dialect."""
ANY_TEXT_PATTERN_BY_DIALECT = {"sqlite": "*", "postgresql": ""}


def glob_or_regex_matching_word(dialect: DialectName, form: str, word_signs: str, *, whole: bool) -> str:
    """The pattern for a text, with a separator before and behind, in which a word begins with `form`, or is it if
    `whole`. `word_signs`: what words consist of, as inside brackets."""
    if dialect == "postgresql":
        return f"[^{word_signs}]{re.escape(form)}" + (f"[^{word_signs}]" if whole else "")
    escaped = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in form)
    return f"*[^{word_signs}]{escaped}" + (f"[^{word_signs}]*" if whole else "*")


# --- SQLite's planner, which has no statistics --------------------------------------------------------------------


def without_index_use(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The column, without the use of an index. Else SQLite takes an index on the being for as good as the unique index
    on the id, and reads all of the being's memories to fetch ten."""
    return _unindexed_function(column, type_=column.type)


def select_distinct_indexed_values(column: Column[Any]) -> Select[Any]:
    """Each value of the first column of an index, once, by one step through the index a value: `DISTINCT` reads a row
    after the other. Not NULL."""
    values = select(func.min(column).label("value")).cte(f"values_of_{column.name}", recursive=True)
    following = select(func.min(column)).where(column > values.c.value).correlate(values).scalar_subquery()
    values = values.union_all(select(following).where(values.c.value.is_not(None)))
    return select(values.c.value).where(values.c.value.is_not(None))


def bind_that_fixes_join_order(first: ColumnElement[Any], bind: ColumnElement[Any]) -> ColumnElement[Any]:
    """`bind`, evaluated after a row of `first` is read: so SQLite begins the join with that table. `first` may be NULL,
    else SQLite knows the answer before."""
    return case((first.is_not(None), bind))


def equals_any(column: ColumnElement[Any], *values: object) -> ColumnElement[bool]:
    """The column has one of the values. An index serves it as well as `IN`, which the engine's reads do not expand."""
    return or_(*(column == value for value in values))


def condition_worded_like_partial_index(words: str, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """`condition` in the exact words of a partial index: SQLite compares the words to find that the index serves it."""
    return _make_sql_function_for_both_dialects("as_indexed", sqlite=f"({words})", postgresql="{0}")(condition)
