"""Bearer tokens, by the hash of their secret. Safe to open beside a running server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from sqlalchemy import bindparam, func, insert, literal, select, update

from madeleine.memory.audit import AuditEntry
from madeleine.memory.bearer_tokens import BearerToken, BearerTokenId
from madeleine.storage.sql.database.engine import Database, open_database
from madeleine.storage.sql.database.mapping import Mapped, scalar, to_micros
from madeleine.storage.sql.database.tables import tokens
from madeleine.storage.sql.operations.audit import append_audit

_t = tokens.c
_TOKEN = Mapped(BearerToken, tokens)
_ALL = select(*_TOKEN.columns).order_by(_t.created_at, _t.id)
_ONE = _ALL.where(_t.id == bindparam("wanted"))
_ANY = select(literal(1)).select_from(tokens).limit(1)
_INSERT = insert(tokens)
_REVOKE = (
    update(tokens)
    .where(_t.id == bindparam("target"))
    .values(revoked_at=func.coalesce(_t.revoked_at, bindparam("moment")))
)


@asynccontextmanager
async def open_tokens(path: Path) -> AsyncIterator[SqlTokens]:
    """The ledger file's tokens. Raises `StorageError` if it cannot be used, or was written by a newer version."""
    async with open_database(path) as database:
        yield SqlTokens(database)


class SqlTokens:
    """`TokenLedger`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, token: BearerToken) -> None:
        async with self._database.transaction() as transaction:
            await transaction.run(_INSERT, [_TOKEN.to_row(token)])
            await append_audit(transaction, [_entry(token, token.created_at, "madeleine token create")])

    async def find(self, id_: BearerTokenId) -> BearerToken | None:
        found = await self._database.rows(_ONE, _TOKEN.from_row, wanted=id_)
        return found[0] if found else None

    async def all(self) -> list[BearerToken]:
        return await self._database.rows(_ALL, _TOKEN.from_row)

    async def any(self) -> bool:
        return bool(await self._database.rows(_ANY, scalar))

    async def revoke(self, id_: BearerTokenId, *, at: datetime) -> bool:
        async with self._database.transaction() as transaction:
            known = await transaction.rows(_ONE, _TOKEN.from_row, wanted=id_)
            for token in known:
                await transaction.run(_REVOKE, [{"target": id_, "moment": to_micros(at)}])
                await append_audit(transaction, [_entry(token, at, "madeleine token revoke")])
        return bool(known)


def _entry(token: BearerToken, at: datetime, client: str) -> AuditEntry:
    return AuditEntry(event="token", at=at, being_id=token.being_id, client=client, role=token.role, ids=(token.id,))
