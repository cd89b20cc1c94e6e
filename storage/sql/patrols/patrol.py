"""What the patrol reads and changes of a being's memory (spec P6)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, case, func, or_, select

from madeleine.memory.model import Cluster, ClusterId, ContentHash, Memory, MemoryId, ModelName, RunId, Scope, Vector
from madeleine.memory.patrol_records import (
    ClusterCounts,
    DecisionRequestId,
    DiaryEntry,
    MemoryState,
    PatrolChanges,
    SessionCount,
    StoredDecisionRequest,
    Thoughts,
)
from madeleine.memory.rules.dynamics.decay import DECAY_CYCLES, MIN_LIVING_IMPORTANCE, flagged
from madeleine.storage.sql.conversations.context import update_notes
from madeleine.storage.sql.database.dialect import after, among, as_list, json_items, number_at, unindexed
from madeleine.storage.sql.database.engine import Reads, Transaction
from madeleine.storage.sql.database.mapping import Mapped, own_row_binds, scalar, to_micros_or_none, update_own_row
from madeleine.storage.sql.database.memory_rows import MEMORY, REWRITTEN, from_memory, rewritten_fields, to_memory
from madeleine.storage.sql.database.tables import OF_A_SESSION, RECALLED_DEAD
from madeleine.storage.sql.database.tables import memories as table
from madeleine.storage.sql.memories.clock import SESSION_COUNT, cycle_of_being, patrol_cycle, set_patrol_cycle
from madeleine.storage.sql.memories.clusters import all_clusters, clusters_by_ids, delete_clusters, upsert_clusters
from madeleine.storage.sql.memories.index_source import cache_vectors, cached_vectors, mark_for_index
from madeleine.storage.sql.memories.reading import memories_by_ids
from madeleine.storage.sql.memories.storing import insert_memories
from madeleine.storage.sql.patrols import diary, offers
from madeleine.storage.sql.patrols.journal import Journal

_m = table.c
_BEING = bindparam("being", type_=_m.being_id.type)
_OWN = _m.being_id == _BEING
_STATE = Mapped(MemoryState, table, session_count=SESSION_COUNT)
_SUBJECTS = select(*_STATE.columns).where(_OWN)
_BY_IDS = select(*_STATE.columns).where(among(_m.id, "ids"), unindexed(_m.being_id) == _BEING)
_HOMELESS = _SUBJECTS.where(_m.cluster_id.is_(None), _m.status != "dead").order_by(_m.seq).limit(bindparam("limit"))
_MEMBERS = _SUBJECTS.where(among(_m.cluster_id, "clusters")).order_by(_m.seq)
# ❸: below which importance a memory has faded by now, for each number of cycles since it was active. A little more is
# taken than has: the rule decides. One seek in the index for each of the numbers, instead of a walk through all.
_DEEPEST = math.ceil(DECAY_CYCLES * math.log(1 / MIN_LIVING_IMPORTANCE))
_FADED = [MIN_LIVING_IMPORTANCE * math.exp(count / DECAY_CYCLES) * (1 + 1e-9) for count in range(_DEEPEST + 1)]
_thresholds = json_items(bindparam("thresholds"), "thresholds")
_FADING = (
    select(*_STATE.columns)
    .select_from(_thresholds.join(table, _m.since == bindparam("cycle") - _thresholds.c.key))
    .where(
        _m.being_id == after(_thresholds.c.key, _BEING),
        _m.status == "active",
        _m.pinned.is_(False),
        _m.importance <= _thresholds.c.value,
    )
)
_FADED_LONG_AGO = _SUBJECTS.where(
    _m.status == "active", _m.pinned.is_(False), _m.since < bindparam("cycle") - bindparam("deepest")
)
_own_threshold = number_at(bindparam("thresholds"), _m.stopped_at - _m.since)
_DYING_AGAIN = _SUBJECTS.where(
    _m.status == "dying", _m.pinned.is_(False), _m.importance * (1 + 1e-8) > func.coalesce(_own_threshold, 2.0)
)
_PINNED_DYING = _SUBJECTS.where(_m.status == "dying", _m.pinned.is_(True))
_RECALLED_DEAD = _SUBJECTS.where(RECALLED_DEAD).order_by(_m.seq)
_ACTIVE = select(func.count()).where(_OWN, _m.status == "active")


def _number(*conditions: Any) -> Any:
    return func.count(case((and_(*conditions), 1)))


_COUNT = Mapped(
    ClusterCounts,
    table,
    active=_number(_m.status == "active"),
    dying=_number(_m.status == "dying"),
    dead=_number(_m.status == "dead"),
    unconsolidated=_number(or_(_m.status == "dying", and_(_m.status == "active", _m.fresh.is_(True)))),
)
_numbers = select(*_COUNT.columns).where(_OWN)
_COUNTS = _numbers.where(_m.cluster_id.is_not(None)).group_by(_m.cluster_id)
# Else it walks through all, in the order of the groups.
_COUNTS_OF = _numbers.where(among(_m.cluster_id, "clusters")).group_by(unindexed(_m.cluster_id))
_STORED_SINCE = (
    select(*MEMORY)
    .where(_OWN, _m.created_at > bindparam("after"), _m.compression_source.is_(False))
    .order_by(_m.created_at.desc(), _m.seq.desc())
    .limit(bindparam("limit"))
)
_OF_SESSIONS = (
    _OWN,
    OF_A_SESSION,
    _m.pinned.is_(False),  # what is never to fade is not to be hidden behind a summary either
    _m.status != "dead",
)
_SESSION_COUNT = Mapped(SessionCount, table, memories=func.count())
_SESSIONS = (
    select(*_SESSION_COUNT.columns)
    .where(*_OF_SESSIONS)
    .group_by(_m.session_id)
    .order_by(func.min(_m.created_at), _m.session_id)
)
_SESSION = (
    select(*MEMORY)
    .where(*_OF_SESSIONS, _m.session_id == bindparam("session"))
    .order_by(unindexed(_m.happened_at), _m.seq)
)

_cycle = cycle_of_being(_BEING)
_CHANGED = ("importance", "status", "fresh", "cluster_id", "absorbed_into", "reactivation_count")
_CHANGE = update_own_row(table, *_CHANGED).values(
    since=_cycle - bindparam("new_session_count"),
    stopped_at=case((bindparam("new_status") == "active", None), else_=_cycle),
)
_RETELL = update_own_row(table, *REWRITTEN)
_COMPRESS = update_own_row(table, "compressed", "compressed_into")
_of_them = select(json_items(bindparam("ids")).c.value.label("id")).cte("of_them", recursive=True)
_absorbed = table.alias("absorbed")
_of_them = _of_them.union(select(_absorbed.c.id).join(_of_them, _absorbed.c.absorbed_into == _of_them.c.id))
_SUMMARISED_BY = (
    select(_m.id)
    .join(_of_them, _m.compressed_into == _of_them.c.id)
    .where(unindexed(_m.being_id) == _BEING, _m.compressed.is_(True))
)


class PatrolReader:
    def __init__(self, reads: Reads, scope: Scope) -> None:
        self._reads = reads
        self._scope = scope

    async def last_erasure(self) -> int:
        return await offers.last_erasure(self._reads)

    async def unclustered(self, *, limit: int) -> list[MemoryState]:
        return await self._subjects(_HOMELESS, limit=limit)

    async def with_outdated_status(self) -> list[MemoryState]:
        cycle = await patrol_cycle(self._reads, self._scope.being_id)
        thresholds = json.dumps(_FADED)
        found = await self._subjects(_FADING, thresholds=thresholds, cycle=cycle)
        found += await self._subjects(_FADED_LONG_AGO, cycle=cycle, deepest=_DEEPEST)
        found += await self._subjects(_DYING_AGAIN, thresholds=thresholds)
        found += await self._subjects(_PINNED_DYING)
        return [one for one in found if one.status != _flagged(one)]

    async def recalled_dead(self) -> list[MemoryState]:
        return await self._subjects(_RECALLED_DEAD)

    async def members(self, *cluster_ids: ClusterId) -> list[MemoryState]:
        return await self._subjects(_MEMBERS, clusters=as_list(cluster_ids))

    async def states(self, ids: Sequence[MemoryId]) -> list[MemoryState]:
        found = {one.id: one for one in await self._subjects(_BY_IDS, ids=as_list(ids))}
        return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]

    async def _subjects(self, statement: Any, **binds: Any) -> list[MemoryState]:
        return await self._reads.rows(statement, _STATE.from_row, being=self._scope.being_id, **binds)

    async def cluster_counts(self, ids: Sequence[ClusterId] | None = None) -> list[ClusterCounts]:
        being = self._scope.being_id
        if ids is None:
            return await self._reads.rows(_COUNTS, _COUNT.from_row, being=being)
        return await self._reads.rows(_COUNTS_OF, _COUNT.from_row, being=being, clusters=as_list(ids))

    async def clusters(self, ids: Sequence[ClusterId] | None = None) -> list[Cluster]:
        if ids is None:
            return await all_clusters(self._reads, self._scope)
        return await clusters_by_ids(self._reads, self._scope, ids)

    async def vectors(self, model: ModelName, hashes: Sequence[ContentHash]) -> dict[ContentHash, Vector]:
        return await cached_vectors(self._reads, model, hashes)

    async def memories(self, ids: Sequence[MemoryId]) -> list[Memory]:
        return await memories_by_ids(self._reads, self._scope, ids)

    async def stored_since(self, moment: datetime | None, *, limit: int) -> list[Memory]:
        after = to_micros_or_none(moment) or 0
        found = await self._reads.rows(_STORED_SINCE, to_memory, being=self._scope.being_id, after=after, limit=limit)
        return found[::-1]

    async def sessions(self) -> list[SessionCount]:
        return await self._reads.rows(_SESSIONS, _SESSION_COUNT.from_row, being=self._scope.being_id)

    async def session_memories(self, session_id: str) -> list[Memory]:
        return await self._reads.rows(_SESSION, to_memory, being=self._scope.being_id, session=session_id)

    async def summarised_by(self, ids: Sequence[MemoryId]) -> list[MemoryId]:
        if not ids:
            return []
        return await self._reads.rows(_SUMMARISED_BY, scalar, being=self._scope.being_id, ids=as_list(ids))

    async def last_diary(self) -> DiaryEntry | None:
        return await diary.last(self._reads, self._scope)

    async def thoughts(self) -> Thoughts:
        return await diary.thoughts(self._reads, self._scope)

    async def requests(self, ids: Sequence[DecisionRequestId]) -> list[StoredDecisionRequest]:
        return await offers.by_ids(self._reads, self._scope, ids)

    async def open_requests(self) -> list[StoredDecisionRequest]:
        return await offers.open_offers(self._reads, self._scope)


class PatrolWriter(PatrolReader):
    def __init__(self, transaction: Transaction, scope: Scope) -> None:
        super().__init__(transaction, scope)
        self._transaction = transaction

    async def increment_session_counts(self, run: RunId) -> int:
        being = self._scope.being_id
        cycle = await patrol_cycle(self._transaction, being)
        await set_patrol_cycle(self._transaction, being, cycle + 1)
        await Journal(self._transaction, self._scope, run, "age").ticked(cycle)
        return int((await self._transaction.rows(_ACTIVE, scalar, being=being))[0])

    async def apply(self, changes: PatrolChanges, *, run: RunId, step: str) -> None:
        """Before and after are read from the tables: what is journalled is what is there."""
        journal = Journal(self._transaction, self._scope, run, step)
        await journal.look_at(changes)
        if changes.model:
            await cache_vectors(self._transaction, changes.model, changes.vectors)
        await insert_memories(self._transaction, self._scope, changes.new)
        await update_notes(self._transaction, self._scope, changes.notes)
        await upsert_clusters(self._transaction, self._scope, changes.clusters)
        await delete_clusters(self._transaction, self._scope, changes.removed_clusters)
        await self._change(changes)
        if changes.diary:
            await diary.write(self._transaction, self._scope, changes.diary)
        if changes.thoughts:
            await diary.write_thoughts(self._transaction, self._scope, changes.thoughts)
        await offers.close_offers(self._transaction, self._scope, changes.decided, run)
        marks = await journal.write(changes)
        await mark_for_index(self._transaction, marks)

    async def _change(self, changes: PatrolChanges) -> None:
        await self._transaction.run(
            _CHANGE,
            (
                own_row_binds(self._scope, one.id, session_count=one.session_count)
                | {f"new_{name}": getattr(one, name) for name in _CHANGED}
                for one in changes.states
            ),
        )
        rewritten = map(from_memory, changes.rewritten)
        await self._transaction.run(
            _RETELL, [own_row_binds(self._scope, row["id"], **rewritten_fields(row)) for row in rewritten]
        )
        await self._transaction.run(
            _COMPRESS,
            [
                own_row_binds(self._scope, id_, compressed=summary is not None, compressed_into=summary)
                for id_, summary in changes.compressed.items()
            ],
        )


def _flagged(one: MemoryState) -> str:
    return flagged(one.status, importance=one.importance, session_count=one.session_count, pinned=one.pinned)
