"""The tables that patrols write: runs, the journal, decision requests, the being's clock, the diary, and costs."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Float,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from madeleine.storage.sql.database.dialect import JsonRecord, Moment, TextList, required
from madeleine.storage.sql.database.lifecycle import (
    EraseListing,
    Journal,
    KeepRows,
    LeftByUndo,
    Redact,
    lifecycle,
)
from madeleine.storage.sql.database.tables import metadata

patrol_runs = Table(
    "patrol_runs",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("being_id", Text, nullable=False),
    *required(Moment, "started", "finished"),
    Column("report", JsonRecord, nullable=False),
    # running, finished, undone, rolled_back, unjournalled
    Column("state", Text, nullable=False, server_default="finished"),
    Index("ix_patrol_runs_started", "being_id", "started"),
    info=lifecycle(Redact("erasing.memories._redact_reports"), LeftByUndo("says that it was undone")),
)

# What the patrol knows of a being: its clock, and its notes for the next session (spec P8).
beings = Table(
    "beings",
    metadata,
    Column("being_id", Text, primary_key=True, nullable=False),
    Column("cycle", Integer, nullable=False),
    *required(TextList, "think", "think_sources"),
    info=lifecycle(
        EraseListing("think_sources", {"think": "[]", "think_sources": "[]"}),
        Journal("thoughts", "being_id", ("think", "think_sources")),
    ),
)

# The journal (ruling 11): what each run changed, in order; `before` is NULL for what it made, `after` for what it took
# away.
patrol_changes = Table(
    "patrol_changes",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("run_id", Text, nullable=False, index=True),
    *required(Text, "being_id", "step", "kind", "target"),
    Column("before", Text),
    Column("after", Text),
    Index("ix_patrol_changes_target", "being_id", "target"),
    sqlite_autoincrement=True,
    info=lifecycle(Redact("erasing.derived.clean_journal"), LeftByUndo("the journal of a run goes with its undo")),
)

# What was handed out to be decided (ruling 10). `topic` says what it is about; `body` is "{}" once it is settled.
patrol_offers = Table(
    "patrol_offers",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("being_id", Text, nullable=False),
    Column("made_at", Moment, nullable=False),
    Column("topic", Text, nullable=False),
    Column("body", JsonRecord, nullable=False),
    Column("settled_by", Text),
    Index("ix_patrol_offers_topic", "being_id", "topic"),
    info=lifecycle(Redact("erasing.derived.remove_offers"), LeftByUndo("what was decided stays decided")),
)

diary = Table(
    "diary",
    metadata,
    *required(Text, "being_id", "date", "text"),
    Column("sources", TextList, nullable=False),
    Column("written_at", Moment, nullable=False),
    PrimaryKeyConstraint("being_id", "date"),
    info=lifecycle(EraseListing("sources"), Journal("diary", "date", ("text", "sources", "written_at"))),
)

# What language models cost (spec O10).
cost_records = Table(
    "cost_records",
    metadata,
    Column("seq", Integer, primary_key=True),
    *required(Text, "being_id", "run_id"),
    Column("at", Moment, nullable=False),
    *required(Text, "purpose", "model"),
    *required(Integer, "input_tokens", "output_tokens"),
    Column("usd", Float),
    Index("ix_cost_records_being_id", "being_id", "at"),
    sqlite_autoincrement=True,
    info=lifecycle(KeepRows("names no memory"), LeftByUndo("the money is spent")),
)
