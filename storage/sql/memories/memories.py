"""Memories by id, and storing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import bindparam, case, func, insert, literal, literal_column, select, union_all

from madeleine.memory.chat import MessageId
from madeleine.memory.errors import InvalidInput, KeyConflict, StorageError
from madeleine.memory.ingest.ports import KeyOutcome, Reinforcement, StoreBatch
from madeleine.memory.model import ContentHash, Memory, MemoryId, Scope
from madeleine.memory.text.normalization import fold
from madeleine.storage.sql.database.dialect import among, as_list, insert_missing, unindexed
from madeleine.storage.sql.database.engine import Reads, Row, Transaction
from madeleine.storage.sql.database.mapping import (
    Mapped,
    decode_texts,
    in_order_of,
    own_row_binds,
    pair,
    scalar,
    to_micros,
    update_own_row,
)
from madeleine.storage.sql.database.memory_rows import MEMORY, fold_themes, from_memory, to_memory
from madeleine.storage.sql.database.tables import memories, message_memories, messages, reinforcements, revisions
from madeleine.storage.sql.memories.clock import cycle_of_being
from madeleine.storage.sql.memories.index_source import VectorReads, cache_vectors, mark_for_index
from madeleine.storage.sql.memories.preferences import insert_preferences
from madeleine.storage.sql.operations.audit import append_audit, audit_of_reinforced, audit_of_stored

_m, _r = memories.c, reinforcements.c
_OWN = (among(_m.id, "ids"), unindexed(_m.being_id) == bindparam("being"))

_BY_IDS = select(*MEMORY).where(*_OWN)
_SAME_TEXT = (
    select(_m.id)
    .where(_m.content_hash == bindparam("hash"), unindexed(_m.being_id) == bindparam("being"), _m.status != "dead")
    .order_by(_m.seq)
    .limit(5)
)
_TURNS = (
    select(_m.session_id, func.max(_m.turn) + 1)
    .where(_m.being_id == bindparam("being"), _m.session_id != literal_column("''"), among(_m.session_id, "sessions"))
    .group_by(_m.session_id)
)
_earliest = revisions.alias("earliest")
_FIRST_TEXT = (
    select(_earliest.c.text)
    .where(_earliest.c.memory_id == _m.id, _earliest.c.text.is_not(None))
    .order_by(_earliest.c.seq)
    .limit(1)
    .scalar_subquery()
)
"""What was stored, of a memory whose text was changed since: a key is of that."""
_KEYED = union_all(
    select(_m.key, _m.id, func.coalesce(_FIRST_TEXT, _m.action), literal("stored")).where(
        _m.being_id == bindparam("being"), among(_m.key, "keys")
    ),
    select(_r.key, _r.memory_id, _r.text, literal("reinforced")).where(
        _r.being_id == bindparam("being"), among(_r.key, "keys")
    ),
)
_REINFORCED = select(_m.id, _m.importance, _m.pinned, _m.themes, _m.access_count).where(*_OWN)
_REINFORCE = update_own_row(
    memories, "access_count", "last_accessed", "importance", "pinned", "themes", "folded_themes"
)
_NAMES = [column.name for column in memories.columns if column.name not in ("seq", "since", "stopped_at")]
_cycle = cycle_of_being(bindparam("new_being_id"))
_INSERT = insert(memories).values(
    {name: bindparam(f"new_{name}") for name in _NAMES}
    | {
        "since": _cycle - bindparam("new_session_count"),
        "stopped_at": case((bindparam("new_status") == "active", None), else_=_cycle),
    }
)
_REINFORCEMENT = Mapped(Reinforcement, reinforcements)
_INSERT_REINFORCEMENT = insert(reinforcements)
_OWN_MEMORIES = select(_m.id).where(among(_m.id, "ids"), unindexed(_m.being_id) == bindparam("being"))
_OWN_MESSAGES = select(messages.c.id).where(
    among(messages.c.id, "ids"), unindexed(messages.c.being_id) == bindparam("being")
)
_LINK = insert_missing(message_memories)


async def memories_by_ids(reads: Reads, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]:
    return in_order_of(ids, await reads.rows(_BY_IDS, to_memory, ids=as_list(ids), being=scope.being_id))


async def keyed(reads: Reads, scope: Scope, keys: Sequence[str]) -> dict[str, KeyOutcome]:
    if not keys:
        return {}
    found = await reads.rows(_KEYED, tuple, being=scope.being_id, keys=as_list(keys))
    return {key: KeyOutcome(id_, text, status) for key, id_, text, status in found}


async def insert_memories(transaction: Transaction, scope: Scope, new: Sequence[Memory]) -> None:
    """Also leaves a pending mark for each, keeps preferences in the profile, and says so in the audit."""
    if any(memory.being_id != scope.being_id for memory in new):
        raise InvalidInput("A memory can only be stored for the being that the connection serves.")
    await transaction.run(
        _INSERT, [{f"new_{name}": value for name, value in from_memory(memory).items()} for memory in new]
    )
    await mark_for_index(transaction, [memory.id for memory in new])
    await insert_preferences(transaction, new)
    await append_audit(transaction, audit_of_stored(scope, new))


async def _refuse_taken_keys(transaction: Transaction, scope: Scope, batch: StoreBatch) -> None:
    """Here and not only in the tables' constraints: a key counts for both, and the answer names it."""
    given = [*(one.key for one in batch.new), *(one.key for one in batch.reinforcements)]
    keys = [key for key in given if key is not None]
    taken = await keyed(transaction, scope, keys)
    for position, key in enumerate(keys):
        if key in taken or key in keys[:position]:
            raise KeyConflict(key)


