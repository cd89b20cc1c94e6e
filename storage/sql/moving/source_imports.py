"""Imports from other programs, which take many transactions: begun, continued after a kill, and ended."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete, func, insert, literal_column, select, update

from madeleine.memory.model import BeingId, Scope
from madeleine.memory.moving.sources.values import IMPORTED_STATEMENT_KEY_PREFIX
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.conversations.chat import message_key_hash
from madeleine.storage.sql.database import tables
from madeleine.storage.sql.database.dialect import (
    in_bound_list_condition,
    insert_if_missing_statement,
    json_list_bind_value,
    sql_last_sequence_number,
)
from madeleine.storage.sql.database.engine import SqlRowReader, Transaction
from madeleine.storage.sql.database.mapping import first_column_of_row, microseconds_from_moment
from madeleine.storage.sql.moving.added_rows import UNFINISHED_IMPORT_STATE
from madeleine.storage.sql.tables.conversations import forgotten_keys_table

_i, _r, _f = tables.imports_table.c, tables.imported_rows_table.c, forgotten_keys_table.c
_m, _told = tables.memories_table.c, tables.reinforcements_table.c
TABLES_WITH_SEQUENCE_NUMBERS = (
    tables.reinforcements_table,
    tables.revisions_table,
    tables.truth_changes_table,
    tables.memories_table,
)
"""Whose numbers tell what came after an import."""
_SELECT_LAST_SEQUENCE_NUMBER_BY_TABLE = {
    table.name: select(sql_last_sequence_number(literal_column(f"'{table.name}'"), literal_column("'seq'")))
    for table in TABLES_WITH_SEQUENCE_NUMBERS
}
_SELECT_UNFINISHED_IMPORT = select(_i.id).where(
    _i.source == bindparam("from"), _i.being_id == bindparam("own_being"), _i.state == UNFINISHED_IMPORT_STATE
)
_INSERT_IMPORT = insert(tables.imports_table)
_COUNT_IMPORTED_ROWS_BY_TYPE = (
    select(_r.type, func.count()).where(_r.import_id == bindparam("import")).group_by(_r.type)
)
_END_IMPORT = (
    update(tables.imports_table)
    .where(_i.id == bindparam("import"), _i.state == UNFINISHED_IMPORT_STATE)
    .values(state="imported", counts=bindparam("new_counts"))
)
_DELETE_IMPORT = delete(tables.imports_table).where(_i.id == bindparam("import"))
_SELECT_FORGOTTEN_KEY_HASHES = select(_f.key_hash).where(
    _f.being_id == bindparam("own_being"), in_bound_list_condition(_f.key_hash, "hashes")
)
_IMPORTED_STATEMENT_KEY_PATTERN = f"{IMPORTED_STATEMENT_KEY_PREFIX}%"
_SELECT_IMPORT_KEYS_OF_MEMORIES = (
    select(_m.key)
    .where(in_bound_list_condition(_m.id, "ids"), _m.key.like(_IMPORTED_STATEMENT_KEY_PATTERN))
    .union(
        select(_told.key).where(
            in_bound_list_condition(_told.memory_id, "ids"), _told.key.like(_IMPORTED_STATEMENT_KEY_PATTERN)
        )
    )
)
_INSERT_FORGOTTEN_KEY = insert_if_missing_statement(forgotten_keys_table)
_REPORTED_RECORD_TYPES = ("memory", "reinforcement", "session", "message")


async def last_sequence_numbers(transaction: Transaction) -> dict[str, int]:
    return {
        name: (await transaction.rows(statement, first_column_of_row))[0]
        for name, statement in _SELECT_LAST_SEQUENCE_NUMBER_BY_TABLE.items()
    }


async def begin_or_resume_import(transaction: Transaction, scope: Scope, source: str, at: datetime) -> str:
    unfinished = await transaction.rows(
        _SELECT_UNFINISHED_IMPORT, first_column_of_row, **{"from": source, "own_being": scope.being_id}
    )
    if unfinished:
        return str(unfinished[0])
    import_id = uuid.uuid4().hex
    row = {
        "id": import_id,
        "source": source,
        "being_id": scope.being_id,
        "state": UNFINISHED_IMPORT_STATE,
        "at": microseconds_from_moment(at),
        "counts": "{}",
        "last_numbers": json.dumps(await last_sequence_numbers(transaction)),
    }
    await transaction.execute_many(_INSERT_IMPORT, [row])
    return import_id


async def end_import_and_count_added_by_type(
    transaction: Transaction, scope: Scope, import_id: str, at: datetime
) -> dict[str, int]:
    binds = {"import": import_id}
    found = dict(await transaction.rows(_COUNT_IMPORTED_ROWS_BY_TYPE, tuple, **binds))
    counts = {type_: found[type_] for type_ in _REPORTED_RECORD_TYPES if found.get(type_)}
    if not counts:
        await transaction.execute_many(_DELETE_IMPORT, [binds])
        return counts
    await transaction.execute_many(_END_IMPORT, [binds | {"new_counts": json.dumps(counts)}])
    await record_audit_entry(transaction, scope, "import", at, tool="madeleine import", ids=[import_id])
    return counts


async def forgotten_imported_memory_keys(reads: SqlRowReader, scope: Scope, keys: Sequence[str]) -> set[str]:
    hashes = {_imported_statement_key_hash(key): key for key in keys}
    binds = {"own_being": scope.being_id, "hashes": json_list_bind_value(hashes)}
    return {hashes[hash_] for hash_ in await reads.rows(_SELECT_FORGOTTEN_KEY_HASHES, first_column_of_row, **binds)}


async def record_forgotten_imported_memories(
    transaction: Transaction, being: BeingId, memory_ids: Sequence[str]
) -> None:
    """Keep hashes of the keys of imported statements that are being forgotten: another import does not bring them
    back."""
    keys = await transaction.rows(
        _SELECT_IMPORT_KEYS_OF_MEMORIES, first_column_of_row, ids=json_list_bind_value(memory_ids)
    )
    rows = [{"being_id": being, "key_hash": _imported_statement_key_hash(key)} for key in keys]
    await transaction.execute_many(_INSERT_FORGOTTEN_KEY, rows)


def _imported_statement_key_hash(key: str) -> str:
    return message_key_hash("", key)
