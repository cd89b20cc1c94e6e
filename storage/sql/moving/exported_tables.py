"""Which tables an export holds, as which records, in which order; and why it leaves out the others."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Select,
    Table,
    func,
    literal_column,
    select,
    type_coerce,
    union,
)

from madeleine.memory.moving import records
from madeleine.memory.moving.archive_records import ArchivedMemoryExportRecord, ArchiveGroupExportRecord
from madeleine.memory.moving.record_base import ExportRecord
from madeleine.storage.sql.conversations.chat import NO_FIRST_AT
from madeleine.storage.sql.database import tables
from madeleine.storage.sql.database.dialect import (
    JsonTextColumnType,
    PackedRecordsColumnType,
    TextListColumnType,
    UtcMicrosColumnType,
)
from madeleine.storage.sql.database.engine import Row
from madeleine.storage.sql.database.filters import equals_if_bound
from madeleine.storage.sql.database.mapping import encode_column_value, moment_from_microseconds
from madeleine.storage.sql.database.memory_rows import CYCLES_SINCE_REACTIVATION_SQL_EXPRESSION
from madeleine.storage.sql.tables.archive import archive_groups_table, archived_memories_table
from madeleine.storage.sql.tables.conversations import (
    forgotten_keys_table,
    message_memories_table,
    messages_table,
    sessions,
)
from madeleine.storage.sql.tables.core_blocks import core_blocks_table
from madeleine.storage.sql.tables.graph import stated_relations_table
from madeleine.storage.sql.tables.lessons import lessons_table

_m, _s = tables.memories_table.c, sessions.c
EXPORT_COMPRESSION_LEVEL = 6
_last_numbers = tables.last_memory_numbers_table.c
_UNTYPED_JSON_MEMORY_COLUMNS = ("when_", "retold", "emotion")
"""Of the memories; JSON without saying so by their type."""


@dataclass(frozen=True)
class ExportedTable:
    """`names`: of columns, where a field has another; `expressions`: of fields that are no column. `derived`: columns
    that are computed from the others at import."""

    record: type[ExportRecord]
    table: Table
    order: tuple[ColumnElement[Any], ...]
    names: Mapping[str, str] = field(default_factory=dict)
    expressions: Mapping[str, ColumnElement[Any]] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    only: ColumnElement[bool] | None = None

    @property
    def record_type_name(self) -> str:
        return str(self.record.model_fields["type"].default)

    def column_name(self, field_name: str) -> str:
        return self.names.get(field_name, "being_id" if field_name == "being" else field_name)

    @property
    def columns_by_field(self) -> dict[str, ColumnElement[Any]]:
        """Columns by field, in the record's order."""
        named = (name for name in self.record.model_fields if name != "type")
        return {
            name: self.expressions[name] if name in self.expressions else self.table.c[self.column_name(name)]
            for name in named
        }

    def select_statement(self) -> Select[Any]:
        """All rows of the being `being`, or of all beings where that is NULL."""
        fields = self.columns_by_field
        being = fields["being"]
        statement = select(*fields.values()).where(equals_if_bound(being, "being"))
        return (statement if self.only is None else statement.where(self.only)).order_by(being, *self.order)

    def to_record(self, row: Row) -> ExportRecord:
        """Raises `ValueError` for a row that no writer leaves there."""
        fields = self.columns_by_field
        values = {
            name: _decode_exported_column_value(column, stored)
            for (name, column), stored in zip(fields.items(), row, strict=True)
        }
        return self.record.model_validate(values)

    def to_row(self, record: ExportRecord) -> dict[str, Any]:
        """Values by column; without those that are derived."""
        return {
            self.column_name(name): _encode_exported_column_value(
                self.table.c[self.column_name(name)], getattr(record, name)
            )
            for name in self.columns_by_field
            if name not in self.expressions
        }


def _decode_exported_column_value(column: ColumnElement[Any], stored: Any) -> Any:
    if stored is None:
        return None
    if isinstance(column.type, UtcMicrosColumnType):
        return moment_from_microseconds(stored)
    if isinstance(column.type, Boolean):
        return bool(stored)
    if isinstance(column.type, PackedRecordsColumnType):
        return [json.loads(line) for line in zlib.decompress(stored).splitlines()]
    if (
        isinstance(column.type, TextListColumnType | JsonTextColumnType)
        or getattr(column, "name", "") in _UNTYPED_JSON_MEMORY_COLUMNS
    ):
        return json.loads(stored)
    return stored


def _encode_exported_column_value(column: ColumnElement[Any], value: Any) -> Any:
    if isinstance(column.type, JsonTextColumnType) and value is not None:
        return json.dumps(dict(value), ensure_ascii=False)
    if isinstance(column.type, PackedRecordsColumnType):
        lines = (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in value)
        return zlib.compress("".join(lines).encode(), EXPORT_COMPRESSION_LEVEL)
    return encode_column_value(value)


_links, _messages = message_memories_table.c, messages_table.c
_being_of_message = (
    select(_messages.being_id)
    .where(_messages.id == _links.message_id)
    .correlate(message_memories_table)
    .scalar_subquery()
)
_revisions, _acts, _told = tables.revisions_table.c, tables.truth_changes_table.c, tables.reinforcements_table.c
_changes, _runs, _notes = tables.patrol_changes_table.c, tables.patrol_runs.c, tables.notes_table.c
_profile, _diary, _keys = tables.profile_entries_table.c, tables.diary_entries_table.c, forgotten_keys_table.c
_lessons, _stated, _blocks = lessons_table.c, stated_relations_table.c, core_blocks_table.c
_groups, _archived = archive_groups_table.c, archived_memories_table.c
_clusters, _beings = tables.clusters_table.c, tables.beings_table.c
_known_beings = union(
    *(
        select(table.c.being_id)
        for table in (
            tables.last_memory_numbers_table,
            tables.beings_table,
            sessions,
            tables.notes_table,
            tables.profile_entries_table,
            core_blocks_table,
            tables.diary_entries_table,
            forgotten_keys_table,
        )
    )
).subquery("known_beings")


