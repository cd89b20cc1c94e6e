"""The archive (spec O8), and what is kept for a session or a project only (spec O2).

Revision 0018.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def upgrade() -> None:
    for name in ("project", "level"):
        op.add_column("memories", sa.Column(name, sa.Text(), nullable=True))
    scoped = sa.text("project IS NOT NULL OR level IS NOT NULL")
    op.create_index(
        "ix_memories_scoped", "memories", ["being_id", "level"], sqlite_where=scoped, postgresql_where=scoped
    )
    op.create_table(
        "archive_groups",
        *_texts("id", "being_id", "run_id", "category", "mode", "digest"),
        sa.Column("is_summary", sa.Boolean(), nullable=False),
        sa.Column("archived_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_archive_groups"),
    )
    op.create_index("ix_archive_groups_being", "archive_groups", ["being_id", "archived_at"])
    op.create_table(
        "archived_memories",
        *_texts("id", "memory_id", "group_id", "being_id", "run_id", "reason", "refers_to", "folded"),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("project", sa.Text(), nullable=True),
        sa.Column("superseded_by", sa.Text(), nullable=True),
        sa.Column("happened_at", sa.Integer(), nullable=False),
        sa.Column("archived_at", sa.Integer(), nullable=False),
        sa.Column("records", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["archive_groups.id"], name="fk_archived_memories_group_id_archive_groups"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_archived_memories"),
        sa.UniqueConstraint("memory_id", name="uq_archived_memories_memory_id"),
    )
    op.create_index("ix_archived_memories_group_id", "archived_memories", ["group_id"])
    op.create_index("ix_archived_memories_number", "archived_memories", ["being_id", "number"])
    op.create_index("ix_archived_memories_run", "archived_memories", ["being_id", "run_id"])


def downgrade() -> None:
    op.drop_table("archived_memories")
    op.drop_table("archive_groups")
    op.drop_index("ix_memories_scoped", "memories")
    for name in ("level", "project"):
        op.drop_column("memories", name)
