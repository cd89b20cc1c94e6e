"""The journal: what a patrol changed, with the values before (ruling 11)."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sqlalchemy import Table, bindparam, delete, insert, select

from madeleine.memory.model import Memory, MemoryId, RunId, Scope
from madeleine.memory.patrol_records import MemoryFieldsForPatrol, PatrolChanges
from madeleine.storage.sql.database.dialect import in_bound_list_condition, json_list_bind_value, without_index_use
from madeleine.storage.sql.database.engine import SqlRowReader, Transaction
from madeleine.storage.sql.database.mapping import RowMapper, conditions_for_row_by_key_and_being, encode_column_value
from madeleine.storage.sql.database.tables import metadata, patrol_changes_table
from madeleine.storage.sql.tables.lifecycle import ColumnJournalingRule, tables_and_their_lifecycle_rules

JournalFields = dict[str, Any]

INDEXED_MEMORY_FIELDS = frozenset(
    {"status", "cluster_id", "when_", "compressed", "truth", "valid_from", "valid_until", "may_supersede"}
    | {"content_hash", "emotions", "category"}
)
"""Fields of a memory that are in the index too."""
_INSERT_JOURNAL_ROWS = insert(patrol_changes_table)


class JournalledTable:
    """A table whose changes are journalled under a kind, and the statements on a being's own rows."""

    def __init__(self, table: Table, journalled: ColumnJournalingRule) -> None:
        self.table = table
        self.key = journalled.key
        self.columns = journalled.columns
        key, being = table.c[journalled.key], table.c.being_id
        # A diary's day is no key by itself.
        own = (being if key.name == "date" else without_index_use(being)) == bindparam("being")
        self.select_rows = select(key, *(table.c[name] for name in self.columns)).where(
            in_bound_list_condition(key, "keys"), own
        )
        self.insert_row = insert(table)
        self.delete_row = delete(table).where(*conditions_for_row_by_key_and_being(table, self.key))

    async def rows_by_key(self, reads: SqlRowReader, scope: Scope, keys: Iterable[str]) -> dict[str, JournalFields]:
        """The rows as they are, by key; fields as JSON can hold them."""
        rows = await reads.rows(
            self.select_rows, tuple, being=scope.being_id, keys=json_list_bind_value(dict.fromkeys(keys))
        )
        return {key: dict(zip(self.columns, map(_to_json_value, values), strict=True)) for key, *values in rows}


JOURNALLED_TABLES_BY_KIND: Mapping[str, JournalledTable] = {
    journalled.kind: JournalledTable(table, journalled)
    for table, journalled in tables_and_their_lifecycle_rules(metadata, ColumnJournalingRule)
}
"""Tables by their kind of change."""


@dataclass(frozen=True, slots=True)
class PatrolJournalRow:
    """A row of the journal."""

    seq: int
    kind: str
    target: str
    before: JournalFields | None
    after: JournalFields | None


PATROL_JOURNAL_ROW_MAPPER = RowMapper(PatrolJournalRow, patrol_changes_table)


class PatrolStepJournal:
    """The journal of one step of a run, in its transaction: `capture_values_before_changes`, then the changes, then
    `write`."""

    def __init__(self, transaction: Transaction, scope: Scope, run: RunId, step: str) -> None:
        self._transaction = transaction
        self._scope = scope
        self._run = run
        self._step = step
        self._before: dict[str, dict[str, JournalFields]] = {}

    async def capture_values_before_changes(self, changes: PatrolChanges) -> None:
        self._before = {
            kind: await self._rows(kind, keys) for kind, keys in _changed_keys_by_kind(self._scope, changes)
        }

    async def write_changes(self, changes: PatrolChanges) -> list[MemoryId]:
        """Return the memories, new ones excepted, whose fields in the index have changed."""
        rows: list[dict[str, Any]] = []
        indexed: list[MemoryId] = []
        for kind, keys in _changed_keys_by_kind(self._scope, changes):
            now = await self._rows(kind, keys)
            for key in dict.fromkeys(keys):
                before, after = self._before[kind].get(key), now.get(key)
                if kind == "memory" and before and after:
                    changed = [name for name in before if before[name] != after[name]]
                    before, after = {name: before[name] for name in changed}, {name: after[name] for name in changed}
                    if not INDEXED_MEMORY_FIELDS.isdisjoint(changed):
                        indexed.append(MemoryId(key))
                if before != after:
                    rows.append(self._row(kind, key, before, _with_vector_replaced_by_digest(after)))
        await self._transaction.execute_many(_INSERT_JOURNAL_ROWS, rows)
        return indexed

    async def journal_cycle_increment(self, cycle: int) -> None:
        """The being's clock went from `cycle` to the next."""
        row = self._row("clock", self._scope.being_id, {"cycle": cycle}, {"cycle": cycle + 1})
        await self._transaction.execute_many(_INSERT_JOURNAL_ROWS, [row])

    async def _rows(self, kind: str, keys: Iterable[str]) -> dict[str, JournalFields]:
        return await JOURNALLED_TABLES_BY_KIND[kind].rows_by_key(self._transaction, self._scope, keys)

    def _row(self, kind: str, key: str, before: JournalFields | None, after: JournalFields | None) -> dict[str, Any]:
        return {
            "run_id": self._run,
            "being_id": self._scope.being_id,
            "step": self._step,
            "kind": kind,
            "target": key,
            "before": encode_column_value(before),
            "after": encode_column_value(after),
        }


def _changed_keys_by_kind(scope: Scope, changes: PatrolChanges) -> list[tuple[str, Sequence[str]]]:
    """Kinds, and the keys of the rows that the changes are about."""
    memories: list[Memory | MemoryFieldsForPatrol] = [
        *changes.new_memories,
        *changes.states,
        *changes.rewritten_memories,
    ]
    superseded = [id_ for act in changes.superseded for id_ in (act.old, act.new)]
    keys: dict[str, Sequence[str]] = {
        "memory": [*(memory.id for memory in memories), *changes.compressed, *superseded],
        "cluster": [*(cluster.id for cluster in changes.clusters), *changes.removed_clusters],
        "note": [note.id for note in changes.notes],
        "diary": [changes.diary.date] if changes.diary else [],
        "thoughts": [scope.being_id] if changes.thoughts else [],
    }
    return [(kind, of_kind) for kind, of_kind in keys.items() if of_kind]


def _to_json_value(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _with_vector_replaced_by_digest(after: JournalFields | None) -> JournalFields | None:
    """The row itself, or the next change of it, has the vector."""
    return after | {"vector": _vector_digest(after["vector"])} if after and after.get("vector") else after


def _vector_digest(vector: str) -> str:
    return blake2b(vector.encode(), digest_size=9).hexdigest()


def is_field_unchanged_since_run(value: Any, left: Any) -> bool:
    """`value`: a field of a row; `left`: the same field after a change in the journal, or the digest of a vector."""
    return value == left or (isinstance(value, str) and isinstance(left, str) and _vector_digest(value) == left)


def journal_fields_as_column_values(fields: JournalFields, names: Iterable[str]) -> JournalFields:
    """Journalled fields of these names as their columns hold them."""
    vector = fields.get("vector")
    return {name: base64.b64decode(vector) if vector and name == "vector" else fields[name] for name in names}
