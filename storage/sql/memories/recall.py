"""What a recall reads beside the memories themselves (spec L2, T7): preferences, and what ranking weighs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sqlalchemy import bindparam, exists, func, literal_column, select, type_coerce, union_all

from madeleine.memory.index import RankingState
from madeleine.memory.model import Memory, MemoryId, Scope
from madeleine.memory.recall.ports import PreferenceQuery
from madeleine.storage.sql.database.dialect import (
    Moment,
    among,
    as_list,
    contains_text,
    greatest,
    json_items,
    unindexed,
)
from madeleine.storage.sql.database.engine import Row
from madeleine.storage.sql.database.mapping import Mapped
from madeleine.storage.sql.database.memory_rows import MEMORY, delimited_theme, to_memory
from madeleine.storage.sql.database.tables import memories, profile
from madeleine.storage.sql.memories.memories import MemoryReads

_m, _p = memories.c, profile.c
_BEING = bindparam("being", type_=_m.being_id.type)
_SWITCHED_OFF = exists().where(
    unindexed(_p.being_id) == _BEING, _p.kind == "preferences", _p.memory_id == _m.id, _p.enabled.is_(False)
)
_wanted = json_items(bindparam("themes"))
_LACKS_A_THEME = exists().where(~contains_text(_m.folded_themes, _wanted.c.value))
_each = json_items(bindparam("matching"))
_matching = select(_each.c.key, _each.c.value).subquery()
_PREFERRED = (
    select(_m.id)
    .join_from(memories, _matching, _matching.c.value == _m.id, isouter=True)
    .where(
        _m.being_id == _BEING,
        # As text, for SQLite to know that it is what `ix_memories_procedural` holds.
        _m.category == literal_column("'procedural'"),
        _m.status.in_([literal_column("'active'"), literal_column("'dying'")]),
        ~_SWITCHED_OFF,
        ~_LACKS_A_THEME,
    )
    .order_by(_matching.c.key.is_(None), _matching.c.key, _m.importance.desc(), _m.created_at.desc(), _m.seq.desc())
    .limit(bindparam("most"))
)
# One statement for both: a being without preferences pays a look into an index that holds none of its.
_WITH_PREFERENCES = union_all(
    select(literal_column("0"), _m.seq, *MEMORY).where(among(_m.id, "ids"), unindexed(_m.being_id) == _BEING),
    select(literal_column("1"), _m.seq, *MEMORY).where(_m.id.in_(_PREFERRED)),
)
_STATE = Mapped(
    RankingState,
    memories,
    last_active=type_coerce(
        greatest(_m.created_at, greatest(func.coalesce(_m.last_activated, 0), func.coalesce(_m.last_accessed, 0))),
        Moment(),
    ),
)
_RANKING_STATES = select(_m.id, *_STATE.columns).where(among(_m.id, "ids"), unindexed(_m.being_id) == _BEING)


def _marked(row: Row) -> tuple[bool, int, Memory]:
    return bool(row[0]), row[1], to_memory(tuple(row[2:]))


def _ranking_state(row: Row) -> tuple[MemoryId, RankingState]:
    return row[0], _STATE.from_row(row[1:])


class RecallRepository(MemoryReads):
    """`RecallLedger`."""

    async def with_preferences(
        self, scope: Scope, ids: Sequence[MemoryId], preference_query: PreferenceQuery
    ) -> tuple[list[Memory], list[Memory]]:
        binds = {
            "ids": as_list(ids),
            "matching": as_list(preference_query.matching),
            "themes": as_list(delimited_theme(theme) for theme in preference_query.themes),
            "most": preference_query.most,
            "being": scope.being_id,
        }
        rows = await self._database.rows(_WITH_PREFERENCES, _marked, **binds)
        wanted = {memory.id: memory for preferred, _, memory in rows if not preferred}
        place = {id_: place for place, id_ in enumerate(preference_query.matching)}

        def order(one: tuple[int, Memory]) -> tuple[float, float, float, int]:
            seq, memory = one
            return place.get(memory.id, math.inf), -memory.importance, -memory.created_at.timestamp(), -seq

        preferred = sorted(((seq, memory) for is_preferred, seq, memory in rows if is_preferred), key=order)
        return [wanted[id_] for id_ in dict.fromkeys(ids) if id_ in wanted], [memory for _, memory in preferred]

    async def ranking_states(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, RankingState]:
        return dict(await self._database.rows(_RANKING_STATES, _ranking_state, ids=as_list(ids), being=scope.being_id))
