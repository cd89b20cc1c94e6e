"""The day that a text announces beside its dates: recalls of a time, searches and the start of a session find it there
(ADR 99).

Revision 0026. The texts stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from madeleine.memory.model import DatedAction
from madeleine.memory.rules.dynamics.future_dates import announced_days
from madeleine.memory.text.relative_dates import first_and_last_moment_of_days
from madeleine.storage.sql.database.mapping import microseconds_from_moment, moment_from_microseconds

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_COLUMNS = ("announced_start", "announced_end")
_ROWS_AT_ONCE = 1_000


def _replace_index(*columns: str) -> None:
    op.drop_index("ix_memories_timeline", "memories")
    order = ("being_id", sa.text("happened_at DESC"), "id")
    op.create_index("ix_memories_timeline", "memories", [*order, "span_start", "span_end", *columns])


def upgrade() -> None:
    micros = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
    for name in _COLUMNS:
        op.add_column("memories", sa.Column(name, micros, nullable=True))
    _replace_index(*_COLUMNS)
    change = sa.text("UPDATE memories SET announced_start = :first, announced_end = :last WHERE seq = :seq")
    for rows in _pages():
        if announced := [values for row in rows if (values := _announced(row))]:
            op.get_bind().execute(change, announced)


def _pages() -> Iterator[list[dict[str, Any]]]:
    after = -1
    page = sa.text(
        "SELECT seq, action, when_, created_at, happened_at FROM memories WHERE seq > :after ORDER BY seq LIMIT :most"
    )
    while rows := op.get_bind().execute(page, {"after": after, "most": _ROWS_AT_ONCE}).mappings().fetchall():
        yield [dict(row) for row in rows]
        after = rows[-1]["seq"]


def _announced(row: dict[str, Any]) -> dict[str, Any] | None:
    when = tuple(item if isinstance(item, str) else DatedAction(**item) for item in json.loads(row["when_"]))
    created_at, happened_at = (moment_from_microseconds(row[name]) for name in ("created_at", "happened_at"))
    days = announced_days(row["action"], when, created_at=created_at, happened_at=happened_at)
    if days is None:
        return None
    first, last = map(microseconds_from_moment, first_and_last_moment_of_days(days))
    return {"seq": row["seq"], "first": first, "last": last}


def downgrade() -> None:
    _replace_index()
    for name in _COLUMNS:
        op.drop_column("memories", name)
