"""The first and the last moment of each memory's dates, for search by time (ADR 0033).

Revision 0014. Derived from the dates that a memory was told with.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from madeleine.memory.text.dates import possible_utc_span
from madeleine.storage.sql.database.mapping import microseconds_from_moment

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_COLUMNS = ("span_start", "span_end")


def upgrade() -> None:
    for column in _COLUMNS:
        op.add_column("memories", sa.Column(column, sa.Integer(), nullable=False, server_default="0"))
    connection = op.get_bind()
    connection.execute(sa.text("UPDATE memories SET span_start = happened_at, span_end = happened_at"))
    dated = connection.execute(sa.text("SELECT seq, when_ FROM memories WHERE when_ != '[]'")).fetchall()
    change = sa.text("UPDATE memories SET span_start = :first, span_end = :last WHERE seq = :seq")
    if spans := [{"seq": seq} | span for seq, when in dated if (span := _span(json.loads(when)))]:
        connection.execute(change, spans)
    op.drop_index("ix_memories_timeline", "memories")
    timeline = [sa.text(part) for part in ("being_id", "happened_at DESC", "id", *_COLUMNS)]
    op.create_index("ix_memories_timeline", "memories", timeline)


def _span(when: list[Any]) -> dict[str, int] | None:
    dates = [item for item in when if isinstance(item, str)] or [item["date"] for item in when]
    spans = [span for date in dates if (span := possible_utc_span(date))]
    if not spans:
        return None
    return {
        "first": microseconds_from_moment(min(first for first, _ in spans)),
        "last": microseconds_from_moment(max(last for _, last in spans)),
    }


def downgrade() -> None:
    op.drop_index("ix_memories_timeline", "memories")
    for column in _COLUMNS:
        op.drop_column("memories", column)
    op.create_index(
        "ix_memories_timeline", "memories", [sa.text(part) for part in ("being_id", "happened_at DESC", "id")]
    )
