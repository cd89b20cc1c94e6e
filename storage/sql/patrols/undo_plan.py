"""Planning an undo: what every row that the run has changed becomes, without I/O; and writing the plan in as few
statements as there are kinds of change (ruling 11)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from madeleine.memory.model import Scope
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import row_of_being_binds, update_row_of_being_statement
from madeleine.storage.sql.patrols.journal import (
    JOURNALLED_TABLES_BY_KIND,
    JournalFields,
    PatrolJournalRow,
    is_field_unchanged_since_run,
    journal_fields_as_column_values,
)


@dataclass(slots=True)
class TableUndoPlan:
    """The plan for the rows of one kind. `rows`: as they are; `to_write`: those that are to be something else, None for
    rows to delete."""

    kind: str
    rows: Mapping[str, JournalFields]
    to_write: dict[str, JournalFields | None] = field(default_factory=dict)
    kept_fields: set[tuple[str, str]] = field(default_factory=set)
    """Row and field whose value is not the one that the run had left."""
    made_clusters: set[str] = field(default_factory=set)
    """Clusters that the run has made."""
    clusters_without_mean: set[str] = field(default_factory=set)
    """Clusters whose mean has to be computed anew."""

    @property
    def memory_ids_whose_fading_clock_changes(self) -> list[str]:
        """Living memories whose clock changes, or that were dead, when a recall leaves the clock alone (ruling 2)."""
        return [
            key for key, fields in self.to_write.items() if fields and _fading_clock_differs(self.rows[key], fields)
        ]


def _fading_clock_differs(now: JournalFields, restored: JournalFields) -> bool:
    if restored["status"] == "dead":
        return False
    return now["status"] == "dead" or any(now[name] != restored[name] for name in ("since", "stopped_at"))


def plan_table_undo(kind: str, changes: Sequence[PatrolJournalRow], rows: Mapping[str, JournalFields]) -> TableUndoPlan:
    """`changes`: of that kind, the newest first. `rows`: the rows that they are about, as they are."""
    plan = TableUndoPlan(kind, rows)
    restored: dict[str, JournalFields | None] = dict(rows)
    for change in changes:
        current = restored.get(change.target)
        if kind == "memory" and (current is None or change.before is None):
            continue  # forgotten since; or made by the run, and removed as a whole
        restored[change.target] = _undo_change(plan, change, current)
    plan.to_write = {key: fields for key, fields in restored.items() if fields != rows.get(key)}
    return plan


def _undo_change(plan: TableUndoPlan, change: PatrolJournalRow, current: JournalFields | None) -> JournalFields | None:
    if plan.kind == "cluster" and change.before and change.before["model"] and change.before["vector"] is None:
        plan.clusters_without_mean.add(change.target)  # it was the mean of one that is forgotten
    if change.before is None or change.after is None or current is None:
        return _undo_row_creation_or_deletion(plan, change, current)
    restored = dict(current)
    for name, before in change.before.items():
        if (
            is_field_unchanged_since_run(current[name], change.after[name])
            and (change.target, name) not in plan.kept_fields
        ):
            restored[name] = before
        elif name == "reactivation_count":
            restored[name] = max(0, before + current[name] - change.after[name])
        elif plan.kind == "cluster" and name in ("vector", "model"):
            plan.clusters_without_mean.add(change.target)
        else:
            plan.kept_fields.add((change.target, name))
    return _with_valid_fading_clock(restored, change.before) if plan.kind == "memory" else restored


def _undo_row_creation_or_deletion(
    plan: TableUndoPlan, change: PatrolJournalRow, current: JournalFields | None
) -> JournalFields | None:
    if plan.kind == "cluster" and change.before is None:
        plan.made_clusters.add(change.target)
    if plan.kind == "note" and current is None:
        return None
    if plan.kind == "thoughts" and change.before is None:
        return {"think": "[]", "think_sources": "[]"}  # the row is the being's, which has a clock too
    return change.before


def _with_valid_fading_clock(restored: JournalFields, before: JournalFields) -> JournalFields:
    """A recall since then has rewound the clock of a living memory that now is dead again: a dead memory's clock is
    not rewound (ruling 2). No clock goes below 0."""
    if restored["status"] == "dead":
        restored["since"] = before.get("since", restored["since"])
    if restored["stopped_at"] is not None:
        restored["since"] = min(restored["since"], restored["stopped_at"])
    return restored


async def apply_undo_plan(transaction: Transaction, scope: Scope, plan: TableUndoPlan) -> None:
    """One statement for rows to delete, one for rows to insert, one for each set of columns that differ."""
    journalled = JOURNALLED_TABLES_BY_KIND[plan.kind]
    deleted: list[JournalFields] = []
    inserted: list[JournalFields] = []
    updated: dict[tuple[str, ...], list[JournalFields]] = defaultdict(list)
    for key, fields in plan.to_write.items():
        now = plan.rows.get(key)
        if fields is None:
            deleted.append(row_of_being_binds(scope, key))
        elif now is None:
            inserted.append(
                journal_fields_as_column_values(fields, fields) | {journalled.key: key, "being_id": scope.being_id}
            )
        else:
            names = tuple(name for name in fields if fields[name] != now[name])
            updated[names].append(row_of_being_binds(scope, key, **journal_fields_as_column_values(fields, names)))
    await transaction.execute_many(journalled.delete_row, deleted)
    await transaction.execute_many(journalled.insert_row, inserted)
    for names, rows in updated.items():
        await transaction.execute_many(
            update_row_of_being_statement(journalled.table, *names, key=journalled.key), rows
        )
