"""Texts that were poured in to the end, by key, and what came of each (spec L1). None of their words.

A key may be a digest of a text. So it is kept as an HMAC with a secret of the store, and a note by itself is nothing
against which guesses could be held; who has the whole store has the secret, too.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, select, update

from madeleine.memory.model import MemoryId, Scope
from madeleine.storage.sql.database.dialect import (
    among,
    as_list,
    insert_missing,
    json_field,
    json_items,
    json_without_field,
)
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import scalar, to_micros
from madeleine.storage.sql.database.tables import ingested
from madeleine.storage.sql.memories.memories import MemoryRepository
from madeleine.storage.sql.operations.settings import read_setting, write_setting_once

_i = ingested.c
_GET = select(_i.outcome).where(_i.being_id == bindparam("being"), _i.key == bindparam("wanted"))
_INSERT = insert_missing(ingested)
_chunk = json_items(json_field(_i.outcome, "chunks"))
_WITHOUT_DIGEST = (
    update(ingested)
    .where(
        _i.being_id == bindparam("being"),
        select(_chunk.c.value).where(among(json_field(_chunk.c.value, "id"), "ids")).exists(),
    )
    .values(outcome=json_without_field(_i.outcome, "digest"))
)


SECRET = "ingested_secret"
"""In the store's settings: 32 random bytes in hexadecimal digits, made with the first note."""


async def forget_ingested(transaction: Transaction, scope: Scope, gone: Sequence[MemoryId]) -> None:
    """That there was a text with this key stays known, so that it is not poured in again; what it was does not: its
    digest goes."""
    await transaction.run(_WITHOUT_DIGEST, [{"being": scope.being_id, "ids": as_list(gone)}])


def _hidden(secret: str, key: str) -> str:
    return hmac.new(bytes.fromhex(secret), key.encode(), hashlib.sha256).hexdigest()


class IngestionRepository(MemoryRepository):
    """`IngestLedger`."""

    async def outcome(self, scope: Scope, key: str) -> dict[str, Any] | None:
        secret: str | None = await read_setting(self._database, SECRET)
        if secret is None:
            return None
        found = await self._database.rows(_GET, scalar, being=scope.being_id, wanted=_hidden(secret, key))
        return json.loads(found[0]) if found else None

    async def keep_outcome(self, scope: Scope, key: str, outcome: Mapping[str, Any], *, at: datetime) -> None:
        async with self._database.transaction() as transaction:
            secret = await write_setting_once(transaction, SECRET, secrets.token_hex(32))
            row = {"being_id": scope.being_id, "key": _hidden(secret, key)}
            await transaction.run(_INSERT, [row | {"at": to_micros(at), "outcome": json.dumps(outcome)}])
