"""Memories stored, reinforced and changed, each in one transaction with all that follows from it (spec L1, T6).

The outcome of an ingested text is kept by the text's key. A key may be a digest of the text: it is stored as an HMAC
with a secret of the store, so that a row by itself cannot be compared with guessed texts. Whoever has the whole store
has the secret, too.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Text, bindparam, case, func, insert, literal, literal_column, or_, select, union_all, update

from madeleine.memory.errors import InvalidInput, KeyConflict, SourcesForgotten
from madeleine.memory.ingest.ports import CommittedMemories, IdempotencyKeyOutcome, StoreBatch
from madeleine.memory.lessons.values import is_preference
from madeleine.memory.model import ContentHash, EmbeddingModelName, Memory, MemoryChanges, MemoryId, Scope, Vector
from madeleine.memory.profile import ProfileEntry
from madeleine.memory.rules.dynamics.revision import (
    changes_without_unchanged_fields,
    memory_after_changes,
    memory_values_before_change,
)
from madeleine.memory.rules.dynamics.truth import TruthChangeOutcome
from madeleine.storage.sql.administration import (
    read_store_setting,
    record_audit_entries_grouped_by_tool,
    record_audit_entry,
    write_store_setting_once,
)
from madeleine.storage.sql.database import dialect, tables
from madeleine.storage.sql.database.engine import SqlRowReader, Transaction, mark_query_as_runnable_on_event_loop
from madeleine.storage.sql.database.mapping import (
    RowMapper,
    first_column_of_row,
    first_two_columns_of_row,
    microseconds_from_moment,
    row_of_being_binds,
    update_row_of_being_statement,
)
from madeleine.storage.sql.database.memory_rows import MEMORY_IS_IN_BOUND_PROJECT, row_from_memory, sql_patrol_cycle
from madeleine.storage.sql.memories import truth
from madeleine.storage.sql.memories.clusters import recompute_cluster_vectors
from madeleine.storage.sql.memories.graph_extraction import mark_for_graph_extraction
from madeleine.storage.sql.memories.index_source import cache_vectors, delete_orphaned_vectors, mark_memories_for_index
from madeleine.storage.sql.memories.lessons import insert_lessons
from madeleine.storage.sql.memories.reading import MemoryReadRepository, memories_with_ids
from madeleine.storage.sql.memories.reinforcing import reinforce_memories
from madeleine.storage.sql.memories.versions import current_version_id_by_memory_id
from madeleine.storage.sql.moving.added_rows import record_memories_added_by_import
from madeleine.storage.sql.tables.conversations import message_memories_table, messages_table

INGEST_DIGEST_SECRET_SETTING = "ingested_secret"
"""In the store's settings: 32 random bytes in hexadecimal digits, made with the first outcome."""

_i, _m, _r = tables.ingest_outcomes_table.c, tables.memories_table.c, tables.reinforcements_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_IS_OF_BOUND_BEING = dialect.without_index_use(_m.being_id) == _BEING_ID_BIND

