"""Copies of the memory that were made, and imports that can be undone (rulings 11 and 25).

Revision 0016.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "copies",
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("made_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("path", name="pk_copies"),
    )
    op.create_table(
        "imports",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("last_numbers", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_imports"),
    )
    op.create_table(
        "imported_rows",
        sa.Column("import_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("import_id", "type", "key", name="pk_imported_rows"),
    )
    op.create_index("ix_imported_rows_memory_id", "imported_rows", ["memory_id"])


def downgrade() -> None:
    for table in ("imported_rows", "imports", "copies"):
        op.drop_table(table)
