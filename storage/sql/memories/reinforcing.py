"""A memory that is told again, and what the retelling has added to it (spec T6)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert

from madeleine.memory.errors import StorageError
from madeleine.memory.model import Memory, Scope
from madeleine.memory.rules.storing.retelling import (
    MemoryRetelling,
    RetellingAdditions,
    additions_of_retelling,
    memory_after_retelling,
    memory_without_retelling,
    retelling_changes_index,
)
from madeleine.storage.sql.administration import record_audit_entries_grouped_by_tool
from madeleine.storage.sql.database import tables
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import RowMapper, row_of_being_binds, update_row_of_being_statement
from madeleine.storage.sql.database.memory_rows import row_from_memory
from madeleine.storage.sql.memories.index_source import mark_memories_for_index
from madeleine.storage.sql.memories.reading import memories_with_ids

_COLUMNS_CHANGED_BY_REINFORCEMENT = (
    "access_count", "last_accessed", "importance", "pinned", "themes", "lesson", "emotions", "emotion", "retold",
    "folded", "folded_themes", "valid_from", "may_supersede",
)  # fmt: skip
_UPDATE_REINFORCED_MEMORY = update_row_of_being_statement(tables.memories_table, *_COLUMNS_CHANGED_BY_REINFORCEMENT)
_REINFORCEMENT_ROW_MAPPER = RowMapper(MemoryRetelling, tables.reinforcements_table)
_INSERT_REINFORCEMENT = insert(tables.reinforcements_table)


async def reinforce_memories(
    transaction: Transaction, scope: Scope, batch: Sequence[MemoryRetelling]
) -> list[RetellingAdditions]:
    """What each reinforcement has added to its memory."""
    added: list[RetellingAdditions] = []
    if not batch:
        return added
    known = await memories_with_ids(transaction, scope, [reinforcement.memory_id for reinforcement in batch])
    memories_now = {memory.id: memory for memory in known}
    for reinforcement in batch:
        id_ = reinforcement.memory_id
        if id_ not in memories_now:
            raise StorageError(f"There is no memory {id_} to reinforce. Nothing was stored: store it anew.")
        before = memories_now[id_]
        memories_now[id_] = memory_after_retelling(before, reinforcement)
        added.append(additions_of_retelling(before, memories_now[id_]))
    rows = [row_from_memory(memory) for memory in memories_now.values()]
    binds = [
        row_of_being_binds(scope, row["id"], **{name: row[name] for name in _COLUMNS_CHANGED_BY_REINFORCEMENT})
        for row in rows
    ]
    await transaction.execute_many(_UPDATE_REINFORCED_MEMORY, binds)
    changed_ids = [memory.id for memory in known if retelling_changes_index(memory, memories_now[memory.id])]
    await mark_memories_for_index(transaction, changed_ids)
    await transaction.execute_many(
        _INSERT_REINFORCEMENT, [_REINFORCEMENT_ROW_MAPPER.to_row(record, being_id=scope.being_id) for record in batch]
    )
    reinforced = [(record.tool, record.memory_id, record.at) for record in batch]
    await record_audit_entries_grouped_by_tool(transaction, scope, "reinforce", reinforced)
    return added


async def remove_reinforcement_additions(
    transaction: Transaction, scope: Scope, memory: Memory, added: Sequence[RetellingAdditions]
) -> None:
    """Without the rows of the reinforcements, which the caller deletes."""
    before = memory
    for addition in added:
        memory = memory_without_retelling(memory, addition)
    row = row_from_memory(memory)
    binds = row_of_being_binds(scope, memory.id, **{name: row[name] for name in _COLUMNS_CHANGED_BY_REINFORCEMENT})
    await transaction.execute_many(_UPDATE_REINFORCED_MEMORY, [binds])
    if retelling_changes_index(before, memory):
        await mark_memories_for_index(transaction, [memory.id])
