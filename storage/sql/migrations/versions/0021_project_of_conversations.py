"""The project that a conversation was observed in (spec O2).

Revision 0021.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sessions", sa.Column("project", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("sessions", "project")
