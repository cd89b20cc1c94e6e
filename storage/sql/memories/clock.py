"""A being's clock counts patrol cycles; a memory says in which it was last activated (spec P2 `session_count`, ❷)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, bindparam, case, func, select

from madeleine.memory.model import BeingId
from madeleine.storage.sql.database.dialect import insert_or_update
from madeleine.storage.sql.database.engine import Reads, Row, Transaction
from madeleine.storage.sql.database.tables import beings, memories

_m, _b = memories.c, beings.c


def cycle_of_being(being: Any) -> ColumnElement[int]:
    """The being's cycle; 0 before its first patrol."""
    return func.coalesce(select(_b.cycle).where(_b.being_id == being).scalar_subquery(), 0)


SESSION_COUNT: ColumnElement[int] = func.coalesce(_m.stopped_at, cycle_of_being(_m.being_id)) - _m.since
ACTIVATED = case((_m.status == "dead", _m.since), else_=func.coalesce(_m.stopped_at, cycle_of_being(_m.being_id)))
"""`since` after a recall: a living memory's clock is rewound (ruling 2)."""

_CYCLE = select(cycle_of_being(bindparam("being")))
_SET = insert_or_update(beings, "cycle")


async def patrol_cycle(reads: Reads, being: BeingId) -> int:
    return (await reads.rows(_CYCLE, _to_int, being=being))[0]


def _to_int(row: Row) -> int:
    return int(row[0])


async def set_patrol_cycle(transaction: Transaction, being: BeingId, to: int) -> None:
    row = {"being_id": being, "cycle": to, "think": "[]", "think_sources": "[]"}
    await transaction.run(_SET, [row])
