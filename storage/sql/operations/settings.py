"""Facts about the store itself, by name, as JSON."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import bindparam, select

from madeleine.storage.sql.database.dialect import insert_missing, insert_or_update
from madeleine.storage.sql.database.engine import Database, Reads, Transaction
from madeleine.storage.sql.database.mapping import scalar
from madeleine.storage.sql.database.tables import settings

_GET = select(settings.c.value).where(settings.c.name == bindparam("wanted"))
_SET_ONCE = insert_missing(settings)
_SET = insert_or_update(settings, "value")


async def read_setting(reads: Reads, name: str) -> Any:
    """None for a name that was never set."""
    found = await reads.rows(_GET, scalar, wanted=name)
    return json.loads(found[0]) if found else None


async def write_setting(database: Database, name: str, value: Any) -> None:
    async with database.transaction() as transaction:
        await transaction.run(_SET, [{"name": name, "value": json.dumps(value, ensure_ascii=False)}])


async def write_setting_once(transaction: Transaction, name: str, value: Any) -> Any:
    """The value that the name has for good: this one, if it has none yet."""
    await transaction.run(_SET_ONCE, [{"name": name, "value": json.dumps(value, ensure_ascii=False)}])
    return await read_setting(transaction, name)
