"""The audit: who did what, when (spec O4, O10). Appended in the transaction of what it tells of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sqlalchemy import bindparam, func, insert, literal_column, or_, select

from madeleine.memory.audit import AuditEntry, AuditQuery, audit_entry
from madeleine.memory.ingest.ports import Reinforcement
from madeleine.memory.model import Memory
from madeleine.memory.scope import Scope
from madeleine.storage.sql.database.dialect import GREATEST, SMALLEST, last_issued
from madeleine.storage.sql.database.engine import Row, Transaction
from madeleine.storage.sql.database.repository import Repository
from madeleine.storage.sql.database.rows import json_texts, scalar
from madeleine.storage.sql.database.tables import audit
from madeleine.storage.sql.database.times import from_micros, to_micros

T = TypeVar("T")

_a = audit.c
_INSERT = insert(audit)
_LAST = (
    select(_a.seq, _a.at, _a.event, _a.being_id, _a.client, _a.role, _a.tool, _a.ids)
    .where(
        or_(bindparam("being").is_(None), _a.being_id == bindparam("being")),
        or_(bindparam("event").is_(None), _a.event == bindparam("event")),
        _a.at >= bindparam("since"),
        _a.at <= bindparam("until"),
    )
    .order_by(_a.seq.desc())
    .limit(bindparam("limit"))
)
# SQLite takes a number back when a transaction is rolled back.
_MISSING = select(last_issued(literal_column("'audit'")) - func.count()).select_from(audit)


async def append(transaction: Transaction, entries: Sequence[AuditEntry]) -> None:
    await transaction.run(_INSERT, [_to_row(entry) for entry in entries])


def of_stored(scope: Scope, new: Sequence[Memory]) -> list[AuditEntry]:
    """One for each tool that they came by."""
    return [
        audit_entry(scope, "store", some[-1].created_at, tool=tool, ids=[memory.id for memory in some])
        for tool, some in _grouped(new, lambda memory: memory.provenance.tool)
    ]


def of_reinforced(scope: Scope, given: Sequence[Reinforcement]) -> list[AuditEntry]:
    return [
        audit_entry(scope, "reinforce", some[-1].at, tool=tool, ids=[one.memory_id for one in some])
        for tool, some in _grouped(given, lambda one: one.tool)
    ]


def _grouped(items: Iterable[T], key: Callable[[T], str]) -> Iterable[tuple[str, list[T]]]:
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups.items()


def _to_row(entry: AuditEntry) -> dict[str, object]:
    return {
        "at": to_micros(entry.at),
        "event": entry.event,
        "being_id": entry.being_id,
        "client": entry.client,
        "role": entry.role,
        "tool": entry.tool,
        "ids": json_texts(entry.ids),
    }


def _to_entry(row: Row) -> AuditEntry:
    seq, at, event, being_id, client, role, tool, ids = row
    return AuditEntry(
        seq=seq,
        at=from_micros(at),
        event=event,
        being_id=being_id,
        client=client,
        role=role,
        tool=tool,
        ids=tuple(json.loads(ids)),
    )


class AuditRepository(Repository):
    """`AuditReader`."""

    async def audit(self, query: AuditQuery) -> list[AuditEntry]:
        found = await self._database.rows(
            _LAST,
            _to_entry,
            being=query.being_id,
            event=query.event,
            since=to_micros(query.since) if query.since else SMALLEST,
            until=to_micros(query.until) if query.until else GREATEST,
            limit=query.limit,
        )
        return found[::-1]

    async def audit_missing(self) -> int:
        return int((await self._database.rows(_MISSING, scalar))[0])
