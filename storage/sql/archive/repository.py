"""The archive and retention behind their ports (spec O8, O9)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, func, or_, select, update

from madeleine.memory.model import ContentHash, EmbeddingModelName, Memory, MemoryId, RunId, Scope, Vector
from madeleine.memory.moving.values import first_memory_record, memory_from_export_record
from madeleine.memory.retention.ports import ArchiveQuery
from madeleine.memory.retention.values import (
    ArchivalIndexEntry,
    ArchivedMemory,
    ArchiveGroup,
    ArchiveGroupId,
    ListedArchiveGroup,
)
from madeleine.memory.rules.archiving.retention import MemoryRetentionFacts
from madeleine.memory.text.normalization import fold_text
from madeleine.storage.sql.administration import read_store_setting, record_audit_entry, write_store_setting
from madeleine.storage.sql.archive.archiving import archive_memories
from madeleine.storage.sql.archive.packing import unpack_archive_records
from madeleine.storage.sql.archive.restoring import restore_archived_memories
from madeleine.storage.sql.database.dialect import (
    in_bound_list_condition,
    json_list_bind_value,
    sql_contains_text,
    sql_greatest,
)
from madeleine.storage.sql.database.engine import Row, SqlRowReader, Transaction
from madeleine.storage.sql.database.filters import sql_is_in_bound_or_no_project
from madeleine.storage.sql.database.mapping import (
    RowMapper,
    decode_json_list,
    first_column_of_row,
    microseconds_from_moment,
    moment_from_microseconds,
)
from madeleine.storage.sql.database.memory_rows import CYCLES_SINCE_REACTIVATION_SQL_EXPRESSION
from madeleine.storage.sql.database.tables import audit_entries_table, memories_table
from madeleine.storage.sql.memories.index_source import cache_vectors_and_mark_for_indexing
from madeleine.storage.sql.memories.reading import MemoryReadRepository, memories_with_ids
from madeleine.storage.sql.tables.archive import archive_groups_table, archived_memories_table

ARCHIVE_TOOL_NAME = "archive"
"""In the audit, of what was brought back."""
LAST_RETENTION_RUN_SETTING = "retention_enforced"
"""In the store's settings: when the rules were last enforced, by being."""

_a, _g, _m = archived_memories_table.c, archive_groups_table.c, memories_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_last_used = sql_greatest(
    _m.created_at, sql_greatest(func.coalesce(_m.last_activated, 0), func.coalesce(_m.last_accessed, 0))
)
_RETENTION_FACT_COLUMNS = (
    _m.id, _m.category, _last_used, _m.importance, CYCLES_SINCE_REACTIVATION_SQL_EXPRESSION, _m.pinned, _m.status,
    _m.truth, _m.level, _m.session_id, _m.project, _m.absorbed_into, _m.compressed_into, _m.superseded_by,
)  # fmt: skip
_SELECT_RETENTION_FACTS = select(*_RETENTION_FACT_COLUMNS).where(_m.being_id == _BEING_ID_BIND).order_by(_m.seq)
# The first of the conditions is that of the index.
_SELECT_ANY_MEMORY_WITH_LEVEL = (
    select(_m.id)
    .where(_m.being_id == _BEING_ID_BIND, or_(_m.project.is_not(None), _m.level.is_not(None)), _m.level.is_not(None))
    .limit(1)
)
_IS_OF_BOUND_BEING = _a.being_id == _BEING_ID_BIND
_IS_IN_BOUND_OR_NO_PROJECT = sql_is_in_bound_or_no_project(_a.project)
_ARCHIVE_ENTRY_COLUMNS = (_a.id, _a.group_id, _a.records, _a.reason, _a.archived_at)
_SELECT_ARCHIVE_ENTRIES_BY_IDS = select(*_ARCHIVE_ENTRY_COLUMNS).where(
    _IS_OF_BOUND_BEING, or_(in_bound_list_condition(_a.memory_id, "ids"), in_bound_list_condition(_a.id, "ids"))
)
_ARCHIVE_GROUP_ROW_MAPPER = RowMapper(
    ListedArchiveGroup,
    archive_groups_table,
    memories=select(func.count()).where(_a.group_id == _g.id).scalar_subquery(),
)
_SELECT_ARCHIVE_GROUPS = (
    select(*_ARCHIVE_GROUP_ROW_MAPPER.columns)
    .where(_g.being_id == _BEING_ID_BIND)
    .order_by(_g.archived_at.desc(), _g.id)
    .limit(bindparam("limit"))
)
_SELECT_ARCHIVAL_INDEX = (
    select(_a.memory_id, _a.number, _a.id, _a.group_id, _g.mode)
    .join(archive_groups_table, _g.id == _a.group_id)
    .where(_IS_OF_BOUND_BEING, or_(bindparam("ids") == "[]", in_bound_list_condition(_a.memory_id, "ids")))
    .order_by(_a.number)
)
_UPDATE_ARCHIVE_GROUP_SUMMARY = (
    update(archive_groups_table)
    .where(_g.id == bindparam("group"), _g.being_id == _BEING_ID_BIND)
    .values(digest=bindparam("new_digest"), is_summary=True)
)
# The audit says when a memory was brought back: the memory itself comes back as it was.
_SELECT_RESTORATION_AUDIT_ENTRIES = (
    select(audit_entries_table.c.ids, audit_entries_table.c.at)
    .where(
        audit_entries_table.c.being_id == _BEING_ID_BIND,
        audit_entries_table.c.event == "restore",
        audit_entries_table.c.tool == ARCHIVE_TOOL_NAME,
    )
    .order_by(audit_entries_table.c.seq)
)
_SELECT_ARCHIVE_GROUP_IF_IT_EXISTS = select(_g.id).where(_g.id == bindparam("group"), _g.being_id == _BEING_ID_BIND)


