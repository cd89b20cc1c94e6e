"""Summaries and passages that hold the words of what is forgotten (spec L3, ruling 25)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, select, update

from madeleine.memory.model import Memory, MemoryId, Scope
from madeleine.memory.rules.dynamics import mentions
from madeleine.storage.sql.database.dialect import in_bound_list_condition, json_list_bind_value
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import first_two_columns_of_row
from madeleine.storage.sql.database.tables import revisions_table
from madeleine.storage.sql.memories.reading import memories_with_ids, revisions_of_memories_oldest_first

_r = revisions_table.c
_SELECT_EARLIER_TEXTS = select(_r.seq, _r.text).where(
    _r.being_id == bindparam("being", type_=_r.being_id.type),
    in_bound_list_condition(_r.memory_id, "ids"),
    _r.text.is_not(None),
)
_REMOVE_EARLIER_TEXT = update(revisions_table).where(_r.seq == bindparam("revision")).values(text=None)


async def summaries_quoting_erased_memories(
    transaction: Transaction, scope: Scope, erased: Sequence[Memory]
) -> list[Memory]:
    """Summaries that hold the words of an erased memory: they are erased with it, and what else they stand for is
    recalled again until it is summarised anew. A passage names the summary that tells of it as well, and tells what its
    scenes have absorbed. One that held them only before it was corrected stays, without its earlier text."""
    revisions = await revisions_of_memories_oldest_first(transaction, scope, [memory.id for memory in erased])
    texts = [memory.scene.action for memory in erased] + [revision.before.text or "" for revision in revisions]
    known = {memory.id for memory in erased}
    summaries: list[Memory] = []
    memories: Sequence[Memory] = [*erased, *await _survivors_of_memories(transaction, scope, erased)]
    while ids := {memory.compressed_into for memory in memories if memory.compressed_into} - known:
        known |= ids
        memories = await memories_with_ids(transaction, scope, sorted(ids))
        summaries += memories
    quoting = [summary for summary in summaries if mentions.quotes_any_text(summary.scene.action, texts)]
    await _remove_quotes_from_earlier_texts(transaction, scope, summaries, texts)
    return quoting


async def _survivors_of_memories(transaction: Transaction, scope: Scope, memories: Sequence[Memory]) -> list[Memory]:
    """Those that have absorbed them, and those that have absorbed these."""
    survivors: dict[MemoryId, Memory] = {}
    while ids := {memory.absorbed_into for memory in memories if memory.absorbed_into} - survivors.keys():
        memories = await memories_with_ids(transaction, scope, sorted(ids))
        survivors |= {memory.id: memory for memory in memories}
    return list(survivors.values())


async def _remove_quotes_from_earlier_texts(
    transaction: Transaction, scope: Scope, summaries: Sequence[Memory], texts: Sequence[str]
) -> None:
    binds = {"being": scope.being_id, "ids": json_list_bind_value(summary.id for summary in summaries)}
    earlier = await transaction.rows(_SELECT_EARLIER_TEXTS, first_two_columns_of_row, **binds) if summaries else ()
    quoting = [{"revision": seq} for seq, text in earlier if mentions.quotes_any_text(text, texts)]
    await transaction.execute_many(_REMOVE_EARLIER_TEXT, quoting)
