"""Erasing messages from every table (ruling 11): those that a forgotten memory was drawn from, and those named."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, case, delete, exists, func, select, update

from madeleine.memory.chat import MessageId
from madeleine.memory.model import MemoryId, Scope
from madeleine.memory.rules.dynamics.mentions import fold_and_join_texts, mentions_forgotten
from madeleine.storage.sql.conversations.chat import ERASED_SESSION_TITLE, NO_FIRST_AT, NO_LAST_AT, message_key_hash
from madeleine.storage.sql.database.dialect import (
    in_bound_list_condition,
    insert_if_missing_statement,
    json_list_bind_value,
    without_index_use,
)
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import first_column_of_row, first_two_columns_of_row
from madeleine.storage.sql.database.tables import memories_table
from madeleine.storage.sql.tables.conversations import (
    forgotten_keys_table,
    message_memories_table,
    messages_table,
    sessions,
)

_m, _s, _l = messages_table.c, sessions.c, message_memories_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_HAS_BOUND_ID_AND_BEING = (in_bound_list_condition(_m.id, "ids"), without_index_use(_m.being_id) == _BEING_ID_BIND)
_SESSION_IS_IN_BOUND_LIST_CONDITION = (
    _s.being_id == _BEING_ID_BIND,
    in_bound_list_condition(_s.session_id, "sessions"),
)
_MESSAGE_IS_OF_SESSION_ROW = (_m.being_id == _s.being_id, _m.session_id == _s.session_id)

_SELECT_SOURCE_MESSAGE_IDS = select(_l.message_id).where(in_bound_list_condition(_l.memory_id, "ids"))
_SELECT_MESSAGES_TO_ERASE = (
    select(_m.id, _m.session_id, _m.key, _m.speaker, _m.text).where(*_HAS_BOUND_ID_AND_BEING).order_by(_m.seq)
)
_SELECT_MEMORY_IDS_DRAWN_FROM_MESSAGES = (
    select(_l.memory_id)
    .join(memories_table, memories_table.c.id == _l.memory_id)
    .where(
        in_bound_list_condition(_l.message_id, "ids"), without_index_use(memories_table.c.being_id) == _BEING_ID_BIND
    )
    .order_by(memories_table.c.seq)
)
_DELETE_MESSAGE_TO_MEMORY_LINKS = delete(message_memories_table).where(in_bound_list_condition(_l.message_id, "ids"))
_DELETE_MESSAGES = delete(messages_table).where(*_HAS_BOUND_ID_AND_BEING)
_INSERT_FORGOTTEN_KEY_HASH = insert_if_missing_statement(forgotten_keys_table)
_SELECT_SESSION_TITLES = select(_s.session_id, _s.title).where(
    *_SESSION_IS_IN_BOUND_LIST_CONDITION, _s.title != "", _s.title != ERASED_SESSION_TITLE
)
_ERASE_SESSION_TITLE = update(sessions).where(*_SESSION_IS_IN_BOUND_LIST_CONDITION).values(title=ERASED_SESSION_TITLE)
_SESSION_HAS_NO_MESSAGES_CONDITION = ~exists().where(*_MESSAGE_IS_OF_SESSION_ROW).correlate(sessions)
# What was counted stays, so that no position is given out twice; all else of it goes.
_ERASE_DETAILS_OF_EMPTY_SESSIONS = (
    update(sessions)
    .where(*_SESSION_IS_IN_BOUND_LIST_CONDITION, _SESSION_HAS_NO_MESSAGES_CONDITION)
    .values(title=ERASED_SESSION_TITLE, interface="", failures=0, next_try=0, first_at=NO_FIRST_AT, last_at=NO_LAST_AT)
    .values(watched=_s.messages, put_off=0)
)
_RECOMPUTE_TIMES_AND_READ_POSITION = (
    update(sessions)
    .where(*_SESSION_IS_IN_BOUND_LIST_CONDITION, ~_SESSION_HAS_NO_MESSAGES_CONDITION)
    .values(
        first_at=select(func.min(_m.at)).where(*_MESSAGE_IS_OF_SESSION_ROW).correlate(sessions).scalar_subquery(),
        last_at=select(func.max(_m.at)).where(*_MESSAGE_IS_OF_SESSION_ROW).correlate(sessions).scalar_subquery(),
        watched=case(
            (exists().where(*_MESSAGE_IS_OF_SESSION_ROW, _m.position >= _s.watched).correlate(sessions), _s.watched),
            else_=_s.messages,
        ),
    )
)


class _ErasedMessage(NamedTuple):
    id: MessageId
    session_id: str
    key: str | None
    speaker: str
    text: str


async def source_message_ids_of_memories(transaction: Transaction, ids: Sequence[MemoryId]) -> list[MessageId]:
    """The messages that these memories were drawn from."""
    return await transaction.rows(_SELECT_SOURCE_MESSAGE_IDS, first_column_of_row, ids=json_list_bind_value(ids))


async def erase_messages(
    transaction: Transaction, scope: Scope, ids: Sequence[MessageId]
) -> tuple[list[MessageId], list[MemoryId]]:
    """Return the ids of the messages that there were, and of the memories that were drawn from them. A session is
    erased with its last message, and its title as soon as it mentions an erased one."""
    erased = await transaction.rows(
        _SELECT_MESSAGES_TO_ERASE, _ErasedMessage._make, ids=json_list_bind_value(ids), being=scope.being_id
    )
    if not erased:
        return [], []
    message_binds = {"ids": json_list_bind_value(message.id for message in erased), "being": scope.being_id}
    drawn = await transaction.rows(_SELECT_MEMORY_IDS_DRAWN_FROM_MESSAGES, first_column_of_row, **message_binds)
    hashes = [message_key_hash(message.session_id, message.key) for message in erased if message.key is not None]
    await transaction.execute_many(
        _INSERT_FORGOTTEN_KEY_HASH, [{"being_id": scope.being_id, "key_hash": hash_} for hash_ in hashes]
    )
    for statement in (_DELETE_MESSAGE_TO_MEMORY_LINKS, _DELETE_MESSAGES):
        await transaction.execute_many(statement, [message_binds])
    session_binds = {
        "sessions": json_list_bind_value({message.session_id for message in erased}),
        "being": scope.being_id,
    }
    await transaction.execute_many(_ERASE_DETAILS_OF_EMPTY_SESSIONS, [session_binds])
    await transaction.execute_many(_RECOMPUTE_TIMES_AND_READ_POSITION, [session_binds])
    titles = dict(await transaction.rows(_SELECT_SESSION_TITLES, first_two_columns_of_row, **session_binds))
    mentioning = await asyncio.to_thread(_sessions_with_titles_mentioning_erased, titles, erased)
    await transaction.execute_many(
        _ERASE_SESSION_TITLE, [{"sessions": json_list_bind_value(mentioning), "being": scope.being_id}]
    )
    return [message.id for message in erased], list(dict.fromkeys(drawn))


def _sessions_with_titles_mentioning_erased(titles: Mapping[str, str], erased: Sequence[_ErasedMessage]) -> list[str]:
    """Sessions whose title has words of their erased messages."""
    texts: dict[str, list[str]] = defaultdict(list)
    for message in erased:
        texts[message.session_id] += (message.speaker, message.text)
    return [
        session_id
        for session_id, title in titles.items()
        if mentions_forgotten(title, fold_and_join_texts(texts[session_id]))
    ]
