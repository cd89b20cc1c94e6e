"""Days and feelings of later tellings, kept with the memory that was told again (ruling 13).

Revision 0011.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("memories", sa.Column("retold", sa.Text(), nullable=False, server_default="[]"))


def downgrade() -> None:
    op.drop_column("memories", "retold")
