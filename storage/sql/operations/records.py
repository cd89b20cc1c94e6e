"""Records of an application that are saved by key, listed and deleted (spec O10)."""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

from sqlalchemy import Delete, Select, Table, bindparam, delete, select

from madeleine.memory.operations.values import AgentState, OperationalRecord, Project, Setting
from madeleine.storage.sql.database.dialect import upsert_statement
from madeleine.storage.sql.database.engine import DatabaseRepository
from madeleine.storage.sql.database.filters import equals_if_bound
from madeleine.storage.sql.database.mapping import RowMapper
from madeleine.storage.sql.erasing.scrub_marks import mark_files_for_scrub
from madeleine.storage.sql.tables.operations import agent_states_table, application_settings_table, projects_table

RecordT = TypeVar("RecordT", bound=OperationalRecord)


class OperationalRecordStatements(Generic[RecordT]):
    """Statements for a table of records. `filters`: the columns that a list can be restricted by."""

    def __init__(self, make: type[RecordT], table: Table, *filters: str) -> None:
        self.rows = RowMapper(make, table)
        self.keys = tuple(column.name for column in table.primary_key)
        self.filters = filters
        self.save = upsert_statement(table, *(column.name for column in table.c if column.name not in self.keys))
        is_key = [table.c[name] == bindparam(name) for name in self.keys]
        self.select_by_key: Select[Any] = select(*self.rows.columns).where(*is_key)
        self.delete_by_key: Delete = delete(table).where(*is_key)
        self.select_list: Select[Any] = (
            select(*self.rows.columns)
            .where(*(equals_if_bound(table.c[name], name) for name in filters))
            .order_by(*(table.c[name] for name in self.keys))
        )


class OperationalRecordRepository(DatabaseRepository, Generic[RecordT]):
    """Saves, lists and deletes the records of a table."""

    _table: OperationalRecordStatements[RecordT]

    async def save(self, record: RecordT, /) -> None:
        async with self._database.transaction() as transaction:
            await transaction.execute_many(self._table.save, [self._row(record)])

    def _row(self, record: RecordT) -> dict[str, Any]:
        return self._table.rows.to_row(record)

    async def _get(self, *key: str) -> RecordT | None:
        binds = dict(zip(self._table.keys, key, strict=True))
        found = await self._database.rows(self._table.select_by_key, self._table.rows.from_row, **binds)
        return found[0] if found else None

    async def _list(self, **filters: str | None) -> tuple[RecordT, ...]:
        return tuple(await self._database.rows(self._table.select_list, self._table.rows.from_row, **filters))

    async def _delete(self, *key: str) -> bool:
        binds = dict(zip(self._table.keys, key, strict=True))
        async with self._database.transaction() as transaction:
            found = await transaction.rows(self._table.select_by_key, self._table.rows.from_row, **binds)
            if found:
                await transaction.execute_many(self._table.delete_by_key, [binds])
                await mark_files_for_scrub(transaction)
        return bool(found)


class SqlAgentStateRepository(OperationalRecordRepository[AgentState]):
    """`AgentStateRepository`."""

    _table = OperationalRecordStatements(AgentState, agent_states_table, "status")

    async def get(self, agent_id: str) -> AgentState | None:
        return await self._get(agent_id)

    async def list_states(self, *, status: str | None = None) -> tuple[AgentState, ...]:
        return await self._list(status=status)

    async def delete(self, agent_id: str) -> bool:
        return await self._delete(agent_id)


class SqlSettingsRepository(OperationalRecordRepository[Setting]):
    """`SettingsRepository`."""

    _table = OperationalRecordStatements(Setting, application_settings_table, "namespace")

    def _row(self, record: Setting) -> dict[str, Any]:
        return self._table.rows.to_row(record, value=json.dumps(record.value, ensure_ascii=False))

    async def get(self, namespace: str, key: str) -> Setting | None:
        return await self._get(namespace, key)

    async def list_settings(self, *, namespace: str | None = None) -> tuple[Setting, ...]:
        return await self._list(namespace=namespace)

    async def delete(self, namespace: str, key: str) -> bool:
        return await self._delete(namespace, key)


class SqlProjectRepository(OperationalRecordRepository[Project]):
    """`ProjectRepository`."""

    _table = OperationalRecordStatements(Project, projects_table, "status", "lead")

    async def get(self, project_id: str) -> Project | None:
        return await self._get(project_id)

    async def list_projects(self, *, status: str | None = None, lead: str | None = None) -> tuple[Project, ...]:
        return await self._list(status=status, lead=lead)

    async def delete(self, project_id: str) -> bool:
        return await self._delete(project_id)
