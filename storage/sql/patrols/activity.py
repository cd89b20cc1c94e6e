"""What has come to each being since its last patrol (spec P12).

Beings are found by skipping from one to the next in an index, and of their memories only those are read whose clock
says that they were active in this cycle or the one before (`memories.clock`): few, whatever the number of all.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import CTE, ColumnElement, Table, and_, case, func, literal, or_, select, union, union_all

from madeleine.memory.ingest.notes import SCENE
from madeleine.memory.patrol_records import RecentActivity
from madeleine.storage.sql.database.dialect import either, json_field, json_items
from madeleine.storage.sql.database.engine import Repository, Row
from madeleine.storage.sql.database.mapping import from_micros
from madeleine.storage.sql.database.patrol_tables import patrol_runs
from madeleine.storage.sql.database.tables import memories, notes
from madeleine.storage.sql.memories.clock import cycle_of_being

WRITTEN_BY_PATROL = ("notes", "run_patrol")
"""Tools: a note that was taken in, a summary."""

_m, _n, _r = memories.c, notes.c, patrol_runs.c


def _beings_of(table: Table, name: str) -> CTE:
    """Each once; the last row is NULL."""
    first = select(func.min(table.c.being_id).label("being")).cte(name, recursive=True)
    following = select(func.min(table.c.being_id)).where(table.c.being_id > first.c.being).scalar_subquery()
    return first.union_all(select(following).where(first.c.being.is_not(None)))


def _last_run(being: Any) -> ColumnElement[int]:
    """When it began; -1 before the first."""
    found = (
        select(_r.started)
        .where(
            _r.being_id == being,
            either(_r.state, "finished", "undone", "unjournalled"),
            select(json_items(json_field(_r.report, "steps")).c.key).exists(),
        )
        .order_by(_r.started.desc())
        .limit(1)
        .scalar_subquery()
    )
    return func.coalesce(found, -1)


_kept, _told = _beings_of(memories, "kept"), _beings_of(notes, "told")
_known = union(
    select(_kept.c.being).where(_kept.c.being.is_not(None)), select(_told.c.being).where(_told.c.being.is_not(None))
).cte("known")
_tended = select(
    _known.c.being, cycle_of_being(_known.c.being).label("cycle"), _last_run(_known.c.being).label("until")
).cte("tended")
_stored = and_(_m.created_at > _tended.c.until, *(_m.tool != tool for tool in WRITTEN_BY_PATROL))
_recalled = _m.last_activated > _tended.c.until
_of_memories = (
    select(
        _tended.c.being,
        case((_stored, 1), else_=0).label("stored"),
        case((_stored, _m.created_at), else_=_m.last_activated).label("first"),
        case((_recalled, _m.last_activated), else_=_m.created_at).label("latest"),
    )
    .select_from(_tended)
    .join(
        memories,
        and_(
            _m.being_id == _tended.c.being,
            either(_m.status, "active", "dying"),
            either(_m.pinned, False, True),
            # What came while ❷ was still to come in that run is of the cycle before.
            _m.since >= _tended.c.cycle - 1,
        ),
    )
    .where(or_(_stored, _recalled))
)
_of_notes = (
    select(_tended.c.being, literal(1), _n.created_at, _n.created_at)
    .select_from(_tended)
    .join(notes, and_(_n.being_id == _tended.c.being, _n.state == "unread", _n.type == SCENE))
    .where(_n.created_at > _tended.c.until)
)
_all = union_all(_of_memories, _of_notes).subquery("came")
_RECENT_ACTIVITY = (
    select(_all.c.being, func.sum(_all.c.stored), func.min(_all.c.first), func.max(_all.c.latest))
    .group_by(_all.c.being)
    .order_by(_all.c.being)
)


def _to_activity(row: Row) -> RecentActivity:
    being_id, stored, first, latest = row
    return RecentActivity(being_id=being_id, stored=stored, first=from_micros(first), latest=from_micros(latest))


class ActivityRepository(Repository):
    """`ActivityLedger`."""

    async def recent_activity(self) -> list[RecentActivity]:
        return await self._database.rows(_RECENT_ACTIVITY, _to_activity)
