"""Texts that were poured in to the end, by key, and what came of each (spec L1). None of their words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.dialects import sqlite

from memory.model import MemoryId
from memory.scope import Scope
from storage.sql.engine import Database, Reads, Transaction
from storage.sql.query import among, as_list
from storage.sql.rows import scalar
from storage.sql.tables import ingested
from storage.sql.times import to_micros

_i = ingested.c
_GET = select(_i.outcome).where(_i.being_id == bindparam("being"), _i.key == bindparam("wanted"))
_INSERT = sqlite.insert(ingested).on_conflict_do_nothing(index_elements=[_i.being_id, _i.key])
_chunk = func.json_each(_i.outcome, "$.chunks").table_valued("value")
_WITHOUT_DIGEST = (
    update(ingested)
    .where(
        _i.being_id == bindparam("being"),
        select(_chunk.c.value).where(among(func.json_extract(_chunk.c.value, "$.id"), "ids")).exists(),
    )
    .values(outcome=func.json_remove(_i.outcome, "$.digest"))
)


async def outcome(reads: Reads, scope: Scope, key: str) -> dict[str, Any] | None:
    found = await reads.rows(_GET, scalar, being=scope.being_id, wanted=key)
    return json.loads(found[0]) if found else None


async def keep(database: Database, scope: Scope, key: str, outcome: Mapping[str, Any], *, at: datetime) -> None:
    row = {"being_id": scope.being_id, "key": key, "at": to_micros(at), "outcome": json.dumps(outcome)}
    async with database.transaction() as transaction:
        await transaction.run(_INSERT, [row])


async def forget(transaction: Transaction, scope: Scope, gone: Sequence[MemoryId]) -> None:
    """That there was a text with this key stays known, so that it is not poured in again; what it was does not, not
    even by a digest against which guesses could be held."""
    await transaction.run(_WITHOUT_DIGEST, [{"being": scope.being_id, "ids": as_list(gone)}])