_SELECT_MEMORY_IDS_BY_CONTENT_HASH = mark_query_as_runnable_on_event_loop(
    select(_m.id)
    .where(
        _m.content_hash == bindparam("hash"),
        _IS_OF_BOUND_BEING,
        MEMORY_IS_IN_BOUND_PROJECT,
        or_(_m.status != "dead", _m.truth != "current", _m.absorbed_into.is_not(None)),
    )
    .order_by(or_(_m.status == "dead", _m.truth != "current"), _m.seq)
    .limit(5)
)
_SELECT_NEXT_TURN_NUMBERS = mark_query_as_runnable_on_event_loop(
    select(_m.session_id, func.max(_m.turn) + 1)
    .where(
        _m.being_id == _BEING_ID_BIND,
        _m.session_id != literal_column("''"),
        dialect.in_bound_list_condition(_m.session_id, "sessions"),
    )
    .group_by(_m.session_id)
)
_earliest = tables.revisions_table.alias("earliest")
_ORIGINAL_TEXT = (
    select(_earliest.c.text)
    .where(_earliest.c.memory_id == _m.id, _earliest.c.text.is_not(None))
    .order_by(_earliest.c.seq)
    .limit(1)
    .scalar_subquery()
)
"""The text as it was stored, of a memory whose text was changed since: its key stands for that text."""
_SELECT_IDEMPOTENCY_KEY_OUTCOMES = mark_query_as_runnable_on_event_loop(
    union_all(
        select(_m.key, _m.id, func.coalesce(_ORIGINAL_TEXT, _m.action), literal("stored")).where(
            _m.being_id == _BEING_ID_BIND, dialect.in_bound_list_condition(_m.key, "keys")
        ),
        select(_r.key, _r.memory_id, _r.text, literal("reinforced")).where(
            _r.being_id == _BEING_ID_BIND, dialect.in_bound_list_condition(_r.key, "keys")
        ),
    )
)
_INSERTED_MEMORY_COLUMNS = [column.name for column in _m if column.name not in ("seq", "since", "stopped_at")]
_cycle = sql_patrol_cycle(bindparam("new_being_id"))
INSERT_MEMORY = insert(tables.memories_table).values(
    {name: bindparam(f"new_{name}") for name in _INSERTED_MEMORY_COLUMNS}
    | {
        "since": _cycle - bindparam("new_session_count"),
        "stopped_at": case((bindparam("new_status", type_=Text) == "active", None), else_=_cycle),
    }
)
_ADD_TO_LAST_MEMORY_NUMBER = dialect.upsert_statement(
    tables.last_memory_numbers_table,
    last=tables.last_memory_numbers_table.c.last
    + dialect.columns_of_row_proposed_for_insertion(tables.last_memory_numbers_table).last,
)
_SELECT_LAST_MEMORY_NUMBER = select(tables.last_memory_numbers_table.c.last).where(
    tables.last_memory_numbers_table.c.being_id == _BEING_ID_BIND
)
_PROFILE_ENTRY_ROW_MAPPER = RowMapper(ProfileEntry, tables.profile_entries_table)
_INSERT_PREFERENCE = insert(tables.profile_entries_table)
_UPDATE_PREFERENCE = update_row_of_being_statement(tables.profile_entries_table, "value", "updated_at", key="memory_id")
_SELECT_EXISTING_SOURCE_MESSAGE_IDS = select(messages_table.c.id).where(
    dialect.in_bound_list_condition(messages_table.c.id, "ids"),
    dialect.without_index_use(messages_table.c.being_id) == _BEING_ID_BIND,
)
_INSERT_MESSAGE_MEMORY_LINK = dialect.insert_if_missing_statement(message_memories_table).from_select(
    ["message_id", "memory_id"],
    select(messages_table.c.id, _m.id)
    .join_from(
        messages_table,
        tables.memories_table,
        dialect.without_index_use(messages_table.c.being_id) == dialect.without_index_use(_m.being_id),
    )
    .where(messages_table.c.id == bindparam("message"), _m.id == bindparam("memory"), _IS_OF_BOUND_BEING),
)
_COLUMNS_CHANGED_BY_MEMORY_UPDATE = (
    "action", "importance", "themes", "pinned", "fresh", "cluster_id", "content_hash", "folded", "folded_themes",
    "resembles", "may_supersede", "when_", "happened_at", "span_start", "span_end", "announced_start",
    "announced_end", "kept_until",
)  # fmt: skip
_UPDATE_CHANGED_MEMORY = update_row_of_being_statement(tables.memories_table, *_COLUMNS_CHANGED_BY_MEMORY_UPDATE)
_CLEAR_RESEMBLES_POINTERS_TO_MEMORY = (
    update(tables.memories_table).where(_IS_OF_BOUND_BEING, _m.resembles == bindparam("target")).values(resembles=None)
)
_REVISION_ROW_MAPPER = RowMapper(MemoryChanges, tables.revisions_table)
_INSERT_REVISION = insert(tables.revisions_table)
_SELECT_INGEST_OUTCOME = select(_i.outcome).where(_i.being_id == _BEING_ID_BIND, _i.key == bindparam("keyed_digest"))
_INSERT_INGEST_OUTCOME = dialect.insert_if_missing_statement(tables.ingest_outcomes_table)
_chunk = dialect.json_list_item_rows(dialect.sql_json_field(_i.outcome, "chunks"))
_REMOVE_INGEST_DIGESTS = (
    update(tables.ingest_outcomes_table)
    .where(
        _i.being_id == _BEING_ID_BIND,
        select(_chunk.c.value)
        .where(dialect.in_bound_list_condition(dialect.sql_json_field(_chunk.c.value, "id"), "ids"))
        .exists(),
    )
    .values(outcome=dialect.sql_json_without_field(_i.outcome, "digest"))
)


async def read_idempotency_key_outcomes(
    reads: SqlRowReader, scope: Scope, keys: Sequence[str]
) -> dict[str, IdempotencyKeyOutcome]:
    if not keys:
        return {}
    rows = await reads.rows(
        _SELECT_IDEMPOTENCY_KEY_OUTCOMES, tuple, being=scope.being_id, keys=dialect.json_list_bind_value(keys)
    )
    return {key: IdempotencyKeyOutcome(id_, text, status) for key, id_, text, status in rows}


