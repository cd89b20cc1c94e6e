"""Chains of versions (ruling 14): the current version of a memory, and all of them.

Only a superseded memory has a `superseded_by`, which names its successor, so a chain is followed back by an index that
holds superseded memories alone. A memory that was absorbed is told by its survivor, which stands in its place in the
chain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import and_, bindparam, case, false, func, or_, select, true, union_all

from madeleine.memory.model import Memory, MemoryId, Scope
from madeleine.memory.recall.ports import PossibleNewerVersionPair
from madeleine.storage.sql.database.dialect import json_list_bind_value, json_list_item_rows, without_index_use
from madeleine.storage.sql.database.engine import Row, SqlRowReader, mark_query_as_runnable_on_event_loop
from madeleine.storage.sql.database.mapping import first_two_columns_of_row
from madeleine.storage.sql.database.memory_rows import MEMORY_COLUMNS, MEMORY_IS_IN_BOUND_PROJECT, memory_from_row
from madeleine.storage.sql.database.tables import memories_table

_m = memories_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_IS_OF_BOUND_BEING = without_index_use(_m.being_id) == _BEING_ID_BIND
_asked = json_list_item_rows(bindparam("ids"))
_next = func.coalesce(_m.superseded_by, _m.absorbed_into)
_later = select(_asked.c.value.label("origin"), _asked.c.value.label("id")).cte("later", recursive=True)
_later = _later.union(
    select(_later.c.origin, _next)
    .select_from(_later.join(memories_table, _m.id == _later.c.id))
    .where(_IS_OF_BOUND_BEING, _next.is_not(None))
)
_latest = (
    select(_later.c.origin, _later.c.id)
    .join(memories_table, _m.id == _later.c.id)
    .where(_IS_OF_BOUND_BEING, _next.is_(None))
)
_SELECT_CURRENT_VERSIONS = mark_query_as_runnable_on_event_loop(_latest)
_chain_ends = _latest.cte("ends")
_versions = select(_chain_ends.c.origin, _chain_ends.c.id).cte("versions", recursive=True)
_versions = _versions.union(
    select(_versions.c.origin, _m.id)
    .select_from(
        _versions.join(
            memories_table,
            or_(
                # With the being, as `ix_memories_superseded` has them: else all of the being's memories are read.
                and_(_m.being_id == _BEING_ID_BIND, _m.superseded_by.is_not(None), _m.superseded_by == _versions.c.id),
                _m.absorbed_into == _versions.c.id,
            ),
        )
    )
    .where(_IS_OF_BOUND_BEING)
)
_SELECT_ALL_VERSIONS = (
    select(_versions.c.origin, *MEMORY_COLUMNS)
    .select_from(_versions.join(memories_table, _m.id == _versions.c.id))
    .where(_m.absorbed_into.is_(None))
    .order_by(_m.valid_until.is_(None), _m.valid_until, _m.seq)
)
_is_found = (_IS_OF_BOUND_BEING, MEMORY_IS_IN_BOUND_PROJECT, _m.status != "dead", _m.compressed.is_(False))
_is_current = (*_is_found, _m.truth == "current")
_SELECT_PLANNED_SUCCESSORS = mark_query_as_runnable_on_event_loop(
    select(*MEMORY_COLUMNS)
    .where(_m.may_supersede == bindparam("id"), _m.valid_from.is_not(None), *_is_current)
    .order_by(_m.seq)
)
_proposed = (
    select(_m.id.label("newer"), _m.may_supersede.label("older"), _m.superseded_by.label("next"))
    .join(_asked, _m.may_supersede == _asked.c.value)
    .where(_m.may_supersede.is_not(None), *_is_found, _m.truth != "retracted")
    .cte("proposed", recursive=True)
)
_is_next = _m.id == _proposed.c.next
_proposed = _proposed.union(
    # What was proposed to supersede one of these, and what has superseded what was proposed.
    select(_m.id, case((_is_next, _proposed.c.older), else_=_proposed.c.newer), _m.superseded_by)
    .select_from(
        _proposed.join(
            memories_table,
            or_(and_(_m.may_supersede.is_not(None), _m.may_supersede == _proposed.c.newer), _is_next),
        )
    )
    .where(*_is_found, _m.truth != "retracted")
)
_told_table, _after_table = memories_table.alias("told"), memories_table.alias("after")
_told, _after = _told_table.c, _after_table.c
_told_again = (
    select(_m.id.label("older"), _told.superseded_by.label("newer"))
    .join(_asked, _m.id == _asked.c.value)
    .join(_told_table, _m.resembles == _told.id)
    .where(_told.superseded_by.is_not(None), func.lower(_told.action) == func.lower(_m.action), *_is_current)
    .cte("told_again", recursive=True)
)
_next_after = func.coalesce(_after.superseded_by, _after.absorbed_into)
_told_again = _told_again.union(
    select(_told_again.c.older, _next_after)
    .select_from(_told_again.join(_after_table, _after.id == _told_again.c.newer))
    .where(_next_after.is_not(None))
)
_SELECT_POSSIBLE_NEWER_VERSION_PAIRS = mark_query_as_runnable_on_event_loop(
    union_all(
        select(_proposed.c.newer, _proposed.c.older, true(), false())
        .join(memories_table, _m.id == _proposed.c.newer)
        .where(_proposed.c.newer != _proposed.c.older, *_is_current),
        select(_m.id, _m.resembles, false(), false()).join(_asked, _m.resembles == _asked.c.value).where(*_is_current),
        select(_told_again.c.newer, _told_again.c.older, true(), true())
        .join(memories_table, _m.id == _told_again.c.newer)
        .where(_told_again.c.newer != _told_again.c.older, *_is_current),
    )
)


async def current_version_id_by_memory_id(
    reads: SqlRowReader, scope: Scope, ids: Sequence[MemoryId]
) -> dict[MemoryId, MemoryId]:
    """The last version of each memory that exists: itself where it has no successor."""
    if not ids:
        return {}
    return dict(
        await reads.rows(
            _SELECT_CURRENT_VERSIONS, first_two_columns_of_row, being=scope.being_id, ids=json_list_bind_value(ids)
        )
    )


async def all_versions_by_memory_id(
    reads: SqlRowReader, scope: Scope, ids: Sequence[MemoryId]
) -> dict[MemoryId, list[Memory]]:
    """The versions of each memory that exists, itself included, the current one last."""
    rows = await reads.rows(
        _SELECT_ALL_VERSIONS, _to_requested_id_and_version, being=scope.being_id, ids=json_list_bind_value(ids)
    )
    versions: defaultdict[MemoryId, list[Memory]] = defaultdict(list)
    for origin, memory in rows:
        versions[origin].append(memory)
    return dict(versions)


async def planned_successors_of_memory(reads: SqlRowReader, scope: Scope, memory_id: MemoryId) -> list[Memory]:
    """Current memories that were said to take its place from a day on, the one told last behind."""
    return await reads.rows(
        _SELECT_PLANNED_SUCCESSORS, memory_from_row, being=scope.being_id, project=scope.project, id=memory_id
    )


async def possible_newer_version_pairs(
    reads: SqlRowReader, scope: Scope, ids: Sequence[MemoryId]
) -> list[PossibleNewerVersionPair]:
    """What `RecallLedger.possible_newer_version_pairs` says."""
    if not ids:
        return []
    binds = {"being": scope.being_id, "project": scope.project, "ids": json_list_bind_value(ids)}
    return list(await reads.rows(_SELECT_POSSIBLE_NEWER_VERSION_PAIRS, _to_possible_newer_version_pair, **binds))


def _to_possible_newer_version_pair(row: Row) -> PossibleNewerVersionPair:
    return PossibleNewerVersionPair(
        newer=row[0], older=row[1], is_proposed=bool(row[2]), has_superseded_text=bool(row[3])
    )


def _to_requested_id_and_version(row: Row) -> tuple[MemoryId, Memory]:
    return row[0], memory_from_row(tuple(row[1:]))
