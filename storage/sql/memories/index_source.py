"""What keeps the index equal to the ledger (design: truth and index): vectors by (model, content hash), so that no text
is embedded twice and a lost index can be rebuilt, and marks of the memories that the index has yet to take in."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, exists, func, insert, literal_column, select, update

from madeleine.memory.embedding import is_model_name_of_piece_vectors
from madeleine.memory.model import ContentHash, EmbeddingModelName, Memory, MemoryId, Vector
from madeleine.storage.sql.administration import read_store_setting, write_store_setting_once, write_store_settings
from madeleine.storage.sql.database.dialect import (
    in_bound_list_condition,
    insert_if_missing_statement,
    json_list_bind_value,
    select_distinct_indexed_values,
    sql_last_sequence_number,
)
from madeleine.storage.sql.database.engine import (
    Database,
    DatabaseRepository,
    SqlRowReader,
    Transaction,
    mark_query_as_runnable_on_event_loop,
)
from madeleine.storage.sql.database.mapping import (
    bytes_from_vector,
    compact_bytes_from_vector,
    first_column_of_row,
    first_two_columns_of_row,
    records_in_order_of_ids,
    vector_from_bytes,
    vector_from_compact_bytes,
)
from madeleine.storage.sql.database.memory_rows import MEMORY_COLUMNS, memory_from_row
from madeleine.storage.sql.database.tables import clusters_table, embeddings_table, index_pending_table, memories_table

_e, _m, _p = embeddings_table.c, memories_table.c, index_pending_table.c
_SELECT_CACHED_VECTORS = mark_query_as_runnable_on_event_loop(
    select(_e.content_hash, _e.vector).where(
        _e.model == bindparam("model"), in_bound_list_condition(_e.content_hash, "hashes")
    )
)
_INSERT_VECTOR = insert_if_missing_statement(embeddings_table)
_DELETE_ORPHANED_VECTORS = delete(embeddings_table).where(
    _e.model.in_(select_distinct_indexed_values(_e.model)),  # else every vector is read
    in_bound_list_condition(_e.content_hash, "hashes"),
    ~exists().where(_m.content_hash == _e.content_hash),
)
_SELECT_HASHES_OF_MODEL = select(_e.content_hash).where(_e.model == bindparam("model")).limit(bindparam("limit"))
_DELETE_VECTORS_OF_MODEL = delete(embeddings_table).where(
    _e.model == bindparam("old_model"), in_bound_list_condition(_e.content_hash, "hashes")
)
_SET_SUCCESSOR_MODEL_OF_CLUSTERS = (
    update(clusters_table).where(clusters_table.c.model == bindparam("old_model")).values(model=bindparam("new_model"))
)
_COUNT_VECTORS_BY_MODEL = (
    select(_e.model, func.count()).where(exists().where(_m.content_hash == _e.content_hash)).group_by(_e.model)
)
_SELECT_ANY_VECTOR_OF_MODEL = (
    select(_e.content_hash)
    .where(_e.model == bindparam("model"), exists().where(_m.content_hash == _e.content_hash))
    .limit(1)
)
_INSERT_INDEX_MARK = insert(index_pending_table)
_MARK_MEMORIES_WITH_HASHES_FOR_INDEX = insert(index_pending_table).from_select(
    ["memory_id"], select(_m.id).where(in_bound_list_condition(_m.content_hash, "hashes"))
)
_SELECT_OLDEST_INDEX_MARKS = select(_p.mark, _p.memory_id).order_by(_p.mark).limit(bindparam("limit"))
_SELECT_LAST_INDEX_MARK = select(func.coalesce(func.max(_p.mark), 0))
_SELECT_LAST_ISSUED_INDEX_MARK = select(
    sql_last_sequence_number(literal_column("'index_pending'"), literal_column("'mark'"))
)
_LEDGER_ID_SETTING = "ledger"
_DELETE_INDEX_MARK = delete(index_pending_table).where(_p.mark == bindparam("old_mark"))
_DELETE_INDEX_MARKS_OF_MEMORIES = delete(index_pending_table).where(
    in_bound_list_condition(_p.memory_id, "ids"), _p.mark <= bindparam("up_to")
)
_SELECT_MEMORIES_OF_ANY_BEING_BY_IDS = select(*MEMORY_COLUMNS).where(in_bound_list_condition(_m.id, "ids"))
_SELECT_MEMORY_PAGE = (
    select(*MEMORY_COLUMNS).where(_m.id > bindparam("after")).order_by(_m.id).limit(bindparam("limit"))
)
_COUNT_MEMORIES = select(func.count()).select_from(memories_table)
_COUNT_MEMORIES_BY_BEING = select(_m.being_id, func.count()).group_by(_m.being_id).order_by(_m.being_id)
_SELECT_HASHES_HELD_BY_MEMORIES = (
    select(_m.content_hash).where(in_bound_list_condition(_m.content_hash, "hashes")).distinct()
)
_SELECT_MEMORIES_WITHOUT_VECTOR = (
    select(*MEMORY_COLUMNS)
    .where(~exists().where(_e.model == bindparam("model"), _e.content_hash == _m.content_hash))
    .order_by(_m.seq)
    .limit(bindparam("limit"))
)


async def cached_vectors_by_hash(
    reads: SqlRowReader, model: EmbeddingModelName, hashes: Sequence[ContentHash]
) -> dict[ContentHash, Vector]:
    if not hashes:
        return {}
    decode = vector_from_compact_bytes if is_model_name_of_piece_vectors(model) else vector_from_bytes
    rows = await reads.rows(
        _SELECT_CACHED_VECTORS, first_two_columns_of_row, model=model, hashes=json_list_bind_value(hashes)
    )
    return {hash_: decode(stored) for hash_, stored in rows}


async def cache_vectors(
    transaction: Transaction, model: EmbeddingModelName, vectors: Mapping[ContentHash, Vector]
) -> None:
    fixed = {"model": model, "created_at": time.time_ns() // 1000}
    encode = compact_bytes_from_vector if is_model_name_of_piece_vectors(model) else bytes_from_vector
    rows = [fixed | {"content_hash": hash_, "vector": encode(vector)} for hash_, vector in vectors.items()]
    await transaction.execute_many(_INSERT_VECTOR, rows)


async def cache_vectors_and_mark_for_indexing(
    database: Database, model: EmbeddingModelName, vectors: Mapping[ContentHash, Vector]
) -> None:
    """In one transaction, because a memory whose vector is cached is not looked at again."""
    if vectors:
        async with database.transaction(needs_index_space=True) as transaction:
            await cache_vectors(transaction, model, vectors)
            await transaction.execute_many(
                _MARK_MEMORIES_WITH_HASHES_FOR_INDEX, [{"hashes": json_list_bind_value(vectors)}]
            )


async def delete_orphaned_vectors(transaction: Transaction, hashes: Sequence[ContentHash]) -> None:
    """Delete the vectors, of any model, of those texts that no memory has any more."""
    await transaction.execute_many(_DELETE_ORPHANED_VECTORS, [{"hashes": json_list_bind_value(hashes)}])


async def mark_memories_for_index(transaction: Transaction, ids: Iterable[str]) -> None:
    await transaction.execute_many(_INSERT_INDEX_MARK, [{"memory_id": id_} for id_ in ids])


class VectorRepository(DatabaseRepository):
    """Cached vectors, which nearly every use case reads."""

    async def cached_vectors_by_hash(
        self, model: EmbeddingModelName, hashes: Sequence[ContentHash]
    ) -> dict[ContentHash, Vector]:
        return await cached_vectors_by_hash(self._database, model, hashes)


class IndexingRepository(VectorRepository):
    """`IndexingLedger`."""

    async def pending_index_marks_with_memory_ids(self, *, limit: int) -> list[tuple[int, MemoryId]]:
        return await self._database.rows(_SELECT_OLDEST_INDEX_MARKS, first_two_columns_of_row, limit=limit)

    async def clear_pending_index_marks(self, marks: Sequence[int]) -> None:
        async with self._database.transaction(durable=False) as transaction:
            await transaction.execute_many(_DELETE_INDEX_MARK, [{"old_mark": mark} for mark in marks])

    async def clear_pending_index_marks_of_memories(self, ids: Sequence[MemoryId], *, up_to: int) -> None:
        async with self._database.transaction(durable=False) as transaction:
            await transaction.execute_many(
                _DELETE_INDEX_MARKS_OF_MEMORIES, [{"ids": json_list_bind_value(ids), "up_to": up_to}]
            )

    async def last_index_mark(self) -> int:
        return int((await self._database.rows(_SELECT_LAST_INDEX_MARK, first_column_of_row))[0])

    async def memories_of_any_being(self, ids: Sequence[MemoryId]) -> list[Memory]:
        found = await self._database.rows(
            _SELECT_MEMORIES_OF_ANY_BEING_BY_IDS, memory_from_row, ids=json_list_bind_value(ids)
        )
        return records_in_order_of_ids(ids, found)

    async def memories_after_id(self, *, after: MemoryId | None, limit: int) -> list[Memory]:
        return await self._database.rows(_SELECT_MEMORY_PAGE, memory_from_row, after=after or "", limit=limit)

    async def count_memories(self) -> int:
        return int((await self._database.rows(_COUNT_MEMORIES, first_column_of_row))[0])

    async def count_memories_by_being(self) -> dict[str, int]:
        return dict(await self._database.rows(_COUNT_MEMORIES_BY_BEING, first_two_columns_of_row))

    async def cache_vectors_of_texts_in_memories(
        self, model: EmbeddingModelName, vectors: Mapping[ContentHash, Vector], *, mark: bool = True
    ) -> None:
        """Ignores texts that no memory has: one that was forgotten while it was being embedded leaves no vector."""
        async with self._database.transaction() as transaction:
            known = set(
                await transaction.rows(
                    _SELECT_HASHES_HELD_BY_MEMORIES, first_column_of_row, hashes=json_list_bind_value(vectors)
                )
            )
            missing = {hash_: vector for hash_, vector in vectors.items() if hash_ in known}
            await cache_vectors(transaction, model, missing)
            if mark:
                told = [hash_ for hash_, vector in missing.items() if vector.size]
                await transaction.execute_many(
                    _MARK_MEMORIES_WITH_HASHES_FOR_INDEX, [{"hashes": json_list_bind_value(told)}]
                )

    async def memories_not_embedded_by_model(self, model: EmbeddingModelName, *, limit: int) -> list[Memory]:
        return await self._database.rows(_SELECT_MEMORIES_WITHOUT_VECTOR, memory_from_row, model=model, limit=limit)

    async def drop_vectors_of_replaced_model(
        self, model: EmbeddingModelName, *, successor: EmbeddingModelName, limit: int
    ) -> int:
        hashes = await self._database.rows(_SELECT_HASHES_OF_MODEL, first_column_of_row, model=model, limit=limit)
        if hashes:
            async with self._database.transaction() as transaction:
                await transaction.execute_many(
                    _SET_SUCCESSOR_MODEL_OF_CLUSTERS, [{"old_model": model, "new_model": successor}]
                )
                await transaction.execute_many(
                    _DELETE_VECTORS_OF_MODEL, [{"old_model": model, "hashes": json_list_bind_value(hashes)}]
                )
        return len(hashes)

    async def drop_vectors_except_of_models(self, models: Sequence[EmbeddingModelName], *, at_once: int) -> None:
        """Drop the cached vectors of all other models, in transactions of so many."""
        for model in (name for name in await self.count_vectors_by_model() if name not in models):
            while hashes := await self._database.rows(
                _SELECT_HASHES_OF_MODEL, first_column_of_row, model=model, limit=at_once
            ):
                async with self._database.transaction() as transaction:
                    await transaction.execute_many(
                        _DELETE_VECTORS_OF_MODEL, [{"old_model": model, "hashes": json_list_bind_value(hashes)}]
                    )

    async def count_vectors_by_model(self) -> dict[EmbeddingModelName, int]:
        """Of memories' texts, by the model that made them."""
        return dict(await self._database.rows(_COUNT_VECTORS_BY_MODEL, first_two_columns_of_row))

    async def has_vectors_of_model(self, model: EmbeddingModelName) -> bool:
        """Whether the model has embedded any memory's text."""
        return bool(await self._database.rows(_SELECT_ANY_VECTOR_OF_MODEL, first_column_of_row, model=model))

    async def ledger_id_and_last_issued_index_mark(self) -> tuple[str, int]:
        """The ledger's id, made at the first call, and the number of the last index mark, worked off or not."""
        id_ = await self.setting(_LEDGER_ID_SETTING)
        if id_ is None:
            async with self._database.transaction() as transaction:
                id_ = await write_store_setting_once(transaction, _LEDGER_ID_SETTING, uuid.uuid4().hex)
        return str(id_), int((await self._database.rows(_SELECT_LAST_ISSUED_INDEX_MARK, first_column_of_row))[0])

    async def setting(self, name: str) -> Any:
        return await read_store_setting(self._database, name)

    async def set_setting(self, name: str, value: Any) -> None:
        await self.save_store_settings({name: value})

    async def save_store_settings(self, values: Mapping[str, Any]) -> None:
        """All in one transaction."""
        await write_store_settings(self._database, values)
