"""Memories read: by id, by cluster, with their revisions, for ranking (spec L2, T7, P10)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_, bindparam, exists, func, literal_column, or_, select, type_coerce

from madeleine.memory.index import MemoryRankingState
from madeleine.memory.lessons.values import REPORT_FAILURE_TOOL_NAME
from madeleine.memory.model import (
    ClusterId,
    EmbeddingModelName,
    Emotion,
    EmotionVector,
    Memory,
    MemoryChanges,
    MemoryId,
    MemoryValuesBeforeChange,
    Scope,
    Vector,
)
from madeleine.memory.recall.ports import ClusterWithMemoryCounts, PossibleNewerVersionPair
from madeleine.storage.sql.database import dialect
from madeleine.storage.sql.database.engine import Row, SqlRowReader, mark_query_as_runnable_on_event_loop
from madeleine.storage.sql.database.mapping import (
    RowMapper,
    decode_json_list_cached,
    first_column_of_row,
    first_two_columns_of_row,
    moment_from_microseconds,
    records_in_order_of_ids,
    vector_from_bytes,
)
from madeleine.storage.sql.database.memory_rows import (
    MEMORY_COLUMNS,
    MEMORY_IS_IN_BOUND_PROJECT,
    decode_emotion_vector,
    memory_from_row,
)
from madeleine.storage.sql.database.tables import (
    audit_entries_table,
    clusters_table,
    embeddings_table,
    memories_table,
    profile_entries_table,
    revisions_table,
)
from madeleine.storage.sql.memories.index_source import VectorRepository
from madeleine.storage.sql.memories.versions import (
    all_versions_by_memory_id,
    current_version_id_by_memory_id,
    planned_successors_of_memory,
    possible_newer_version_pairs,
)

_a, _c, _e, _m, _p, _r = (
    audit_entries_table.c,
    clusters_table.c,
    embeddings_table.c,
    memories_table.c,
    profile_entries_table.c,
    revisions_table.c,
)
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_HAS_BOUND_ID_AND_BEING = (
    dialect.in_bound_list_condition(_m.id, "ids"),
    dialect.without_index_use(_m.being_id) == _BEING_ID_BIND,
)

_SELECT_MEMORIES_BY_IDS = mark_query_as_runnable_on_event_loop(select(*MEMORY_COLUMNS).where(*_HAS_BOUND_ID_AND_BEING))
_REVISION_ROW_MAPPER = RowMapper(MemoryChanges, revisions_table)
_SELECT_REVISIONS = (
    select(_r.memory_id, _r.at, _r.client, *_REVISION_ROW_MAPPER.columns)
    .where(
        dialect.in_bound_list_condition(_r.memory_id, "ids"), dialect.without_index_use(_r.being_id) == _BEING_ID_BIND
    )
    .order_by(_r.seq)
)

_IS_DISABLED_PREFERENCE = exists().where(
    dialect.without_index_use(_p.being_id) == _BEING_ID_BIND,
    _p.kind == "preferences",
    _p.memory_id == _m.id,
    _p.enabled.is_(False),
)
_matching_item = dialect.json_list_item_rows(bindparam("matching"))
_matching = select(_matching_item.c.key, _matching_item.c.value).subquery()
_IS_ENABLED_PREFERENCE = (
    # As text, for SQLite to know that it is what `ix_memories_procedural` holds.
    _m.category == literal_column("'procedural'"),
    ~_IS_DISABLED_PREFERENCE,
    MEMORY_IS_IN_BOUND_PROJECT,
)
_IS_STANDING_PREFERENCE = (
    *_IS_ENABLED_PREFERENCE,
    _m.status.in_([literal_column("'active'"), literal_column("'dying'")]),
    _m.truth == "current",
    _m.compressed.is_(False),
)
_SELECT_MATCHING_PREFERENCES = (
    select(*MEMORY_COLUMNS)
    .join_from(memories_table, _matching, _matching.c.value == _m.id)
    .where(dialect.without_index_use(_m.being_id) == _BEING_ID_BIND, *_IS_ENABLED_PREFERENCE)
    .order_by(_matching.c.key)
    .limit(bindparam("most"))
)
_SELECT_STANDING_PREFERENCES = (
    select(*MEMORY_COLUMNS)
    .where(
        _m.being_id == _BEING_ID_BIND,
        *_IS_STANDING_PREFERENCE,
        _m.tool != literal_column(f"'{REPORT_FAILURE_TOOL_NAME}'"),
    )
    .order_by(_m.importance.desc(), _m.created_at.desc(), _m.seq.desc())
    .limit(bindparam("most"))
)
_RANKING_STATE_ROW_MAPPER = RowMapper(
    MemoryRankingState,
    memories_table,
    last_active=type_coerce(
        dialect.sql_greatest(
            _m.created_at, dialect.sql_greatest(func.coalesce(_m.last_activated, 0), func.coalesce(_m.last_accessed, 0))
        ),
        dialect.UtcMicrosColumnType(),
    ),
)
_SELECT_RANKING_STATES = select(_m.id, *_RANKING_STATE_ROW_MAPPER.columns).where(*_HAS_BOUND_ID_AND_BEING)
_SELECT_ANY_DEAD_MEMORY = select(_m.seq).where(_m.being_id == _BEING_ID_BIND, _m.status == "dead").limit(1)

_SELECT_PASSAGES = (
    select(_m.compressed_into, _m.id)
    .where(
        dialect.without_index_use(_m.being_id) == _BEING_ID_BIND,
        dialect.in_bound_list_condition(_m.compressed_into, "ids"),
        _m.compression_source.is_(True),
    )
    .order_by(_m.seq)
)

_ACTIVE_MEMORY_COUNT = func.count().filter(_m.status == "active")
_SELECT_CLUSTER_ID = select(_c.id).where(_c.id == bindparam("cluster"), _c.being_id == _BEING_ID_BIND)
_parents = clusters_table.alias("parents")
_CLUSTER_WITH_COUNTS_ROW_MAPPER = RowMapper(
    ClusterWithMemoryCounts,
    clusters_table,
    parent=func.coalesce(_parents.c.name, ""),
    active=_ACTIVE_MEMORY_COUNT,
    dying=func.count().filter(_m.status == "dying"),
    dead=func.count().filter(_m.status == "dead"),
)
_SELECT_CLUSTERS_WITH_MEMORY_COUNTS = (
    select(*_CLUSTER_WITH_COUNTS_ROW_MAPPER.columns)
    .select_from(clusters_table)
    .outerjoin(_parents, and_(_parents.c.id == _c.parent_id, _parents.c.being_id == _c.being_id))
    .outerjoin(memories_table, and_(_m.being_id == _c.being_id, _m.cluster_id == _c.id))
    .where(_c.being_id == _BEING_ID_BIND)
    .group_by(_c.id, _parents.c.name)
    .order_by(_c.is_root.desc(), _ACTIVE_MEMORY_COUNT.desc(), _c.name, _c.id)
)
_SELECT_FEELINGS_IN_CLUSTERS = select(_m.cluster_id, _m.emotions, _m.emotion).where(
    _m.being_id == _BEING_ID_BIND,
    _m.cluster_id.is_not(None),
    _m.status == "active",
    or_(_m.emotions != "[]", _m.emotion.is_not(None)),
)
_previous = memories_table.alias("previous")
_LAST_OF_PREVIOUS_PAGE_HAPPENED_AT = (
    select(_previous.c.happened_at)
    .where(_previous.c.id == bindparam("after"), _previous.c.being_id == _BEING_ID_BIND)
    .scalar_subquery()
)
_SELECT_CLUSTER_MEMORIES = (
    select(*MEMORY_COLUMNS)
    .where(
        _m.being_id == _BEING_ID_BIND,
        _m.cluster_id == bindparam("cluster"),
        MEMORY_IS_IN_BOUND_PROJECT,
        # Nothing comes after a memory that is not the being's: no page is shown twice.
        or_(
            bindparam("after", type_=_m.id.type).is_(None),
            _m.happened_at < _LAST_OF_PREVIOUS_PAGE_HAPPENED_AT,
            and_(_m.happened_at == _LAST_OF_PREVIOUS_PAGE_HAPPENED_AT, _m.id > bindparam("after")),
        ),
    )
    .order_by(_m.happened_at.desc(), _m.id)
    .limit(bindparam("limit"))
)

_IS_CHANGE_EVENT = and_(_a.being_id == _BEING_ID_BIND, dialect.equals_any(_a.event, "update", "forget", "patrol"))
_SELECT_LAST_AUDIT_NUMBER_AND_CHANGE_COUNT = select(func.max(_a.seq), func.count().filter(_IS_CHANGE_EVENT)).where(
    _a.seq > bindparam("after")
)
# In the order of numbers, which all beings share, so that nothing before `after` is read again.
_SELECT_VECTORS_STORED_AFTER = (
    select(_m.seq, _e.vector)
    .outerjoin(embeddings_table, and_(_e.model == bindparam("model"), _e.content_hash == _m.content_hash))
    .where(
        _m.seq > bindparam("after"),
        dialect.without_index_use(_m.being_id) == _BEING_ID_BIND,
        dialect.without_index_use(_m.status) != "dead",
    )
    .order_by(_m.seq)
    .limit(bindparam("limit"))
)


async def memories_with_ids(reads: SqlRowReader, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]:
    return records_in_order_of_ids(
        ids,
        await reads.rows(
            _SELECT_MEMORIES_BY_IDS, memory_from_row, ids=dialect.json_list_bind_value(ids), being=scope.being_id
        ),
    )


async def revisions_of_memories_oldest_first(
    reads: SqlRowReader, scope: Scope, ids: Sequence[MemoryId]
) -> list[MemoryValuesBeforeChange]:
    """Oldest first."""
    return await reads.rows(
        _SELECT_REVISIONS, _to_revision, ids=dialect.json_list_bind_value(ids), being=scope.being_id
    )


def _to_revision(row: Row) -> MemoryValuesBeforeChange:
    memory_id, at, client, *before = row
    return MemoryValuesBeforeChange(
        memory_id=memory_id,
        at=moment_from_microseconds(at),
        client=client,
        before=_REVISION_ROW_MAPPER.from_row(tuple(before)),
    )


def _to_id_and_ranking_state(row: Row) -> tuple[MemoryId, MemoryRankingState]:
    return row[0], _RANKING_STATE_ROW_MAPPER.from_row(row[1:])


def _to_cluster_id_and_feelings(row: Row) -> tuple[ClusterId, tuple[Emotion, ...], EmotionVector | None]:
    cluster_id, emotions, emotion = row
    return cluster_id, decode_json_list_cached(emotions), decode_emotion_vector(emotion) if emotion else None


def _to_sequence_number_and_vector(row: Row) -> tuple[int, Vector | None]:
    seq, vector = row
    return seq, None if vector is None else vector_from_bytes(vector)


class MemoryReadRepository(VectorRepository):
    """Memories by id and cached vectors, which nearly every use case reads."""

    async def revision_history(self, scope: Scope, ids: Sequence[MemoryId]) -> list[MemoryValuesBeforeChange]:
        return await revisions_of_memories_oldest_first(self._database, scope, ids)

    async def memories_with_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]:
        return await memories_with_ids(self._database, scope, ids)

    async def planned_successors_of_memory(self, scope: Scope, memory_id: MemoryId) -> list[Memory]:
        return await planned_successors_of_memory(self._database, scope, memory_id)


class RecallRepository(MemoryReadRepository):
    """`RecallLedger`, `BrowseLedger` and `BeingCentroidSourceLedger`."""

    async def preferences(
        self, scope: Scope, *, matching_ids: Sequence[MemoryId], limit: int, include_standing: bool
    ) -> list[Memory]:
        binds = {"most": limit, "being": scope.being_id, "project": scope.project}
        preferences: list[Memory] = []
        if matching_ids:
            preferences = await self._database.rows(
                _SELECT_MATCHING_PREFERENCES,
                memory_from_row,
                matching=dialect.json_list_bind_value(matching_ids),
                **binds,
            )
        if include_standing and len(preferences) < limit:
            preferences += await self._database.rows(_SELECT_STANDING_PREFERENCES, memory_from_row, **binds)
        return list({memory.id: memory for memory in preferences}.values())[:limit]

    async def current_version_id_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, MemoryId]:
        return await current_version_id_by_memory_id(self._database, scope, ids)

    async def all_versions_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Memory]]:
        return await all_versions_by_memory_id(self._database, scope, ids)

    async def possible_newer_version_pairs(
        self, scope: Scope, ids: Sequence[MemoryId]
    ) -> list[PossibleNewerVersionPair]:
        return await possible_newer_version_pairs(self._database, scope, ids)

    async def ranking_state_by_memory_id(
        self, scope: Scope, ids: Sequence[MemoryId]
    ) -> dict[MemoryId, MemoryRankingState]:
        binds = {"ids": dialect.json_list_bind_value(ids), "being": scope.being_id}
        return dict(await self._database.rows(_SELECT_RANKING_STATES, _to_id_and_ranking_state, **binds))

    async def has_dead_memories(self, scope: Scope) -> bool:
        return bool(await self._database.rows(_SELECT_ANY_DEAD_MEMORY, first_column_of_row, being=scope.being_id))

    async def passage_ids_by_summary_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[MemoryId]]:
        binds = {"being": scope.being_id, "ids": dialect.json_list_bind_value(ids)}
        passages: dict[MemoryId, list[MemoryId]] = {}
        for summary, passage in await self._database.rows(_SELECT_PASSAGES, first_two_columns_of_row, **binds):
            passages.setdefault(summary, []).append(passage)
        return passages

    async def memories_of_cluster(
        self, scope: Scope, cluster_id: ClusterId, *, limit: int, after: str | None
    ) -> list[Memory] | None:
        binds = {"being": scope.being_id, "cluster": cluster_id}
        page_binds = binds | {"project": scope.project, "limit": limit, "after": after}
        page = await self._database.rows(_SELECT_CLUSTER_MEMORIES, memory_from_row, **page_binds)
        if page or await self._database.rows(_SELECT_CLUSTER_ID, first_column_of_row, **binds):
            return page
        return None

    async def clusters_with_memory_counts(self, scope: Scope) -> list[ClusterWithMemoryCounts]:
        return await self._database.rows(
            _SELECT_CLUSTERS_WITH_MEMORY_COUNTS, _CLUSTER_WITH_COUNTS_ROW_MAPPER.from_row, being=scope.being_id
        )

    async def feelings_of_clustered_memories(
        self, scope: Scope
    ) -> list[tuple[ClusterId, tuple[Emotion, ...], EmotionVector | None]]:
        return await self._database.rows(
            _SELECT_FEELINGS_IN_CLUSTERS, _to_cluster_id_and_feelings, being=scope.being_id
        )

    async def last_audit_number_and_whether_changed(self, scope: Scope, *, after: int) -> tuple[int, bool]:
        [(last, changes)] = await self._database.rows(
            _SELECT_LAST_AUDIT_NUMBER_AND_CHANGE_COUNT, first_two_columns_of_row, being=scope.being_id, after=after
        )
        return (after if last is None else last), changes > 0

    async def memory_sequence_numbers_and_vectors_after(
        self, scope: Scope, model: EmbeddingModelName, *, after: int, limit: int
    ) -> list[tuple[int, Vector | None]]:
        binds = {"being": scope.being_id, "model": model, "after": after, "limit": limit}
        return await self._database.rows(_SELECT_VECTORS_STORED_AFTER, _to_sequence_number_and_vector, **binds)
