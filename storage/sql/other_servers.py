"""What tells each of several servers over one ledger what its own index has still to take in
(spec O10, ADR 69).

The marks stay in the ledger, at most one a memory, and each server remembers the last one that it has taken in: commits
follow each other, so the marks of a later one are greater. The same holds for what was forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, select

from madeleine.memory.model import MemoryId
from madeleine.storage.sql.administration import read_store_setting, write_store_setting
from madeleine.storage.sql.database.dialect import in_bound_list_condition, json_list_bind_value
from madeleine.storage.sql.database.mapping import first_column_of_row, first_two_columns_of_row
from madeleine.storage.sql.database.postgresql import PostgresDatabase
from madeleine.storage.sql.database.tables import index_pending_table, pending_scrub_marks_table
from madeleine.storage.sql.erasing.memories import ErasureRepository
from madeleine.storage.sql.ledger import LedgerRepositories
from madeleine.storage.sql.memories.index_source import IndexingRepository

STORE_SETTING_NAMES_KEPT_PER_SERVER = frozenset(
    (
        *("index_built", "index_second", "collection"),
        *("embedding_model", "embedding_model_wanted", "embedding_model_refused"),
    )
)
"""Facts about its index and its model."""
_TAKEN_IN_SETTING, _SCRUBBED_SETTING, _REWRITTEN_SETTING = "taken_in_mark", "scrubbed_mark", "rewritten_mark"
_p, _f = index_pending_table.c, pending_scrub_marks_table.c
_SELECT_INDEX_MARKS_AFTER = (
    select(_p.mark, _p.memory_id).where(_p.mark > bindparam("after")).order_by(_p.mark).limit(bindparam("limit"))
)
_SELECT_INDEX_MARKS_OF_MEMORIES = select(_p.mark).where(
    in_bound_list_condition(_p.memory_id, "ids"), _p.mark <= bindparam("up_to"), _p.mark > bindparam("after")
)
_later = index_pending_table.alias("later")
_DELETE_REPEATED_INDEX_MARKS = delete(index_pending_table).where(
    in_bound_list_condition(_p.memory_id, "ids"),
    select(_later.c.mark).where(_later.c.memory_id == _p.memory_id, _later.c.mark > _p.mark).exists(),
)
_SELECT_SCRUB_MARKS_AFTER = select(_f.mark, _f.memory_id).where(_f.mark > bindparam("after")).order_by(_f.mark)


def _name_with_server_suffix(name: str, database: PostgresDatabase) -> str:
    return f"{name}@{database.location.server}"


class MultiServerIndexingRepository(IndexingRepository):
    """`IndexingLedger` of one of several servers."""

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        self._shared = database
        self._after: int | None = None
        """All marks up to it are taken in; None before it was read."""
        self._stored_after = 0
        self._taken_in: set[int] = set()
        """Later marks that are taken in, too."""
        self._handed_out: dict[int, MemoryId] = {}

    async def pending_index_marks_with_memory_ids(self, *, limit: int) -> list[tuple[int, MemoryId]]:
        while True:
            after = await self._read_last_completed_index_mark()
            rows: list[tuple[int, MemoryId]] = await self._database.rows(
                _SELECT_INDEX_MARKS_AFTER, first_two_columns_of_row, after=after, limit=limit
            )
            pending = [(mark, id_) for mark, id_ in rows if mark not in self._taken_in]
            first = pending[0][0] if pending else rows[-1][0] + 1 if rows else after + 1
            self._after = max([after, *(mark for mark, _ in rows if mark < first)])
            self._taken_in = {mark for mark in self._taken_in if mark > self._after}
            if pending or len(rows) < limit:
                self._handed_out.update(pending)
                await self._save_last_completed_index_mark()
                return pending

    async def clear_pending_index_marks(self, marks: Sequence[int]) -> None:
        self._taken_in.update(marks)
        ids = {id_ for mark in marks if (id_ := self._handed_out.pop(mark, None))}
        async with self._database.transaction(durable=False) as transaction:
            await transaction.execute_many(_DELETE_REPEATED_INDEX_MARKS, [{"ids": json_list_bind_value(ids)}])
        await self.pending_index_marks_with_memory_ids(limit=1)

    async def clear_pending_index_marks_of_memories(self, ids: Sequence[MemoryId], *, up_to: int) -> None:
        binds = {
            "ids": json_list_bind_value(ids),
            "up_to": up_to,
            "after": await self._read_last_completed_index_mark(),
        }
        self._taken_in.update(await self._database.rows(_SELECT_INDEX_MARKS_OF_MEMORIES, first_column_of_row, **binds))

    async def _read_last_completed_index_mark(self) -> int:
        if self._after is None:
            stored = await read_store_setting(self._database, _name_with_server_suffix(_TAKEN_IN_SETTING, self._shared))
            self._after = self._stored_after = int(stored or 0)
        return self._after

    async def _save_last_completed_index_mark(self) -> None:
        if self._after is not None and self._after > self._stored_after:
            async with self._database.transaction(durable=False) as transaction:
                await write_store_setting(
                    transaction, _name_with_server_suffix(_TAKEN_IN_SETTING, self._shared), self._after
                )
            self._stored_after = self._after

    async def setting(self, name: str) -> Any:
        return await super().setting(self._setting_name_for_this_server(name))

    async def save_store_settings(self, values: Mapping[str, Any]) -> None:
        await super().save_store_settings(
            {self._setting_name_for_this_server(name): value for name, value in values.items()}
        )

    def _setting_name_for_this_server(self, name: str) -> str:
        return _name_with_server_suffix(name, self._shared) if name in STORE_SETTING_NAMES_KEPT_PER_SERVER else name


class MultiServerErasureRepository(ErasureRepository):
    """`ErasedBytesLedger` of one of several servers: each erases what was forgotten from its own index."""

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        self._shared = database

    async def pending_scrub_marks_with_memory_ids(self) -> list[tuple[int, MemoryId]]:
        after = await read_store_setting(self._database, _name_with_server_suffix(_SCRUBBED_SETTING, self._shared))
        return await self._database.rows(_SELECT_SCRUB_MARKS_AFTER, first_two_columns_of_row, after=int(after or 0))

    async def clear_scrub_marks(self, marks: Sequence[int]) -> None:
        async with self._database.transaction() as transaction:
            await write_store_setting(
                transaction, _name_with_server_suffix(_SCRUBBED_SETTING, self._shared), max(marks)
            )

    async def scrub_deleted_bytes(self) -> None:
        """Rewrite the tables, unless another server has done so since the last one was forgotten."""
        pending = await self.pending_scrub_marks_with_memory_ids()
        last = pending[-1][0] if pending else 0
        if last > int(await read_store_setting(self._database, _REWRITTEN_SETTING) or 0):
            await super().scrub_deleted_bytes()
            async with self._database.transaction() as transaction:
                await write_store_setting(transaction, _REWRITTEN_SETTING, last)


def install_multi_server_repositories(ledger: LedgerRepositories) -> None:
    """Give it the repositories of one of several servers."""
    database = ledger.database
    assert isinstance(database, PostgresDatabase)
    ledger.index_source, ledger.erasure = (
        MultiServerIndexingRepository(database),
        MultiServerErasureRepository(database),
    )
