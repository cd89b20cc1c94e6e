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
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

memories = Table(
    "memories",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("being_id", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("actors", Text, nullable=False),
    Column("when_", Text, nullable=False),
    Column("setting", Text, nullable=False),
    Column("dialogue", Text, nullable=False),
    Column("sensory", Text, nullable=False),
    Column("feeling", Text, nullable=False),
    Column("importance", Float, nullable=False),
    Column("category", Text, nullable=False),
    Column("themes", Text, nullable=False),
    Column("emotions", Text, nullable=False),
    Column("emotion", Text),
    Column("lesson", Text, nullable=False),
    Column("key", Text),
    Column("pinned", Boolean, nullable=False),
    Column("status", Text, nullable=False),
    Column("fresh", Boolean, nullable=False),
    Column("compressed", Boolean, nullable=False),
    Column("cluster_id", Text),
    Column("absorbed_into", Text, index=True),
    # The summary that tells of it (spec L3); on the summary `compression_source` is true.
    Column("compressed_into", Text, index=True),
    Column("compression_source", Boolean, nullable=False, server_default="0"),
    # `session_count` is `coalesce(stopped_at, beings.cycle) - since`: the cycle in which it was last activated, and the
    # one in which it stopped being active, NULL while it is.
    Column("since", Integer, nullable=False, server_default="0"),
    Column("stopped_at", Integer),
    Column("access_count", Integer, nullable=False),
    Column("reactivation_count", Integer, nullable=False),
    Column("created_at", Integer, nullable=False),
    Column("happened_at", Integer, nullable=False),
    Column("last_activated", Integer),
    Column("last_accessed", Integer),
    Column("tool", Text, nullable=False),
    Column("client", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    # How many memories of its session were stored before it.
    Column("turn", Integer, nullable=False, server_default="0"),
    # The older one that says nearly the same, and was not taken for the same (spec T6).
    Column("resembles", Text, index=True),
    Column("content_hash", Text, nullable=False),
    # What keyword search looks into: see `storage.sql.database.folding`.
    Column("folded", Text, nullable=False),
    Column("folded_themes", Text, nullable=False),
    UniqueConstraint("being_id", "key"),
    sqlite_autoincrement=True,
)
# With status and freshness, so that counting a cluster's memories does not read them.
Index("ix_memories_cluster", memories.c.being_id, memories.c.cluster_id, memories.c.status, memories.c.fresh)
# ❸ looks up, for each cycle of activation, those below the importance that has faded by now.
Index(
    "ix_memories_fading",
    memories.c.being_id,
    memories.c.status,
    memories.c.pinned,
    memories.c.since,
    memories.c.importance,
)
Index("ix_memories_created", memories.c.being_id, memories.c.created_at)
RECALLED_DEAD = text("memories.status = 'dead' AND memories.reactivation_count > 0")
OF_A_SESSION = text("memories.category = 'episodic' AND memories.session_id != '' AND memories.compressed = 0")
"""As text: a query with a bound value would not be known to look for what a partial index holds."""
Index("ix_memories_recalled_dead", memories.c.being_id, sqlite_where=text("status = 'dead' AND reactivation_count > 0"))
Index(
    "ix_memories_sessions",
    memories.c.being_id,
    memories.c.session_id,
    memories.c.created_at,
    memories.c.status,
    memories.c.pinned,
    memories.c.category,
    memories.c.compressed,
    sqlite_where=text("category = 'episodic' AND session_id != '' AND compressed = 0"),
)
Index(
    "ix_memories_turn",
    memories.c.being_id,
    memories.c.session_id,
    memories.c.turn,
    sqlite_where=text("session_id != ''"),
)
Index("ix_memories_procedural", memories.c.being_id, memories.c.status, sqlite_where=text("category = 'procedural'"))
Index(
    "ix_memories_activated",
    memories.c.being_id,
    memories.c.last_activated.desc(),
    memories.c.id,
    sqlite_where=text("last_activated IS NOT NULL"),
)
Index("ix_memories_timeline", memories.c.being_id, memories.c.happened_at.desc(), memories.c.id)
Index("ix_memories_content_hash", memories.c.content_hash)

reinforcements = Table(
    "reinforcements",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("memory_id", Text, ForeignKey("memories.id"), nullable=False, index=True),
    Column("being_id", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("at", Integer, nullable=False),
    Column("tool", Text, nullable=False),
    Column("client", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("key", Text),
    UniqueConstraint("being_id", "key"),
    sqlite_autoincrement=True,
)

clusters = Table(
    "clusters",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("being_id", Text, nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("parent_id", Text, nullable=False),
    Column("is_root", Boolean, nullable=False),
    Column("vector", LargeBinary),
    Column("model", Text),
)

notes = Table(
    "notes",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("being_id", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("created_at", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("folded", Text, nullable=False),
    # What it became, so that it can be forgotten with it.
    Column("memory_id", Text, index=True),
    sqlite_autoincrement=True,
)
Index("ix_notes_inbox", notes.c.being_id, notes.c.state, notes.c.type)
Index("ix_notes_timeline", notes.c.being_id, notes.c.created_at.desc(), notes.c.id)

embeddings = Table(
    "embeddings",
    metadata,
    Column("model", Text, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("created_at", Integer, nullable=False),
    PrimaryKeyConstraint("model", "content_hash"),
)

index_pending = Table(
    "index_pending",
    metadata,
    # Numbered without reuse: a mark made later is greater, also after all have been cleared.
    Column("mark", Integer, primary_key=True),
    Column("memory_id", Text, ForeignKey("memories.id"), nullable=False, index=True),
    sqlite_autoincrement=True,
)

settings = Table(
    "settings",
    metadata,
    Column("name", Text, primary_key=True, nullable=False),
    Column("value", Text, nullable=False),
)

patrol_runs = Table(
    "patrol_runs",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("being_id", Text, nullable=False),
    Column("started", Integer, nullable=False),
    Column("finished", Integer, nullable=False),
    Column("report", Text, nullable=False),
    # running, finished, undone, rolled_back, unjournalled
    Column("state", Text, nullable=False, server_default="finished"),
)
Index("ix_patrol_runs_started", patrol_runs.c.being_id, patrol_runs.c.started)

# Only ever appended to: triggers refuse the rest (migration 0002).
audit = Table(
    "audit",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("at", Integer, nullable=False),
    Column("event", Text, nullable=False),
    Column("being_id", Text, nullable=False),
    Column("client", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("ids", Text, nullable=False),
    sqlite_autoincrement=True,
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("secret_hash", LargeBinary, nullable=False),
    Column("being_id", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("read_only", Boolean, nullable=False),
    Column("resource", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_at", Integer, nullable=False),
    Column("expires_at", Integer),
    Column("revoked_at", Integer),
)

# What a memory was before each change; NULL where that change left it as it was.
revisions = Table(
    "revisions",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("memory_id", Text, ForeignKey("memories.id"), nullable=False, index=True),
    Column("being_id", Text, nullable=False),
    Column("at", Integer, nullable=False),
    Column("client", Text, nullable=False),
    Column("text", Text),
    Column("importance", Float),
    Column("themes", Text),
    Column("pinned", Boolean),
    sqlite_autoincrement=True,
)

# Memories that are gone from the tables, and may have left bytes in the files.
forgotten = Table(
    "forgotten",
    metadata,
    Column("mark", Integer, primary_key=True),
    Column("memory_id", Text, nullable=False),
    sqlite_autoincrement=True,
)

# What the patrol knows of a being: its clock, and its notes for the next session (spec P8).
beings = Table(
    "beings",
    metadata,
    Column("being_id", Text, primary_key=True, nullable=False),
    Column("cycle", Integer, nullable=False),
    Column("think", Text, nullable=False),
    Column("think_sources", Text, nullable=False),
)

# The journal (ruling 11): what each run changed, in order; `before` is NULL for what it made, `after` for what it took
# away.
patrol_changes = Table(
    "patrol_changes",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("run_id", Text, nullable=False, index=True),
    Column("being_id", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("before", Text),
    Column("after", Text),
    sqlite_autoincrement=True,
)
Index("ix_patrol_changes_target", patrol_changes.c.being_id, patrol_changes.c.target)

# What was handed out to be decided (ruling 10). `topic` says what it is about; `body` is "{}" once it is settled.
patrol_offers = Table(
    "patrol_offers",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("being_id", Text, nullable=False),
    Column("made_at", Integer, nullable=False),
    Column("topic", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("settled_by", Text),
)
Index("ix_patrol_offers_topic", patrol_offers.c.being_id, patrol_offers.c.topic)

diary = Table(
    "diary",
    metadata,
    Column("being_id", Text, nullable=False),
    Column("date", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("sources", Text, nullable=False),
    Column("written_at", Integer, nullable=False),
    PrimaryKeyConstraint("being_id", "date"),
)

# What language models cost (spec O10).
cost_records = Table(
    "cost_records",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("being_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("at", Integer, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("usd", Float),
    sqlite_autoincrement=True,
)
Index("ix_cost_records_being_id", cost_records.c.being_id, cost_records.c.at)

# Conversations as they were observed (spec T1, H1). `messages` is the position that the next message gets, `watched`
# that from which on the memory thread has not looked; between them some may have been erased. `next_try`: since when
# they wait for it, or, after a failure, until when. One that was erased whole stays, blank, so that no position is
# given out twice.
sessions = Table(
    "sessions",
    metadata,
    Column("being_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("title", Text, nullable=False),
    # Where it was held: the client, or the export that it was imported from.
    Column("interface", Text, nullable=False),
    Column("first_at", Integer, nullable=False),
    Column("last_at", Integer, nullable=False),
    Column("messages", Integer, nullable=False),
    Column("watched", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("next_try", Integer, nullable=False),
    PrimaryKeyConstraint("being_id", "session_id"),
)
Index("ix_sessions_unwatched", sessions.c.next_try, sqlite_where=text("watched < messages"))

messages = Table(
    "messages",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("being_id", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    # In its session, from 0, without a gap while none is erased; not given out again.
    Column("position", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("speaker", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("at", Integer, nullable=False),
    Column("stored_at", Integer, nullable=False),
    Column("client", Text, nullable=False),
    Column("key", Text),
    Column("folded", Text, nullable=False),
    UniqueConstraint("being_id", "session_id", "position"),
    UniqueConstraint("being_id", "session_id", "key"),
    sqlite_autoincrement=True,
)
Index("ix_messages_timeline", messages.c.being_id, messages.c.at.desc(), messages.c.id)

# Keys of messages that were forgotten, by a hash with their session: what is read again does not come back.
forgotten_keys = Table(
    "forgotten_keys",
    metadata,
    Column("being_id", Text, nullable=False),
    Column("key_hash", Text, nullable=False),
    PrimaryKeyConstraint("being_id", "key_hash"),
)

# What was said, and what has come of it.
message_memories = Table(
    "message_memories",
    metadata,
    Column("message_id", Text, nullable=False),
    Column("memory_id", Text, nullable=False, index=True),
    PrimaryKeyConstraint("message_id", "memory_id"),
)

# Who the being is and whom it deals with, by kind and name (spec P5). Of a preference that is a procedural memory too,
# `memory_id` names it.
profile = Table(
    "profile",
    metadata,
    Column("being_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("memory_id", Text, index=True),
    Column("updated_at", Integer, nullable=False),
    PrimaryKeyConstraint("being_id", "kind", "name"),
)

# Texts that were poured in to the end, by an HMAC of the key of each, and what came of it.
ingested = Table(
    "ingested",
    metadata,
    Column("being_id", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("at", Integer, nullable=False),
    Column("outcome", Text, nullable=False),
    PrimaryKeyConstraint("being_id", "key"),
)
