"""What watching conversations needs of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from madeleine.memory.chat import Message, MessageId, UnwatchedSession
from madeleine.memory.language_model import CostLog
from madeleine.memory.model import Scope


class ChatLedger(Protocol):
    """What observing a conversation needs."""

    async def append(
        self, scope: Scope, session_id: str, messages: Sequence[Message], *, keys: Sequence[str | None],
        title: str = "", interface: str = "", watched: bool = False,
    ) -> list[MessageId]:  # fmt: skip
        """Durably, in one transaction, after those that the session has; the ids of those that are new, in their order.
        Positions are given out here, whatever the messages say. One whose key the session has already is left out, and
        so is one whose key it had before it was forgotten: who reads a transcript again brings nothing back.
        `title` and `interface` are those of a session that has none yet. `watched`: the memory thread is not to look at
        them, unless it has yet to look at earlier ones. Raises `StorageFull`, `StorageError`."""
        ...

    async def messages(self, scope: Scope, ids: Sequence[MessageId]) -> list[Message]:
        """Those that exist, each once, in the order of `ids`."""
        ...

    async def keyed_messages(self, scope: Scope, session_id: str, keys: Sequence[str]) -> dict[str, Message]: ...

    async def last_key(self, scope: Scope, session_id: str) -> str | None:
        """Of the last message in the session that has one."""
        ...


class WatchLedger(Protocol):
    """What the memory thread needs (spec T1). Not scoped where it looks for work: it serves the store."""

    async def unwatched_sessions(self, *, now: datetime, limit: int) -> list[UnwatchedSession]:
        """Of all beings: sessions with messages not looked at, whose next try is due, longest waiting first."""
        ...

    async def messages_of(self, scope: Scope, session_id: str, *, start: int, end: int) -> list[Message]:
        """Those at positions in [start, end), in order."""
        ...

    async def mark_watched(self, scope: Scope, session_id: str, *, up_to: int) -> None:
        """The thread has looked at the messages before this position; failures are forgotten."""
        ...

    async def postpone_watch(self, scope: Scope, session_id: str, *, next_try: datetime, failed: bool) -> None:
        """The session is not due before `next_try`. `failed`: count one failure more."""
        ...

    async def messages_with_memories(self, scope: Scope, ids: Sequence[MessageId]) -> set[MessageId]:
        """Those that memories were drawn from already."""
        ...


class CostLedger(CostLog, Protocol):
    async def tokens_since(self, purpose: str, since: datetime) -> int:
        """Sum over all beings: they share the budget of the store's key."""
        ...
