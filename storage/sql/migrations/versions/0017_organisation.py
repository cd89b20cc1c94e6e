"""What all beings share, with its authors (spec O4, O5); lessons (spec O11).

Revision 0017.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


_LESSON_TEXTS = ("being_id", "discovery", "condition", "action", "rationale", "steps")


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
    op.create_table(
        "lessons",
        sa.Column("memory_id", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in _LESSON_TEXTS),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("helped", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failed", sa.Integer(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["memory_id"], ["memories.id"], name="fk_lessons_memory_id_memories"),
        sa.PrimaryKeyConstraint("memory_id", name="pk_lessons"),
    )
    op.create_index("ix_lessons_being_id", "lessons", ["being_id"])


def downgrade() -> None:
    op.drop_table("lessons")
    op.drop_column("audit", "author")
    op.drop_index("ix_memories_knowledge", "memories")
    for name in ("author_role", "author", "knowledge"):
        op.drop_column("memories", name)
