"""Numbers of memories, counted per being: their short ids.

Revision 0008.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("memories", sa.Column("number", sa.Integer(), nullable=False, server_default="0"))
    op.execute(
        "UPDATE memories SET number = numbered.number FROM (SELECT seq, row_number() OVER "
        "(PARTITION BY being_id ORDER BY seq) AS number FROM memories) AS numbered WHERE memories.seq = numbered.seq"
    )
    op.create_index("ix_memories_number", "memories", ["being_id", "number"], unique=True)
    op.create_table(
        "memory_numbers",
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("last", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("being_id", name="pk_memory_numbers"),
    )
    op.execute(
        "INSERT INTO memory_numbers (being_id, last) SELECT being_id, max(number) FROM memories GROUP BY being_id"
    )


def downgrade() -> None:
    op.drop_table("memory_numbers")
    op.drop_index("ix_memories_number", "memories")
    op.drop_column("memories", "number")
