"""The tables of an application's operational data (spec O10)."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Text

from madeleine.storage.sql.database.dialect import JsonText, TextList, UtcMicros
from madeleine.storage.sql.tables import declaring
from madeleine.storage.sql.tables.lifecycle import Declaration, KeepWhenForgetting, UnchangedByUndo

_OF_THE_APPLICATION: list[Declaration] = [
    KeepWhenForgetting("the application's own records, drawn from no memory; their repository erases them"),
    UnchangedByUndo("no patrol changes it"),
]

tasks_table = declaring.table(
    "tasks",
    *declaring.keys(Text, "id"),
    *declaring.required(Text, "title", "status", "assigned_to", "project"),
    *declaring.required(UtcMicros, "created_at", "updated_at"),
    *declaring.required(JsonText, "details"),
    lifecycle=_OF_THE_APPLICATION,
)
channel_messages_table = declaring.table(
    "channel_messages",
    *declaring.keys(Integer, "seq"),
    Column("id", Text, nullable=False, unique=True),
    *declaring.required(Text, "channel", "sender", "text"),
    *declaring.required(UtcMicros, "at"),
    *declaring.required(JsonText, "details"),
    Index("ix_channel_messages_channel", "channel", "at"),
    lifecycle=_OF_THE_APPLICATION,
)
audited_actions_table = declaring.table(
    "audited_actions",
    *declaring.keys(Integer, "seq"),
    Column("id", Text, nullable=False, unique=True),
    *declaring.required(Text, "agent_id", "action", "verdict", "risk", "tool"),
    *declaring.required(UtcMicros, "at"),
    *declaring.required(TextList, "ids"),
    Index("ix_audited_actions_at", "at"),
    lifecycle=[KeepWhenForgetting("ids only, appended to only"), UnchangedByUndo("no patrol changes it")],
)
agent_states_table = declaring.table(
    "agent_states",
    *declaring.keys(Text, "agent_id"),
    *declaring.required(Text, "status", "task_id"),
    *declaring.required(UtcMicros, "updated_at"),
    *declaring.required(JsonText, "details"),
    lifecycle=_OF_THE_APPLICATION,
)
# Beside `settings`, which holds facts about the store.
application_settings_table = declaring.table(
    "application_settings",
    *declaring.keys(Text, "namespace", "key"),
    *declaring.required(JsonText, "value"),
    *declaring.required(UtcMicros, "updated_at"),
    lifecycle=_OF_THE_APPLICATION,
)
projects_table = declaring.table(
    "projects",
    *declaring.keys(Text, "id"),
    *declaring.required(Text, "name", "status", "lead"),
    *declaring.required(UtcMicros, "created_at"),
    *declaring.required(JsonText, "details"),
    lifecycle=_OF_THE_APPLICATION,
)
