"""Procedural memories in the profile: a key-value table beside the index (spec L1, step 5)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import insert

from madeleine.memory.model import Memory, Scope
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import own_row_binds, to_micros, update_own_row
from madeleine.storage.sql.database.tables import profile

PREFERENCE_KIND = "preferences"

_INSERT = insert(profile)
_CHANGE = update_own_row(profile, "value", "updated_at", key="memory_id")


async def insert_preferences(transaction: Transaction, new: Iterable[Memory]) -> None:
    """Those of `new` that are procedural, each under its id."""
    await transaction.run(
        _INSERT,
        [
            {
                "being_id": memory.being_id,
                "kind": PREFERENCE_KIND,
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


async def update_preference(transaction: Transaction, memory: Memory, *, at: datetime) -> None:
    """The memory's text is another now."""
    scope = Scope(memory.being_id)
    await transaction.run(_CHANGE, [own_row_binds(scope, memory.id, value=memory.scene.action, updated_at=at)])
