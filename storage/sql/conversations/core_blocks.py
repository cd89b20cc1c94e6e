"""Core blocks (spec O12)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import bindparam, delete, func, insert, select

from madeleine.memory.core_blocks.values import CoreBlock
from madeleine.memory.model import Scope
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.database.engine import DatabaseRepository, SqlRowReader
from madeleine.storage.sql.database.mapping import RowMapper, first_column_of_row
from madeleine.storage.sql.erasing.scrub_marks import mark_files_for_scrub
from madeleine.storage.sql.tables.core_blocks import core_blocks_table

_b = core_blocks_table.c
_BEING_ID_BIND, _CORE_BLOCK_NAME_BIND = (
    bindparam("being", type_=_b.being_id.type),
    bindparam("block", type_=_b.name.type),
)
_CORE_BLOCK_ROW_MAPPER = RowMapper(CoreBlock, core_blocks_table)
_newer = core_blocks_table.alias("newer")
_SELECT_CURRENT_CORE_BLOCKS = (
    select(*_CORE_BLOCK_ROW_MAPPER.columns)
    .where(
        _b.being_id == _BEING_ID_BIND,
        ~select(_newer.c.version)
        .where(_newer.c.being_id == _b.being_id, _newer.c.name == _b.name, _newer.c.version > _b.version)
        .exists(),
    )
    .order_by(_b.name)
)
_SELECT_CORE_BLOCK_VERSIONS = (
    select(*_CORE_BLOCK_ROW_MAPPER.columns)
    .where(_b.being_id == _BEING_ID_BIND, _b.name == _CORE_BLOCK_NAME_BIND)
    .order_by(_b.version)
)
_SELECT_LAST_CORE_BLOCK_VERSION_NUMBER = select(func.coalesce(func.max(_b.version), 0)).where(
    _b.being_id == _BEING_ID_BIND, _b.name == _CORE_BLOCK_NAME_BIND
)
_INSERT_CORE_BLOCK_VERSION = insert(core_blocks_table)
_DELETE_CORE_BLOCK_VERSIONS = delete(core_blocks_table).where(
    _b.being_id == _BEING_ID_BIND, _b.name == _CORE_BLOCK_NAME_BIND
)


async def read_core_blocks(reads: SqlRowReader, scope: Scope) -> list[CoreBlock]:
    """As `CoreBlockReader.core_blocks`."""
    return await reads.rows(_SELECT_CURRENT_CORE_BLOCKS, _CORE_BLOCK_ROW_MAPPER.from_row, being=scope.being_id)


class CoreBlockRepository(DatabaseRepository):
    """`CoreBlockLedger`."""

    async def core_blocks(self, scope: Scope) -> list[CoreBlock]:
        return await read_core_blocks(self._database, scope)

    async def core_block_versions(self, scope: Scope, name: str) -> list[CoreBlock]:
        return await self._database.rows(
            _SELECT_CORE_BLOCK_VERSIONS, _CORE_BLOCK_ROW_MAPPER.from_row, being=scope.being_id, block=name
        )

    async def write_core_block_if_next_version(self, scope: Scope, block: CoreBlock) -> bool:
        async with self._database.transaction() as transaction:
            binds = {"being": scope.being_id, "block": block.name}
            [last] = await transaction.rows(_SELECT_LAST_CORE_BLOCK_VERSION_NUMBER, first_column_of_row, **binds)
            if last != block.version - 1:
                return False
            await transaction.execute_many(
                _INSERT_CORE_BLOCK_VERSION, [_CORE_BLOCK_ROW_MAPPER.to_row(block, being_id=scope.being_id)]
            )
            await record_audit_entry(
                transaction, scope, "profile", block.written_at, tool="edit_core_memory", ids=[block.id]
            )
            return True

    async def erase_core_block(self, scope: Scope, name: str, *, at: datetime) -> int:
        async with self._database.transaction() as transaction:
            binds = {"being": scope.being_id, "block": name}
            versions = await transaction.rows(_SELECT_CORE_BLOCK_VERSIONS, _CORE_BLOCK_ROW_MAPPER.from_row, **binds)
            if versions:
                await transaction.execute_many(_DELETE_CORE_BLOCK_VERSIONS, [binds])
                await mark_files_for_scrub(transaction)
                await record_audit_entry(
                    transaction, scope, "forget", at, tool="edit_core_memory", ids=[versions[-1].id]
                )
            return len(versions)
