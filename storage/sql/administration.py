"""Audit, settings of the store, bearer tokens (spec O4, O10). The audit is written in the transaction it tells of."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, insert, literal, or_, select, update

from madeleine.memory.audit import AuditEntry, AuditEventKind, AuditQuery, build_audit_entry
from madeleine.memory.bearer_tokens import BearerTokenId, BearerTokenRecord
from madeleine.memory.model import Scope
from madeleine.storage.sql.database.dialect import (
    insert_if_missing_statement,
    sql_last_audit_number,
    upsert_statement,
)
from madeleine.storage.sql.database.engine import Database, DatabaseRepository, SqlRowReader, Transaction
from madeleine.storage.sql.database.filters import equals_if_bound, period_binds, sql_is_in_bound_period
from madeleine.storage.sql.database.mapping import RowMapper, first_column_of_row, microseconds_from_moment
from madeleine.storage.sql.database.opening import LedgerLocation, open_database
from madeleine.storage.sql.database.tables import audit_entries_table, bearer_tokens_table, store_settings_table

# --- audit --------------------------------------------------------------------------------------------------------

_a = audit_entries_table.c
_AUDIT_ENTRY_ROW_MAPPER = RowMapper(AuditEntry, audit_entries_table)
_INSERT_AUDIT_ENTRY = insert(audit_entries_table)
_SELECT_AUDIT_ENTRIES = (
    select(*_AUDIT_ENTRY_ROW_MAPPER.columns)
    .where(
        or_(equals_if_bound(_a.being_id, "being"), _a.author == bindparam("being")),
        equals_if_bound(_a.event, "event"),
        sql_is_in_bound_period(_a.at),
    )
    .order_by(_a.seq.desc())
    .limit(bindparam("limit"))
)
# A number is taken back when a transaction is rolled back.
_COUNT_MISSING_AUDIT_ENTRIES = select(sql_last_audit_number() - func.count()).select_from(audit_entries_table)


async def append_audit_entries(transaction: Transaction, entries: Iterable[AuditEntry]) -> None:
    rows = [_AUDIT_ENTRY_ROW_MAPPER.to_row(entry) for entry in entries]
    for row in rows:
        del row["seq"]  # the database numbers the entries
    await transaction.execute_many(_INSERT_AUDIT_ENTRY, rows)


async def record_audit_entry(
    transaction: Transaction, scope: Scope, event: AuditEventKind, at: datetime, *, tool: str = "", ids: Iterable[str]
) -> None:
    await append_audit_entries(transaction, [build_audit_entry(scope, event, at, tool=tool, ids=ids)])


async def record_audit_entries_grouped_by_tool(
    transaction: Transaction, scope: Scope, event: AuditEventKind, changes: Iterable[tuple[str, str, datetime]]
) -> None:
    """Record one entry for each tool in `changes` (tool, id, time), at the time of its last change."""
    by_tool: defaultdict[str, list[tuple[str, datetime]]] = defaultdict(list)
    for tool, id_, at in changes:
        by_tool[tool].append((id_, at))
    for tool, changed in by_tool.items():
        await record_audit_entry(transaction, scope, event, changed[-1][1], tool=tool, ids=[id_ for id_, _ in changed])


class AuditEntryRepository(DatabaseRepository):
    """Reads the audit, for `madeleine audit`, and records what leaves no other trace here."""

    async def record_audit_event(self, scope: Scope, event: AuditEventKind, *, at: datetime) -> None:
        async with self._database.transaction() as transaction:
            await record_audit_entry(transaction, scope, event, at, ids=())

    async def audit_entries(self, query: AuditQuery) -> list[AuditEntry]:
        """Oldest first."""
        newest_first = await self._database.rows(
            _SELECT_AUDIT_ENTRIES,
            _AUDIT_ENTRY_ROW_MAPPER.from_row,
            being=query.being_id,
            event=query.event,
            limit=query.limit,
            **period_binds(query.since, query.until),
        )
        return newest_first[::-1]

    async def count_missing_entries(self) -> int:
        """The number of entries that were removed from the file past the ledger."""
        return int((await self._database.rows(_COUNT_MISSING_AUDIT_ENTRIES, first_column_of_row))[0])


# --- settings of the store: facts by name, as JSON ----------------------------------------------------------------

_SELECT_SETTING = select(store_settings_table.c.value).where(store_settings_table.c.name == bindparam("setting"))
_INSERT_SETTING_IF_MISSING = insert_if_missing_statement(store_settings_table)
_UPSERT_SETTING = upsert_statement(store_settings_table, "value")


async def read_store_setting(reads: SqlRowReader, name: str) -> Any:
    """None for a name that was never set."""
    values = await reads.rows(_SELECT_SETTING, first_column_of_row, setting=name)
    return json.loads(values[0]) if values else None


async def write_store_settings(database: Database, values: Mapping[str, Any]) -> None:
    async with database.transaction() as transaction:
        await transaction.execute_many(_UPSERT_SETTING, [_setting_row(name, value) for name, value in values.items()])


async def write_store_setting(transaction: Transaction, name: str, value: Any) -> None:
    await transaction.execute_many(_UPSERT_SETTING, [_setting_row(name, value)])


async def write_store_setting_once(transaction: Transaction, name: str, value: Any) -> Any:
    """Set it unless it is set already. Returns the value that it has for good."""
    await transaction.execute_many(_INSERT_SETTING_IF_MISSING, [_setting_row(name, value)])
    return await read_store_setting(transaction, name)


def _setting_row(name: str, value: Any) -> dict[str, str]:
    return {"name": name, "value": json.dumps(value, ensure_ascii=False)}


# --- bearer tokens, by the hash of their secret -------------------------------------------------------------------

_t = bearer_tokens_table.c
_TOKEN_ROW_MAPPER = RowMapper(BearerTokenRecord, bearer_tokens_table)
_SELECT_ALL_TOKENS = select(*_TOKEN_ROW_MAPPER.columns).order_by(_t.created_at, _t.id)
_SELECT_TOKEN_BY_ID = _SELECT_ALL_TOKENS.where(_t.id == bindparam("token_id"))
_SELECT_ANY_TOKEN = select(literal(1)).select_from(bearer_tokens_table).limit(1)
_INSERT_TOKEN = insert(bearer_tokens_table)
_REVOKE_TOKEN = (
    update(bearer_tokens_table)
    .where(_t.id == bindparam("token_id"))
    .values(revoked_at=func.coalesce(_t.revoked_at, bindparam("moment")))
)


@asynccontextmanager
async def open_bearer_token_repository(location: LedgerLocation) -> AsyncIterator[BearerTokenRepository]:
    """The ledger's tokens, safe to open beside a running server. Raises `StorageError` if it cannot be used,
    or was written by a newer version."""
    async with open_database(location) as database:
        yield BearerTokenRepository(database)


class BearerTokenRepository(DatabaseRepository):
    """Bearer tokens; implements `BearerTokenLedger`. Adding and revoking are audited (spec O10)."""

    async def add(self, token: BearerTokenRecord) -> None:
        async with self._database.transaction() as transaction:
            await transaction.execute_many(_INSERT_TOKEN, [_TOKEN_ROW_MAPPER.to_row(token)])
            await append_audit_entries(
                transaction, [_audit_entry_of_token_change(token, token.created_at, "madeleine token create")]
            )

    async def find_by_id(self, id_: BearerTokenId) -> BearerTokenRecord | None:
        return next(
            iter(await self._database.rows(_SELECT_TOKEN_BY_ID, _TOKEN_ROW_MAPPER.from_row, token_id=id_)), None
        )

    async def all_tokens(self) -> list[BearerTokenRecord]:
        return await self._database.rows(_SELECT_ALL_TOKENS, _TOKEN_ROW_MAPPER.from_row)

    async def has_tokens(self) -> bool:
        return bool(await self._database.rows(_SELECT_ANY_TOKEN, first_column_of_row))

    async def revoke(self, id_: BearerTokenId, *, at: datetime) -> bool:
        async with self._database.transaction() as transaction:
            known = await transaction.rows(_SELECT_TOKEN_BY_ID, _TOKEN_ROW_MAPPER.from_row, token_id=id_)
            for token in known:
                await transaction.execute_many(
                    _REVOKE_TOKEN, [{"token_id": id_, "moment": microseconds_from_moment(at)}]
                )
                await append_audit_entries(
                    transaction, [_audit_entry_of_token_change(token, at, "madeleine token revoke")]
                )
        return bool(known)


def _audit_entry_of_token_change(token: BearerTokenRecord, at: datetime, client: str) -> AuditEntry:
    return AuditEntry(event="token", at=at, being_id=token.being_id, client=client, role=token.role, ids=(token.id,))
