"""What a restored ledger takes over from the one that it replaces: what was forgotten stays forgotten (ruling 25)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import select, true

from madeleine.memory.core_blocks.values import audit_id_of_core_block
from madeleine.memory.model import BeingId, MemoryId, Scope
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.database import tables
from madeleine.storage.sql.database.dialect import insert_if_missing_statement, json_list_item_rows, upsert_statement
from madeleine.storage.sql.ledger import LedgerRepositories
from madeleine.storage.sql.tables.archive import archived_memories_table
from madeleine.storage.sql.tables.conversations import forgotten_keys_table, messages_table
from madeleine.storage.sql.tables.core_blocks import core_blocks_table

RESTORE_CLIENT_NAME = "madeleine restore"
_a, _m, _g = tables.audit_entries_table.c, tables.memories_table.c, messages_table.c
_forgotten = json_list_item_rows(_a.ids)
_SELECT_FORGOTTEN_IDS_WITH_BEINGS = (
    select(_a.being_id, _forgotten.c.value)
    .select_from(tables.audit_entries_table)
    .join(_forgotten, true())
    .where(_a.event == "forget")
    .distinct()
)
_w = archived_memories_table.c
_ID_AND_BEING_COLUMNS = ((_m.id, _m.being_id), (_g.id, _g.being_id), (_w.memory_id, _w.being_id))
_SELECT_IDS_AND_BEINGS_OF_RECORDS = [select(id_, being) for id_, being in _ID_AND_BEING_COLUMNS]
_SELECT_CORE_BLOCK_NAMES_WITH_BEINGS = select(core_blocks_table.c.being_id, core_blocks_table.c.name).distinct()
_TABLES_COPIED_TO_RESTORED_LEDGER = (forgotten_keys_table, tables.ledger_copies_table)
_tokens = tables.bearer_tokens_table
_UPSERT_BEARER_TOKEN = upsert_statement(_tokens, "expires_at", "revoked_at")


class ReplacedToRestoredLedgerTransfer:
    """What is taken from the ledger that is replaced to the restored one, which nobody else has open yet."""

    def __init__(self, replaced: LedgerRepositories, restored: LedgerRepositories) -> None:
        self._replaced = replaced
        self._restored = restored

    async def ids_forgotten_since_backup_by_being(self) -> dict[BeingId, list[MemoryId]]:
        """Ids of memories, messages and core blocks that were forgotten there and are here."""
        forgotten = {id_ for _, id_ in await self._replaced.database.rows(_SELECT_FORGOTTEN_IDS_WITH_BEINGS, tuple)}
        held: dict[BeingId, list[MemoryId]] = {}
        for statement in _SELECT_IDS_AND_BEINGS_OF_RECORDS:
            for id_, being in await self._restored.database.rows(statement, tuple):
                if id_ in forgotten:
                    held.setdefault(BeingId(being), []).append(MemoryId(id_))
        for being, name in await self._core_blocks_erased_since_backup():
            held.setdefault(being, []).append(MemoryId(audit_id_of_core_block(name)))
        return held

    async def _core_blocks_erased_since_backup(self) -> list[tuple[BeingId, str]]:
        """Beings and names of core blocks that were erased there and are here."""
        forgotten = set(await self._replaced.database.rows(_SELECT_FORGOTTEN_IDS_WITH_BEINGS, tuple))
        blocks = await self._restored.database.rows(_SELECT_CORE_BLOCK_NAMES_WITH_BEINGS, tuple)
        return [(BeingId(being), name) for being, name in blocks if (being, audit_id_of_core_block(name)) in forgotten]

    async def forget(self, held: Mapping[BeingId, Sequence[MemoryId]], *, at: datetime) -> None:
        """Erase them, and their bytes."""
        for being, ids in held.items():
            await self._restored.erasure.forget(Scope(being, RESTORE_CLIENT_NAME), ids, at=at)
        for being, name in await self._core_blocks_erased_since_backup():
            await self._restored.core_blocks.erase_core_block(Scope(being, RESTORE_CLIENT_NAME), name, at=at)
        marks = await self._restored.erasure.pending_scrub_marks_with_memory_ids()
        await self._restored.erasure.scrub_deleted_bytes()
        await self._restored.erasure.clear_scrub_marks([mark for mark, _ in marks])

    async def copy_erasure_token_and_backup_records(self, *, at: datetime) -> None:
        """What the replaced one remembers of forgetting, its tokens and their revocation, and its copies."""
        here = set(await self._restored.database.rows(_SELECT_FORGOTTEN_IDS_WITH_BEINGS, tuple))
        missing: dict[str, list[str]] = {}
        for being, id_ in await self._replaced.database.rows(_SELECT_FORGOTTEN_IDS_WITH_BEINGS, tuple):
            if (being, id_) not in here:
                missing.setdefault(being, []).append(id_)
        rows = {
            table: await self._replaced.database.rows(select(*table.c), tuple)
            for table in (*_TABLES_COPIED_TO_RESTORED_LEDGER, _tokens)
        }
        async with self._restored.database.transaction() as transaction:
            for being, ids in missing.items():
                scope = Scope(BeingId(being), RESTORE_CLIENT_NAME)
                await record_audit_entry(transaction, scope, "forget", at, tool=RESTORE_CLIENT_NAME, ids=ids)
            for table in _TABLES_COPIED_TO_RESTORED_LEDGER:
                values = [dict(zip(table.c.keys(), row, strict=True)) for row in rows[table]]
                await transaction.execute_many(insert_if_missing_statement(table), values)
            values = [dict(zip(_tokens.c.keys(), row, strict=True)) for row in rows[_tokens]]
            await transaction.execute_many(_UPSERT_BEARER_TOKEN, values)
