"""New memories, recalls and notes of each being since its last patrol (spec P12).

Beings are found by skipping from one to the next in an index, and of their memories only those are read whose clock
says that they were active in this cycle or the one before (`memory_rows`): few, whatever the number of all.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, Table, case, func, literal, or_, select, type_coerce, union, union_all

from madeleine.memory.ingest.notes import SCENE_NOTE_TYPE
from madeleine.memory.patrol_records import RecentActivity
from madeleine.storage.sql.database.dialect import Moment, equals_any, json_field, json_items
from madeleine.storage.sql.database.engine import Repository
from madeleine.storage.sql.database.mapping import Mapped
from madeleine.storage.sql.database.memory_rows import cycle_of_being
from madeleine.storage.sql.database.tables import memories, notes, patrol_runs

WRITTEN_BY_PATROL = ("notes", "run_patrol")
"""Tools: a note that was taken in, a summary."""

_m, _n, _r = memories.c, notes.c, patrol_runs.c


def _select_beings_of(table: Table) -> Select[Any]:
    """Each being once."""
    first = select(func.min(table.c.being_id).label("being")).cte(f"{table.name}_beings", recursive=True)
    following = select(func.min(table.c.being_id)).where(table.c.being_id > first.c.being).scalar_subquery()
    # The last row is NULL.
    beings = first.union_all(select(following).where(first.c.being.is_not(None)))
    return select(beings.c.being).where(beings.c.being.is_not(None))


def _last_run_started(being: Any) -> ColumnElement[int]:
    """The start of the being's last run that did a step; -1 before the first."""
    started = (
        select(_r.started)
        .where(
            _r.being_id == being,
            equals_any(_r.state, "finished", "undone", "unjournalled"),
            select(json_items(json_field(_r.report, "steps")).c.key).exists(),
        )
        .order_by(_r.started.desc())
        .limit(1)
        .scalar_subquery()
    )
    return func.coalesce(started, -1)


_beings = union(_select_beings_of(memories), _select_beings_of(notes)).cte("known_beings")
_since_last_run = select(
    _beings.c.being, cycle_of_being(_beings.c.being).label("cycle"), _last_run_started(_beings.c.being).label("until")
).cte("since_last_run")
_is_stored = (_m.created_at > _since_last_run.c.until) & ~equals_any(_m.tool, *WRITTEN_BY_PATROL)
_is_recalled = _m.last_activated > _since_last_run.c.until
_memory_activity = (
    select(
        _since_last_run.c.being,
        case((_is_stored, 1), else_=0).label("stored"),
        case((_is_stored, _m.created_at), else_=_m.last_activated).label("first"),
        case((_is_recalled, _m.last_activated), else_=_m.created_at).label("latest"),
    )
    .select_from(_since_last_run)
    .join(memories, _m.being_id == _since_last_run.c.being)
    .where(
        equals_any(_m.status, "active", "dying"),
        equals_any(_m.pinned, False, True),
        # What came while ❷ was still to come in that run is of the cycle before.
        _m.since >= _since_last_run.c.cycle - 1,
        or_(_is_stored, _is_recalled),
    )
)
_note_activity = (
    select(_since_last_run.c.being, literal(1), _n.created_at, _n.created_at)
    .select_from(_since_last_run)
    .join(notes, _n.being_id == _since_last_run.c.being)
    .where(_n.state == "unread", _n.type == SCENE_NOTE_TYPE, _n.created_at > _since_last_run.c.until)
)
_activity = union_all(_memory_activity, _note_activity).subquery("activity")
_ACTIVITY = Mapped(
    RecentActivity,
    being_id=_activity.c.being,
    stored=func.sum(_activity.c.stored),
    first=type_coerce(func.min(_activity.c.first), Moment()),
    latest=type_coerce(func.max(_activity.c.latest), Moment()),
)
_SELECT_RECENT_ACTIVITY = select(*_ACTIVITY.columns).group_by(_activity.c.being).order_by(_activity.c.being)


class ActivityRepository(Repository):
    """`ActivityLedger`."""

    async def recent_activity(self) -> list[RecentActivity]:
        return await self._database.rows(_SELECT_RECENT_ACTIVITY, _ACTIVITY.from_row)
