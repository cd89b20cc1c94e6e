"""Ports of watching conversations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from madeleine.memory.chat import ConversationMessage, MessageId, SessionWithUnreadMessages, UnreadMessageTotals
from madeleine.memory.language_model import ModelCostRecorder
from madeleine.memory.model import Scope


class ObservationLedger(Protocol):
    """The ledger for observing a conversation."""

    async def append_messages(
        self, scope: Scope, session_id: str, messages: Sequence[ConversationMessage], *, keys: Sequence[str | None],
        title: str = "", interface: str = "", watched: bool = False, import_id: str = "",
    ) -> list[MessageId]:  # fmt: skip
        """Append messages in one durable transaction and return the ids of the new ones, in order. Positions are
        assigned here; a message's own position is ignored. A message with a key that the session has, or had before it
        was forgotten, is skipped, so that reading a transcript again restores nothing. `title` and `interface` are set
        for a session that has none yet. `watched`: the memory thread does not read the messages, unless it has yet to
        read earlier ones. `import_id`: of the import that they are remembered for. Raises `StorageFull`,
        `StorageError`, `CannotUndo` for an import that has ended."""

    async def messages_with_ids(self, scope: Scope, ids: Sequence[MessageId]) -> list[ConversationMessage]:
        """The messages that exist, each once, in the order of `ids`."""

    async def messages_by_keys(
        self, scope: Scope, session_id: str, keys: Sequence[str]
    ) -> dict[str, ConversationMessage]: ...

    async def last_message_key(self, scope: Scope, session_id: str) -> str | None:
        """The key of the last message in the session that has one."""


class MemoryExtractionLedger(Protocol):
    """The ledger for the memory thread (spec T1). The search for work is not scoped: the thread serves all beings."""

    async def sessions_with_unread_messages(self, *, now: datetime, limit: int) -> list[SessionWithUnreadMessages]:
        """Sessions of all beings with unread messages whose next try is due, the longest waiting first."""

    async def session_messages_between_positions(
        self, scope: Scope, session_id: str, *, start: int, end: int
    ) -> list[ConversationMessage]:
        """The messages at positions in [start, end), in order."""

    async def earlier_and_unread_spoken_messages(
        self, scope: Scope, session_id: str, *, start: int, before: int, unread: int
    ) -> tuple[list[ConversationMessage], list[ConversationMessage]]:
        """Messages of people and assistants, in order: the last `before` ones ahead of the position `start`, and the
        first `unread` ones from there on."""

    async def mark_messages_read_up_to_position(
        self, scope: Scope, session_id: str, *, up_to: int, abandoned: int = 0
    ) -> None:
        """The thread has looked at the messages before this position; failures are forgotten. `abandoned`: count so
        many of them as abandoned."""

    async def postpone_unread_messages(self, scope: Scope, session_id: str, *, up_to: int, until: datetime) -> None:
        """Leave the messages before this position unread until a new message comes, or until then."""

    async def retry_session_later(self, scope: Scope, session_id: str, *, next_try: datetime, failed: bool) -> None:
        """The session is not due before `next_try`. `failed`: count one failure more."""

    async def ids_of_messages_with_memories(self, scope: Scope, ids: Sequence[MessageId]) -> set[MessageId]:
        """The messages that memories were made of already."""

    async def unread_message_totals_across_beings(self) -> UnreadMessageTotals: ...


class TokenSpendingLedger(ModelCostRecorder, Protocol):
    async def tokens_spent_since(self, purpose: str, since: datetime) -> int:
        """Sum over all beings: they share the budget of the store's key."""
