"""The audit, which can only be appended to.

Revision 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

REFUSED = "SELECT RAISE(ABORT, 'the audit can only be appended to')"


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("ids", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    for verb in ("UPDATE", "DELETE"):
        op.execute(f"CREATE TRIGGER audit_no_{verb.lower()} BEFORE {verb} ON audit BEGIN {REFUSED}; END")
    # REPLACE removes a row without asking the trigger above.
    op.execute(
        "CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit "
        f"WHEN EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq) BEGIN {REFUSED}; END"
    )


def downgrade() -> None:
    op.drop_table("audit")
