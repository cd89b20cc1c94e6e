"""What all beings share, with its authors (spec O4, O5).

Revision 0017.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("knowledge", "author", "author_role"):
        op.add_column("memories", sa.Column(name, sa.Text(), nullable=True))
    op.create_index(
        "ix_memories_knowledge",
        "memories",
        ["knowledge", "truth", "number"],
        sqlite_where=sa.text("knowledge IS NOT NULL"),
        postgresql_where=sa.text("knowledge IS NOT NULL"),
    )
    op.add_column("audit", sa.Column("author", sa.Text(), server_default="", nullable=False))


def downgrade() -> None:
    op.drop_column("audit", "author")
    op.drop_index("ix_memories_knowledge", "memories")
    for name in ("author_role", "author", "knowledge"):
        op.drop_column("memories", name)