async def insert_and_number_memories(transaction: Transaction, scope: Scope, new: Sequence[Memory]) -> list[Memory]:
    """Insert memories with a pending index mark for each, preferences in the profile, and an entry in the audit.
    Returns them with their numbers."""
    if any(memory.being_id != scope.being_id for memory in new):
        raise InvalidInput("A memory can only be stored for the being that the connection serves.")
    new = await _assign_memory_numbers(transaction, scope, new)
    await transaction.execute_many(
        INSERT_MEMORY, [{f"new_{name}": value for name, value in row_from_memory(memory).items()} for memory in new]
    )
    await mark_memories_for_index(transaction, [memory.id for memory in new])
    preferences = [_profile_entry_of_preference(memory) for memory in new if is_preference(memory)]
    await transaction.execute_many(
        _INSERT_PREFERENCE, [_PROFILE_ENTRY_ROW_MAPPER.to_row(entry, being_id=scope.being_id) for entry in preferences]
    )
    stored = [(memory.provenance.tool, memory.id, memory.created_at) for memory in new]
    await record_audit_entries_grouped_by_tool(transaction, scope, "store", stored)
    return new


async def _assign_memory_numbers(transaction: Transaction, scope: Scope, new: Sequence[Memory]) -> list[Memory]:
    if not new:
        return []
    await transaction.execute_many(_ADD_TO_LAST_MEMORY_NUMBER, [{"being_id": scope.being_id, "last": len(new)}])
    [last] = await transaction.rows(_SELECT_LAST_MEMORY_NUMBER, first_column_of_row, being=scope.being_id)
    return [replace(memory, number=number) for number, memory in enumerate(new, start=last - len(new) + 1)]


def _profile_entry_of_preference(memory: Memory) -> ProfileEntry:
    return ProfileEntry(
        kind="preferences", name=memory.id, value=memory.scene.action, updated_at=memory.created_at, memory_id=memory.id
    )


async def _refuse_taken_idempotency_keys(transaction: Transaction, scope: Scope, batch: StoreBatch) -> None:
    """Here and not only in the tables' constraints: a key counts for both tables, and the error names it."""
    batch_keys = [*(memory.key for memory in batch.new), *(record.key for record in batch.reinforcements)]
    keys = [key for key in batch_keys if key is not None]
    taken = await read_idempotency_key_outcomes(transaction, scope, keys)
    for position, key in enumerate(keys):
        if key in taken or key in keys[:position]:
            raise KeyConflict(key)


async def _refuse_forgotten_source_messages(transaction: Transaction, scope: Scope, batch: StoreBatch) -> None:
    """Here, because a message may be forgotten until the transaction begins, and none is in it."""
    sources = {message for messages in batch.sources.values() for message in messages}
    if not sources:
        return
    binds = {"being": scope.being_id, "ids": dialect.json_list_bind_value(sources)}
    if forgotten := sources - set(
        await transaction.rows(_SELECT_EXISTING_SOURCE_MESSAGE_IDS, first_column_of_row, **binds)
    ):
        raise SourcesForgotten(forgotten)


async def remove_ingest_digests_of_memories(transaction: Transaction, scope: Scope, erased: Sequence[MemoryId]) -> None:
    """Remove the digests of the texts that erased memories came from. Their keys stay: they are not ingested again."""
    await transaction.execute_many(
        _REMOVE_INGEST_DIGESTS, [{"being": scope.being_id, "ids": dialect.json_list_bind_value(erased)}]
    )


def _keyed_digest(secret: str, key: str) -> str:
    return hmac.new(bytes.fromhex(secret), key.encode(), hashlib.sha256).hexdigest()


