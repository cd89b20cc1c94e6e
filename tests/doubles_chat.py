"""Conversations over lists: `ChatLedger`, `ChatReads` and `WatchLedger` (`tests/contracts/ledger/chat_contract.py`)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from madeleine.memory.chat import (
    SPOKEN_ROLES,
    ChatRole,
    ConversationMessage,
    MessageId,
    RecordedChatSession,
    SessionWithUnreadMessages,
    UnreadMessageTotals,
)
from madeleine.memory.model import BeingId, MemoryId, Scope
from tests.doubles import NOW


def a_message(
    text: str,
    *,
    session_id: str = "s",
    role: ChatRole = "user",
    speaker: str = "",
    at: datetime = NOW,
    stored_at: datetime = NOW,
) -> ConversationMessage:
    """To be appended: its position is given out then."""
    return ConversationMessage(
        id=MessageId(str(uuid.uuid4())),
        session_id=session_id,
        position=0,
        role=role,
        text=text,
        speaker=speaker,
        at=at,
        stored_at=stored_at,
    )


@dataclass
class _Session:
    title: str = ""
    untitled: bool = False
    """It gets no title any more."""
    interface: str = ""
    first_at: datetime = NOW
    last_at: datetime = NOW
    next: int = 0
    watched: int = 0
    failures: int = 0
    put_off: int = 0
    abandoned: int = 0
    next_try: datetime = NOW
    project: str | None = None
    messages: list[tuple[ConversationMessage, str | None]] = field(default_factory=list)


def _is_shown(kept: _Session, scope: Scope) -> bool:
    return kept.project in (None, scope.project)


class FakeChat:
    def __init__(self) -> None:
        self.links: set[tuple[MessageId, MemoryId]] = set()
        """Of whatever memories: it knows none."""
        self._sessions: dict[tuple[BeingId, str], _Session] = {}
        self._forgotten: set[tuple[BeingId, str, str]] = set()

    # ChatLedger

    async def append_messages(
        self,
        scope: Scope,
        session_id: str,
        messages: Sequence[ConversationMessage],
        *,
        keys: Sequence[str | None],
        title: str = "",
        interface: str = "",
        watched: bool = False,
        import_id: str = "",
    ) -> list[MessageId]:
        place = (scope.being_id, session_id)
        kept = self._sessions.get(place, _Session(project=scope.project or None))
        taken = {key for _, key in kept.messages} | {key for *of, key in self._forgotten if tuple(of) == place}
        caught_up, all_put_off = kept.watched == kept.next, kept.put_off == kept.next
        new: list[ConversationMessage] = []
        for message, key in zip(messages, keys, strict=True):
            if key is None or key not in taken:
                taken.add(key)
                new.append(replace(message, position=kept.next))
                kept.messages.append((new[-1], key))
                kept.next += 1
        if not new:
            return []
        if caught_up:
            kept.watched = kept.next if watched else kept.watched
        if caught_up or all_put_off:
            kept.next_try = new[0].stored_at
        kept.title = "" if kept.untitled else kept.title or title
        kept.interface = kept.interface or interface
        self._sessions[place] = kept
        self._set_times(place)
        return [message.id for message in new]

    async def messages_with_ids(self, scope: Scope, ids: Sequence[MessageId]) -> list[ConversationMessage]:
        own = {message.id: message for message in self._own(scope)}
        return [own[id_] for id_ in dict.fromkeys(ids) if id_ in own]

    async def messages_by_keys(
        self, scope: Scope, session_id: str, keys: Sequence[str]
    ) -> dict[str, ConversationMessage]:
        return {key: message for message, key in self._of(scope, session_id) if key is not None and key in keys}

    async def last_message_key(self, scope: Scope, session_id: str) -> str | None:
        return next((key for _, key in reversed(self._of(scope, session_id)) if key is not None), None)

    # ChatReads

    async def recent_messages(
        self, scope: Scope, *, limit: int, session_id: str | None = None, other_than: str | None = None
    ) -> list[ConversationMessage]:
        if session_id is not None:
            found = [message for message, _ in self._of(scope, session_id)]
        else:
            found = sorted(self._own(scope), key=lambda message: message.at)
            hidden = {id_ for (_, id_), kept in self._sessions.items() if not _is_shown(kept, scope)}
            found = [message for message in found if message.session_id not in {other_than, *hidden}]
        return found[max(0, len(found) - limit) :]

    async def sessions(self, scope: Scope, *, limit: int, all_projects: bool = False) -> list[RecordedChatSession]:
        own = [
            RecordedChatSession(
                session_id=id_,
                title=kept.title,
                interface=kept.interface,
                first_at=kept.first_at,
                last_at=kept.last_at,
                messages=len(kept.messages),
                project=kept.project,
            )
            for (being, id_), kept in self._sessions.items()
            if being == scope.being_id and kept.messages and (all_projects or _is_shown(kept, scope))
        ]
        return sorted(own, key=lambda one: (-one.last_at.timestamp(), one.session_id))[:limit]

    # WatchLedger

    async def sessions_with_unread_messages(self, *, now: datetime, limit: int) -> list[SessionWithUnreadMessages]:
        due = [
            (kept.next_try, SessionWithUnreadMessages(
                being_id=being, session_id=id_, watched=kept.watched, messages=kept.next, failures=kept.failures,
                put_off=kept.put_off, project=kept.project,
            ))
            for (being, id_), kept in self._sessions.items()
            if kept.watched < kept.next and kept.next_try <= now
        ]  # fmt: skip
        return [one for _, one in sorted(due, key=lambda pair: pair[0])][:limit]

    async def session_messages_between_positions(
        self, scope: Scope, session_id: str, *, start: int, end: int
    ) -> list[ConversationMessage]:
        return [message for message, _ in self._of(scope, session_id) if start <= message.position < end]

    async def earlier_and_unread_spoken_messages(
        self, scope: Scope, session_id: str, *, start: int, before: int, unread: int
    ) -> tuple[list[ConversationMessage], list[ConversationMessage]]:
        spoken = [message for message, _ in self._of(scope, session_id) if message.role in SPOKEN_ROLES]
        earlier = [message for message in spoken if message.position < start]
        return earlier[max(0, len(earlier) - before) :], [one for one in spoken if one.position >= start][:unread]

    async def mark_messages_read_up_to_position(
        self, scope: Scope, session_id: str, *, up_to: int, abandoned: int = 0
    ) -> None:
        kept = self._sessions.get((scope.being_id, session_id))
        if kept and kept.watched <= up_to:
            kept.watched = min(up_to, kept.next)
            kept.failures = 0
            kept.abandoned += abandoned
            left = [message for message, _ in kept.messages if message.position >= up_to]
            kept.next_try = left[0].stored_at if left else kept.next_try

    async def postpone_unread_messages(self, scope: Scope, session_id: str, *, up_to: int, until: datetime) -> None:
        if kept := self._sessions.get((scope.being_id, session_id)):
            kept.put_off, kept.failures = up_to, 0
            kept.next_try = until if kept.next == up_to else kept.next_try

    async def unread_message_totals_across_beings(self) -> UnreadMessageTotals:
        every = self._sessions.values()
        return UnreadMessageTotals(
            unread=sum(kept.next - kept.watched for kept in every),
            put_off=sum(max(0, kept.put_off - kept.watched) for kept in every),
            abandoned=sum(kept.abandoned for kept in every),
        )

    async def retry_session_later(self, scope: Scope, session_id: str, *, next_try: datetime, failed: bool) -> None:
        if kept := self._sessions.get((scope.being_id, session_id)):
            kept.failures += failed
            kept.next_try = next_try

    async def ids_of_messages_with_memories(self, scope: Scope, ids: Sequence[MessageId]) -> set[MessageId]:
        own = {message.id for message in self._own(scope)}
        return {message for message, _ in self.links if message in own and message in ids}

    # as forgetting does

    def erase(self, scope: Scope, ids: Sequence[MessageId]) -> None:
        for place, kept in list(self._sessions.items()):
            if place[0] != scope.being_id:
                continue
            gone = [(message, key) for message, key in kept.messages if message.id in ids]
            self._forgotten |= {(*place, key) for _, key in gone if key is not None}
            kept.messages = [one for one in kept.messages if one not in gone]
            if not any(message.position >= kept.watched for message, _ in kept.messages):
                kept.watched = kept.next
            if kept.messages:
                self._set_times(place)
            else:
                self._sessions[place] = _Session(next=kept.next, watched=kept.next, untitled=True)
        self.links = {(message, memory) for message, memory in self.links if message not in ids}

    def _of(self, scope: Scope, session_id: str) -> list[tuple[ConversationMessage, str | None]]:
        return self._sessions.get((scope.being_id, session_id), _Session()).messages

    def _own(self, scope: Scope) -> list[ConversationMessage]:
        own = [kept for (being, _), kept in self._sessions.items() if being == scope.being_id]
        return [message for kept in own for message, _ in kept.messages]

    def _set_times(self, place: tuple[BeingId, str]) -> None:
        kept = self._sessions[place]
        kept.first_at = min(message.at for message, _ in kept.messages)
        kept.last_at = max(message.at for message, _ in kept.messages)