@dataclass(frozen=True, slots=True)
class _Reinforced:
    id: MemoryId
    importance: float
    pinned: bool
    themes: tuple[str, ...]
    access_count: int
    last_accessed: int | None = None

    def by(self, one: Reinforcement) -> _Reinforced:
        known = {fold(theme) for theme in self.themes}
        fresh = {fold(theme): theme for theme in reversed(one.themes) if fold(theme) not in known}
        at = to_micros(one.at)
        return replace(
            self,
            importance=max(self.importance, one.importance if one.importance is not None else 0.0),
            pinned=self.pinned or one.pinned,
            themes=(*self.themes, *reversed(fresh.values())),
            access_count=self.access_count + 1,
            last_accessed=at if self.last_accessed is None else max(self.last_accessed, at),
        )


def _to_reinforced(row: Row) -> _Reinforced:
    id_, importance, pinned, themes, access_count = row
    return _Reinforced(id_, importance, bool(pinned), decode_texts(themes), access_count)


async def _reinforce(transaction: Transaction, scope: Scope, given: Sequence[Reinforcement]) -> None:
    if not given:
        return
    ids = as_list(one.memory_id for one in given)
    found = await transaction.rows(_REINFORCED, _to_reinforced, ids=ids, being=scope.being_id)
    state = {one.id: one for one in found}
    for one in given:
        if one.memory_id not in state:
            raise StorageError(f"There is no memory {one.memory_id} to reinforce. Nothing was stored: store it anew.")
        state[one.memory_id] = state[one.memory_id].by(one)
    await transaction.run(
        _REINFORCE,
        [
            own_row_binds(
                scope,
                one.id,
                access_count=one.access_count,
                last_accessed=one.last_accessed,
                importance=one.importance,
                pinned=one.pinned,
                themes=one.themes,
                folded_themes=fold_themes(one.themes),
            )
            for one in state.values()
        ],
    )
    before = {one.id: one.themes for one in found}
    # Themes are among the words that the index holds; nothing else that it holds changes.
    grown = [id_ for id_, one in state.items() if one.themes != before[id_]]
    await mark_for_index(transaction, grown)
    await transaction.run(_INSERT_REINFORCEMENT, [_REINFORCEMENT.to_row(one, being_id=scope.being_id) for one in given])
    await append_audit(transaction, audit_of_reinforced(scope, given))


class MemoryReads(VectorReads):
    """Memories by id and cached vectors, which nearly every use case reads."""

    async def memories(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]:
        return await memories_by_ids(self._database, scope, ids)


class MemoryRepository(MemoryReads):
    """`StoreLedger` and `RememberLedger`: what storing scenes reads and writes."""

    async def keyed(self, scope: Scope, keys: Sequence[str]) -> dict[str, KeyOutcome]:
        return await keyed(self._database, scope, keys)

    async def same_text(self, scope: Scope, hash_: ContentHash) -> list[MemoryId]:
        return await self._database.rows(_SAME_TEXT, scalar, hash=hash_, being=scope.being_id)

    async def turns(self, scope: Scope, sessions: Sequence[str]) -> dict[str, int]:
        named = {session for session in sessions if session}
        if not named:
            return {}
        found = dict(await self._database.rows(_TURNS, pair, being=scope.being_id, sessions=as_list(named)))
        return {session: found.get(session, 0) for session in named}

    async def commit(self, scope: Scope, batch: StoreBatch) -> None:
        async with self._database.transaction(grows=True) as transaction:
            # Vectors first: a write begins the transaction by itself, a read with a statement of its own.
            await cache_vectors(transaction, batch.model, batch.vectors)
            await _refuse_taken_keys(transaction, scope, batch)
            await insert_memories(transaction, scope, batch.new)
            await _reinforce(transaction, scope, batch.reinforcements)

    async def link(self, scope: Scope, told: Mapping[MemoryId, Sequence[MessageId]]) -> None:
        async with self._database.transaction() as transaction:
            own = await transaction.rows(_OWN_MEMORIES, scalar, ids=as_list(told), being=scope.being_id)
            wanted = {id_ for memory in own for id_ in told[memory]}
            there = set(await transaction.rows(_OWN_MESSAGES, scalar, ids=as_list(wanted), being=scope.being_id))
            rows = [{"message_id": id_, "memory_id": memory} for memory in own for id_ in told[memory] if id_ in there]
            await transaction.run(_LINK, rows)
