"""Reads and changes of a being's memory by a patrol (spec P6)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import ClauseElement, Integer, bindparam, exists, func, literal_column, or_, select

from madeleine.memory.ingest.notes import SCENE_NOTE_TYPE
from madeleine.memory.model import (
    Cluster,
    ClusterId,
    ContentHash,
    EmbeddingModelName,
    Memory,
    MemoryId,
    Note,
    Scope,
    Vector,
)
from madeleine.memory.patrol_records import (
    ClusterMemoryCounts,
    DecisionRequestId,
    DiaryEntry,
    MemoryFieldsForPatrol,
    StoredDecisionRequest,
    ThoughtsForNextSession,
    UnsummarisedSession,
)
from madeleine.memory.rules.dynamics.importance import (
    CYCLES_DYING_MEMORY_AWAITS_DECISION,
    IMPORTANCE_DECAY_CYCLES,
    MAX_DYING_IMPORTANCE,
    status_from_decayed_importance,
)
from madeleine.storage.sql.conversations import context
from madeleine.storage.sql.database import dialect, memory_rows
from madeleine.storage.sql.database.engine import Row, SqlRowReader
from madeleine.storage.sql.database.mapping import (
    RowMapper,
    first_column_of_row,
    microseconds_from_moment,
    moment_from_microseconds,
    records_in_order_of_ids,
)
from madeleine.storage.sql.database.tables import (
    MEMORY_IS_DEAD_BUT_RECALLED,
    MEMORY_IS_UNSUMMARISED_EPISODE,
    decision_requests_table,
    memories_table,
    patrol_changes_table,
    patrol_runs,
)
from madeleine.storage.sql.memories.clusters import read_clusters
from madeleine.storage.sql.memories.index_source import cached_vectors_by_hash
from madeleine.storage.sql.memories.reading import memories_with_ids

T = TypeVar("T")

_m, _o = memories_table.c, decision_requests_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_IS_OF_BOUND_BEING = _m.being_id == _BEING_ID_BIND
_MEMORY_STATE_ROW_MAPPER = RowMapper(
    MemoryFieldsForPatrol, memories_table, session_count=memory_rows.CYCLES_SINCE_REACTIVATION_SQL_EXPRESSION
)
_SELECT_MEMORY_STATES = select(*_MEMORY_STATE_ROW_MAPPER.columns).where(_IS_OF_BOUND_BEING)
_SELECT_MEMORY_STATES_BY_IDS = select(*_MEMORY_STATE_ROW_MAPPER.columns).where(
    dialect.in_bound_list_condition(_m.id, "ids"), dialect.without_index_use(_m.being_id) == _BEING_ID_BIND
)
_SELECT_UNCLUSTERED_MEMORY_STATES = (
    _SELECT_MEMORY_STATES.where(_m.cluster_id.is_(None), _m.status != "dead").order_by(_m.seq).limit(bindparam("limit"))
)
_SELECT_STATES_OF_CLUSTER_MEMBERS = _SELECT_MEMORY_STATES.where(
    dialect.in_bound_list_condition(_m.cluster_id, "clusters")
).order_by(_m.seq)
# ❸: the importance below which a memory has faded by now, for each number of cycles since it was active, and a little
# more: the rule decides. SQLite seeks once in the index for each of the numbers, instead of reading all memories.
_CYCLES_UNTIL_FULL_IMPORTANCE_IS_DYING = math.ceil(IMPORTANCE_DECAY_CYCLES * math.log(1 / MAX_DYING_IMPORTANCE))
_FADING_IMPORTANCE_BY_CYCLE_COUNT = [
    MAX_DYING_IMPORTANCE * math.exp(cycles / IMPORTANCE_DECAY_CYCLES) * (1 + 1e-9)
    for cycles in range(_CYCLES_UNTIL_FULL_IMPORTANCE_IS_DYING + 1)
]
_thresholds = dialect.json_list_item_rows(bindparam("thresholds"), "thresholds")
_SELECT_FADED_ACTIVE = (
    select(*_MEMORY_STATE_ROW_MAPPER.columns)
    .select_from(_thresholds.join(memories_table, _m.since == bindparam("cycle", type_=Integer) - _thresholds.c.key))
    .where(
        _m.being_id == dialect.bind_that_fixes_join_order(_thresholds.c.key, _BEING_ID_BIND),
        _m.status == "active",
        _m.pinned.is_(False),
        _m.importance <= dialect.json_item_as_float(_thresholds.c.value),
    )
)
_SELECT_LONG_FADED_ACTIVE = _SELECT_MEMORY_STATES.where(
    _m.status == "active",
    _m.pinned.is_(False),
    _m.since < bindparam("cycle", type_=Integer) - bindparam("deepest", type_=Integer),
)
_own_threshold = dialect.json_list_number_at(bindparam("thresholds"), _m.stopped_at - _m.since)
_SELECT_UNFADED_DYING = _SELECT_MEMORY_STATES.where(
    _m.status == "dying", _m.pinned.is_(False), _m.importance * (1 + 1e-8) > func.coalesce(_own_threshold, 2.0)
)
_SELECT_PINNED_DYING = _SELECT_MEMORY_STATES.where(_m.status == "dying", _m.pinned.is_(True))
_SELECT_RECALLED_DEAD = _SELECT_MEMORY_STATES.where(MEMORY_IS_DEAD_BUT_RECALLED).order_by(_m.seq)


_CLUSTER_COUNTS_ROW_MAPPER = RowMapper(
    ClusterMemoryCounts,
    memories_table,
    active=func.count().filter(_m.status == "active"),
    dying=func.count().filter(_m.status == "dying"),
    dead=func.count().filter(_m.status == "dead"),
    unconsolidated=func.count().filter(or_(_m.status == "dying", (_m.status == "active") & _m.fresh.is_(True))),
)
_memory_counts_by_cluster = select(*_CLUSTER_COUNTS_ROW_MAPPER.columns).where(_IS_OF_BOUND_BEING)
_COUNT_MEMORIES_OF_ALL_CLUSTERS = _memory_counts_by_cluster.where(_m.cluster_id.is_not(None)).group_by(_m.cluster_id)
# Unindexed, so that SQLite does not read all memories in the order of the groups.
_COUNT_MEMORIES_OF_CLUSTERS = _memory_counts_by_cluster.where(
    dialect.in_bound_list_condition(_m.cluster_id, "clusters")
).group_by(dialect.without_index_use(_m.cluster_id))
_SELECT_MEMORIES_STORED_SINCE = (
    select(*memory_rows.MEMORY_COLUMNS)
    .where(
        _IS_OF_BOUND_BEING, _m.created_at > bindparam("after"), _m.compression_source.is_(False), _m.truth == "current"
    )
    # A diary is read everywhere (spec O2).
    .where(_m.project.is_(None))
    .order_by(_m.created_at.desc(), _m.seq.desc())
    .limit(bindparam("limit"))
)
# A pinned memory never fades, and is not hidden behind a summary either; nor are the versions of a chain (ruling 14).
_IS_SUMMARISABLE = (
    *(_IS_OF_BOUND_BEING, MEMORY_IS_UNSUMMARISED_EPISODE, _m.pinned.is_(False), _m.status != "dead"),
    *(_m.truth == "current", _m.valid_from.is_(None), _m.may_supersede.is_(None)),
)
_summarised_memories = memories_table.alias("summarised").c
_HAS_SUMMARISED_MEMORY = (
    exists()
    .where(
        _summarised_memories.being_id == _BEING_ID_BIND,
        _summarised_memories.session_id == _m.session_id,
        _summarised_memories.session_id != literal_column("''"),  # as the index of sessions is worded
        _summarised_memories.compressed.is_(True),
    )
    .correlate(memories_table)
)
_UNSUMMARISED_SESSION_ROW_MAPPER = RowMapper(UnsummarisedSession, memories_table, memories=func.count())
_SELECT_SUMMARISABLE_SESSIONS = (
    select(*_UNSUMMARISED_SESSION_ROW_MAPPER.columns)
    .where(*_IS_SUMMARISABLE)
    .group_by(_m.session_id)
    .having(or_(func.count() > 1, ~_HAS_SUMMARISED_MEMORY))
    .order_by(func.min(_m.created_at), _m.session_id)
)
_SELECT_SUMMARISABLE_MEMORIES = (
    select(*memory_rows.MEMORY_COLUMNS)
    .where(*_IS_SUMMARISABLE, _m.session_id == bindparam("session"))
    .order_by(dialect.without_index_use(_m.happened_at), _m.seq)
)

# Of a session and a day, two or more: one alone cannot be joined with anything.
_MICROSECONDS_A_DAY = 86_400_000_000
_cycle = memory_rows.sql_patrol_cycle(_BEING_ID_BIND)
_faded = (
    select(_m.seq, func.count().over(partition_by=(_m.session_id, _m.happened_at // _MICROSECONDS_A_DAY)).label("like"))
    .where(
        _IS_OF_BOUND_BEING,
        _m.status == "dying",
        _m.pinned.is_(False),
        _m.category == "episodic",
        _m.compressed.is_(False),
    )
    .where(_m.truth == "current", _m.valid_from.is_(None), _m.may_supersede.is_(None), _m.lesson == "")
    .where(
        _m.stopped_at <= _cycle - CYCLES_DYING_MEMORY_AWAITS_DECISION, func.length(_m.action) <= bindparam("max_chars")
    )
    .subquery("faded")
)
_SELECT_DYING_EPISODES_TO_JOIN = (
    select(*memory_rows.MEMORY_COLUMNS)
    .join(_faded, _m.seq == _faded.c.seq)
    .where(_faded.c.like > 1)
    .order_by(_m.happened_at, _m.seq)
    .limit(bindparam("limit"))
)

_SELECT_DYING_MEMORIES = (
    select(*memory_rows.MEMORY_COLUMNS)
    .where(_IS_OF_BOUND_BEING, _m.status == "dying", _m.compressed.is_(False))
    .order_by(dialect.without_index_use(_m.happened_at), _m.seq)
    .limit(bindparam("limit"))
)

_older = memories_table.alias("older")
_SELECT_PROPOSED_SUPERSESSIONS = (
    select(_m.id)
    .join(_older, _older.c.id == _m.may_supersede)
    .where(_m.may_supersede.is_not(None), dialect.without_index_use(_m.being_id) == _BEING_ID_BIND)
    .where(_m.status != "dead", _m.truth != "retracted", _m.compressed.is_(False), _older.c.truth == "current")
    .order_by(dialect.without_index_use(_m.happened_at), _m.seq)
)
_summaries = select(dialect.json_list_item_rows(bindparam("ids")).c.value.label("id")).cte("summaries", recursive=True)
_absorbed = memories_table.alias("absorbed")
_summaries = _summaries.union(select(_absorbed.c.id).join(_summaries, _absorbed.c.absorbed_into == _summaries.c.id))
_SELECT_SOURCE_IDS_OF_SUMMARIES = (
    select(_m.id)
    .join(_summaries, _m.compressed_into == _summaries.c.id)
    .where(dialect.without_index_use(_m.being_id) == _BEING_ID_BIND, _m.compressed.is_(True))
)

DECISION_REQUEST_ROW_MAPPER = RowMapper(StoredDecisionRequest, decision_requests_table, decided_by=_o.settled_by)
_own_requests = select(*DECISION_REQUEST_ROW_MAPPER.columns).where(_o.being_id == _BEING_ID_BIND)
_SELECT_DECISION_REQUESTS_BY_IDS = _own_requests.where(dialect.in_bound_list_condition(_o.id, "ids"))
_SELECT_OPEN_DECISION_REQUESTS = _own_requests.where(_o.settled_by.is_(None)).order_by(_o.made_at, _o.id)
_SELECT_DECISION_TOPICS_SINCE = (
    select(_o.topic, func.max(_o.made_at))
    .where(_o.being_id == _BEING_ID_BIND, _o.made_at >= bindparam("moment"))
    .group_by(_o.topic)
)
# Not where the run that declined, or divided, was undone.
_SELECT_DECLINED_TOPICS = select(_o.topic, _o.body).where(
    *(_o.being_id == _BEING_ID_BIND, _o.id == "declined:" + _o.topic),
    ~exists().where(
        patrol_runs.c.id == _o.settled_by, dialect.equals_any(patrol_runs.c.state, "undone", "rolled_back")
    ),
)
_SELECT_LAST_ERASURE_NUMBER = select(
    dialect.sql_last_sequence_number(literal_column("'forgotten'"), literal_column("'mark'"))
)

_SELECT_LAST_AGED_AT = (
    select(patrol_runs.c.started)
    .join(patrol_changes_table, patrol_changes_table.c.run_id == patrol_runs.c.id)
    .where(
        patrol_changes_table.c.being_id == _BEING_ID_BIND,
        patrol_changes_table.c.target == _BEING_ID_BIND,
        patrol_changes_table.c.kind == "clock",
        dialect.equals_any(patrol_runs.c.state, "finished", "pruned"),
    )
    .order_by(patrol_runs.c.started.desc())
    .limit(1)
)


class PatrolReader:
    """`PatrolMemoryReader` of one being, outside or inside a transaction."""

    def __init__(self, reads: SqlRowReader, scope: Scope) -> None:
        self._reads = reads
        self._scope = scope

    async def _rows(self, statement: ClauseElement, make: Callable[[Row], T], **binds: Any) -> list[T]:
        return await self._reads.rows(statement, make, being=self._scope.being_id, **binds)

    async def _read_memory_states(self, statement: ClauseElement, **binds: Any) -> list[MemoryFieldsForPatrol]:
        return await self._rows(statement, _MEMORY_STATE_ROW_MAPPER.from_row, **binds)

    async def last_erasure_number(self) -> int:
        return int((await self._rows(_SELECT_LAST_ERASURE_NUMBER, first_column_of_row))[0])

    async def unclustered_memory_states(self, *, limit: int) -> list[MemoryFieldsForPatrol]:
        return await self._read_memory_states(_SELECT_UNCLUSTERED_MEMORY_STATES, limit=limit)

    async def memory_states_with_outdated_status(self) -> list[MemoryFieldsForPatrol]:
        cycle = await memory_rows.read_patrol_cycle(self._reads, self._scope)
        thresholds = json.dumps(_FADING_IMPORTANCE_BY_CYCLE_COUNT)
        states = [
            *await self._read_memory_states(_SELECT_FADED_ACTIVE, thresholds=thresholds, cycle=cycle),
            *await self._read_memory_states(
                _SELECT_LONG_FADED_ACTIVE, cycle=cycle, deepest=_CYCLES_UNTIL_FULL_IMPORTANCE_IS_DYING
            ),
            *await self._read_memory_states(_SELECT_UNFADED_DYING, thresholds=thresholds),
            *await self._read_memory_states(_SELECT_PINNED_DYING),
        ]
        return [state for state in states if state.status != status_from_decayed_importance(state)]

    async def recalled_dead_memory_states(self) -> list[MemoryFieldsForPatrol]:
        return await self._read_memory_states(_SELECT_RECALLED_DEAD)

    async def states_of_cluster_members(self, *cluster_ids: ClusterId) -> list[MemoryFieldsForPatrol]:
        return await self._read_memory_states(
            _SELECT_STATES_OF_CLUSTER_MEMBERS, clusters=dialect.json_list_bind_value(cluster_ids)
        )

    async def memory_states(self, ids: Sequence[MemoryId]) -> list[MemoryFieldsForPatrol]:
        return records_in_order_of_ids(
            ids, await self._read_memory_states(_SELECT_MEMORY_STATES_BY_IDS, ids=dialect.json_list_bind_value(ids))
        )

    async def memory_counts_of_each_cluster(self, ids: Sequence[ClusterId] | None = None) -> list[ClusterMemoryCounts]:
        if ids is None:
            return await self._rows(_COUNT_MEMORIES_OF_ALL_CLUSTERS, _CLUSTER_COUNTS_ROW_MAPPER.from_row)
        return await self._rows(
            _COUNT_MEMORIES_OF_CLUSTERS, _CLUSTER_COUNTS_ROW_MAPPER.from_row, clusters=dialect.json_list_bind_value(ids)
        )

    async def clusters(self, ids: Sequence[ClusterId] | None = None) -> list[Cluster]:
        return await read_clusters(self._reads, self._scope, ids)

    async def cached_vectors_by_hash(
        self, model: EmbeddingModelName, hashes: Sequence[ContentHash]
    ) -> dict[ContentHash, Vector]:
        return await cached_vectors_by_hash(self._reads, model, hashes)

    async def memories_with_ids(self, ids: Sequence[MemoryId]) -> list[Memory]:
        return await memories_with_ids(self._reads, self._scope, ids)

    async def memories_stored_since(self, moment: datetime | None, *, limit: int) -> list[Memory]:
        after = microseconds_from_moment(moment) if moment else 0
        return (await self._rows(_SELECT_MEMORIES_STORED_SINCE, memory_rows.memory_from_row, after=after, limit=limit))[
            ::-1
        ]

    async def unsummarised_sessions(self) -> list[UnsummarisedSession]:
        return await self._rows(_SELECT_SUMMARISABLE_SESSIONS, _UNSUMMARISED_SESSION_ROW_MAPPER.from_row)

    async def summarisable_session_memories(self, session_id: str) -> list[Memory]:
        return await self._rows(_SELECT_SUMMARISABLE_MEMORIES, memory_rows.memory_from_row, session=session_id)

    async def dying_episodes_to_join(self, *, max_chars: int, limit: int) -> list[Memory]:
        return await self._rows(
            _SELECT_DYING_EPISODES_TO_JOIN, memory_rows.memory_from_row, max_chars=max_chars, limit=limit
        )

    async def dying_memories(self, *, limit: int) -> list[Memory]:
        return await self._rows(_SELECT_DYING_MEMORIES, memory_rows.memory_from_row, limit=limit)

    async def unreadable_notes(self) -> list[Note]:
        return await context.read_notes(self._reads, self._scope, SCENE_NOTE_TYPE, "parse_failed")

    async def all_memory_ids_that_may_supersede(self) -> list[MemoryId]:
        return await self._rows(_SELECT_PROPOSED_SUPERSESSIONS, first_column_of_row)

    async def source_ids_of_summaries(self, ids: Sequence[MemoryId]) -> list[MemoryId]:
        return (
            await self._rows(
                _SELECT_SOURCE_IDS_OF_SUMMARIES, first_column_of_row, ids=dialect.json_list_bind_value(ids)
            )
            if ids
            else []
        )

    async def last_aged_at(self) -> datetime | None:
        moments = await self._rows(_SELECT_LAST_AGED_AT, first_column_of_row)
        return moment_from_microseconds(moments[0]) if moments else None

    async def last_diary_entry(self) -> DiaryEntry | None:
        return await context.read_last_written_diary_entry(self._reads, self._scope)

    async def thoughts_for_next_session(self) -> ThoughtsForNextSession:
        return await context.read_thoughts_for_next_session(self._reads, self._scope)

    async def decision_requests_with_ids(self, ids: Sequence[DecisionRequestId]) -> list[StoredDecisionRequest]:
        return records_in_order_of_ids(
            ids,
            await self._rows(
                _SELECT_DECISION_REQUESTS_BY_IDS,
                DECISION_REQUEST_ROW_MAPPER.from_row,
                ids=dialect.json_list_bind_value(ids),
            ),
        )

    async def cluster_size_by_declined_topic(self) -> dict[str, int]:
        return dict(
            await self._rows(_SELECT_DECLINED_TOPICS, lambda row: (row[0], int(json.loads(row[1])["declined"])))
        )

    async def open_decision_requests(self) -> list[StoredDecisionRequest]:
        return await self._rows(_SELECT_OPEN_DECISION_REQUESTS, DECISION_REQUEST_ROW_MAPPER.from_row)

    async def topics_offered_since(self, moment: datetime) -> dict[str, datetime]:
        since = microseconds_from_moment(moment)
        return dict(
            await self._rows(
                _SELECT_DECISION_TOPICS_SINCE,
                lambda row: (row[0], moment_from_microseconds(row[1])),
                moment=since,
            )
        )
