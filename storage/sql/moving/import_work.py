"""What imports of all types of records share: finding what is here, adding, and remembering what was added."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, islice
from typing import Any, TypeVar

from sqlalchemy import Select, bindparam, case, insert, select, true, update

from madeleine.memory.core_blocks.values import audit_id_of_core_block
from madeleine.memory.graph.values import entity_key
from madeleine.memory.moving.archive_records import ArchivedMemoryExportRecord
from madeleine.memory.moving.ports import (
    MAX_RECORDS_LISTED_IN_IMPORT_REPORT,
    RecordLeftOutOfImport,
    RecordNotImportedReason,
)
from madeleine.memory.moving.record_base import ExportRecord
from madeleine.memory.moving.records import (
    AnyExportRecord,
    CoreBlockExportRecord,
    DiaryExportRecord,
    MessageExportRecord,
    NoteExportRecord,
    ProfileExportRecord,
    StatedRelationExportRecord,
    export_record_from_content,
)
from madeleine.memory.moving.values import are_contradictory_records, first_memory_record, memory_from_export_record
from madeleine.memory.text.normalization import fold_text
from madeleine.storage.sql.database import tables
from madeleine.storage.sql.database.dialect import (
    in_bound_list_condition,
    insert_if_missing_statement,
    json_list_bind_value,
    json_list_item_rows,
    sql_greatest,
    sql_least,
)
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import first_column_of_row, first_two_columns_of_row
from madeleine.storage.sql.database.memory_rows import row_from_memory
from madeleine.storage.sql.moving.exported_tables import EXPORTED_TABLES, ExportedTable
from madeleine.storage.sql.tables.archive import archived_memories_table
from madeleine.storage.sql.tables.conversations import sessions

EXPORTED_TABLE_BY_RECORD_TYPE = {exported.record_type_name: exported for exported in EXPORTED_TABLES}
_s, _a = sessions.c, tables.audit_entries_table.c
_BEING_ID_BIND = bindparam("being", type_=_s.being_id.type)
_forgotten_id = json_list_item_rows(_a.ids)
SELECT_FORGOTTEN_IDS = (
    select(_forgotten_id.c.value)
    .select_from(tables.audit_entries_table)
    .join(_forgotten_id, true())
    .where(_a.event == "forget")
    .distinct()
)
UPDATE_SESSION_AFTER_IMPORT = (
    update(sessions)
    .where(_s.being_id == _BEING_ID_BIND, _s.session_id == bindparam("session"))
    .values(
        messages=sql_greatest(_s.messages, bindparam("end")),
        # What is imported was read by the memory thread that it comes from, but not what waits here.
        watched=case((_s.watched == _s.messages, sql_greatest(_s.watched, bindparam("end"))), else_=_s.watched),
        first_at=sql_least(_s.first_at, bindparam("earliest")),
        last_at=sql_greatest(_s.last_at, bindparam("latest")),
    )
)
_INSERT_IMPORTED_ROW_RECORD = insert_if_missing_statement(tables.imported_rows_table)


def _select_existing_records(exported: ExportedTable) -> Select[Any]:
    """Rows of any being by id; of the beings of the batch, where the key is only theirs."""
    key = exported.columns_by_field[exported.record.key_fields[-1]]
    statement = select(*exported.columns_by_field.values()).where(in_bound_list_condition(key, "keys"))
    if "being" in exported.record.key_fields:
        return statement.where(in_bound_list_condition(exported.columns_by_field["being"], "beings"))
    return statement


SELECT_EXISTING_BY_RECORD_TYPE = {
    type_: _select_existing_records(table)
    for type_, table in EXPORTED_TABLE_BY_RECORD_TYPE.items()
    if table.record.key_fields
}
# A name that holds a NUL is not found by a list in JSON.
_RECORD_TYPES_INSERTED_IF_MISSING = ("message_memory", "forgotten_key", "session", "profile", "core_block", "diary")
INSERT_BY_RECORD_TYPE = {
    type_: (insert_if_missing_statement if type_ in _RECORD_TYPES_INSERTED_IF_MISSING else insert)(table.table)
    for type_, table in EXPORTED_TABLE_BY_RECORD_TYPE.items()
    if type_ not in ("being", "memory")
}
ExportRecordT = TypeVar("ExportRecordT", bound=ExportRecord)
RECORDS_PER_IMPORT_BATCH = 500


_SELECT_OWNERS_BY_RECORD_TYPE = {
    table.record_type_name: select(table.table.c.id, table.table.c.being_id).where(
        in_bound_list_condition(table.table.c.id, "keys")
    )
    for table in EXPORTED_TABLES
    if table.record_type_name in ("memory", "message")
}


_w = archived_memories_table.c
SELECT_OWNERS_OF_ARCHIVED_MEMORIES = select(_w.memory_id, _w.being_id).where(
    in_bound_list_condition(_w.memory_id, "ids")
)


class ImportInTransaction:
    """One import, in its transaction."""

    def __init__(self, transaction: Transaction, *, source: str, client: str, at: datetime) -> None:
        self._transaction = transaction
        self._source = source
        self._client = client
        self._at = at
        self.id = uuid.uuid4().hex
        self._added: Counter[str] = Counter()
        self._known: Counter[str] = Counter()
        self._left_out_counts: Counter[str] = Counter()
        self._left_out: list[RecordLeftOutOfImport] = []

    async def _new_records(self, batch: Sequence[ExportRecordT]) -> list[ExportRecordT]:
        """Those that are not here; the others are counted, and named where they are different."""
        type_ = batch[0].type
        exported = EXPORTED_TABLE_BY_RECORD_TYPE[type_]
        binds = {"keys": json_list_bind_value({record.identity[-1] for record in batch})}
        if "being" in exported.record.key_fields:
            binds["beings"] = json_list_bind_value({record.being for record in batch})
        rows = await self._rows(SELECT_EXISTING_BY_RECORD_TYPE[type_], exported.to_record, **binds)
        existing = {row.identity: row for row in rows}
        new: dict[tuple[str, ...], ExportRecordT] = {}
        for record in batch:
            here = existing.get(record.identity)
            if here is None:
                new[record.identity] = record
            elif here.being != record.being:
                self._leave_out("taken", record)
            elif are_contradictory_records(here, record):
                self._leave_out("different", record)
            else:
                self._known[type_] += 1
        return list(new.values())

    async def _owner_being_by_record_id(self, type_: str, ids: Sequence[str]) -> dict[str, str]:
        """Whose the records with these ids are that there are."""
        rows = await self._rows(
            _SELECT_OWNERS_BY_RECORD_TYPE[type_], first_two_columns_of_row, keys=json_list_bind_value(set(ids))
        )
        return dict(rows)

    async def _insert(self, records: Sequence[ExportRecord]) -> None:
        if not records:
            return
        type_ = records[0].type
        exported = EXPORTED_TABLE_BY_RECORD_TYPE[type_]
        rows = [exported.to_row(record) | derived_columns_of_record(record) for record in records]
        await self._transaction.execute_many(INSERT_BY_RECORD_TYPE[type_], rows)
        await self._record_as_added(records)

    async def _record_as_added(self, records: Sequence[ExportRecord]) -> None:
        if not records:
            return
        type_ = records[0].type
        self._added[type_] += len(records)
        rows = [
            {
                "import_id": self.id,
                "type": type_,
                "key": json.dumps(record.identity, ensure_ascii=False),
                "digest": "" if type_ == "memory" else export_record_digest(record),
                "memory_id": record.identity[0] if type_ == "memory" else None,
            }
            for record in records
        ]
        await self._transaction.execute_many(_INSERT_IMPORTED_ROW_RECORD, rows)

    async def _rows(self, statement: Any, make: Any = first_column_of_row, **binds: Any) -> list[Any]:
        return await self._transaction.rows(statement, make, **binds)

    def _leave_out(self, reason: RecordNotImportedReason, record: ExportRecord) -> None:
        self._left_out_counts[reason] += 1
        if len(self._left_out) < MAX_RECORDS_LISTED_IN_IMPORT_REPORT:
            name = record.identity[-1]
            self._left_out.append(RecordLeftOutOfImport(reason=reason, type=record.type, being=record.being, id=name))


def export_record_digest(record: ExportRecord) -> str:
    return hashlib.sha256(record.json_line()).hexdigest()


def derived_columns_of_record(record: ExportRecord) -> dict[str, Any]:
    """Columns that are computed from the others."""
    match record:
        case MessageExportRecord():
            return {"folded": fold_text(f"{record.speaker} {record.text}")}
        case NoteExportRecord():
            return {"folded": fold_text(record.content)}
        case StatedRelationExportRecord():
            return {"subject_key": entity_key(record.subject), "object_key": entity_key(record.object)}
        case ArchivedMemoryExportRecord():
            memory = memory_from_export_record(first_memory_record(map(export_record_from_content, record.records)))
            return {"folded": search_text_of_archived_memory(row_from_memory(memory))}
    return {}


def search_text_of_archived_memory(row: Mapping[str, Any]) -> str:
    """Of an archived memory, from its row in the table of memories."""
    return f"{row['folded']}{row['folded_themes']}"


def batch_records_by_type(records: Iterator[AnyExportRecord]) -> Iterator[list[Any]]:
    for _, same in groupby(records, key=lambda record: record.type):
        while batch := list(islice(same, RECORDS_PER_IMPORT_BATCH)):
            yield batch


def being_and_records_pairs(records: Sequence[ExportRecordT]) -> list[tuple[str, list[ExportRecordT]]]:
    beings: defaultdict[str, list[ExportRecordT]] = defaultdict(list)
    for record in records:
        beings[record.being].append(record)
    return list(beings.items())


def ids_referenced_by_record(record: ExportRecord) -> tuple[str, ...]:
    match record:
        case NoteExportRecord() | ProfileExportRecord():
            return (record.memory_id,) if record.memory_id else ()
        case DiaryExportRecord():
            return record.sources
        case CoreBlockExportRecord():
            return (audit_id_of_core_block(record.name),)
    return ()
