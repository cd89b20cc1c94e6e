"""Vectors by (model, content hash): embedding is never done twice, and a lost index is rebuilt from here."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from sqlalchemy import bindparam, delete, exists, select

from madeleine.memory.model import ContentHash, ModelName, Vector
from madeleine.storage.sql.database.dialect import among, as_list, insert_missing
from madeleine.storage.sql.database.engine import Database, Reads, Row, Transaction
from madeleine.storage.sql.database.mapping import to_bytes, to_vector
from madeleine.storage.sql.database.tables import embeddings, memories
from madeleine.storage.sql.memories import pending

_e = embeddings.c
_BY_HASHES = select(_e.content_hash, _e.vector).where(_e.model == bindparam("model"), among(_e.content_hash, "hashes"))
_INSERT = insert_missing(embeddings)
_DELETE_ORPHANS = delete(embeddings).where(
    among(_e.content_hash, "hashes"), ~exists().where(memories.c.content_hash == _e.content_hash)
)


async def by_hashes(reads: Reads, model: ModelName, hashes: Sequence[ContentHash]) -> dict[ContentHash, Vector]:
    if not hashes:
        return {}
    return dict(await reads.rows(_BY_HASHES, _to_entry, model=model, hashes=as_list(hashes)))


def _to_entry(row: Row) -> tuple[ContentHash, Vector]:
    return row[0], to_vector(row[1])


async def insert(transaction: Transaction, model: ModelName, vectors: Mapping[ContentHash, Vector]) -> None:
    now = time.time_ns() // 1000
    await transaction.run(
        _INSERT,
        [
            {"model": model, "content_hash": hash_, "vector": to_bytes(vector), "created_at": now}
            for hash_, vector in vectors.items()
        ],
    )


async def add(database: Database, model: ModelName, vectors: Mapping[ContentHash, Vector]) -> None:
    """In one transaction with the marks, for a memory whose vector is known is not looked at again."""
    if vectors:
        async with database.transaction(grows=True) as transaction:
            await insert(transaction, model, vectors)
            await pending.mark_texts(transaction, list(vectors))


async def remove_orphans(transaction: Transaction, hashes: Sequence[ContentHash]) -> None:
    """Vectors, of any model, of those texts that no memory has any more."""
    await transaction.run(_DELETE_ORPHANS, [{"hashes": as_list(hashes)}])
