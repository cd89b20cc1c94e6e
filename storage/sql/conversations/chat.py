"""Conversations as they were observed (spec P1, T1, H1): sessions, their messages, and what was drawn from them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, case, func, insert, or_, select, update

from madeleine.memory.chat import ChatSession, Message, MessageId, UnwatchedSession
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import Scope
from madeleine.memory.text.normalization import fold
from madeleine.storage.sql.administration import record_audit
from madeleine.storage.sql.database.dialect import (
    GREATEST,
    SMALLEST,
    among,
    as_list,
    excluded,
    greatest,
    insert_or_update,
    least,
    unindexed,
)
from madeleine.storage.sql.database.engine import Repository, Transaction
from madeleine.storage.sql.database.mapping import Mapped, in_order_of, scalar, to_micros
from madeleine.storage.sql.database.tables import forgotten_keys, message_memories, messages, sessions

_m, _s, _l, _f = messages.c, sessions.c, message_memories.c, forgotten_keys.c
TITLE_GONE = "\x7f"
"""Instead of a title that told of what was forgotten; reads as "". The next transcript or export that is read would
bring the old one back, so that no title follows."""
NO_FIRST, NO_LAST = GREATEST, SMALLEST
"""The times of a session without messages: any message's come before the one and after the other."""

_BEING = bindparam("being", type_=_m.being_id.type)
_SESSION = bindparam("session", type_=_m.session_id.type)
_LIMIT = bindparam("limit", type_=_m.seq.type)
_MESSAGE = Mapped(Message, messages)
_IN_SESSION = and_(_m.being_id == _BEING, _m.session_id == _SESSION)
_ONE = and_(_s.being_id == _BEING, _s.session_id == _SESSION)

_STATE = select(_s.messages, _s.watched, _s.next_try).where(_ONE)
_KEYS = select(_m.key).where(_IN_SESSION, among(_m.key, "keys"))
_FORGOTTEN = select(_f.key_hash).where(_f.being_id == _BEING, among(_f.key_hash, "hashes"))
_INSERT = insert(messages)
_new = excluded(sessions)
_KEEP_SESSION = insert_or_update(
    sessions,
    "messages",
    "watched",
    "next_try",
    title=case((_s.title == "", _new.title), else_=_s.title),
    interface=case((_s.interface == "", _new.interface), else_=_s.interface),
    first_at=least(_s.first_at, _new.first_at),
    last_at=greatest(_s.last_at, _new.last_at),
)

_BY_IDS = select(*_MESSAGE.columns).where(among(_m.id, "ids"), unindexed(_m.being_id) == _BEING)
_KEYED = select(_m.key, *_MESSAGE.columns).where(_IN_SESSION, among(_m.key, "keys"))
_LAST_KEY = select(_m.key).where(_IN_SESSION, _m.key.is_not(None)).order_by(_m.position.desc()).limit(1)

_LAST_OF_SESSION = select(*_MESSAGE.columns).where(_IN_SESSION).order_by(_m.position.desc()).limit(_LIMIT)
_LAST = (
    select(*_MESSAGE.columns)
    .where(_m.being_id == _BEING, or_(bindparam("other_than").is_(None), _m.session_id != bindparam("other_than")))
    .order_by(_m.at.desc(), _m.seq.desc())
    .limit(_LIMIT)
)
_COUNT = (
    select(func.count())
    .where(_m.being_id == _s.being_id, _m.session_id == _s.session_id)
    .correlate(sessions)
    .scalar_subquery()
)
_SESSION_OVERVIEW = Mapped(
    ChatSession, sessions, title=case((_s.title == TITLE_GONE, ""), else_=_s.title), messages=_COUNT
)
_SESSIONS = (
    select(*_SESSION_OVERVIEW.columns)
    .where(_s.being_id == _BEING, _COUNT > 0)
    .order_by(_s.last_at.desc(), _s.session_id)
    .limit(_LIMIT)
)

_UNWATCHED_SESSION = Mapped(UnwatchedSession, sessions)
_UNWATCHED = (
    select(*_UNWATCHED_SESSION.columns)
    .where(_s.watched < _s.messages, _s.next_try <= bindparam("now"))
    .order_by(_s.next_try)
    .limit(_LIMIT)
)
_BETWEEN = (
    select(*_MESSAGE.columns)
    .where(_IN_SESSION, _m.position >= bindparam("start"), _m.position < bindparam("end"))
    .order_by(_m.position)
)
_WAITING_SINCE = (
    select(_m.stored_at)
    .where(_m.being_id == _s.being_id, _m.session_id == _s.session_id, _m.position >= bindparam("up_to"))
    .order_by(_m.position)
    .limit(1)
    .correlate(sessions)
    .scalar_subquery()
)
_WATCHED = (
    update(sessions)
    .where(_ONE, _s.watched <= bindparam("up_to"))
    .values(
        watched=least(bindparam("up_to"), _s.messages),
        failures=0,
        next_try=func.coalesce(_WAITING_SINCE, _s.next_try),
    )
)
_POSTPONE_SESSION = (
    update(sessions)
    .where(_ONE)
    .values(next_try=bindparam("again_at"), failures=_s.failures + bindparam("new_failures"))
)
_DRAWN_FROM = (
    select(_m.id)
    .distinct()
    .join(message_memories, _l.message_id == _m.id)
    .where(among(_m.id, "ids"), unindexed(_m.being_id) == _BEING)
)


@dataclass(frozen=True, slots=True)
class _State:
    """Of a session: the next position, from which on the thread has not looked, and since or until when it waits."""

    messages: int = 0
    watched: int = 0
    next_try: int = 0


