"""Which earlier memory a memory may supersede, until that is decided (ruling 14).

Revision 0013. In an older store none was proposed.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("memories", sa.Column("may_supersede", sa.Text(), nullable=True))
    op.create_index(
        "ix_memories_proposals", "memories", ["may_supersede"], sqlite_where=sa.text("may_supersede IS NOT NULL")
    )


def downgrade() -> None:
    op.drop_index("ix_memories_proposals", "memories")
    op.drop_column("memories", "may_supersede")
