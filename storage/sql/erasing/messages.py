"""Erasing messages from every table (ruling 11): those that a forgotten memory was drawn from, and those named."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, case, delete, exists, func, select, update

from madeleine.memory.chat import MessageId
from madeleine.memory.model import MemoryId, Scope
from madeleine.memory.rules.dynamics.mentions import folded, mentions
from madeleine.storage.sql.conversations.chat import ERASED_TITLE, NO_FIRST_AT, NO_LAST_AT, message_key_hash
from madeleine.storage.sql.database.dialect import among, as_list, insert_missing, unindexed
from madeleine.storage.sql.database.engine import Row, Transaction
from madeleine.storage.sql.database.mapping import pair, scalar
from madeleine.storage.sql.database.tables import forgotten_keys, memories, message_memories, messages, sessions

_m, _s, _l = messages.c, sessions.c, message_memories.c
_BEING = bindparam("being", type_=_m.being_id.type)
_OWN = (among(_m.id, "ids"), unindexed(_m.being_id) == _BEING)
_TOUCHED = (_s.being_id == _BEING, among(_s.session_id, "sessions"))
_LEFT = (_m.being_id == _s.being_id, _m.session_id == _s.session_id)

_SOURCES = select(_l.message_id).where(among(_l.memory_id, "ids"))
_GOING = select(_m.id, _m.session_id, _m.key, _m.speaker, _m.text).where(*_OWN).order_by(_m.seq)
_DRAWN = (
    select(_l.memory_id)
    .join(memories, memories.c.id == _l.memory_id)
    .where(among(_l.message_id, "ids"), unindexed(memories.c.being_id) == _BEING)
    .order_by(memories.c.seq)
)
_UNLINK = delete(message_memories).where(among(_l.message_id, "ids"))
_DELETE = delete(messages).where(*_OWN)
_KEEP_KEY = insert_missing(forgotten_keys)
_TITLES = select(_s.session_id, _s.title).where(*_TOUCHED, _s.title != "", _s.title != ERASED_TITLE)
_UNTITLE = update(sessions).where(*_TOUCHED).values(title=ERASED_TITLE)
_EMPTY = ~exists().where(*_LEFT).correlate(sessions)
# What was counted stays, so that no position is given out twice; all else of it goes.
_END = (
    update(sessions)
    .where(*_TOUCHED, _EMPTY)
    .values(title=ERASED_TITLE, interface="", failures=0, next_try=0, first_at=NO_FIRST_AT, last_at=NO_LAST_AT)
    .values(watched=_s.messages)
)
_SETTLE = (
    update(sessions)
    .where(*_TOUCHED, ~_EMPTY)
    .values(
        first_at=select(func.min(_m.at)).where(*_LEFT).correlate(sessions).scalar_subquery(),
        last_at=select(func.max(_m.at)).where(*_LEFT).correlate(sessions).scalar_subquery(),
        watched=case(
            (exists().where(*_LEFT, _m.position >= _s.watched).correlate(sessions), _s.watched), else_=_s.messages
        ),
    )
)


@dataclass(frozen=True, slots=True)
class _Going:
    id: MessageId
    session_id: str
    key: str | None
    speaker: str
    text: str


async def sources(transaction: Transaction, ids: Sequence[MemoryId]) -> list[MessageId]:
    """What these memories were drawn from."""
    return await transaction.rows(_SOURCES, scalar, ids=as_list(ids))


async def erase(
    transaction: Transaction, scope: Scope, ids: Sequence[MessageId]
) -> tuple[list[MessageId], list[MemoryId]]:
    """Of these, those that there were, and the memories that were drawn from them. A session goes with its last
    message, and its title as soon as it tells of one that goes."""
    going = await transaction.rows(_GOING, _to_going, ids=as_list(ids), being=scope.being_id)
    if not going:
        return [], []
    gone = {"ids": as_list(one.id for one in going), "being": scope.being_id}
    drawn = await transaction.rows(_DRAWN, scalar, **gone)
    keys = [message_key_hash(one.session_id, one.key) for one in going if one.key is not None]
    await transaction.run(_KEEP_KEY, [{"being_id": scope.being_id, "key_hash": hash_} for hash_ in keys])
    for statement in (_UNLINK, _DELETE):
        await transaction.run(statement, [gone])
    touched = {"sessions": as_list({one.session_id for one in going}), "being": scope.being_id}
    await transaction.run(_END, [touched])
    await transaction.run(_SETTLE, [touched])
    titles = dict(await transaction.rows(_TITLES, pair, **touched))
    telling = await asyncio.to_thread(_telling, titles, going)
    await transaction.run(_UNTITLE, [{"sessions": as_list(telling), "being": scope.being_id}])
    return [one.id for one in going], list(dict.fromkeys(drawn))


def _to_going(row: Row) -> _Going:
    return _Going(*row)


def _telling(titles: Mapping[str, str], going: Sequence[_Going]) -> list[str]:
    """Sessions whose title has words of what goes."""
    return [
        session_id
        for session_id, title in titles.items()
        if mentions(
            title, folded(text for one in going if one.session_id == session_id for text in (one.speaker, one.text))
        )
    ]
