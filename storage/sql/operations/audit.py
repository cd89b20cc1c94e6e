"""The audit: who did what, when (spec O4, O10). Appended in the transaction of what it tells of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import bindparam, func, insert, literal_column, or_, select

from madeleine.memory.audit import AuditEntry, AuditEvent, AuditQuery, audit_entry
from madeleine.memory.ingest.ports import Reinforcement
from madeleine.memory.model import Memory, Scope
from madeleine.storage.sql.database.dialect import GREATEST, SMALLEST, last_issued
from madeleine.storage.sql.database.engine import Repository, Transaction
from madeleine.storage.sql.database.mapping import Mapped, scalar, to_micros
from madeleine.storage.sql.database.tables import audit

T = TypeVar("T")

_a = audit.c
_ENTRY = Mapped(AuditEntry, audit)
_INSERT = insert(audit)
_LAST = (
    select(*_ENTRY.columns)
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
_MISSING = select(last_issued(literal_column("'audit'"), literal_column("'seq'")) - func.count()).select_from(audit)


async def append_audit(transaction: Transaction, entries: Sequence[AuditEntry]) -> None:
    await transaction.run(_INSERT, [_without_number(entry) for entry in entries])


async def record_audit(
    transaction: Transaction, scope: Scope, event: AuditEvent, at: datetime, *, tool: str = "", ids: Iterable[str]
) -> None:
    await append_audit(transaction, [audit_entry(scope, event, at, tool=tool, ids=ids)])


def _without_number(entry: AuditEntry) -> dict[str, Any]:
    row = _ENTRY.to_row(entry)
    del row["seq"]
    return row


def audit_of_stored(scope: Scope, new: Sequence[Memory]) -> list[AuditEntry]:
    """One for each tool that they came by."""
    return [
        audit_entry(scope, "store", some[-1].created_at, tool=tool, ids=[memory.id for memory in some])
        for tool, some in _grouped(new, lambda memory: memory.provenance.tool)
    ]


def audit_of_reinforced(scope: Scope, given: Sequence[Reinforcement]) -> list[AuditEntry]:
    return [
        audit_entry(scope, "reinforce", some[-1].at, tool=tool, ids=[one.memory_id for one in some])
        for tool, some in _grouped(given, lambda one: one.tool)
    ]


def _grouped(items: Iterable[T], key: Callable[[T], str]) -> Iterable[tuple[str, list[T]]]:
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups.items()


class AuditRepository(Repository):
    """Reads the audit, for `madeleine audit`."""

    async def audit(self, query: AuditQuery) -> list[AuditEntry]:
        """Oldest first."""
        found = await self._database.rows(
            _LAST,
            _ENTRY.from_row,
            being=query.being_id,
            event=query.event,
            since=to_micros(query.since) if query.since else SMALLEST,
            until=to_micros(query.until) if query.until else GREATEST,
            limit=query.limit,
        )
        return found[::-1]

    async def audit_missing(self) -> int:
        """The number of entries that were removed from the file past the ledger."""
        return int((await self._database.rows(_MISSING, scalar))[0])
