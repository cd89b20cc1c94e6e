"""Forgetting reaches the archive (rulings 11 and 25): what is forgotten comes back first, with what points to it, so
that all that tells of it is found; what stays of that goes back to its place."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import bindparam, select, update

from madeleine.memory.model import MemoryId, Scope
from madeleine.memory.moving.values import first_memory_record
from madeleine.memory.rules.archiving.extracts import make_extractive_digest
from madeleine.storage.sql.archive.archiving import (
    INSERT_ENTRY,
    archive_columns_from_memory_records,
    delete_memories_moved_to_archive,
    read_records_to_archive_by_memory_id,
)
from madeleine.storage.sql.archive.packing import unpack_archive_records
from madeleine.storage.sql.archive.restoring import (
    DELETE_EMPTY_ARCHIVE_GROUPS,
    ArchiveEntryBeforeRestoration,
    ids_of_archived_memories_pointing_to,
    restore_archived_memories,
)
from madeleine.storage.sql.database.dialect import in_bound_list_condition, json_list_bind_value
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import first_two_columns_of_row
from madeleine.storage.sql.tables.archive import archive_groups_table, archived_memories_table

_a, _g = archived_memories_table.c, archive_groups_table.c
_SELECT_RECORDS_OF_ARCHIVE_GROUPS = (
    select(_a.group_id, _a.records)
    .where(in_bound_list_condition(_a.group_id, "groups"))
    .order_by(_a.happened_at, _a.number)
)
_UPDATE_ARCHIVE_GROUP_DIGEST = (
    update(archive_groups_table)
    .where(_g.id == bindparam("group"))
    .values(digest=bindparam("new_digest"), is_summary=False)
)


async def restore_archived_to_erase(
    transaction: Transaction, scope: Scope, ids: Sequence[str]
) -> list[ArchiveEntryBeforeRestoration]:
    """The archived ones of these ids, and those that point to any of them."""
    restored = await restore_archived_memories(transaction, scope, ids, keep_groups=True)
    known = {*ids, *(entry.memory_id for entry in restored)}
    while dependents := await ids_of_archived_memories_pointing_to(transaction, scope, sorted(known)):
        more = await restore_archived_memories(transaction, scope, dependents, keep_groups=True)
        known |= {entry.memory_id for entry in more}
        restored += more
    return restored


async def rearchive_after_erasure(
    transaction: Transaction,
    scope: Scope,
    brought: Sequence[ArchiveEntryBeforeRestoration],
    erased: Collection[MemoryId],
) -> None:
    """After the erasure: what was brought back for it and stays goes back, as it is now. What the archive tells of
    their groups is made anew, without the erased."""
    staying = {entry.memory_id: entry for entry in brought if entry.memory_id not in erased}
    records = await read_records_to_archive_by_memory_id(transaction, scope, list(staying))
    rows = []
    for id_, of_memory in records.items():
        entry = staying[id_]
        names = ("id", "group_id", "reason", "run_id", "archived_at")
        kept = {name: getattr(entry, name) for name in names}
        rows.append(kept | {"being_id": scope.being_id} | archive_columns_from_memory_records(of_memory[0], of_memory))
    await transaction.execute_many(INSERT_ENTRY, rows)
    await delete_memories_moved_to_archive(transaction, scope, [of_memory[0] for of_memory in records.values()])
    await rebuild_archive_group_digests(transaction, {entry.group_id for entry in brought if entry.memory_id in erased})
    await transaction.execute_many(
        DELETE_EMPTY_ARCHIVE_GROUPS, [{"groups": json_list_bind_value(entry.group_id for entry in brought)}]
    )


async def rebuild_archive_group_digests(transaction: Transaction, groups: Collection[str]) -> None:
    """Make what the archive tells of these groups anew, from what they hold; empty ones go."""
    binds = {"groups": json_list_bind_value(groups)}
    texts: dict[str, list[str]] = {}
    for group, packed in await transaction.rows(_SELECT_RECORDS_OF_ARCHIVE_GROUPS, first_two_columns_of_row, **binds):
        texts.setdefault(group, []).append(first_memory_record(unpack_archive_records(packed)).action)
    digests = [{"group": group, "new_digest": make_extractive_digest(of_group)} for group, of_group in texts.items()]
    await transaction.execute_many(_UPDATE_ARCHIVE_GROUP_DIGEST, digests)
    await transaction.execute_many(DELETE_EMPTY_ARCHIVE_GROUPS, [binds])