class MemoryRepository(MemoryReadRepository):
    """`StoreScenesLedger`, `UpdateMemoryLedger`, `RetractionAndUndoLedger` and `IngestLedger`."""

    def version(self) -> int | None:
        return self._database.version()

    async def idempotency_key_outcomes(self, scope: Scope, keys: Sequence[str]) -> dict[str, IdempotencyKeyOutcome]:
        return await read_idempotency_key_outcomes(self._database, scope, keys)

    async def ids_with_content_hash(self, scope: Scope, hash_: ContentHash) -> list[MemoryId]:
        binds = {"hash": hash_, "being": scope.being_id, "project": scope.project}
        return await self._database.rows(_SELECT_MEMORY_IDS_BY_CONTENT_HASH, first_column_of_row, **binds)

    async def current_version_id_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, MemoryId]:
        return await current_version_id_by_memory_id(self._database, scope, ids)

    async def next_turn_numbers(self, scope: Scope, sessions: Sequence[str]) -> dict[str, int]:
        if not (named := {session for session in sessions if session}):
            return {}
        binds = {"being": scope.being_id, "sessions": dialect.json_list_bind_value(named)}
        turns = await self._database.rows(_SELECT_NEXT_TURN_NUMBERS, first_two_columns_of_row, **binds)
        return dict.fromkeys(named, 0) | dict(turns)

    async def commit_store_batch(self, scope: Scope, batch: StoreBatch) -> CommittedMemories:
        async with self._database.transaction(needs_index_space=True) as transaction:
            # Vectors first: a write begins the transaction by itself, a read with a statement of its own.
            await cache_vectors(transaction, batch.model, batch.vectors)
            await _refuse_taken_idempotency_keys(transaction, scope, batch)
            await _refuse_forgotten_source_messages(transaction, scope, batch)
            new = await insert_and_number_memories(transaction, scope, batch.new)
            added = await reinforce_memories(transaction, scope, batch.reinforcements)
            if batch.import_id:
                await record_memories_added_by_import(transaction, scope, batch, added)
            await insert_lessons(transaction, scope, batch.lessons)
            links = [(memory, message) for memory, messages in batch.sources.items() for message in messages]
            await transaction.execute_many(
                _INSERT_MESSAGE_MEMORY_LINK,
                [{"being": scope.being_id, "memory": memory, "message": message} for memory, message in links],
            )
            changed = (
                await truth.apply_supersessions(transaction, scope, batch.supersessions) if batch.supersessions else []
            )
            return CommittedMemories(new, changed)

    async def retract(
        self, scope: Scope, memory_id: MemoryId, reason: str, *, at: datetime
    ) -> TruthChangeOutcome | None:
        async with self._database.transaction() as transaction:
            return await truth.retract_memory(transaction, scope, memory_id, reason, at=at, tool="update_memory")

    async def undo_last_truth_change(
        self, scope: Scope, memory_id: MemoryId, *, at: datetime
    ) -> TruthChangeOutcome | None:
        async with self._database.transaction() as transaction:
            return await truth.undo_last_truth_change(transaction, scope, memory_id, at=at, tool="update_memory")

    async def change_memory(
        self,
        scope: Scope,
        memory_id: MemoryId,
        changes: MemoryChanges,
        *,
        at: datetime,
        model: EmbeddingModelName,
        vectors: Mapping[ContentHash, Vector],
    ) -> tuple[Memory, MemoryChanges] | None:
        async with self._database.transaction() as transaction:
            known = await memories_with_ids(transaction, scope, [memory_id])
            if not known:
                return None
            [old] = known
            done = changes_without_unchanged_fields(old, changes)
            if done == MemoryChanges():
                return old, done
            new = memory_after_changes(old, done)
            await cache_vectors(transaction, model, {h: v for h, v in vectors.items() if h == new.content_hash})
            row = row_from_memory(new)
            columns = {name: row[name] for name in _COLUMNS_CHANGED_BY_MEMORY_UPDATE}
            await transaction.execute_many(_UPDATE_CHANGED_MEMORY, [row_of_being_binds(scope, new.id, **columns)])
            before = memory_values_before_change(old, done, at=at, client=scope.client)
            provenance = {
                "memory_id": old.id,
                "being_id": scope.being_id,
                "at": microseconds_from_moment(at),
                "client": scope.client,
            }
            await transaction.execute_many(_INSERT_REVISION, [_REVISION_ROW_MAPPER.to_row(before.before, **provenance)])
            if new.content_hash != old.content_hash:
                await delete_orphaned_vectors(transaction, [old.content_hash])
                await recompute_cluster_vectors(transaction, scope, [old.cluster_id] if old.cluster_id else [])
                await transaction.execute_many(
                    _CLEAR_RESEMBLES_POINTERS_TO_MEMORY, [{"target": new.id, "being": scope.being_id}]
                )
                preference = row_of_being_binds(scope, new.id, value=new.scene.action, updated_at=at)
                await transaction.execute_many(_UPDATE_PREFERENCE, [preference])
            await mark_memories_for_index(transaction, [new.id])
            await mark_for_graph_extraction(transaction, [new.id])
            await record_audit_entry(transaction, scope, "update", at, tool="update_memory", ids=[new.id])
            return new, done

    async def earlier_ingest_outcome(self, scope: Scope, key: str) -> dict[str, Any] | None:
        secret: str | None = await read_store_setting(self._database, INGEST_DIGEST_SECRET_SETTING)
        if secret is None:
            return None
        binds = {"being": scope.being_id, "keyed_digest": _keyed_digest(secret, key)}
        outcomes = await self._database.rows(_SELECT_INGEST_OUTCOME, first_column_of_row, **binds)
        return json.loads(outcomes[0]) if outcomes else None

    async def record_ingest_outcome(self, scope: Scope, key: str, outcome: Mapping[str, Any], *, at: datetime) -> None:
        async with self._database.transaction() as transaction:
            secret = await write_store_setting_once(transaction, INGEST_DIGEST_SECRET_SETTING, secrets.token_hex(32))
            row = {"being_id": scope.being_id, "key": _keyed_digest(secret, key), "at": microseconds_from_moment(at)}
            await transaction.execute_many(_INSERT_INGEST_OUTCOME, [row | {"outcome": json.dumps(outcome)}])
