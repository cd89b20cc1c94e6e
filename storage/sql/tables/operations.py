"""The tables of an application's operational data (spec O10)."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Text

from madeleine.storage.sql.database.dialect import JsonTextColumnType, TextListColumnType, UtcMicrosColumnType
from madeleine.storage.sql.tables import declaring
from madeleine.storage.sql.tables.lifecycle import (
    KeepAllRowsWhenForgetting,
    TableLifecycleRule,
    UntouchedByPatrolUndo,
)

_LIFECYCLE_OF_APPLICATION_RECORDS: list[TableLifecycleRule] = [
    KeepAllRowsWhenForgetting("the application's own records, drawn from no memory; their repository erases them"),
    UntouchedByPatrolUndo("no patrol changes it"),
]

tasks_table = declaring.declare_table(
    "tasks",
    *declaring.make_primary_key_columns(Text, "id"),
    *declaring.make_not_null_columns(Text, "title", "status", "assigned_to", "project"),
    *declaring.make_not_null_columns(UtcMicrosColumnType, "created_at", "updated_at"),
    *declaring.make_not_null_columns(JsonTextColumnType, "details"),
    lifecycle=_LIFECYCLE_OF_APPLICATION_RECORDS,
)
channel_messages_table = declaring.declare_table(
    "channel_messages",
    *declaring.make_primary_key_columns(Integer, "seq"),
    Column("id", Text, nullable=False, unique=True),
    *declaring.make_not_null_columns(Text, "channel", "sender", "text"),
    *declaring.make_not_null_columns(UtcMicrosColumnType, "at"),
    *declaring.make_not_null_columns(JsonTextColumnType, "details"),
    Index("ix_channel_messages_channel", "channel", "at"),
    lifecycle=_LIFECYCLE_OF_APPLICATION_RECORDS,
)
audited_actions_table = declaring.declare_table(
    "audited_actions",
    *declaring.make_primary_key_columns(Integer, "seq"),
    Column("id", Text, nullable=False, unique=True),
    *declaring.make_not_null_columns(Text, "agent_id", "action", "verdict", "risk", "tool"),
    *declaring.make_not_null_columns(UtcMicrosColumnType, "at"),
    *declaring.make_not_null_columns(TextListColumnType, "ids"),
    Index("ix_audited_actions_at", "at"),
    lifecycle=[
        KeepAllRowsWhenForgetting("ids only, appended to only"),
        UntouchedByPatrolUndo("no patrol changes it"),
    ],
)
agent_states_table = declaring.declare_table(
    "agent_states",
    *declaring.make_primary_key_columns(Text, "agent_id"),
    *declaring.make_not_null_columns(Text, "status", "task_id"),
    *declaring.make_not_null_columns(UtcMicrosColumnType, "updated_at"),
    *declaring.make_not_null_columns(JsonTextColumnType, "details"),
    lifecycle=_LIFECYCLE_OF_APPLICATION_RECORDS,
)
# Beside `settings`, which holds facts about the store.
application_settings_table = declaring.declare_table(
    "application_settings",
    *declaring.make_primary_key_columns(Text, "namespace", "key"),
    *declaring.make_not_null_columns(JsonTextColumnType, "value"),
    *declaring.make_not_null_columns(UtcMicrosColumnType, "updated_at"),
    lifecycle=_LIFECYCLE_OF_APPLICATION_RECORDS,
)
projects_table = declaring.declare_table(
    "projects",
    *declaring.make_primary_key_columns(Text, "id"),
    *declaring.make_not_null_columns(Text, "name", "status", "lead"),
    *declaring.make_not_null_columns(UtcMicrosColumnType, "created_at"),
    *declaring.make_not_null_columns(JsonTextColumnType, "details"),
    lifecycle=_LIFECYCLE_OF_APPLICATION_RECORDS,
)
