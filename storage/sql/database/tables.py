"""The tables. Times are microseconds since 1970, UTC; lists and records are JSON text; vectors are float32 bytes."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, Integer, LargeBinary, Text
from sqlalchemy.schema import UniqueConstraint

from madeleine.storage.sql.database.dialect import (
    HashBytesColumnType,
    JsonTextColumnType,
    TextListColumnType,
    UtcMicrosColumnType,
    condition_worded_like_partial_index,
    partial_index_options,
)
from madeleine.storage.sql.tables import archive, conversations, core_blocks, declaring, graph, lessons, operations  # noqa: F401
from madeleine.storage.sql.tables.lifecycle import (
    ArchiveWithMemoryRule,
    ColumnJournalingRule,
    DeletedWithUndoneMemory,
    DeleteRowsNamingForgotten,
    EraseRowsListingForgotten,
    ForgottenRemovedByNamedFunction,
    KeepAllRowsWhenForgetting,
    ReferenceClearedWhenForgetting,
    UntouchedByPatrolUndo,
)

metadata = declaring.metadata
_keys, _optional, _required, _table = (
    declaring.make_primary_key_columns,
    declaring.make_nullable_columns,
    declaring.make_not_null_columns,
    declaring.declare_table,
)

_JOURNALLED_MEMORY_COLUMNS = (
    *("importance", "status", "fresh", "cluster_id", "absorbed_into", "since", "stopped_at", "reactivation_count"),
    *("when_", "content_hash", "compressed", "compressed_into", "feeling", "emotions", "emotion", "lesson", "category"),
    *("truth", "valid_from", "valid_until", "superseded_by", "retraction_reason", "may_supersede"),
    "kept_until",
)
memories_table = _table(
    "memories",
    *_keys(Integer, "seq"),
    Column("id", Text, nullable=False, unique=True),
    *_required(Text, "being_id", "action", "when_", "setting", "feeling", "category", "lesson", "status"),
    *_required(TextListColumnType, "actors", "dialogue", "sensory", "themes", "emotions"),
    *_required(Float, "importance"),
    *_required(Boolean, "pinned", "fresh", "compressed"),
    *_optional(Text, "emotion", "key", "cluster_id"),
    # The summary that tells of it (spec L3); on the summary `compression_source` is true.
    Column("compressed_into", Text, index=True),
    Column("compression_source", Boolean, nullable=False, server_default="0"),
    Column("absorbed_into", Text, index=True),
    Column("resembles", Text, index=True),
    Column("retold", Text, nullable=False, server_default="[]"),
    # Cycle of the last activation. `session_count` is `coalesce(stopped_at, beings.cycle) - since`.
    Column("since", Integer, nullable=False, server_default="0"),
    *_optional(Integer, "stopped_at"),
    # current, superseded (then, and only then, by another memory) or retracted; when what it says holds (ruling 14).
    Column("truth", Text, nullable=False, server_default="current"),
    *_optional(UtcMicrosColumnType, "valid_from", "valid_until"),
    *_optional(Text, "superseded_by", "may_supersede"),
    Column("retraction_reason", Text, nullable=False, server_default=""),
    *_required(Integer, "access_count", "reactivation_count"),
    *_required(UtcMicrosColumnType, "created_at", "happened_at", "span_start", "span_end"),
    *_optional(UtcMicrosColumnType, "announced_start", "announced_end"),
    *_optional(UtcMicrosColumnType, "last_activated", "last_accessed", "kept_until"),
    *_required(Text, "tool", "client", "session_id"),
    # Of what all beings share: what kind it is, who shared it and as what (spec O4).
    *_optional(Text, "knowledge", "author", "author_role", "project", "level"),
    Column("turn", Integer, nullable=False, server_default="0"),
    # For keyword search: see `storage.sql.database.memory_rows`.
    *_required(Text, "content_hash", "folded", "folded_themes"),
    # Counts the being's memories; see `last_memory_numbers_table`.
    Column("number", Integer, nullable=False, server_default="0"),
    UniqueConstraint("being_id", "key"),
    Index("ix_memories_number", "being_id", "number", unique=True),
    # With status and freshness, so that counting a cluster's memories does not read them.
    Index("ix_memories_cluster", "being_id", "cluster_id", "status", "fresh"),
    # ❸ looks up, for each cycle of activation, those below the importance that has faded by now.
    Index("ix_memories_fading", "being_id", "status", "pinned", "since", "importance"),
    Index("ix_memories_created", "being_id", "created_at"),
    Index("ix_memories_proposals", "may_supersede", **partial_index_options("may_supersede IS NOT NULL")),
    Index(
        "ix_memories_recalled_dead", "being_id", **partial_index_options("status = 'dead' AND reactivation_count > 0")
    ),
    Index(
        "ix_memories_sessions",
        *("being_id", "session_id", "created_at", "status", "pinned", "category", "compressed", "truth", "valid_from"),
        *("may_supersede", "lesson"),
        **partial_index_options("category = 'episodic' AND session_id != '' AND compressed = 0 AND lesson = ''"),
    ),
    Index("ix_memories_turn", "being_id", "session_id", "turn", **partial_index_options("session_id != ''")),
    Index("ix_memories_procedural", "being_id", "status", **partial_index_options("category = 'procedural'")),
    Index("ix_memories_content_hash", "content_hash"),
    Index("ix_memories_knowledge", "knowledge", "truth", "number", **partial_index_options("knowledge IS NOT NULL")),
    Index(
        "ix_memories_scoped", "being_id", "level", **partial_index_options("project IS NOT NULL OR level IS NOT NULL")
    ),
    lifecycle=[
        DeleteRowsNamingForgotten("id"),
        *map(ReferenceClearedWhenForgetting, ("resembles", "may_supersede")),
        ForgottenRemovedByNamedFunction("erasing.memories._MemoryErasure._give_absorbed_memories_to_heirs"),
        ForgottenRemovedByNamedFunction("memories.truth.relink_version_chains"),
        ColumnJournalingRule("memory", "id", _JOURNALLED_MEMORY_COLUMNS),
        *(DeletedWithUndoneMemory("id"), ArchiveWithMemoryRule("id")),
    ],
)
_m = memories_table.c
_spans = (_m.span_start, _m.span_end, _m.announced_start, _m.announced_end)
Index("ix_memories_timeline", _m.being_id, _m.happened_at.desc(), _m.id, *_spans)
_old, _activated = map(partial_index_options, ("superseded_by IS NOT NULL", "last_activated IS NOT NULL"))
Index("ix_memories_superseded", _m.being_id, _m.superseded_by, _m.valid_until, **_old)
Index("ix_memories_activated", _m.being_id, _m.last_activated.desc(), _m.id, **_activated)
MEMORY_IS_DEAD_BUT_RECALLED = condition_worded_like_partial_index(
    "memories.status = 'dead' AND memories.reactivation_count > 0", (_m.status == "dead") & (_m.reactivation_count > 0)
)
MEMORY_IS_UNSUMMARISED_EPISODE = condition_worded_like_partial_index(
    "memories.category = 'episodic' AND memories.session_id != '' AND memories.compressed = 0 AND memories.lesson = ''",
    (_m.category == "episodic") & (_m.session_id != "") & _m.compressed.is_(False) & (_m.lesson == ""),
)

# The last number that a memory of the being was given; none is given again (ruling 23).
last_memory_numbers_table = _table(
    "memory_numbers",
    *(*_keys(Text, "being_id"), *_required(Integer, "last")),
    lifecycle=[KeepAllRowsWhenForgetting("a counter"), UntouchedByPatrolUndo("a number is not given again")],
)

reinforcements_table = _table(
    "reinforcements",
    *_keys(Integer, "seq"),
    Column("memory_id", Text, ForeignKey("memories.id"), nullable=False, index=True),
    *_required(Text, "being_id", "text", "tool", "client", "session_id"),
    *_required(UtcMicrosColumnType, "at"),
    *_optional(Text, "key"),
    UniqueConstraint("being_id", "key"),
    lifecycle=[
        *(DeleteRowsNamingForgotten(), ArchiveWithMemoryRule()),
        UntouchedByPatrolUndo("a reinforcement is not a patrol's; an undo that would lose it is refused"),
    ],
)

clusters_table = _table(
    "clusters",
    *_keys(Text, "id"),
    Column("being_id", Text, nullable=False, index=True),
    *_required(Text, "name", "parent_id"),
    *_required(Boolean, "is_root"),
    *_optional(LargeBinary, "vector"),
    *_optional(Text, "model"),
    lifecycle=[
        ForgottenRemovedByNamedFunction("erasing.memories._MemoryErasure._recompute_and_rename_clusters"),
        ColumnJournalingRule("cluster", "id", ("name", "parent_id", "is_root", "vector", "model")),
    ],
)

notes_table = _table(
    "notes",
    *_keys(Integer, "seq"),
    Column("id", Text, nullable=False, unique=True),
    *_required(Text, "being_id", "type", "content", "state", "reason", "folded"),
    *_required(UtcMicrosColumnType, "created_at"),
    # The memory that it became, so that it can be forgotten with it.
    Column("memory_id", Text, index=True),
    Index("ix_notes_inbox", "being_id", "state", "type"),
    # Without the content, which changes only by a secret being taken out of it.
    lifecycle=[DeleteRowsNamingForgotten(), ColumnJournalingRule("note", "id", ("state", "reason", "memory_id"))],
)
Index("ix_notes_timeline", notes_table.c.being_id, notes_table.c.created_at.desc(), notes_table.c.id)

embeddings_table = _table(
    "embeddings",
    *_keys(Text, "model", "content_hash"),
    *_required(LargeBinary, "vector"),
    *_required(UtcMicrosColumnType, "created_at"),
    lifecycle=[
        ForgottenRemovedByNamedFunction("memories.index_source.delete_orphaned_vectors"),
        UntouchedByPatrolUndo("a cache"),
    ],
)

index_pending_table = _table(
    "index_pending",
    # Numbered without reuse: a mark made later is greater, also after all have been cleared.
    *_keys(Integer, "mark"),
    Column("memory_id", Text, ForeignKey("memories.id"), nullable=False, index=True),
    lifecycle=[DeleteRowsNamingForgotten(), DeletedWithUndoneMemory(), ArchiveWithMemoryRule()],
)

store_settings_table = _table(
    "settings",
    *(*_keys(Text, "name"), *_required(Text, "value")),
    lifecycle=[KeepAllRowsWhenForgetting("facts about the store"), UntouchedByPatrolUndo("no patrol changes it")],
)

# Only ever appended to: triggers refuse the rest (migration 0002).
audit_entries_table = _table(
    "audit",
    *_keys(Integer, "seq"),
    *_required(UtcMicrosColumnType, "at"),
    *_required(Text, "event", "being_id", "client", "role", "tool"),
    *_required(TextListColumnType, "ids"),
    Column("author", Text, nullable=False, server_default=""),
    Column("token", Text, nullable=False, server_default=""),
    lifecycle=[KeepAllRowsWhenForgetting("ids only, append-only"), UntouchedByPatrolUndo("append-only")],
)

bearer_tokens_table = _table(
    "tokens",
    *_keys(Text, "id"),
    *_required(HashBytesColumnType, "secret_hash"),
    *_required(Text, "being_id", "role", "resource", "name"),
    *_required(Boolean, "read_only"),
    *_required(UtcMicrosColumnType, "created_at"),
    *_optional(UtcMicrosColumnType, "expires_at", "revoked_at"),
    lifecycle=[KeepAllRowsWhenForgetting("names no memory"), UntouchedByPatrolUndo("no patrol changes it")],
)

# Fields of a memory before each change; NULL where that change left it as it was.
revisions_table = _table(
    "revisions",
    *_keys(Integer, "seq"),
    Column("memory_id", Text, ForeignKey("memories.id"), nullable=False, index=True),
    *_required(Text, "being_id", "client"),
    *_required(UtcMicrosColumnType, "at"),
    *_optional(Text, "text"),
    *_optional(Float, "importance"),
    *_optional(TextListColumnType, "themes"),
    *_optional(Boolean, "pinned"),
    *_optional(TextListColumnType, "when"),
    lifecycle=[
        DeleteRowsNamingForgotten(),
        ArchiveWithMemoryRule(),
        UntouchedByPatrolUndo("no patrol revises a memory"),
    ],
)

# Acts that changed what is true (ruling 14): one row for each memory that an act concerns, with its fields before and
# after. `run_id`: the patrol that decided it, else "".
truth_changes_table = _table(
    "truth_acts",
    *_keys(Integer, "seq"),
    Column("memory_id", Text, ForeignKey("memories.id"), nullable=False, index=True),
    *_required(Text, "act_id", "being_id", "kind", "client", "tool", "run_id"),
    *_required(UtcMicrosColumnType, "at"),
    *_required(JsonTextColumnType, "before", "after"),
    Index("ix_truth_acts_act", "act_id"),
    lifecycle=[
        ForgottenRemovedByNamedFunction("memories.truth.relink_version_chains"),
        *(DeletedWithUndoneMemory(), ArchiveWithMemoryRule()),
        UntouchedByPatrolUndo("the acts of a patrol are deleted when it is undone"),
    ],
)

# Memories that are gone from the tables, and may have left bytes in the files.
pending_scrub_marks_table = _table(
    "forgotten",
    *(*_keys(Integer, "mark"), *_required(Text, "memory_id")),
    Column("erased_at", UtcMicrosColumnType, nullable=False, server_default="0"),
    lifecycle=[
        KeepAllRowsWhenForgetting("ids whose bytes may remain"),
        UntouchedByPatrolUndo("forgetting is final"),
    ],
)

# Who the being is and whom it deals with, by kind and name (spec P5). Of a preference that is a procedural memory too,
# `memory_id` names it.
profile_entries_table = _table(
    "profile",
    *_keys(Text, "being_id", "kind", "name"),
    *_required(Text, "value"),
    *_required(Boolean, "enabled"),
    Column("memory_id", Text, index=True),
    *_required(UtcMicrosColumnType, "updated_at"),
    lifecycle=[DeleteRowsNamingForgotten(), DeletedWithUndoneMemory(), ArchiveWithMemoryRule()],
)

# Texts that were ingested to the end, by an HMAC of the key of each, and the outcome.
ingest_outcomes_table = _table(
    "ingested",
    *_keys(Text, "being_id", "key"),
    *_required(UtcMicrosColumnType, "at"),
    *_required(Text, "outcome"),
    lifecycle=[
        ForgottenRemovedByNamedFunction("memories.storing.remove_ingest_digests_of_memories"),
        UntouchedByPatrolUndo("no patrol changes it"),
    ],
)

patrol_runs = _table(
    "patrol_runs",
    *_keys(Text, "id"),
    *_required(Text, "being_id"),
    *_required(UtcMicrosColumnType, "started", "finished"),
    *_required(JsonTextColumnType, "report"),
    # running, finished, undone, rolled_back, pruned, unjournalled
    Column("state", Text, nullable=False, server_default="finished"),
    Index("ix_patrol_runs_started", "being_id", "started"),
    lifecycle=[
        ForgottenRemovedByNamedFunction("erasing.memories._MemoryErasure._redact_patrol_reports"),
        UntouchedByPatrolUndo("says that it was undone"),
    ],
)

# The being's clock, and its points for the next session (spec P8).
beings_table = _table(
    "beings",
    *_keys(Text, "being_id"),
    *_required(Integer, "cycle"),
    *_required(TextListColumnType, "think", "think_sources"),
    lifecycle=[
        EraseRowsListingForgotten("think_sources", {"think": "[]", "think_sources": "[]"}),
        ColumnJournalingRule("thoughts", "being_id", ("think", "think_sources")),
    ],
)

# The journal (ruling 11): changes of each run, in order; `before` is NULL for a row that it made, `after` for one that
# it deleted.
patrol_changes_table = _table(
    "patrol_changes",
    *_keys(Integer, "seq"),
    Column("run_id", Text, nullable=False, index=True),
    *_required(Text, "being_id", "step", "kind", "target"),
    *_optional(JsonTextColumnType, "before", "after"),
    Index("ix_patrol_changes_target", "being_id", "target"),
    lifecycle=[
        ForgottenRemovedByNamedFunction("erasing.patrols.redact_patrol_journal"),
        UntouchedByPatrolUndo("the journal of a run goes with its undo"),
    ],
)

# Decision requests that were offered to agents (ruling 10). `body` is "{}" once one is decided.
decision_requests_table = _table(
    "patrol_offers",
    *_keys(Text, "id"),
    *_required(Text, "being_id", "topic"),
    *_required(UtcMicrosColumnType, "made_at"),
    *_required(JsonTextColumnType, "body"),
    *_optional(Text, "settled_by"),
    Index("ix_patrol_offers_topic", "being_id", "topic"),
    lifecycle=[
        ForgottenRemovedByNamedFunction("erasing.patrols.delete_decision_requests_about_memories"),
        UntouchedByPatrolUndo("what was decided stays decided"),
    ],
)

diary_entries_table = _table(
    "diary",
    *_keys(Text, "being_id", "date"),
    *_required(Text, "text"),
    *_required(TextListColumnType, "sources"),
    *_required(UtcMicrosColumnType, "written_at"),
    lifecycle=[
        EraseRowsListingForgotten("sources"),
        ColumnJournalingRule("diary", "date", ("text", "sources", "written_at")),
    ],
)

# Costs of language models (spec O10).
cost_records_table = _table(
    "cost_records",
    *_keys(Integer, "seq"),
    *_required(Text, "being_id", "run_id", "purpose", "model"),
    *_required(UtcMicrosColumnType, "at"),
    *_required(Integer, "input_tokens", "output_tokens"),
    *_optional(Float, "usd"),
    Index("ix_cost_records_being_id", "being_id", "at"),
    lifecycle=[KeepAllRowsWhenForgetting("names no memory"), UntouchedByPatrolUndo("the money is spent")],
)

# Exports and backups that were made, and what they cover: named when something is forgotten that they hold (ruling 25).
ledger_copies_table = _table(
    "copies",
    *_keys(Text, "path"),
    # "" for all beings.
    *_required(Text, "kind", "being_id"),
    *_required(UtcMicrosColumnType, "made_at"),
    lifecycle=[KeepAllRowsWhenForgetting("names files"), UntouchedByPatrolUndo("no patrol changes it")],
)

# Imports of exports, and the rows that each has added, by type and key: so that it is undone by one call. `digest`: of
# what was added of other types than memories, to tell what was changed since.
imports_table = _table(
    "imports",
    *_keys(Text, "id"),
    *_required(Text, "source", "being_id", "state"),
    *_required(UtcMicrosColumnType, "at"),
    *_required(JsonTextColumnType, "counts", "last_numbers"),
    lifecycle=[KeepAllRowsWhenForgetting("counts"), UntouchedByPatrolUndo("no patrol changes it")],
)
imported_rows_table = _table(
    "imported_rows",
    *_keys(Text, "import_id", "type", "key"),
    *_required(Text, "digest"),
    Column("memory_id", Text, index=True),
    lifecycle=[DeleteRowsNamingForgotten(), UntouchedByPatrolUndo("no patrol changes it")],
)