def _retention_facts_from_row(row: Row) -> MemoryRetentionFacts:
    id_, category, last_used, importance, cycles, pinned, status, truth, level, session, project, *pointers = row
    absorbed_into, compressed_into, superseded_by = pointers
    return MemoryRetentionFacts(
        id=id_,
        category=category,
        last_used=moment_from_microseconds(last_used),
        importance=importance,
        session_count=cycles,
        pinned=bool(pinned),
        status=status,
        truth=truth,
        level=level or "persistent",
        session_id=session,
        project=project or "",
        part_of=tuple(id_ for id_ in (absorbed_into, compressed_into) if id_),
        superseded_by=superseded_by,
    )


def _archived_memory_from_row(row: Row) -> ArchivedMemory:
    id_, group_id, records, reason, archived_at = row
    return ArchivedMemory(
        id=id_,
        group_id=group_id,
        memory=memory_from_export_record(first_memory_record(unpack_archive_records(records))),
        reason=reason,
        archived_at=moment_from_microseconds(archived_at),
    )


class RetentionFactsReader:
    """`RetentionReader` of one being."""

    def __init__(self, reads: SqlRowReader, scope: Scope) -> None:
        self._reads = reads
        self._scope = scope

    async def retention_facts_of_all_memories(self) -> list[MemoryRetentionFacts]:
        being = self._scope.being_id
        ages = await self._reads.rows(_SELECT_RETENTION_FACTS, _retention_facts_from_row, being=being)
        brought_back = {
            id_: moment_from_microseconds(at)
            for ids, at in await self._reads.rows(_SELECT_RESTORATION_AUDIT_ENTRIES, tuple, being=being)
            for id_ in decode_json_list(ids)
        }
        return [
            replace(age, last_used=max(age.last_used, brought_back[age.id])) if age.id in brought_back else age
            for age in ages
        ]

    async def has_memories_kept_for_session_or_project(self) -> bool:
        return bool(
            await self._reads.rows(_SELECT_ANY_MEMORY_WITH_LEVEL, first_column_of_row, being=self._scope.being_id)
        )

    async def memories_with_ids(self, ids: Sequence[MemoryId]) -> list[Memory]:
        return await memories_with_ids(self._reads, self._scope, ids)

    async def last_retention_run_time(self) -> datetime | None:
        enforced = await read_store_setting(self._reads, LAST_RETENTION_RUN_SETTING) or {}
        at = enforced.get(self._scope.being_id)
        return None if at is None else moment_from_microseconds(at)


