"""Messages that the memory thread puts off, and those that it has abandoned (spec T1, T2).

Revision 0010.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sessions", sa.Column("put_off", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("sessions", sa.Column("abandoned", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("sessions", "abandoned")
    op.drop_column("sessions", "put_off")
