"""The ledger's first tables.

Revision 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "clusters",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=False),
        sa.Column("is_root", sa.Boolean(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_clusters"),
    )
    op.create_index("ix_clusters_being_id", "clusters", ["being_id"])
    op.create_table(
        "embeddings",
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("model", "content_hash", name="pk_embeddings"),
    )
    op.create_table(
        "memories",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("actors", sa.Text(), nullable=False),
        sa.Column("when_", sa.Text(), nullable=False),
        sa.Column("setting", sa.Text(), nullable=False),
        sa.Column("dialogue", sa.Text(), nullable=False),
        sa.Column("sensory", sa.Text(), nullable=False),
        sa.Column("feeling", sa.Text(), nullable=False),
        sa.Column("importance", sa.Float(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("themes", sa.Text(), nullable=False),
        sa.Column("emotions", sa.Text(), nullable=False),
        sa.Column("emotion", sa.Text(), nullable=True),
        sa.Column("lesson", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("fresh", sa.Boolean(), nullable=False),
        sa.Column("compressed", sa.Boolean(), nullable=False),
        sa.Column("cluster_id", sa.Text(), nullable=True),
        sa.Column("absorbed_into", sa.Text(), nullable=True),
        sa.Column("session_count", sa.Integer(), nullable=False),
        sa.Column("access_count", sa.Integer(), nullable=False),
        sa.Column("reactivation_count", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("happened_at", sa.Integer(), nullable=False),
        sa.Column("last_activated", sa.Integer(), nullable=True),
        sa.Column("last_accessed", sa.Integer(), nullable=True),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("folded_themes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_memories"),
        sa.UniqueConstraint("being_id", "key", name="uq_memories_being_id_key"),
        sa.UniqueConstraint("id", name="uq_memories_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_memories_cluster", "memories", ["being_id", "cluster_id", "status"])
    op.create_index("ix_memories_content_hash", "memories", ["content_hash"])
    op.create_index("ix_memories_status", "memories", ["being_id", "status"])
    op.create_index("ix_memories_timeline", "memories", ["being_id", sa.text("happened_at DESC"), "id"])
    op.create_table(
        "notes",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_notes"),
        sa.UniqueConstraint("id", name="uq_notes_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notes_inbox", "notes", ["being_id", "state", "type"])
    op.create_index("ix_notes_timeline", "notes", ["being_id", sa.text("created_at DESC"), "id"])
    op.create_table(
        "patrol_runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("started", sa.Integer(), nullable=False),
        sa.Column("finished", sa.Integer(), nullable=False),
        sa.Column("report", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_patrol_runs"),
    )
    op.create_index("ix_patrol_runs_started", "patrol_runs", ["being_id", "started"])
    op.create_table(
        "settings",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_settings"),
    )
    op.create_table(
        "index_pending",
        sa.Column("mark", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["memory_id"], ["memories.id"], name="fk_index_pending_memory_id"),
        sa.PrimaryKeyConstraint("mark", name="pk_index_pending"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_index_pending_memory_id", "index_pending", ["memory_id"])
    op.create_table(
        "reinforcements",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["memory_id"], ["memories.id"], name="fk_reinforcements_memory_id"),
        sa.PrimaryKeyConstraint("seq", name="pk_reinforcements"),
        sa.UniqueConstraint("being_id", "key", name="uq_reinforcements_being_id_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_reinforcements_memory_id", "reinforcements", ["memory_id"])


def downgrade() -> None:
    for table in (
        "reinforcements", "index_pending", "settings", "patrol_runs", "notes", "memories", "embeddings", "clusters",
    ):  # fmt: skip
        op.drop_table(table)
