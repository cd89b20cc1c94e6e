"""An application's operational data: tasks, messages, audited actions, states, settings, projects (spec O10).

Revision 0020.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create("tasks", ("id",), ("title", "status", "assigned_to", "project"), ("created_at", "updated_at"))
    _create_numbered("channel_messages", ("channel", "sender", "text"), "details")
    op.create_index("ix_channel_messages_channel", "channel_messages", ["channel", "at"])
    _create_numbered("audited_actions", ("agent_id", "action", "verdict", "risk", "tool"), "ids")
    op.create_index("ix_audited_actions_at", "audited_actions", ["at"])
    _create("agent_states", ("agent_id",), ("status", "task_id"), ("updated_at",))
    _create("application_settings", ("namespace", "key"), (), ("updated_at",), json="value")
    _create("projects", ("id",), ("name", "status", "lead"), ("created_at",))


def _create(
    name: str, keys: tuple[str, ...], texts: tuple[str, ...], moments: tuple[str, ...], json: str = "details"
) -> None:
    op.create_table(
        name,
        *_texts(*keys, *texts),
        *(sa.Column(moment, _moment(), nullable=False) for moment in moments),
        *_texts(json),
        sa.PrimaryKeyConstraint(*keys, name=f"pk_{name}"),
    )


def _create_numbered(name: str, texts: tuple[str, ...], json: str) -> None:
    op.create_table(
        name,
        sa.Column("seq", _moment(), nullable=False, autoincrement=True),
        *_texts("id", *texts),
        sa.Column("at", _moment(), nullable=False),
        *_texts(json),
        sa.PrimaryKeyConstraint("seq", name=f"pk_{name}"),
        sa.UniqueConstraint("id", name=f"uq_{name}_id"),
        sqlite_autoincrement=True,
    )


def _texts(*names: str) -> tuple[sa.Column[str], ...]:
    return tuple(sa.Column(name, sa.Text(), nullable=False) for name in names)


def _moment() -> sa.types.TypeEngine[int]:
    return sa.Integer().with_variant(sa.BigInteger(), "postgresql")


def downgrade() -> None:
    for table in ("projects", "application_settings", "agent_states", "audited_actions", "channel_messages", "tasks"):
        op.drop_table(table)
