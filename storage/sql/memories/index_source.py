"""What keeps the index equal to the ledger (design: truth and index): pending marks, and what the index is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, exists, func, select

from madeleine.memory.model import ContentHash, Memory, MemoryId, ModelName, Vector
from madeleine.storage.sql.database.dialect import among, as_list
from madeleine.storage.sql.database.mapping import pair, scalar
from madeleine.storage.sql.database.memory_rows import MEMORY, to_memory
from madeleine.storage.sql.database.tables import embeddings as embeddings_table
from madeleine.storage.sql.database.tables import index_pending
from madeleine.storage.sql.database.tables import memories as table
from madeleine.storage.sql.memories import embeddings, pending
from madeleine.storage.sql.memories.memories import MemoryReads, in_order
from madeleine.storage.sql.operations import settings

_e, _m, _p = embeddings_table.c, table.c, index_pending.c
_OLDEST = select(_p.mark, _p.memory_id).order_by(_p.mark).limit(bindparam("limit"))
_LAST = select(func.coalesce(func.max(_p.mark), 0))
_CLEAR = delete(index_pending).where(_p.mark == bindparam("old_mark"))
_CLEAR_OF = delete(index_pending).where(among(_p.memory_id, "ids"), _p.mark <= bindparam("up_to"))
_ANY_BY_IDS = select(*MEMORY).where(among(_m.id, "ids"))
_PAGE = select(*MEMORY).where(_m.id > bindparam("after")).order_by(_m.id).limit(bindparam("limit"))
_COUNT = select(func.count()).select_from(table)
_HELD = select(_m.content_hash).where(among(_m.content_hash, "hashes")).distinct()
_WITHOUT_VECTOR = (
    select(*MEMORY)
    .where(~exists().where(_e.model == bindparam("model"), _e.content_hash == _m.content_hash))
    .order_by(_m.seq)
    .limit(bindparam("limit"))
)


class IndexSourceRepository(MemoryReads):
    """`IndexSource`."""

    async def pending(self, *, limit: int) -> list[tuple[int, MemoryId]]:
        return await self._database.rows(_OLDEST, pair, limit=limit)

    async def clear_marks(self, marks: Sequence[int]) -> None:
        async with self._database.transaction(durable=False) as transaction:
            await transaction.run(_CLEAR, [{"old_mark": mark} for mark in marks])

    async def clear_marks_of(self, ids: Sequence[MemoryId], *, up_to: int) -> None:
        async with self._database.transaction(durable=False) as transaction:
            await transaction.run(_CLEAR_OF, [{"ids": as_list(ids), "up_to": up_to}])

    async def last_mark(self) -> int:
        return int((await self._database.rows(_LAST, scalar))[0])

    async def any_memories(self, ids: Sequence[MemoryId]) -> list[Memory]:
        return in_order(await self._database.rows(_ANY_BY_IDS, to_memory, ids=as_list(ids)), ids)

    async def all_memories(self, *, after: MemoryId | None, limit: int) -> list[Memory]:
        return await self._database.rows(_PAGE, to_memory, after=after or "", limit=limit)

    async def count_memories(self) -> int:
        return int((await self._database.rows(_COUNT, scalar))[0])

    async def add_missing_vectors(self, model: ModelName, vectors: Mapping[ContentHash, Vector]) -> None:
        """Ignores texts that no memory has: one that was forgotten while it was being embedded leaves no vector."""
        async with self._database.transaction() as transaction:
            held = set(await transaction.rows(_HELD, scalar, hashes=as_list(vectors)))
            missing = {hash_: vector for hash_, vector in vectors.items() if hash_ in held}
            await embeddings.insert(transaction, model, missing)
            await pending.mark_texts(transaction, list(missing))

    async def without_vector(self, model: ModelName, *, limit: int) -> list[Memory]:
        return await self._database.rows(_WITHOUT_VECTOR, to_memory, model=model, limit=limit)

    async def setting(self, name: str) -> Any:
        return await settings.read(self._database, name)

    async def set_setting(self, name: str, value: Any) -> None:
        await settings.write(self._database, name, value)
