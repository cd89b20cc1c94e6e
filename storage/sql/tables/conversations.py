"""The tables of conversations (spec P1, T1, H1)."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Text, UniqueConstraint

from madeleine.storage.sql.database.dialect import UtcMicrosColumnType, partial_index_options
from madeleine.storage.sql.tables import declaring
from madeleine.storage.sql.tables.lifecycle import (
    DeleteRowsNamingForgotten,
    ForgottenRemovedByNamedFunction,
    KeepAllRowsWhenForgetting,
    UntouchedByPatrolUndo,
)

# Conversations as they were observed (spec T1, H1). `messages` is the position that the next message gets, `watched`
# the first position that the memory thread has not read; between them some may have been erased. `next_try`: since when
# they wait for it, or, after a failure, until when. Unread messages before `put_off` hold no sign of anything to
# remember, and wait for what follows; `abandoned` counts messages that it could not read. `project`: that in
# which the first message was observed. A session that was erased whole stays, blank, so that no position is given out
# twice.
sessions = declaring.declare_table(
    "sessions",
    *declaring.make_primary_key_columns(Text, "being_id", "session_id"),
    # `interface`: the client, or the export that it was imported from.
    *declaring.make_not_null_columns(Text, "title", "interface"),
    *declaring.make_not_null_columns(UtcMicrosColumnType, "first_at", "last_at", "next_try"),
    *declaring.make_not_null_columns(Integer, "messages", "watched", "failures"),
    *declaring.make_not_null_columns(Integer, "put_off", "abandoned"),
    *declaring.make_nullable_columns(Text, "project"),
    Index("ix_sessions_unwatched", "next_try", **partial_index_options("watched < messages")),
    lifecycle=[
        ForgottenRemovedByNamedFunction("erasing.messages.erase_messages"),
        UntouchedByPatrolUndo("no patrol changes it"),
    ],
)

messages_table = declaring.declare_table(
    "messages",
    *declaring.make_primary_key_columns(Integer, "seq"),
    Column("id", Text, nullable=False, unique=True),
    *declaring.make_not_null_columns(Text, "being_id", "session_id", "role", "speaker", "text", "client", "folded"),
    # In its session, from 0, without a gap while none is erased; not given out again.
    *declaring.make_not_null_columns(Integer, "position"),
    *declaring.make_not_null_columns(UtcMicrosColumnType, "at", "stored_at"),
    *declaring.make_nullable_columns(Text, "key"),
    UniqueConstraint("being_id", "session_id", "position"),
    UniqueConstraint("being_id", "session_id", "key"),
    lifecycle=[
        ForgottenRemovedByNamedFunction("erasing.messages.erase_messages"),
        UntouchedByPatrolUndo("no patrol changes it"),
    ],
)
Index("ix_messages_timeline", messages_table.c.being_id, messages_table.c.at.desc(), messages_table.c.id)

# Keys of messages that were forgotten, by a hash with their session: what is read again does not come back.
forgotten_keys_table = declaring.declare_table(
    "forgotten_keys",
    *declaring.make_primary_key_columns(Text, "being_id", "key_hash"),
    lifecycle=[
        KeepAllRowsWhenForgetting("hashes that keep messages out"),
        UntouchedByPatrolUndo("forgetting is final"),
    ],
)

# The memories that were drawn from a message.
message_memories_table = declaring.declare_table(
    "message_memories",
    *declaring.make_primary_key_columns(Text, "message_id"),
    Column("memory_id", Text, primary_key=True, index=True),
    lifecycle=[DeleteRowsNamingForgotten(), UntouchedByPatrolUndo("no patrol changes it")],
)
