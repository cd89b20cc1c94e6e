"""Procedural memories in the profile: a key-value table beside the index (spec L1, step 5)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import bindparam, insert, update

from madeleine.memory.model import Memory
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.tables import profile
from madeleine.storage.sql.database.times import to_micros

KIND = "preferences"

_INSERT = insert(profile)
_CHANGE = (
    update(profile)
    .where(profile.c.memory_id == bindparam("target"), profile.c.being_id == bindparam("being"))
    .values(value=bindparam("new_value"), updated_at=bindparam("new_updated_at"))
)


async def add(transaction: Transaction, new: Iterable[Memory]) -> None:
    """Those of `new` that are procedural, each under its id."""
    await transaction.run(
        _INSERT,
        [
            {
                "being_id": memory.being_id,
                "kind": KIND,
                "name": memory.id,
                "value": memory.scene.action,
                "enabled": True,
                "memory_id": memory.id,
                "updated_at": to_micros(memory.created_at),
            }
            for memory in new
            if memory.category == "procedural"
        ],
    )


async def follow(transaction: Transaction, memory: Memory, *, at: datetime) -> None:
    """The memory's text is another now."""
    row = {
        "target": memory.id,
        "being": memory.being_id,
        "new_value": memory.scene.action,
        "new_updated_at": to_micros(at),
    }
    await transaction.run(_CHANGE, [row])
