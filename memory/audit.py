"""Who did what to which memories, and when (spec O4, O10). Ids only, never a text or a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from madeleine.memory.ports import AuditEntry, AuditEvent, AuditLog
from madeleine.memory.scope import Scope


def entry_of(scope: Scope, event: AuditEvent, at: datetime, *, tool: str = "", ids: Iterable[str] = ()) -> AuditEntry:
    """Each id once, in order."""
    return AuditEntry(
        event=event,
        at=at,
        being_id=scope.being_id,
        client=scope.client,
        role=scope.role,
        tool=tool,
        ids=tuple(dict.fromkeys(ids)),
    )


class Audit:
    """The use case for what leaves no other trace in the ledger: recalls, and acts of administration."""

    def __init__(self, log: AuditLog, *, now: Callable[[], datetime]) -> None:
        self._log = log
        self._now = now

    def __call__(self, scope: Scope, event: AuditEvent, *, tool: str = "", ids: Iterable[str] = ()) -> None:
        """Returns at once; written at latest a second later."""
        self._log.record(entry_of(scope, event, self._now(), tool=tool, ids=ids))
