"""A being's clock instead of a count in every row; journal, requests and costs of patrols; diary; session summaries.

Revision 0005. `session_count` is `coalesce(stopped_at, the being's cycle) - since` from now on: a cycle more for every
active memory is one row changed, not all of them.
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

from madeleine.memory.model import DatedAction, Scene, content_hash, embedded_text

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "beings",
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("cycle", sa.Integer(), nullable=False),
        sa.Column("think", sa.Text(), nullable=False),
        sa.Column("think_sources", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("being_id", name="pk_beings"),
    )
    op.execute(
        "INSERT INTO beings (being_id, cycle, think, think_sources) "
        "SELECT being_id, max(session_count), '[]', '[]' FROM memories GROUP BY being_id"
    )
    op.drop_index("ix_memories_cluster", "memories")
    op.add_column("memories", sa.Column("since", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("memories", sa.Column("stopped_at", sa.Integer(), nullable=True))
    op.add_column("memories", sa.Column("compressed_into", sa.Text(), nullable=True))
    op.add_column("memories", sa.Column("compression_source", sa.Boolean(), nullable=False, server_default="0"))
    op.execute(
        "UPDATE memories SET since = (SELECT cycle FROM beings WHERE beings.being_id = memories.being_id) "
        "- session_count, stopped_at = CASE status WHEN 'active' THEN NULL "
        "ELSE (SELECT cycle FROM beings WHERE beings.being_id = memories.being_id) END"
    )
    op.drop_column("memories", "session_count")
    op.create_index("ix_memories_cluster", "memories", ["being_id", "cluster_id", "status", "fresh"])
    # Its beginning is what the index of the status was.
    op.drop_index("ix_memories_status", "memories")
    op.create_index("ix_memories_fading", "memories", ["being_id", "status", "pinned", "since", "importance"])
    op.create_index("ix_memories_created", "memories", ["being_id", "created_at"])
    op.create_index(
        "ix_memories_recalled_dead",
        "memories",
        ["being_id"],
        sqlite_where=sa.text("status = 'dead' AND reactivation_count > 0"),
    )
    op.create_index(
        "ix_memories_sessions",
        "memories",
        ["being_id", "session_id", "created_at", "status", "pinned", "category", "compressed"],
        sqlite_where=sa.text("category = 'episodic' AND session_id != '' AND compressed = 0"),
    )
    op.create_index("ix_memories_absorbed_into", "memories", ["absorbed_into"])
    op.create_index("ix_memories_compressed_into", "memories", ["compressed_into"])
    op.add_column("patrol_runs", sa.Column("state", sa.Text(), nullable=False, server_default="finished"))
    # There was no journal when they ran: an undo would answer that there was nothing to put back.
    op.execute("UPDATE patrol_runs SET state = 'unjournalled'")
    op.create_table(
        "patrol_changes",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("after", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("seq", name="pk_patrol_changes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_patrol_changes_run_id", "patrol_changes", ["run_id"])
    op.create_index("ix_patrol_changes_target", "patrol_changes", ["being_id", "target"])
    op.create_table(
        "patrol_offers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("made_at", sa.Integer(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("settled_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_patrol_offers"),
    )
    op.create_index("ix_patrol_offers_topic", "patrol_offers", ["being_id", "topic"])
    op.create_table(
        "diary",
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("date", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("sources", sa.Text(), nullable=False),
        sa.Column("written_at", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("being_id", "date", name="pk_diary"),
    )
    op.create_table(
        "cost_records",
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("being_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("usd", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("seq", name="pk_cost_records"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_cost_records_being_id", "cost_records", ["being_id", "at"])

    _embed_without_what_was_absorbed()


def _embed_without_what_was_absorbed() -> None:
    """Behind a plain date a timeline is no longer embedded: texts that differ by it are found by their new hash, and
    embedded again in the background."""
    connection = op.get_bind()
    found = connection.execute(
        sa.text("SELECT id, action, when_, feeling, content_hash FROM memories WHERE when_ LIKE '%{%'")
    )
    for id_, action, when, feeling, old in found.fetchall():
        items = tuple(item if isinstance(item, str) else DatedAction(**item) for item in json.loads(when))
        new = content_hash(embedded_text(Scene(action=action, when=items), feeling))
        if new != old:
            connection.execute(
                sa.text("UPDATE memories SET content_hash = :new WHERE id = :id"), {"new": new, "id": id_}
            )


def downgrade() -> None:
    for table in ("cost_records", "diary", "patrol_offers", "patrol_changes"):
        op.drop_table(table)
    op.drop_column("patrol_runs", "state")
    for index in ("compressed_into", "absorbed_into", "sessions", "recalled_dead_states", "created"):
        op.drop_index(f"ix_memories_{index}", "memories")
    op.drop_index("ix_memories_fading", "memories")
    op.create_index("ix_memories_status", "memories", ["being_id", "status"])
    op.drop_index("ix_memories_cluster", "memories")
    op.add_column("memories", sa.Column("session_count", sa.Integer(), nullable=False, server_default="0"))
    op.execute(
        "UPDATE memories SET session_count = coalesce(stopped_at, "
        "(SELECT cycle FROM beings WHERE beings.being_id = memories.being_id)) - since"
    )
    for column in ("compression_source", "compressed_into", "stopped_at", "since"):
        op.drop_column("memories", column)
    op.create_index("ix_memories_cluster", "memories", ["being_id", "cluster_id", "status"])
    op.drop_table("beings")
