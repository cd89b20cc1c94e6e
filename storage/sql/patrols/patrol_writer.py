"""Changes of a being's memory by a patrol (spec P6)."""

from __future__ import annotations

import json

from sqlalchemy import Text, bindparam, case, func, select

from madeleine.memory.model import RunId, Scope
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.storage.sql.conversations import context
from madeleine.storage.sql.database import dialect, memory_rows
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import (
    first_column_of_row,
    row_of_being_binds,
    update_row_of_being_statement,
)
from madeleine.storage.sql.database.tables import decision_requests_table, memories_table
from madeleine.storage.sql.memories import truth
from madeleine.storage.sql.memories.clusters import delete_clusters, upsert_clusters
from madeleine.storage.sql.memories.index_source import cache_vectors, mark_memories_for_index
from madeleine.storage.sql.memories.storing import insert_and_number_memories
from madeleine.storage.sql.patrols.journal import PatrolStepJournal
from madeleine.storage.sql.patrols.patrol import PatrolReader

_m = memories_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_COUNT_ACTIVE_MEMORIES = select(func.count()).where(_m.being_id == _BEING_ID_BIND, _m.status == "active")
_MEMORY_STATE_COLUMNS = (
    "importance",
    "status",
    "fresh",
    "cluster_id",
    "absorbed_into",
    "reactivation_count",
    "kept_until",
    "may_supersede",
)
_MEMORY_STATE_FIELDS = (*_MEMORY_STATE_COLUMNS, "session_count")
_UPSERT_DECLINED_TOPIC = dialect.upsert_statement(decision_requests_table, "body", "settled_by")
_MARK_DECISION_REQUEST_DECIDED = update_row_of_being_statement(decision_requests_table, "settled_by", "body")
_cycle = memory_rows.sql_patrol_cycle(_BEING_ID_BIND)
_UPDATE_MEMORY_STATE = update_row_of_being_statement(memories_table, *_MEMORY_STATE_COLUMNS).values(
    since=_cycle - bindparam("new_session_count"),
    stopped_at=case((bindparam("new_status", type_=Text) == "active", None), else_=_cycle),
)
_UPDATE_COMPRESSED = update_row_of_being_statement(memories_table, "compressed", "compressed_into")


class PatrolWriter(PatrolReader):
    def __init__(self, transaction: Transaction, scope: Scope) -> None:
        super().__init__(transaction, scope)
        self._transaction = transaction

    async def age_active_memories(self, run: RunId) -> int:
        cycle = await memory_rows.read_patrol_cycle(self._transaction, self._scope)
        await memory_rows.set_patrol_cycle_number(self._transaction, self._scope, cycle + 1)
        await PatrolStepJournal(self._transaction, self._scope, run, "age").journal_cycle_increment(cycle)
        return int((await self._rows(_COUNT_ACTIVE_MEMORIES, first_column_of_row))[0])

    async def apply_changes(self, changes: PatrolChanges, *, run: RunId, step: str) -> None:
        """Before and after are read from the tables: what is journalled is what is there."""
        journal = PatrolStepJournal(self._transaction, self._scope, run, step)
        await journal.capture_values_before_changes(changes)
        if changes.model:
            await cache_vectors(self._transaction, changes.model, changes.vectors)
        await insert_and_number_memories(self._transaction, self._scope, changes.new_memories)
        await context.update_note_rows(self._transaction, self._scope, changes.notes)
        await upsert_clusters(self._transaction, self._scope, changes.clusters)
        await delete_clusters(self._transaction, self._scope, changes.removed_clusters)
        await self._update_memories(changes, run)
        if changes.diary:
            await context.write_diary_entry(self._transaction, self._scope, changes.diary)
        if changes.thoughts:
            await context.write_thoughts_for_next_session(self._transaction, self._scope, changes.thoughts)
        decided = [row_of_being_binds(self._scope, id_, settled_by=run, body={}) for id_ in changes.decided_request_ids]
        await self._transaction.execute_many(_MARK_DECISION_REQUEST_DECIDED, decided)
        declined = (
            {
                **{"id": f"declined:{topic}", "being_id": self._scope.being_id, "topic": topic, "made_at": 0},
                **{"body": json.dumps({"declined": memories}), "settled_by": run},
            }
            for topic, memories in changes.declined.items()
        )
        await self._transaction.execute_many(_UPSERT_DECLINED_TOPIC, declined)
        await mark_memories_for_index(self._transaction, await journal.write_changes(changes))

    async def _update_memories(self, changes: PatrolChanges, run: RunId) -> None:
        states = (row_of_being_binds(self._scope, state.id, state, _MEMORY_STATE_FIELDS) for state in changes.states)
        await self._transaction.execute_many(_UPDATE_MEMORY_STATE, states)
        await memory_rows.update_merge_survivors(self._transaction, self._scope, changes.rewritten_memories)
        compressed = (
            row_of_being_binds(self._scope, id_, compressed=summary is not None, compressed_into=summary)
            for id_, summary in changes.compressed.items()
        )
        await self._transaction.execute_many(_UPDATE_COMPRESSED, compressed)
        await truth.apply_supersessions(self._transaction, self._scope, changes.superseded, run_id=run)