def _sql_column_of_being_or_default(
    value: ColumnElement[Any], being: ColumnElement[Any], default: Any
) -> ColumnElement[Any]:
    found = select(value).where(being == _known_beings.c.being_id).scalar_subquery()
    return type_coerce(func.coalesce(found, default), value.type)


EXPORTED_TABLES: tuple[ExportedTable, ...] = (
    ExportedTable(
        records.BeingExportRecord,
        tables.beings_table,
        (),
        expressions={
            "being": _known_beings.c.being_id,
            "cycle": _sql_column_of_being_or_default(_beings.cycle, _beings.being_id, 0),
            "think": _sql_column_of_being_or_default(_beings.think, _beings.being_id, "[]"),
            "think_sources": _sql_column_of_being_or_default(_beings.think_sources, _beings.being_id, "[]"),
            "last_number": _sql_column_of_being_or_default(_last_numbers.last, _last_numbers.being_id, 0),
        },
        derived=frozenset({"being_id", "cycle", "think", "think_sources"}),
    ),
    ExportedTable(
        records.ClusterExportRecord, tables.clusters_table, (_clusters.id,), derived=frozenset({"vector", "model"})
    ),
    ExportedTable(
        records.MemoryExportRecord,
        tables.memories_table,
        (_m.number, _m.id),
        names={"when": "when_"},
        expressions={"session_count": CYCLES_SINCE_REACTIVATION_SQL_EXPRESSION},
        derived=frozenset(
            (
                *("seq", "since", "stopped_at", "span_start", "span_end", "announced_start", "announced_end"),
                *("content_hash", "folded", "folded_themes"),
            )
        ),
    ),
    ExportedTable(
        records.ReinforcementExportRecord,
        tables.reinforcements_table,
        (_told.at, _told.memory_id, _told.seq),
        derived=frozenset({"seq"}),
    ),
    ExportedTable(
        records.RevisionExportRecord,
        tables.revisions_table,
        (_revisions.at, _revisions.memory_id, _revisions.seq),
        derived=frozenset({"seq"}),
    ),
    ExportedTable(
        records.TruthChangeExportRecord,
        tables.truth_changes_table,
        (_acts.at, _acts.act_id, _acts.seq),
        derived=frozenset({"seq"}),
    ),
    ExportedTable(records.LessonExportRecord, lessons_table, (_lessons.memory_id,)),
    ExportedTable(ArchiveGroupExportRecord, archive_groups_table, (_groups.archived_at, _groups.id)),
    ExportedTable(
        ArchivedMemoryExportRecord,
        archived_memories_table,
        (_archived.number, _archived.id),
        derived=frozenset({"folded"}),
    ),
    ExportedTable(
        records.StatedRelationExportRecord,
        stated_relations_table,
        (_stated.memory_id, _stated.subject_key, _stated.relation, _stated.object_key),
        derived=frozenset({"subject_key", "object_key"}),
    ),
    ExportedTable(
        records.SessionExportRecord, sessions, (_s.session_id,), only=_s.first_at != literal_column(str(NO_FIRST_AT))
    ),
    ExportedTable(
        records.MessageExportRecord,
        messages_table,
        (_messages.session_id, _messages.position),
        derived=frozenset({"seq", "folded"}),
    ),
    ExportedTable(
        records.MessageMemoryExportRecord,
        message_memories_table,
        (_links.message_id, _links.memory_id),
        expressions={"being": _being_of_message},
        only=_being_of_message.is_not(None),
    ),
    ExportedTable(
        records.NoteExportRecord,
        tables.notes_table,
        (_notes.created_at, _notes.id),
        names={"kind": "type"},
        derived=frozenset({"seq", "folded"}),
    ),
    ExportedTable(records.ProfileExportRecord, tables.profile_entries_table, (_profile.kind, _profile.name)),
    ExportedTable(records.CoreBlockExportRecord, core_blocks_table, (_blocks.name, _blocks.version)),
    ExportedTable(records.DiaryExportRecord, tables.diary_entries_table, (_diary.date,)),
    ExportedTable(records.ForgottenMessageKeyExportRecord, forgotten_keys_table, (_keys.key_hash,)),
    ExportedTable(records.PatrolRunExportRecord, tables.patrol_runs, (_runs.started, _runs.id)),
    ExportedTable(
        records.PatrolChangeExportRecord, tables.patrol_changes_table, (_changes.seq,), derived=frozenset({"seq"})
    ),
)
TABLES_LEFT_OUT_OF_EXPORT: Mapping[str, str] = {
    "memory_numbers": "in the record of the being",
    "embeddings": "vectors are made anew",
    "drawn_memories": "drawn anew from the memories",
    "mentions": "drawn anew from the memories",
    "drawn_relations": "drawn anew from the memories",
    "index_pending": "about this store's index",
    "settings": "about this store",
    "audit": "append-only, about this store",
    "tokens": "secrets of this store",
    "forgotten": "about this store's files",
    "ingested": "keyed with a secret of this store",
    "patrol_offers": "offered anew by the next patrol",
    "cost_records": "the money was spent here",
    **dict.fromkeys(
        ("tasks", "channel_messages", "audited_actions", "agent_states", "application_settings", "projects"),
        "an application's records, no being's memory; a backup holds them",
    ),
    "copies": "about files beside this store",
    "imports": "about this store",
    "imported_rows": "about this store",
}
"""And why."""
