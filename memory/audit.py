"""The audit: who did what to which memories, and when (spec O4, O10). Ids only, never a text or a query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Literal, Protocol

from madeleine.memory.model import BeingId, Scope


def build_audit_entry(
    scope: Scope, event: AuditEventKind, at: datetime, *, tool: str = "", ids: Iterable[str] = ()
) -> AuditEntry:
    """Each id once, in order."""
    return AuditEntry(
        event=event,
        at=at,
        being_id=scope.being_id,
        author=scope.author or "",
        client=scope.client,
        role=scope.role,
        token=scope.token,
        tool=tool,
        ids=tuple(dict.fromkeys(ids)),
    )


@dataclass(frozen=True, eq=False)
class RecordAuditEvent:
    """The use case: records recalls and administration, which leave no other trace in the ledger."""

    log: AuditEntryRecorder
    _: KW_ONLY
    now: Callable[[], datetime]

    def __call__(self, scope: Scope, event: AuditEventKind, *, tool: str = "", ids: Iterable[str] = ()) -> None:
        """Returns at once; written within a second."""
        self.log.add_audit_entry(build_audit_entry(scope, event, self.now(), tool=tool, ids=ids))


AuditEventKind = Literal[
    "store", "reinforce", "update", "forget", "observe", "note", "patrol", "recall", "reindex", "token", "profile",
    "supersede", "retract", "restore", "import", "export", "backup",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One event (spec O4, O10), without any text or query.

    `being_id` is "" for events of all beings; `author` the being that acted on what all share, else "". `role` is ""
    for connections without one; `token` the id of the bearer token that the call came by, else "". `ids`: the memories,
    notes, messages and days of the diary that were written, shown or erased, the run of a patrol, the token that was
    made or revoked. `seq` numbers the entries without a gap; 0 before it is written.
    """

    event: AuditEventKind
    at: datetime
    being_id: BeingId
    author: BeingId | Literal[""] = ""
    client: str = ""
    role: str = ""
    token: str = ""
    tool: str = ""
    ids: tuple[str, ...] = ()
    seq: int = 0


class AuditEntryRecorder(Protocol):
    """For events that change nothing stored: written in batches off the request path, within a second. Changes are
    audited by the ledger, in their own transaction."""

    def add_audit_entry(self, entry: AuditEntry) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """The last `limit` of all beings, unless one is named, as owner or author; `since` and `until` inclusive."""

    being_id: BeingId | None = None
    event: AuditEventKind | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 100