async def _taken(transaction: Transaction, scope: Scope, session_id: str, keys: Sequence[str]) -> set[str | None]:
    """Those that the session has, or had before they were forgotten."""
    if not keys:
        return set()
    hashes = {key_hash(session_id, key): key for key in keys}
    binds = {"being": scope.being_id, "session": session_id, "keys": as_list(keys)}
    there = await transaction.rows(_KEYS, scalar, **binds)
    gone = await transaction.rows(_FORGOTTEN, scalar, being=scope.being_id, hashes=as_list(hashes))
    return {*there, *(hashes[hash_] for hash_ in gone)}


def key_hash(session_id: str, key: str) -> str:
    """What stays of the key of a message that is forgotten."""
    return hashlib.sha256(f"{len(session_id)} {session_id} {key}".encode()).hexdigest()


def _session_row(scope: Scope, new: Sequence[Message], was: _State, *, watched: bool) -> dict[str, Any]:
    caught_up = was.watched == was.messages
    end = was.messages + len(new)
    times = [to_micros(message.at) for message in new]
    return {
        "being_id": scope.being_id,
        "session_id": new[0].session_id,
        "first_at": min(times),
        "last_at": max(times),
        "messages": end,
        "watched": end if watched and caught_up else was.watched,
        "failures": 0,
        "next_try": to_micros(new[0].stored_at) if caught_up else was.next_try,
    }


class ConversationRepository(Repository):
    """`ChatLedger`, `ChatReads` and `WatchLedger`."""

    async def append(
        self,
        scope: Scope,
        session_id: str,
        messages: Sequence[Message],
        *,
        keys: Sequence[str | None],
        title: str = "",
        interface: str = "",
        watched: bool = False,
    ) -> list[MessageId]:
        if any(message.session_id != session_id for message in messages):
            raise InvalidInput("Messages can only be appended to the session that they are of.")
        async with self._database.transaction(grows=True) as transaction:
            taken = await _taken(transaction, scope, session_id, [key for key in keys if key is not None])
            new: list[tuple[Message, str | None]] = []
            for message, key in zip(messages, keys, strict=True):
                if key not in taken:
                    new.append((message, key))
                    taken |= {key} - {None}
            if not new:
                return []
            found = await transaction.rows(_STATE, lambda row: _State(*row), being=scope.being_id, session=session_id)
            was = found[0] if found else _State()
            await transaction.run(
                _INSERT,
                [
                    _MESSAGE.to_row(
                        message,
                        being_id=scope.being_id,
                        position=was.messages + place,
                        key=key,
                        folded=fold(f"{message.speaker} {message.text}"),
                    )
                    for place, (message, key) in enumerate(new)
                ],
            )
            row = _session_row(scope, [message for message, _ in new], was, watched=watched)
            await transaction.run(_KEEP_SESSION, [row | {"title": title, "interface": interface}])
            ids = [message.id for message, _ in new]
            await record_audit(transaction, scope, "observe", new[-1][0].stored_at, ids=ids)
            return ids

    async def messages(self, scope: Scope, ids: Sequence[MessageId]) -> list[Message]:
        found = await self._database.rows(_BY_IDS, _MESSAGE.from_row, ids=as_list(ids), being=scope.being_id)
        return in_order_of(ids, found)

    async def keyed_messages(self, scope: Scope, session_id: str, keys: Sequence[str]) -> dict[str, Message]:
        binds = {"being": scope.being_id, "session": session_id, "keys": as_list(keys)}
        return dict(await self._database.rows(_KEYED, lambda row: (row[0], _MESSAGE.from_row(row[1:])), **binds))

    async def last_key(self, scope: Scope, session_id: str) -> str | None:
        found = await self._database.rows(_LAST_KEY, scalar, being=scope.being_id, session=session_id)
        return found[0] if found else None

    async def recent_messages(
        self, scope: Scope, *, limit: int, session_id: str | None = None, other_than: str | None = None
    ) -> list[Message]:
        if session_id is not None:
            found = await self._database.rows(
                _LAST_OF_SESSION, _MESSAGE.from_row, being=scope.being_id, session=session_id, limit=limit
            )
        else:
            found = await self._database.rows(
                _LAST, _MESSAGE.from_row, being=scope.being_id, other_than=other_than, limit=limit
            )
        return found[::-1]

    async def sessions(self, scope: Scope, *, limit: int) -> list[ChatSession]:
        return await self._database.rows(_SESSIONS, _SESSION_OVERVIEW.from_row, being=scope.being_id, limit=limit)

    async def unwatched_sessions(self, *, now: datetime, limit: int) -> list[UnwatchedSession]:
        return await self._database.rows(_UNWATCHED, _UNWATCHED_SESSION.from_row, now=to_micros(now), limit=limit)

    async def messages_of(self, scope: Scope, session_id: str, *, start: int, end: int) -> list[Message]:
        return await self._database.rows(
            _BETWEEN, _MESSAGE.from_row, being=scope.being_id, session=session_id, start=start, end=end
        )

    async def mark_watched(self, scope: Scope, session_id: str, *, up_to: int) -> None:
        async with self._database.transaction() as transaction:
            await transaction.run(_WATCHED, [{"being": scope.being_id, "session": session_id, "up_to": up_to}])

    async def postpone_watch(self, scope: Scope, session_id: str, *, next_try: datetime, failed: bool) -> None:
        row = {"being": scope.being_id, "session": session_id, "again_at": to_micros(next_try), "new_failures": failed}
        async with self._database.transaction() as transaction:
            await transaction.run(_POSTPONE_SESSION, [row])

    async def messages_with_memories(self, scope: Scope, ids: Sequence[MessageId]) -> set[MessageId]:
        return set(await self._database.rows(_DRAWN_FROM, scalar, ids=as_list(ids), being=scope.being_id))
