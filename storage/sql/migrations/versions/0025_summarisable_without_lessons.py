"""The index of sessions is of what may be summarised: nothing with a lesson, and not what may supersede another.

Revision 0025.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

COLUMNS = [
    *("being_id", "session_id", "created_at", "status", "pinned", "category", "compressed", "truth", "valid_from"),
]


def _replace_index(columns: list[str], condition: str) -> None:
    op.drop_index("ix_memories_sessions", "memories")
    op.create_index(
        "ix_memories_sessions",
        "memories",
        columns,
        sqlite_where=sa.text(condition.format("compressed = 0")),
        postgresql_where=sa.text(condition.format("NOT compressed")),
    )


def upgrade() -> None:
    condition = "category = 'episodic' AND session_id != '' AND {} AND lesson = ''"
    _replace_index([*COLUMNS, "may_supersede", "lesson"], condition)


def downgrade() -> None:
    _replace_index(COLUMNS, "category = 'episodic' AND session_id != '' AND {}")
