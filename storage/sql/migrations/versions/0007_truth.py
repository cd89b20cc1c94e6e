"""What is true now: state and validity of each memory, and the acts that changed them (ruling 14).

Revision 0007. All memories of an older store are current.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

COLUMNS = ("truth", "valid_from", "valid_until", "superseded_by", "retraction_reason")


def upgrade() -> None:
    op.add_column("memories", sa.Column("truth", sa.Text(), nullable=False, server_default="current"))
    op.add_column("memories", sa.Column("valid_from", sa.Integer(), nullable=True))
    op.add_column("memories", sa.Column("valid_until", sa.Integer(), nullable=True))
    op.add_column("memories", sa.Column("superseded_by", sa.Text(), nullable=True))
    op.add_column("memories", sa.Column("retraction_reason", sa.Text(), nullable=False, server_default=""))
    op.create_index(
        "ix_memories_superseded",
        "memories",
        ["being_id", "superseded_by", "valid_until"],
        sqlite_where=sa.text("superseded_by IS NOT NULL"),
    )
    op.create_table(
        "truth_acts",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("act_id", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("before", sa.Text(), nullable=False),
        sa.Column("after", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["memory_id"], ["memories.id"], name="fk_truth_acts_memory_id"),
        sa.PrimaryKeyConstraint("seq", name="pk_truth_acts"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_truth_acts_memory_id", "truth_acts", ["memory_id"])
    op.create_index("ix_truth_acts_act", "truth_acts", ["act_id"])


def downgrade() -> None:
    op.drop_table("truth_acts")
    op.drop_index("ix_memories_superseded", "memories")
    for column in COLUMNS:
        op.drop_column("memories", column)
