"""What was said lately, in this conversation and in others (spec H5)."""

from __future__ import annotations

from madeleine.memory.chat import Message
from madeleine.memory.context.ports import ChatReads
from madeleine.memory.scope import Scope

SESSIONS = 100
"""The latest, among which those of one interface are looked for."""


async def this_chat(chat: ChatReads, scope: Scope, session_id: str, message: str, *, limit: int) -> list[Message]:
    """Its last messages, oldest first, without the one that is being answered, if that was observed already."""
    if not session_id:
        return []
    found = await chat.recent_messages(scope, limit=limit + 1, session_id=session_id)
    if found and found[-1].text.strip() == message.strip():
        found = found[:-1]
    return found[-limit:]


async def other_chats(chat: ChatReads, scope: Scope, session_id: str, *, unified: bool, limit: int) -> list[Message]:
    """The last messages of all other sessions, oldest first; if not `unified`, only of those held on the interface that
    this one is held on: for a session that is not known, the caller's own."""
    if unified:
        return await chat.recent_messages(scope, limit=limit, other_than=session_id or None)
    sessions = await chat.sessions(scope, limit=SESSIONS)
    here = next((one.interface for one in sessions if one.session_id == session_id), scope.client)
    alike = [one.session_id for one in sessions if one.interface == here and one.session_id != session_id]
    # Each of the last messages is in one of as many sessions, as these are the latest first.
    said = [
        message for one in alike[:limit] for message in await chat.recent_messages(scope, limit=limit, session_id=one)
    ]
    return sorted(said, key=lambda message: message.at)[-limit:]
