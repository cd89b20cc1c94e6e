"""The index of sessions holds what decides whether a memory is summarised: is it true, and is it a version (ruling 14).

Revision 0012.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

COLUMNS = ["being_id", "session_id", "created_at", "status", "pinned", "category", "compressed"]


def _replace_index(columns: list[str]) -> None:
    op.drop_index("ix_memories_sessions", "memories")
    condition = "category = 'episodic' AND session_id != '' AND compressed = 0"
    op.create_index("ix_memories_sessions", "memories", columns, sqlite_where=sa.text(condition))


def upgrade() -> None:
    _replace_index([*COLUMNS, "truth", "valid_from"])


def downgrade() -> None:
    _replace_index(COLUMNS)
