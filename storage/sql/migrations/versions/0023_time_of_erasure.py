"""When a text was erased whose bytes may remain in the files: by then they have a promised time (ruling 25).

Revision 0023.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    micros = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
    op.add_column("forgotten", sa.Column("erased_at", micros, server_default="0", nullable=False))


def downgrade() -> None:
    op.drop_column("forgotten", "erased_at")
