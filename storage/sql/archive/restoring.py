"""Memories come back from the archive, exactly as they were (spec O8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, exists, or_, select, true

from madeleine.memory.model import MemoryId, RunId, Scope
from madeleine.memory.moving.records import AnyExportRecord, MemoryExportRecord, ReinforcementExportRecord
from madeleine.memory.moving.values import first_memory_record, memory_from_export_record
from madeleine.storage.sql.archive.packing import unpack_archive_records
from madeleine.storage.sql.database.dialect import in_bound_list_condition, json_list_bind_value, json_list_item_rows
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import decode_json_list, first_column_of_row
from madeleine.storage.sql.database.memory_rows import row_from_memory
from madeleine.storage.sql.database.tables import clusters_table, pending_scrub_marks_table
from madeleine.storage.sql.memories.clusters import recompute_cluster_vectors
from madeleine.storage.sql.memories.index_source import mark_memories_for_index
from madeleine.storage.sql.memories.storing import INSERT_MEMORY, read_idempotency_key_outcomes
from madeleine.storage.sql.moving.import_work import (
    EXPORTED_TABLE_BY_RECORD_TYPE,
    INSERT_BY_RECORD_TYPE,
    derived_columns_of_record,
)
from madeleine.storage.sql.tables.archive import archive_groups_table, archived_memories_table

_a, _g = archived_memories_table.c, archive_groups_table.c
_BEING_ID_BIND = bindparam("being", type_=_a.being_id.type)
_SELECT_ARCHIVE_ENTRIES = select(
    _a.memory_id, _a.refers_to, _a.superseded_by, _a.records, _a.id, _a.group_id, _a.reason, _a.run_id, _a.archived_at
)
_SELECT_ARCHIVE_ENTRIES_BY_IDS = _SELECT_ARCHIVE_ENTRIES.where(
    _a.being_id == _BEING_ID_BIND,
    or_(in_bound_list_condition(_a.memory_id, "ids"), in_bound_list_condition(_a.id, "ids")),
)
_SELECT_MEMORY_IDS_ARCHIVED_BY_RUN = select(_a.memory_id).where(
    _a.being_id == _BEING_ID_BIND, _a.run_id == bindparam("run")
)
# Earlier versions point to later ones: a chain comes back whole.
_SELECT_ARCHIVED_EARLIER_VERSION_IDS = select(_a.memory_id).where(
    _a.being_id == _BEING_ID_BIND, _a.superseded_by.is_not(None), in_bound_list_condition(_a.superseded_by, "ids")
)
_referred = json_list_item_rows(_a.refers_to)
_SELECT_ARCHIVED_MEMORY_IDS_POINTING_TO = (
    select(_a.memory_id)
    .select_from(archived_memories_table)
    .join(_referred, true())
    .where(_a.being_id == _BEING_ID_BIND, in_bound_list_condition(_referred.c.value, "ids"))
    .distinct()
)
_DELETE_ARCHIVE_ENTRIES = delete(archived_memories_table).where(in_bound_list_condition(_a.memory_id, "ids"))
DELETE_EMPTY_ARCHIVE_GROUPS = delete(archive_groups_table).where(
    in_bound_list_condition(_g.id, "groups"), ~exists().where(_a.group_id == _g.id)
)
_DELETE_PENDING_SCRUB_MARKS = delete(pending_scrub_marks_table).where(
    in_bound_list_condition(pending_scrub_marks_table.c.memory_id, "ids")
)
_SELECT_EXISTING_CLUSTER_IDS = select(clusters_table.c.id).where(
    clusters_table.c.being_id == _BEING_ID_BIND, in_bound_list_condition(clusters_table.c.id, "clusters")
)


@dataclass(frozen=True, slots=True)
class ArchiveEntryBeforeRestoration:
    """What an entry was, so that it can go back to its place."""

    memory_id: MemoryId
    refers_to: tuple[str, ...]
    superseded_by: str | None
    records: Sequence[AnyExportRecord]
    id: str
    group_id: str
    reason: str
    run_id: str
    archived_at: int


def _archive_entry_from_row(row: Any) -> ArchiveEntryBeforeRestoration:
    memory_id, refers_to, superseded_by, records, *others = row
    return ArchiveEntryBeforeRestoration(
        memory_id, decode_json_list(refers_to), superseded_by, unpack_archive_records(records), *others
    )


async def restore_archived_memories(
    transaction: Transaction, scope: Scope, ids: Iterable[str], *, keep_groups: bool = False
) -> list[ArchiveEntryBeforeRestoration]:
    """As `ArchiveLedger.restore`. `keep_groups`: also those that are empty then."""
    entries: dict[MemoryId, ArchiveEntryBeforeRestoration] = {}
    wanted = set(ids)
    while wanted:
        binds = {"being": scope.being_id, "ids": json_list_bind_value(wanted)}
        new = await transaction.rows(_SELECT_ARCHIVE_ENTRIES_BY_IDS, _archive_entry_from_row, **binds)
        entries |= {entry.memory_id: entry for entry in new if entry.memory_id not in entries}
        binds["ids"] = json_list_bind_value(entry.memory_id for entry in new)
        earlier = (
            await transaction.rows(_SELECT_ARCHIVED_EARLIER_VERSION_IDS, first_column_of_row, **binds) if new else []
        )
        wanted = {*earlier, *(id_ for entry in new for id_ in entry.refers_to)} - entries.keys()
    restored = list(entries.values())
    if restored:
        await _insert_restored_memories(transaction, scope, restored)
        gone = json_list_bind_value(entries)
        await transaction.execute_many(_DELETE_ARCHIVE_ENTRIES, [{"ids": gone}])
        await transaction.execute_many(_DELETE_PENDING_SCRUB_MARKS, [{"ids": gone}])
        if not keep_groups:
            groups = json_list_bind_value({entry.group_id for entry in restored})
            await transaction.execute_many(DELETE_EMPTY_ARCHIVE_GROUPS, [{"groups": groups}])
    return restored


async def restore_memories_archived_by_run(
    transaction: Transaction, scope: Scope, run: RunId, targets: Iterable[str]
) -> int:
    """Before a run is undone: what it has archived comes back, and what it has changed and went since. Returns the
    number of the former."""
    of_run = await transaction.rows(
        _SELECT_MEMORY_IDS_ARCHIVED_BY_RUN, first_column_of_row, being=scope.being_id, run=run
    )
    await restore_archived_memories(transaction, scope, [*of_run, *targets])
    return len(of_run)


async def ids_of_archived_memories_pointing_to(
    transaction: Transaction, scope: Scope, ids: Sequence[str]
) -> list[MemoryId]:
    """Archived memories that point to these."""
    binds = {"being": scope.being_id, "ids": json_list_bind_value(ids)}
    return await transaction.rows(_SELECT_ARCHIVED_MEMORY_IDS_POINTING_TO, first_column_of_row, **binds)


async def _insert_restored_memories(
    transaction: Transaction, scope: Scope, entries: Sequence[ArchiveEntryBeforeRestoration]
) -> None:
    records = [record for entry in entries for record in entry.records]
    keys = [key for record in records if (key := getattr(record, "key", None)) is not None]
    taken = await read_idempotency_key_outcomes(transaction, scope, keys)
    memories = [first_memory_record(entry.records) for entry in entries]
    named = json_list_bind_value({record.cluster_id for record in memories if record.cluster_id})
    clusters = set(
        await transaction.rows(_SELECT_EXISTING_CLUSTER_IDS, first_column_of_row, being=scope.being_id, clusters=named)
    )
    values = [
        memory_from_export_record(_record_without_taken_key_and_lost_cluster(record, taken.keys(), clusters))
        for record in memories
    ]
    # In the order in which they were numbered, which is that of their arrival.
    values.sort(key=lambda memory: memory.number)
    rows = [{f"new_{name}": value for name, value in row_from_memory(memory).items()} for memory in values]
    await transaction.execute_many(INSERT_MEMORY, rows)
    for record in records:
        if isinstance(record, MemoryExportRecord):
            continue
        if isinstance(record, ReinforcementExportRecord) and record.key in taken:
            record = record.model_copy(update={"key": None})  # noqa: PLW2901
        row = EXPORTED_TABLE_BY_RECORD_TYPE[record.type].to_row(record) | derived_columns_of_record(record)
        await transaction.execute_many(INSERT_BY_RECORD_TYPE[record.type], [row])
    await mark_memories_for_index(transaction, [memory.id for memory in values])
    await recompute_cluster_vectors(transaction, scope, clusters)


def _record_without_taken_key_and_lost_cluster(
    record: MemoryExportRecord, taken_keys: Iterable[str], clusters: set[str]
) -> MemoryExportRecord:
    """Without a key that another memory has by now, and without a cluster that is gone."""
    changes: dict[str, None] = {}
    if record.key is not None and record.key in taken_keys:
        changes["key"] = None
    if record.cluster_id is not None and record.cluster_id not in clusters:
        changes["cluster_id"] = None
    return record.model_copy(update=changes) if changes else record
