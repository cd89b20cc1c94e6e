"""The bearer token that an audited call came by (spec O10).

Revision 0022.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("audit", sa.Column("token", sa.Text(), server_default="", nullable=False))


def downgrade() -> None:
    op.drop_column("audit", "token")
