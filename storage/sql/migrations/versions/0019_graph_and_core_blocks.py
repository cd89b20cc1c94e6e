"""The entity graph (spec O14) and core blocks (spec O12).

Revision 0019.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "drawn_memories",
        *_texts("memory_id", "content_hash"),
        sa.Column("version", sa.Integer(), nullable=False),
        *_keys_of("drawn_memories", "memory_id"),
    )
    op.create_table(
        "mentions",
        *_texts("memory_id", "entity", "being_id", "name", "kind"),
        *_keys_of("mentions", "memory_id", "entity"),
    )
    op.create_index("ix_mentions_entity", "mentions", ["being_id", "entity"])
    for name in ("drawn_relations", "stated_relations"):
        stated: list[sa.Column[Any]] = []
        if name == "stated_relations":
            stated = [*_texts("client"), sa.Column("at", _moment(), nullable=False)]
        op.create_table(
            name,
            *_texts("memory_id", "subject_key", "relation", "object_key", "being_id", "subject", "object"),
            *stated,
            *_keys_of(name, "memory_id", "subject_key", "relation", "object_key"),
        )
        for side in ("subject", "object"):
            op.create_index(f"ix_{name}_{side}", name, ["being_id", f"{side}_key"])
    op.create_table(
        "core_blocks",
        *_texts("being_id", "name"),
        sa.Column("version", sa.Integer(), nullable=False),
        *_texts("text", "description", "client"),
        sa.Column("max_chars", sa.Integer(), nullable=False),
        sa.Column("written_at", _moment(), nullable=False),
        sa.PrimaryKeyConstraint("being_id", "name", "version", name="pk_core_blocks"),
    )


def _texts(*names: str) -> tuple[sa.Column[str], ...]:
    return tuple(sa.Column(name, sa.Text(), nullable=False) for name in names)


def _moment() -> sa.types.TypeEngine[int]:
    return sa.Integer().with_variant(sa.BigInteger(), "postgresql")


def _keys_of(table: str, *names: str) -> tuple[sa.Constraint, ...]:
    return (
        sa.ForeignKeyConstraint(["memory_id"], ["memories.id"], name=f"fk_{table}_memory_id_memories"),
        sa.PrimaryKeyConstraint(*names, name=f"pk_{table}"),
    )


def downgrade() -> None:
    for table in ("core_blocks", "stated_relations", "drawn_relations", "mentions", "drawn_memories"):
        op.drop_table(table)
