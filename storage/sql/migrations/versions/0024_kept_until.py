"""Until when the decision that a memory still holds stands, so that nobody is asked again before.

Revision 0024.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    micros = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
    op.add_column("memories", sa.Column("kept_until", micros, nullable=True))


def downgrade() -> None:
    op.drop_column("memories", "kept_until")
