"""Fields of a memory before each change, the note that it came from, and forgotten memories that may have left bytes.

Revision 0004.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "revisions",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("importance", sa.Float(), nullable=True),
        sa.Column("themes", sa.Text(), nullable=True),
        sa.Column("pinned", sa.Boolean(), nullable=True),
        sa.ForeignKeyConstraint(["memory_id"], ["memories.id"], name="fk_revisions_memory_id"),
        sa.PrimaryKeyConstraint("seq", name="pk_revisions"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_revisions_memory_id", "revisions", ["memory_id"])
    op.create_table(
        "forgotten",
        sa.Column("mark", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("mark", name="pk_forgotten"),
        sqlite_autoincrement=True,
    )
    op.add_column("notes", sa.Column("memory_id", sa.Text(), nullable=True))
    op.create_index("ix_notes_memory_id", "notes", ["memory_id"])


def downgrade() -> None:
    op.drop_index("ix_notes_memory_id", "notes")
    op.drop_column("notes", "memory_id")
    op.drop_table("forgotten")
    op.drop_table("revisions")
