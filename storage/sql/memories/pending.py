"""Marks of memories that the index has yet to take in (design: truth and index)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, delete, func, insert, select

from madeleine.memory.model import ContentHash, MemoryId
from madeleine.storage.sql.database.engine import Database, Reads, Transaction
from madeleine.storage.sql.database.query import among, as_list
from madeleine.storage.sql.database.rows import pair, scalar
from madeleine.storage.sql.database.tables import index_pending, memories

_p = index_pending.c
_OLDEST = select(_p.mark, _p.memory_id).order_by(_p.mark).limit(bindparam("limit"))
_LAST = select(func.coalesce(func.max(_p.mark), 0))
_CLEAR = delete(index_pending).where(_p.mark == bindparam("old_mark"))
_CLEAR_OF = delete(index_pending).where(among(_p.memory_id, "ids"), _p.mark <= bindparam("up_to"))
_MARK = insert(index_pending).from_select(
    ["memory_id"], select(memories.c.id).where(among(memories.c.content_hash, "hashes"))
)
INSERT = insert(index_pending)


async def oldest(reads: Reads, limit: int) -> list[tuple[int, MemoryId]]:
    return await reads.rows(_OLDEST, pair, limit=limit)


async def last(reads: Reads) -> int:
    return int((await reads.rows(_LAST, scalar))[0])


async def clear(database: Database, marks: Sequence[int]) -> None:
    # A mark that a power cut brings back costs one more upsert of the same point; a sync costs every store behind it.
    async with database.transaction(durable=False) as transaction:
        await transaction.run(_CLEAR, [{"old_mark": mark} for mark in marks])


async def clear_of(database: Database, ids: Sequence[MemoryId], up_to: int) -> None:
    async with database.transaction(durable=False) as transaction:
        await transaction.run(_CLEAR_OF, [{"ids": as_list(ids), "up_to": up_to}])


async def mark_texts(transaction: Transaction, hashes: Sequence[ContentHash]) -> None:
    await transaction.run(_MARK, [{"hashes": as_list(hashes)}])
