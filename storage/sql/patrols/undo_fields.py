"""What an undo makes of every row that the run has changed: pure, then written in as few statements as there are kinds
of change (spec ruling 11)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import Delete, Insert, Update, delete, insert

from madeleine.memory.model import Scope
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import own_row, own_row_binds, update_own_row
from madeleine.storage.sql.patrols.journal import KINDS, Fields, to_column

_CLOCK = ("since", "stopped_at")


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the journal."""

    seq: int
    kind: str
    target: str
    before: Fields | None
    after: Fields | None


@dataclass(slots=True)
class Plan:
    """For the rows of one kind. `was`: as they are; `changed`: those that are to be something else, None for gone."""

    kind: str
    was: Mapping[str, Fields]
    changed: dict[str, Fields | None] = field(default_factory=dict)
    kept: set[tuple[str, str]] = field(default_factory=set)
    """Row and field: it is not what the run had left."""
    made: set[str] = field(default_factory=set)
    """Clusters of the run's own making."""
    mean_anew: set[str] = field(default_factory=set)
    """Clusters whose mean belongs to nobody's state any more."""

    @property
    def clocks(self) -> list[str]:
        """Memories whose clock is another by it, or that were dead, when a recall leaves the clock alone (ruling 2)."""
        return [key for key, now in self.changed.items() if now and _has_another_clock(self.was[key], now)]


def _has_another_clock(was: Fields, now: Fields) -> bool:
    if now["status"] == "dead":
        return False
    return was["status"] == "dead" or any(was[name] != now[name] for name in _CLOCK)


def plan_undo(kind: str, changes: Sequence[Change], was: Mapping[str, Fields]) -> Plan:
    """`changes`: of that kind, the newest first. `was`: the rows that they are about, as they are now."""
    plan = Plan(kind, was)
    now: dict[str, Fields | None] = dict(was)
    for change in changes:
        current = now.get(change.target)
        if kind == "memory" and (current is None or change.before is None):
            continue  # forgotten since; or made by the run, and removed as a whole
        now[change.target] = _put_back(plan, change, current)
    plan.changed = {key: fields for key, fields in now.items() if fields != was.get(key)}
    return plan


def _put_back(plan: Plan, change: Change, current: Fields | None) -> Fields | None:
    if plan.kind == "cluster" and change.before and change.before["model"] and change.before["vector"] is None:
        plan.mean_anew.add(change.target)  # it was the mean of one that is forgotten
    if change.before is None or change.after is None or current is None:
        return _put_back_whole(plan, change, current)
    found = dict(current)
    for name, before in change.before.items():
        if current[name] == change.after[name] and (change.target, name) not in plan.kept:
            found[name] = before
        elif name == "reactivation_count":
            found[name] = max(0, before + current[name] - change.after[name])
        elif plan.kind == "cluster" and name in ("vector", "model"):
            plan.mean_anew.add(change.target)
        else:
            plan.kept.add((change.target, name))
    return _with_its_clock(found, change.before) if plan.kind == "memory" else found


def _put_back_whole(plan: Plan, change: Change, current: Fields | None) -> Fields | None:
    if plan.kind == "cluster" and change.before is None:
        plan.made.add(change.target)
    if plan.kind == "note" and current is None:
        return None
    if plan.kind == "thoughts" and change.before is None:
        return {"think": "[]", "think_sources": "[]"}  # the row is the being's, which has a clock too
    return change.before


def _with_its_clock(found: Fields, before: Fields) -> Fields:
    """A recall since then has rewound the clock of one that was awake, and now sleeps again: a dead memory's is not
    rewound (ruling 2), and no clock goes below 0."""
    if found["status"] == "dead":
        found["since"] = before.get("since", found["since"])
    if found["stopped_at"] is not None:
        found["since"] = min(found["since"], found["stopped_at"])
    return found


async def write_plan(transaction: Transaction, scope: Scope, plan: Plan) -> None:
    """One statement for those that go, one for those that come back, one for each set of columns that differ."""
    gone: list[Fields] = []
    back: list[Fields] = []
    changed: dict[tuple[str, ...], list[Fields]] = defaultdict(list)
    for key, fields in plan.changed.items():
        binds = own_row_binds(scope, key)
        was = plan.was.get(key)
        if fields is None:
            gone.append(binds)
        elif was is None:
            back.append(_values(plan.kind, fields, fields) | {KINDS[plan.kind][1]: key, "being_id": scope.being_id})
        else:
            names = tuple(name for name in fields if fields[name] != was[name])
            values = _values(plan.kind, fields, names)
            changed[names].append(own_row_binds(scope, key, **values))
    await transaction.run(_removal(plan.kind), gone)
    await transaction.run(_return(plan.kind), back)
    for names, rows in changed.items():
        await transaction.run(_change(plan.kind, names), rows)


def _values(kind: str, fields: Fields, names: Any) -> Fields:
    return {name: to_column(kind, name, fields[name]) for name in names}


@cache
def _removal(kind: str) -> Delete:
    return delete(KINDS[kind][0]).where(*own_row(*KINDS[kind][:2]))


@cache
def _return(kind: str) -> Insert:
    return insert(KINDS[kind][0])


@cache
def _change(kind: str, names: tuple[str, ...]) -> Update:
    table, key, _ = KINDS[kind]
    return update_own_row(table, *names, key=key)
