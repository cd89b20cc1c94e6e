"""Conversations, profiles and ingested texts; a memory's turn in its session, and the memory that it resembles.

Revision 0006.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TABLES = ("ingested", "profile", "message_memories", "forgotten_keys", "messages", "sessions")


def upgrade() -> None:
    _add_to_memories()
    op.create_table(
        "sessions",
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("interface", sa.Text(), nullable=False),
        sa.Column("first_at", sa.Integer(), nullable=False),
        sa.Column("last_at", sa.Integer(), nullable=False),
        sa.Column("messages", sa.Integer(), nullable=False),
        sa.Column("watched", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("next_try", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("being_id", "session_id", name="pk_sessions"),
    )
    op.create_index("ix_sessions_unwatched", "sessions", ["next_try"], sqlite_where=sa.text("watched < messages"))
    op.create_table(
        "messages",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("speaker", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("stored_at", sa.Integer(), nullable=False),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_messages"),
        sa.UniqueConstraint("id", name="uq_messages_id"),
        sa.UniqueConstraint("being_id", "session_id", "position", name="uq_messages_being_id_session_id_position"),
        sa.UniqueConstraint("being_id", "session_id", "key", name="uq_messages_being_id_session_id_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_messages_timeline", "messages", ["being_id", sa.text("at DESC"), "id"])
    op.create_table(
        "forgotten_keys",
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("being_id", "key_hash", name="pk_forgotten_keys"),
    )
    op.create_table(
        "message_memories",
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("message_id", "memory_id", name="pk_message_memories"),
    )
    op.create_index("ix_message_memories_memory_id", "message_memories", ["memory_id"])
    op.create_table(
        "profile",
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("being_id", "kind", "name", name="pk_profile"),
    )
    op.create_index("ix_profile_memory_id", "profile", ["memory_id"])
    # Procedural memories are kept here too, from now on (spec 001, 1.6).
    op.execute(
        "INSERT INTO profile (being_id, kind, name, value, enabled, memory_id, updated_at) "
        "SELECT being_id, 'preferences', id, action, 1, id, created_at FROM memories WHERE category = 'procedural'"
    )
    op.create_table(
        "ingested",
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("being_id", "key", name="pk_ingested"),
    )


def _add_to_memories() -> None:
    op.add_column("memories", sa.Column("turn", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("memories", sa.Column("resembles", sa.Text(), nullable=True))
    op.execute(
        "UPDATE memories SET turn = numbered.turn FROM (SELECT seq, row_number() OVER "
        "(PARTITION BY being_id, session_id ORDER BY seq) - 1 AS turn FROM memories WHERE session_id != '') "
        "AS numbered WHERE memories.seq = numbered.seq"
    )
    op.create_index("ix_memories_resembles", "memories", ["resembles"])
    op.create_index(
        "ix_memories_turn", "memories", ["being_id", "session_id", "turn"], sqlite_where=sa.text("session_id != ''")
    )
    op.create_index(
        "ix_memories_procedural",
        "memories",
        ["being_id", "status"],
        sqlite_where=sa.text("category = 'procedural'"),
    )
    op.create_index(
        "ix_memories_activated",
        "memories",
        ["being_id", sa.text("last_activated DESC"), "id"],
        sqlite_where=sa.text("last_activated IS NOT NULL"),
    )


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
    for index in ("activated", "procedural", "turn", "resembles"):
        op.drop_index(f"ix_memories_{index}", "memories")
    op.drop_column("memories", "resembles")
    op.drop_column("memories", "turn")
