"""Conversations as they were observed (spec P1, T1, H1), and what they need of the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NewType

from madeleine.memory.model import BeingId

MessageId = NewType("MessageId", str)
"""A UUID in its canonical text form."""
ChatRole = Literal["user", "assistant", "system", "tool"]
MAX_OBSERVED_MESSAGES_PER_CALL = 100
"""Of one call of `observe`."""
SPOKEN_ROLES: tuple[ChatRole, ...] = ("user", "assistant")
"""Of those who converse. The others are programs: what they write is nobody's statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConversationMessage:
    """`speaker`: a name, where one is known. `at`: when it was said, None for now. `key`: idempotent within its
    session; a message with a key that is there already is not stored again."""

    role: ChatRole
    text: str
    speaker: str = ""
    at: datetime | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationMessage:
    """`position` in its session, from 0: a later one has a greater one, and that of an erased one is not used again.
    `at` when it was said, `stored_at` when it was observed; aware, in UTC."""

    id: MessageId
    session_id: str
    position: int
    role: ChatRole
    text: str
    speaker: str
    at: datetime
    stored_at: datetime
    client: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChatSession:
    """`interface`: where it was held, a client's name or the export that it came from. `messages`: how many it has.
    `project`: the one that it was observed in, None for none (spec O2)."""

    session_id: str
    title: str
    interface: str
    first_at: datetime
    last_at: datetime
    messages: int
    project: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWithUnreadMessages:
    """A session with messages that the memory thread has not looked at (spec T1): those at positions in [`watched`,
    `messages`), of which some may have been erased since. `put_off`: those before this position hold no sign of
    anything to remember, and are read together with what follows. `failures`: how often it has failed at them.
    `project`: the one that it was observed in, None for none (spec O2)."""

    being_id: BeingId
    session_id: str
    watched: int
    messages: int
    failures: int
    put_off: int = 0
    project: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadMessageTotals:
    """Counts of messages, over all beings: `unread` by the memory thread, `put_off` of these until more is said, and
    `abandoned` after too many failures."""

    unread: int = 0
    put_off: int = 0
    abandoned: int = 0
