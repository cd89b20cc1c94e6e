"""The journal: what a patrol changed, with what was before (ruling 11)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Table, bindparam, insert, select

from madeleine.memory.model import MemoryId, RunId, Scope
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.storage.sql.database import lifecycle
from madeleine.storage.sql.database.dialect import among, as_list, unindexed
from madeleine.storage.sql.database.engine import Reads, Row, Transaction
from madeleine.storage.sql.database.lifecycle import tables_declaring
from madeleine.storage.sql.database.patrol_tables import patrol_changes
from madeleine.storage.sql.database.tables import metadata

Fields = dict[str, Any]

SEEN_BY_INDEX = frozenset({"status", "cluster_id", "when_", "compressed"})
KINDS: Mapping[str, tuple[Table, str, tuple[str, ...]]] = {
    one.kind: (table, one.key, one.columns) for table, one in tables_declaring(metadata, lifecycle.Journal)
}
"""By kind: table, key and journalled columns; a being's own rows only."""
_INSERT = insert(patrol_changes)


def _by_key(table: Table, key: str) -> Any:
    """Of the being; found by the key where that alone is one, as the diary's day is not."""
    being = table.c.being_id
    return (being if key == "date" else unindexed(being)) == bindparam("being")


def _selection(kind: str) -> Any:
    table, key, names = KINDS[kind]
    return select(table.c[key], *(table.c[name] for name in names)).where(
        among(table.c[key], "keys"), _by_key(table, key)
    )


_SELECTIONS = {kind: _selection(kind) for kind in KINDS}


async def state(reads: Reads, scope: Scope, kind: str, keys: Iterable[str]) -> dict[str, Fields]:
    """The rows as they are, by key; fields as JSON can hold them."""
    names = KINDS[kind][2]
    found = await reads.rows(_SELECTIONS[kind], tuple, being=scope.being_id, keys=as_list(dict.fromkeys(keys)))
    return {row[0]: {name: _plain(value) for name, value in zip(names, row[1:], strict=True)} for row in found}


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


class Journal:
    """Of one step of one run, within its transaction: `look_at`, then the changes, then `write`."""

    def __init__(self, transaction: Transaction, scope: Scope, run: RunId, step: str) -> None:
        self._transaction = transaction
        self._scope = scope
        self._run = run
        self._step = step
        self._before: dict[str, dict[str, Fields]] = {}

    async def look_at(self, changes: PatrolChanges) -> None:
        for kind, keys in _targets(self._scope, changes).items():
            self._before[kind] = await state(self._transaction, self._scope, kind, keys)

    async def write(self, changes: PatrolChanges) -> list[MemoryId]:
        """The memories, but for new ones, of which the index holds something that is different now."""
        rows: list[dict[str, Any]] = []
        moved: list[MemoryId] = []
        for kind, keys in _targets(self._scope, changes).items():
            now = await state(self._transaction, self._scope, kind, keys)
            for key in dict.fromkeys(keys):
                before, after = difference(self._before[kind].get(key), now.get(key), whole=kind != "memory")
                if before != after:
                    rows.append(self._row(kind, key, before, after))
                    if kind == "memory" and before is not None and SEEN_BY_INDEX.intersection(before):
                        moved.append(MemoryId(key))
        await self._transaction.run(_INSERT, rows)
        return moved

    async def ticked(self, cycle: int) -> None:
        """The being's clock went from `cycle` to the next."""
        row = self._row("clock", self._scope.being_id, {"cycle": cycle}, {"cycle": cycle + 1})
        await self._transaction.run(_INSERT, [row])

    def _row(self, kind: str, key: str, before: Fields | None, after: Fields | None) -> dict[str, Any]:
        return {
            "run_id": self._run,
            "being_id": self._scope.being_id,
            "step": self._step,
            "kind": kind,
            "target": key,
            "before": to_json(before),
            "after": to_json(after),
        }


def _targets(scope: Scope, changes: PatrolChanges) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {
        "memory": [
            *(one.id for one in changes.new),
            *(one.id for one in changes.states),
            *(one.id for one in changes.rewritten),
            *changes.compressed,
        ],
        "cluster": [*(one.id for one in changes.clusters), *changes.removed_clusters],
        "note": [one.id for one in changes.notes],
        "diary": [changes.diary.date] if changes.diary else [],
        "thoughts": [scope.being_id] if changes.thoughts else [],
    }
    return {kind: keys for kind, keys in found.items() if keys}


def difference(before: Fields | None, after: Fields | None, *, whole: bool) -> tuple[Fields | None, Fields | None]:
    """Only what differs, where both are there and not `whole`. Equal where nothing does."""
    if whole or before is None or after is None:
        return before, after
    names = [name for name in before if before[name] != after[name]]
    return {name: before[name] for name in names}, {name: after[name] for name in names}


def to_json(fields: Fields | None) -> str | None:
    return None if fields is None else json.dumps(fields, ensure_ascii=False)


def from_json(stored: str | None) -> Fields | None:
    return None if stored is None else json.loads(stored)


def to_column(kind: str, name: str, value: Any) -> Any:
    """As the table wants what `state` gave."""
    if kind == "cluster" and name == "vector" and value is not None:
        return base64.b64decode(value)
    return bool(value) if name in ("fresh", "compressed", "is_root") else value


def row_of(row: Row) -> tuple[int, str, str, Fields | None, Fields | None]:
    """(seq, kind, target, before, after)"""
    seq, kind, target, before, after = row
    return seq, kind, target, from_json(before), from_json(after)
