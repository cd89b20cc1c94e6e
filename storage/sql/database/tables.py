"""The tables. Times are microseconds since 1970, UTC; lists and records are JSON text; vectors are float32 bytes."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from madeleine.storage.sql.database.dialect import Digest, Moment, TextList, as_indexed, only_where, required
from madeleine.storage.sql.database.lifecycle import (
    ClearReference,
    DeleteRows,
    DeleteWithMemory,
    Journal,
    KeepRows,
    LeftByUndo,
    Redact,
    lifecycle,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

CHANGED_BY_PATROLS = (
    "importance", "status", "fresh", "cluster_id", "absorbed_into", "since", "stopped_at", "reactivation_count",
    "when_", "content_hash", "compressed", "compressed_into",
)  # fmt: skip
"""What a patrol may change of a memory."""

memories = Table(
    "memories",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    *required(Text, "being_id", "action"),
    Column("actors", TextList, nullable=False),
    *required(Text, "when_", "setting"),
    *required(TextList, "dialogue", "sensory"),
    Column("feeling", Text, nullable=False),
    Column("importance", Float, nullable=False),
    Column("category", Text, nullable=False),
    *required(TextList, "themes", "emotions"),
    Column("emotion", Text),
    Column("lesson", Text, nullable=False),
    Column("key", Text),
    Column("pinned", Boolean, nullable=False),
    Column("status", Text, nullable=False),
    *required(Boolean, "fresh", "compressed"),
    Column("cluster_id", Text),
    Column("absorbed_into", Text, index=True),
    # The summary that tells of it (spec L3); on the summary `compression_source` is true.
    Column("compressed_into", Text, index=True),
    Column("compression_source", Boolean, nullable=False, server_default="0"),
    # `session_count` is `coalesce(stopped_at, beings.cycle) - since`: the cycle in which it was last activated, and the
    # one in which it stopped being active, NULL while it is.
    Column("since", Integer, nullable=False, server_default="0"),
    Column("stopped_at", Integer),
    *required(Integer, "access_count", "reactivation_count"),
    *required(Moment, "created_at", "happened_at"),
    Column("last_activated", Moment),
    Column("last_accessed", Moment),
    *required(Text, "tool", "client", "session_id"),
    # How many memories of its session were stored before it.
    Column("turn", Integer, nullable=False, server_default="0"),
    # The older one that says nearly the same, and was not taken for the same (spec T6).
    Column("resembles", Text, index=True),
    Column("content_hash", Text, nullable=False),
    # What keyword search looks into: see `storage.sql.database.memory_rows`.
    *required(Text, "folded", "folded_themes"),
    UniqueConstraint("being_id", "key"),
    # With status and freshness, so that counting a cluster's memories does not read them.
    Index("ix_memories_cluster", "being_id", "cluster_id", "status", "fresh"),
    # ❸ looks up, for each cycle of activation, those below the importance that has faded by now.
    Index("ix_memories_fading", "being_id", "status", "pinned", "since", "importance"),
    Index("ix_memories_created", "being_id", "created_at"),
    Index("ix_memories_recalled_dead", "being_id", **only_where("status = 'dead' AND reactivation_count > 0")),
    Index(
        "ix_memories_sessions",
        "being_id",
        "session_id",
        "created_at",
        "status",
        "pinned",
        "category",
        "compressed",
        **only_where("category = 'episodic' AND session_id != '' AND compressed = 0"),
    ),
    Index("ix_memories_turn", "being_id", "session_id", "turn", **only_where("session_id != ''")),
    Index("ix_memories_procedural", "being_id", "status", **only_where("category = 'procedural'")),
    Index("ix_memories_content_hash", "content_hash"),
    sqlite_autoincrement=True,
    info=lifecycle(
        (DeleteRows("id"), ClearReference("resembles"), Redact("erasing.memories._untie")),
        (
            Journal("memory", "id", CHANGED_BY_PATROLS),
            DeleteWithMemory("id"),
        ),
    ),
)
Index("ix_memories_timeline", memories.c.being_id, memories.c.happened_at.desc(), memories.c.id)
Index(
    "ix_memories_activated",
    memories.c.being_id,
    memories.c.last_activated.desc(),
    memories.c.id,
    **only_where("last_activated IS NOT NULL"),
)
_m = memories.c
RECALLED_DEAD = as_indexed(
    "memories.status = 'dead' AND memories.reactivation_count > 0", (_m.status == "dead") & (_m.reactivation_count > 0)
)
OF_A_SESSION = as_indexed(
    "memories.category = 'episodic' AND memories.session_id != '' AND memories.compressed = 0",
    (_m.category == "episodic") & (_m.session_id != "") & _m.compressed.is_(False),
)

reinforcements = Table(
    "reinforcements",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("memory_id", Text, ForeignKey("memories.id"), nullable=False, index=True),
    *required(Text, "being_id", "text"),
    Column("at", Moment, nullable=False),
    *required(Text, "tool", "client", "session_id"),
    Column("key", Text),
    UniqueConstraint("being_id", "key"),
    sqlite_autoincrement=True,
    info=lifecycle(
        DeleteRows(), LeftByUndo("what was stored again is not a patrol's; an undo that would lose it is refused")
    ),
)

clusters = Table(
    "clusters",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("being_id", Text, nullable=False, index=True),
    *required(Text, "name", "parent_id"),
    Column("is_root", Boolean, nullable=False),
    Column("vector", LargeBinary),
    Column("model", Text),
    info=lifecycle(
        Redact("erasing.memories._mend_clusters"),
        Journal("cluster", "id", ("name", "parent_id", "is_root", "vector", "model")),
    ),
)

notes = Table(
    "notes",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    *required(Text, "being_id", "type", "content"),
    Column("created_at", Moment, nullable=False),
    *required(Text, "state", "reason", "folded"),
    # What it became, so that it can be forgotten with it.
    Column("memory_id", Text, index=True),
    Index("ix_notes_inbox", "being_id", "state", "type"),
    sqlite_autoincrement=True,
    info=lifecycle(
        DeleteRows(),
        # Without the content, which changes only by a secret being taken out of it.
        Journal("note", "id", ("state", "reason", "memory_id")),
    ),
)
Index("ix_notes_timeline", notes.c.being_id, notes.c.created_at.desc(), notes.c.id)

embeddings = Table(
    "embeddings",
    metadata,
    *required(Text, "model", "content_hash"),
    Column("vector", LargeBinary, nullable=False),
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("model", "content_hash"),
    info=lifecycle(Redact("memories.index_source.delete_orphaned_vectors"), LeftByUndo("a cache")),
)

index_pending = Table(
    "index_pending",
    metadata,
    # Numbered without reuse: a mark made later is greater, also after all have been cleared.
    Column("mark", Integer, primary_key=True),
    Column("memory_id", Text, ForeignKey("memories.id"), nullable=False, index=True),
    sqlite_autoincrement=True,
    info=lifecycle(DeleteRows(), DeleteWithMemory()),
)

settings = Table(
    "settings",
    metadata,
    Column("name", Text, primary_key=True, nullable=False),
    Column("value", Text, nullable=False),
    info=lifecycle(KeepRows("facts about the store"), LeftByUndo("no patrol changes it")),
)

# Only ever appended to: triggers refuse the rest (migration 0002).
audit = Table(
    "audit",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("at", Moment, nullable=False),
    *required(Text, "event", "being_id", "client", "role", "tool"),
    Column("ids", TextList, nullable=False),
    sqlite_autoincrement=True,
    info=lifecycle(KeepRows("ids only, append-only"), LeftByUndo("append-only")),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("secret_hash", Digest, nullable=False),
    *required(Text, "being_id", "role"),
    Column("read_only", Boolean, nullable=False),
    *required(Text, "resource", "name"),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    Column("revoked_at", Moment),
    info=lifecycle(KeepRows("names no memory"), LeftByUndo("no patrol changes it")),
)

# What a memory was before each change; NULL where that change left it as it was.
revisions = Table(
    "revisions",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("memory_id", Text, ForeignKey("memories.id"), nullable=False, index=True),
    Column("being_id", Text, nullable=False),
    Column("at", Moment, nullable=False),
    Column("client", Text, nullable=False),
    Column("text", Text),
    Column("importance", Float),
    Column("themes", TextList),
    Column("pinned", Boolean),
    sqlite_autoincrement=True,
    info=lifecycle(DeleteRows(), LeftByUndo("no patrol revises a memory")),
)

# Memories that are gone from the tables, and may have left bytes in the files.
forgotten = Table(
    "forgotten",
    metadata,
    Column("mark", Integer, primary_key=True),
    Column("memory_id", Text, nullable=False),
    sqlite_autoincrement=True,
    info=lifecycle(
        KeepRows("the mark of what is forgotten, until its bytes are gone"), LeftByUndo("forgetting is final")
    ),
)

# Conversations as they were observed (spec T1, H1). `messages` is the position that the next message gets, `watched`
# that from which on the memory thread has not looked; between them some may have been erased. `next_try`: since when
# they wait for it, or, after a failure, until when. One that was erased whole stays, blank, so that no position is
# given out twice.
sessions = Table(
    "sessions",
    metadata,
    *required(Text, "being_id", "session_id", "title"),
    # Where it was held: the client, or the export that it was imported from.
    Column("interface", Text, nullable=False),
    *required(Moment, "first_at", "last_at"),
    *required(Integer, "messages", "watched", "failures"),
    Column("next_try", Moment, nullable=False),
    PrimaryKeyConstraint("being_id", "session_id"),
    Index("ix_sessions_unwatched", "next_try", **only_where("watched < messages")),
    info=lifecycle(Redact("erasing.messages.erase"), LeftByUndo("no patrol changes it")),
)

messages = Table(
    "messages",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    *required(Text, "being_id", "session_id"),
    # In its session, from 0, without a gap while none is erased; not given out again.
    Column("position", Integer, nullable=False),
    *required(Text, "role", "speaker", "text"),
    *required(Moment, "at", "stored_at"),
    Column("client", Text, nullable=False),
    Column("key", Text),
    Column("folded", Text, nullable=False),
    UniqueConstraint("being_id", "session_id", "position"),
    UniqueConstraint("being_id", "session_id", "key"),
    sqlite_autoincrement=True,
    info=lifecycle(Redact("erasing.messages.erase"), LeftByUndo("no patrol changes it")),
)
Index("ix_messages_timeline", messages.c.being_id, messages.c.at.desc(), messages.c.id)

# Keys of messages that were forgotten, by a hash with their session: what is read again does not come back.
forgotten_keys = Table(
    "forgotten_keys",
    metadata,
    *required(Text, "being_id", "key_hash"),
    PrimaryKeyConstraint("being_id", "key_hash"),
    info=lifecycle(
        KeepRows("hashes, so that what is read again does not come back"), LeftByUndo("forgetting is final")
    ),
)

# What was said, and what has come of it.
message_memories = Table(
    "message_memories",
    metadata,
    Column("message_id", Text, nullable=False),
    Column("memory_id", Text, nullable=False, index=True),
    PrimaryKeyConstraint("message_id", "memory_id"),
    info=lifecycle(DeleteRows(), LeftByUndo("no patrol changes it")),
)

# Who the being is and whom it deals with, by kind and name (spec P5). Of a preference that is a procedural memory too,
# `memory_id` names it.
profile = Table(
    "profile",
    metadata,
    *required(Text, "being_id", "kind", "name", "value"),
    Column("enabled", Boolean, nullable=False),
    Column("memory_id", Text, index=True),
    Column("updated_at", Moment, nullable=False),
    PrimaryKeyConstraint("being_id", "kind", "name"),
    info=lifecycle(DeleteRows(), DeleteWithMemory()),
)

# Texts that were poured in to the end, by an HMAC of the key of each, and what came of it.
ingested = Table(
    "ingested",
    metadata,
    *required(Text, "being_id", "key"),
    Column("at", Moment, nullable=False),
    Column("outcome", Text, nullable=False),
    PrimaryKeyConstraint("being_id", "key"),
    info=lifecycle(Redact("memories.storing.remove_ingest_digests"), LeftByUndo("no patrol changes it")),
)
