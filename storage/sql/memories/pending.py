"""Marks of memories that the index has yet to take in (design: truth and index)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert, select

from madeleine.memory.model import ContentHash
from madeleine.storage.sql.database.dialect import among, as_list
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.tables import index_pending, memories

_p = index_pending.c
_MARK = insert(index_pending).from_select(
    ["memory_id"], select(memories.c.id).where(among(memories.c.content_hash, "hashes"))
)
INSERT_MARKS = insert(index_pending)


async def mark_texts(transaction: Transaction, hashes: Sequence[ContentHash]) -> None:
    await transaction.run(_MARK, [{"hashes": as_list(hashes)}])
