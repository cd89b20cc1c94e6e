"""Memories go into the archive, in one transaction with all that is kept of each (spec O8)."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import insert

from madeleine.memory.model import MemoryId, RunId, Scope
from madeleine.memory.moving.record_base import ExportRecord
from madeleine.memory.moving.records import AnyExportRecord, MemoryExportRecord
from madeleine.memory.moving.values import memory_from_export_record
from madeleine.memory.retention.values import ArchiveGroup
from madeleine.storage.sql.archive.packing import MEMORY_PART_RECORD_TYPES, pack_archive_records
from madeleine.storage.sql.database.dialect import in_bound_list_condition, json_list_bind_value
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import encode_json_list, microseconds_from_moment
from madeleine.storage.sql.database.memory_rows import row_from_memory
from madeleine.storage.sql.database.tables import metadata
from madeleine.storage.sql.erasing.scrub_marks import mark_erased_ids_for_scrubbing
from madeleine.storage.sql.memories.clusters import recompute_cluster_vectors
from madeleine.storage.sql.memories.index_source import delete_orphaned_vectors
from madeleine.storage.sql.moving.import_work import EXPORTED_TABLE_BY_RECORD_TYPE, search_text_of_archived_memory
from madeleine.storage.sql.tables.archive import archive_groups_table, archived_memories_table
from madeleine.storage.sql.tables.lifecycle import archival_delete_statements

_EXPORTED_MEMORIES_TABLE = EXPORTED_TABLE_BY_RECORD_TYPE["memory"]
_SELECT_MEMORIES_BY_IDS = _EXPORTED_MEMORIES_TABLE.select_statement().where(
    in_bound_list_condition(_EXPORTED_MEMORIES_TABLE.table.c.id, "ids")
)
_SELECT_MEMORY_PARTS_BY_RECORD_TYPE = {
    type_: EXPORTED_TABLE_BY_RECORD_TYPE[type_]
    .select_statement()
    .where(in_bound_list_condition(EXPORTED_TABLE_BY_RECORD_TYPE[type_].table.c.memory_id, "ids"))
    for type_ in MEMORY_PART_RECORD_TYPES
}
_ARCHIVAL_DELETE_STATEMENTS = archival_delete_statements(metadata)
_INSERT_GROUP, INSERT_ENTRY = insert(archive_groups_table), insert(archived_memories_table)


async def archive_memories(
    transaction: Transaction, scope: Scope, groups: Sequence[ArchiveGroup], *, run: RunId, at: datetime
) -> list[MemoryId]:
    """As `RetentionArchivingTransaction.archive`."""
    wanted = [id_ for group in groups for id_ in group.reasons]
    records = await read_records_to_archive_by_memory_id(transaction, scope, wanted)
    fixed = {"being_id": scope.being_id, "run_id": run, "archived_at": microseconds_from_moment(at)}
    names = ("id", "category", "mode", "digest", "is_summary")
    told = [group for group in groups if not records.keys().isdisjoint(group.reasons)]
    await transaction.execute_many(
        _INSERT_GROUP, [fixed | {name: getattr(group, name) for name in names} for group in told]
    )
    for group in told:
        of_group = {id_: records[id_] for id_ in group.reasons if id_ in records}
        entries = await asyncio.to_thread(_archive_entry_rows, of_group)
        for entry in entries:
            entry |= fixed | {"group_id": group.id, "reason": group.reasons[entry["memory_id"]]}  # noqa: PLW2901
        await transaction.execute_many(INSERT_ENTRY, entries)
    await delete_memories_moved_to_archive(transaction, scope, [records[id_][0] for id_ in wanted if id_ in records])
    return [id_ for id_ in wanted if id_ in records]


async def read_records_to_archive_by_memory_id(
    transaction: Transaction, scope: Scope, ids: Sequence[MemoryId]
) -> dict[MemoryId, list[Any]]:
    """The record of each memory that exists, then those of its parts."""
    binds = {"being": scope.being_id, "ids": json_list_bind_value(ids)}
    memories = await transaction.rows(_SELECT_MEMORIES_BY_IDS, _EXPORTED_MEMORIES_TABLE.to_record, **binds)
    records: defaultdict[MemoryId, list[ExportRecord]] = defaultdict(list)
    for memory in memories:
        records[MemoryId(str(memory.identity[0]))].append(memory)
    for type_, statement in _SELECT_MEMORY_PARTS_BY_RECORD_TYPE.items():
        for part in await transaction.rows(statement, EXPORTED_TABLE_BY_RECORD_TYPE[type_].to_record, **binds):
            records[MemoryId(str(getattr(part, "memory_id")))].append(part)  # noqa: B009 - of several types
    return dict(records)


def _archive_entry_rows(records: Mapping[MemoryId, Sequence[AnyExportRecord]]) -> list[dict[str, Any]]:
    return [
        {"id": str(uuid.uuid4())} | archive_columns_from_memory_records(of_memory[0], of_memory)
        for of_memory in records.values()
        if isinstance(of_memory[0], MemoryExportRecord)
    ]


def archive_columns_from_memory_records(record: MemoryExportRecord, records: Sequence[ExportRecord]) -> dict[str, Any]:
    """Columns of an entry that follow from what it holds."""
    row = row_from_memory(memory_from_export_record(record))
    referred = [id_ for id_ in (record.absorbed_into, record.compressed_into, record.superseded_by) if id_]
    return {
        "memory_id": record.id,
        "number": record.number,
        "project": record.project,
        "refers_to": encode_json_list(referred),
        "superseded_by": record.superseded_by,
        "happened_at": row["happened_at"],
        "folded": search_text_of_archived_memory(row),
        "records": pack_archive_records(records),
    }


async def delete_memories_moved_to_archive(
    transaction: Transaction, scope: Scope, archived: Sequence[MemoryExportRecord]
) -> None:
    """What pointed to them keeps its pointer: it holds again when they come back."""
    memories = [memory_from_export_record(record) for record in archived]
    ids = [memory.id for memory in memories]
    for statement in _ARCHIVAL_DELETE_STATEMENTS:
        await transaction.execute_many(statement, [{"ids": json_list_bind_value(ids)}])
    await delete_orphaned_vectors(transaction, [memory.content_hash for memory in memories])
    await recompute_cluster_vectors(transaction, scope, {one.cluster_id for one in memories if one.cluster_id})
    # The index loses them by these marks also where this process is killed (`IndexKeeper.remove_memories`).
    await mark_erased_ids_for_scrubbing(transaction, ids)
