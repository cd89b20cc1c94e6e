"""What came to mind last (spec P5, block 2-B)."""

from __future__ import annotations

from sqlalchemy import bindparam, func, select

from madeleine.memory.model import Memory
from madeleine.memory.scope import Scope
from madeleine.storage.sql.database.engine import Reads
from madeleine.storage.sql.database.rows import MEMORY, to_memory
from madeleine.storage.sql.database.tables import memories

_m = memories.c
_RECENT = (
    select(*MEMORY)
    .where(
        _m.being_id == bindparam("being"),
        _m.last_activated.is_not(None),
        _m.status != "dead",
        _m.compressed.is_(False),
        func.trim(_m.action) != "",
    )
    .order_by(_m.last_activated.desc(), _m.id)
    .limit(bindparam("limit"))
)


async def recently_activated(reads: Reads, scope: Scope, limit: int) -> list[Memory]:
    return await reads.rows(_RECENT, to_memory, being=scope.being_id, limit=limit)