class RetentionWriter(RetentionFactsReader):
    """`RetentionArchivingTransaction`."""

    def __init__(self, transaction: Transaction, scope: Scope) -> None:
        super().__init__(transaction, scope)
        self._transaction = transaction

    async def archive(self, groups: Sequence[ArchiveGroup], *, run: RunId, at: datetime) -> list[MemoryId]:
        return await archive_memories(self._transaction, self._scope, groups, run=run, at=at)

    async def record_retention_run(self, at: datetime) -> None:
        enforced = await read_store_setting(self._transaction, LAST_RETENTION_RUN_SETTING) or {}
        now = {self._scope.being_id: microseconds_from_moment(at)}
        await write_store_setting(self._transaction, LAST_RETENTION_RUN_SETTING, enforced | now)


class ArchiveRepository(MemoryReadRepository):
    """`ArchiveLedger` and `RetentionLedger`."""

    def retention_reader(self, scope: Scope) -> RetentionFactsReader:
        return RetentionFactsReader(self._database, scope)

    @asynccontextmanager
    async def retention_transaction(self, scope: Scope) -> AsyncIterator[RetentionWriter]:
        async with self._database.transaction() as transaction:
            yield RetentionWriter(transaction, scope)

    async def search_archived(self, scope: Scope, query: ArchiveQuery) -> list[ArchivedMemory]:
        terms = {f"term_{n}": fold_text(term) for n, term in enumerate(query.terms)}
        held = [sql_contains_text(_a.folded, bindparam(name)) for name in terms]
        statement = select(*_ARCHIVE_ENTRY_COLUMNS).where(_IS_OF_BOUND_BEING, _IS_IN_BOUND_OR_NO_PROJECT)
        if held:
            statement = statement.where(and_(*held) if query.mode == "and" else or_(*held))
        statement = statement.order_by(_a.happened_at.desc(), _a.id)
        statement = statement.limit(bindparam("limit")).offset(bindparam("position"))
        binds: dict[str, Any] = {"being": scope.being_id, "project": scope.project, **terms}
        return await self._database.rows(
            statement, _archived_memory_from_row, limit=query.limit, position=query.position, **binds
        )

    async def archived_memories_with_ids(self, scope: Scope, ids: Sequence[str]) -> list[ArchivedMemory]:
        binds = {"being": scope.being_id, "ids": json_list_bind_value(ids)}
        entries = await self._database.rows(_SELECT_ARCHIVE_ENTRIES_BY_IDS, _archived_memory_from_row, **binds)
        named: dict[str, ArchivedMemory] = {}
        for entry in entries:
            named |= {entry.id: entry, entry.memory.id: entry}
        return list({named[id_].id: named[id_] for id_ in ids if id_ in named}.values())

    async def groups(self, scope: Scope, *, limit: int) -> list[ListedArchiveGroup]:
        return await self._database.rows(
            _SELECT_ARCHIVE_GROUPS, _ARCHIVE_GROUP_ROW_MAPPER.from_row, being=scope.being_id, limit=limit
        )

    async def archival_index(self, scope: Scope, ids: Sequence[MemoryId] = ()) -> list[ArchivalIndexEntry]:
        binds = {"being": scope.being_id, "ids": json_list_bind_value(ids)}
        rows = await self._database.rows(_SELECT_ARCHIVAL_INDEX, tuple, **binds)
        return [
            ArchivalIndexEntry(memory_id=id_, number=number, archival_id=entry, group_id=group, mode=mode)
            for id_, number, entry, group, mode in rows
        ]

    async def restore(self, scope: Scope, ids: Sequence[str], *, at: datetime) -> list[Memory]:
        async with self._database.transaction(needs_index_space=True) as transaction:
            restored = [entry.memory_id for entry in await restore_archived_memories(transaction, scope, ids)]
            if restored:
                await record_audit_entry(transaction, scope, "restore", at, tool=ARCHIVE_TOOL_NAME, ids=restored)
            return await memories_with_ids(transaction, scope, restored)

    async def store_group_summary(self, scope: Scope, group: ArchiveGroupId, digest: str) -> bool:
        binds = {"group": group, "being": scope.being_id}
        async with self._database.transaction() as transaction:
            known = await transaction.rows(_SELECT_ARCHIVE_GROUP_IF_IT_EXISTS, first_column_of_row, **binds)
            await transaction.execute_many(_UPDATE_ARCHIVE_GROUP_SUMMARY, [binds | {"new_digest": digest}])
            return bool(known)

    async def cache_vectors(self, model: EmbeddingModelName, vectors: Mapping[ContentHash, Vector]) -> None:
        await cache_vectors_and_mark_for_indexing(self._database, model, vectors)
