"""Conversations as they were observed (spec P1, T1, H1): sessions, their messages, and what was drawn from them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import Boolean, Text, and_, bindparam, case, func, insert, or_, select, update

from madeleine.memory.chat import (
    SPOKEN_ROLES,
    ConversationMessage,
    MessageId,
    RecordedChatSession,
    SessionWithUnreadMessages,
    UnreadMessageTotals,
)
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import Scope
from madeleine.memory.text.normalization import fold_text
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.database import dialect
from madeleine.storage.sql.database.engine import DatabaseRepository, Row, SqlRowReader
from madeleine.storage.sql.database.mapping import (
    RowMapper,
    first_column_of_row,
    microseconds_from_moment,
    records_in_order_of_ids,
)
from madeleine.storage.sql.database.session_projects import (
    SESSION_IS_IN_BOUND_PROJECT,
    message_in_bound_project_condition,
)
from madeleine.storage.sql.moving.added_rows import record_imported_rows, row_for_import_undo
from madeleine.storage.sql.tables.conversations import (
    forgotten_keys_table,
    message_memories_table,
    messages_table,
    sessions,
)

_m, _s, _l, _f = messages_table.c, sessions.c, message_memories_table.c, forgotten_keys_table.c
ERASED_SESSION_TITLE = "\x7f"
"""Stored in place of a title that told of forgotten messages; reads as "". While it is there, the next transcript or
export that is read does not bring the old title back."""
NO_FIRST_AT, NO_LAST_AT = dialect.MAX_INT, dialect.MIN_INT
"""The times of a session without messages: those of any message replace them."""

_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_SESSION_ID_BIND = bindparam("session", type_=_m.session_id.type)
_LIMIT_BIND = bindparam("limit", type_=_m.seq.type)
_IS_BOUND_SESSION = and_(_s.being_id == _BEING_ID_BIND, _s.session_id == _SESSION_ID_BIND)
_MESSAGE_IS_IN_BOUND_SESSION = and_(_m.being_id == _BEING_ID_BIND, _m.session_id == _SESSION_ID_BIND)
_MESSAGE_IS_OF_SESSION_ROW = and_(_m.being_id == _s.being_id, _m.session_id == _s.session_id)

# --- observing ----------------------------------------------------------------------------------------------------

_MESSAGE_ROW_MAPPER = RowMapper(ConversationMessage, messages_table)
_SELECT_MESSAGES_BY_KEYS = select(_m.key, *_MESSAGE_ROW_MAPPER.columns).where(
    _MESSAGE_IS_IN_BOUND_SESSION, dialect.in_bound_list_condition(_m.key, "keys")
)
_SELECT_FORGOTTEN_KEY_HASHES = select(_f.key_hash).where(
    _f.being_id == _BEING_ID_BIND, dialect.in_bound_list_condition(_f.key_hash, "hashes")
)
_SELECT_LAST_MESSAGE_KEY = (
    select(_m.key).where(_MESSAGE_IS_IN_BOUND_SESSION, _m.key.is_not(None)).order_by(_m.position.desc()).limit(1)
)
_SELECT_SESSION_READING_PROGRESS = select(_s.messages, _s.watched, _s.put_off, _s.next_try).where(_IS_BOUND_SESSION)
_INSERT_MESSAGE = insert(messages_table)
_new = dialect.columns_of_row_proposed_for_insertion(sessions)
_UPSERT_SESSION = dialect.upsert_statement(
    sessions,
    "messages",
    "watched",
    "next_try",
    title=case((_s.title == "", _new.title), else_=_s.title),
    interface=case((_s.interface == "", _new.interface), else_=_s.interface),
    first_at=dialect.sql_least(_s.first_at, _new.first_at),
    last_at=dialect.sql_greatest(_s.last_at, _new.last_at),
)

# --- reading ------------------------------------------------------------------------------------------------------

_SELECT_MESSAGES_BY_IDS = select(*_MESSAGE_ROW_MAPPER.columns).where(
    dialect.in_bound_list_condition(_m.id, "ids"), dialect.without_index_use(_m.being_id) == _BEING_ID_BIND
)
_SELECT_MESSAGES_BETWEEN_POSITIONS = (
    select(*_MESSAGE_ROW_MAPPER.columns)
    .where(_MESSAGE_IS_IN_BOUND_SESSION, _m.position >= bindparam("start"), _m.position < bindparam("end"))
    .order_by(_m.position)
)
_IS_SPOKEN_MESSAGE = or_(*(_m.role == role for role in SPOKEN_ROLES))
_SELECT_SPOKEN_MESSAGES_FROM_POSITION = (
    select(*_MESSAGE_ROW_MAPPER.columns)
    .where(_MESSAGE_IS_IN_BOUND_SESSION, _IS_SPOKEN_MESSAGE, _m.position >= bindparam("start"))
    .order_by(_m.position)
    .limit(_LIMIT_BIND)
)
_SELECT_SPOKEN_MESSAGES_BEFORE_POSITION = (
    select(*_MESSAGE_ROW_MAPPER.columns)
    .where(_MESSAGE_IS_IN_BOUND_SESSION, _IS_SPOKEN_MESSAGE, _m.position < bindparam("start"))
    .order_by(_m.position.desc())
    .limit(_LIMIT_BIND)
)
_SELECT_LATEST_MESSAGES_IN_SESSION = (
    select(*_MESSAGE_ROW_MAPPER.columns)
    .where(_MESSAGE_IS_IN_BOUND_SESSION)
    .order_by(_m.position.desc())
    .limit(_LIMIT_BIND)
)
_SELECT_LATEST_MESSAGES = (
    select(*_MESSAGE_ROW_MAPPER.columns)
    .where(
        _m.being_id == _BEING_ID_BIND,
        or_(bindparam("other_than", type_=Text).is_(None), _m.session_id != bindparam("other_than")),
        message_in_bound_project_condition(_m),
    )
    .order_by(_m.at.desc(), _m.seq.desc())
    .limit(_LIMIT_BIND)
)
_SESSION_MESSAGE_COUNT = select(func.count()).where(_MESSAGE_IS_OF_SESSION_ROW).correlate(sessions).scalar_subquery()
_CHAT_SESSION_ROW_MAPPER = RowMapper(
    RecordedChatSession,
    sessions,
    title=case((_s.title == ERASED_SESSION_TITLE, ""), else_=_s.title),
    messages=_SESSION_MESSAGE_COUNT,
)
_SELECT_SESSIONS = (
    select(*_CHAT_SESSION_ROW_MAPPER.columns)
    .where(
        _s.being_id == _BEING_ID_BIND,
        _SESSION_MESSAGE_COUNT > 0,
        or_(bindparam("all_projects", type_=Boolean), SESSION_IS_IN_BOUND_PROJECT),
    )
    .order_by(_s.last_at.desc(), _s.session_id)
    .limit(_LIMIT_BIND)
)

# --- watching -----------------------------------------------------------------------------------------------------

_UNREAD_SESSION_ROW_MAPPER = RowMapper(SessionWithUnreadMessages, sessions)
_SELECT_SESSIONS_WITH_UNREAD_MESSAGES = (
    select(*_UNREAD_SESSION_ROW_MAPPER.columns)
    .where(_s.watched < _s.messages, _s.next_try <= bindparam("now"))
    .order_by(_s.next_try)
    .limit(_LIMIT_BIND)
)
_FIRST_UNREAD_MESSAGE_STORED_AT = (
    select(_m.stored_at)
    .where(_MESSAGE_IS_OF_SESSION_ROW, _m.position >= bindparam("up_to"))
    .order_by(_m.position)
    .limit(1)
    .correlate(sessions)
    .scalar_subquery()
)
_MARK_MESSAGES_READ = (
    update(sessions)
    .where(_IS_BOUND_SESSION, _s.watched <= bindparam("up_to"))
    .values(
        watched=dialect.sql_least(bindparam("up_to"), _s.messages),
        failures=0,
        abandoned=_s.abandoned + bindparam("new_abandoned"),
        next_try=func.coalesce(_FIRST_UNREAD_MESSAGE_STORED_AT, _s.next_try),
    )
)
_POSTPONE_UNREAD_MESSAGES = (
    update(sessions)
    .where(_IS_BOUND_SESSION)
    # A message that has come meanwhile is not put off: it is due at once, as the session was.
    .values(
        put_off=bindparam("up_to"),
        failures=0,
        next_try=case((_s.messages == bindparam("up_to"), bindparam("until")), else_=_s.next_try),
    )
)
_RETRY_SESSION_LATER = (
    update(sessions)
    .where(_IS_BOUND_SESSION)
    .values(next_try=bindparam("again_at"), failures=_s.failures + bindparam("new_failures"))
)
_SELECT_UNREAD_MESSAGE_TOTALS = select(
    func.coalesce(func.sum(_s.messages - _s.watched), 0),
    func.coalesce(func.sum(case((_s.put_off > _s.watched, _s.put_off - _s.watched), else_=0)), 0),
    func.coalesce(func.sum(_s.abandoned), 0),
)
_SELECT_MESSAGES_WITH_MEMORIES = (
    select(_m.id)
    .distinct()
    .join(message_memories_table, _l.message_id == _m.id)
    .where(dialect.in_bound_list_condition(_m.id, "ids"), dialect.without_index_use(_m.being_id) == _BEING_ID_BIND)
)


def message_key_hash(session_id: str, key: str) -> str:
    """The part of a forgotten message's key that is kept."""
    return hashlib.sha256(f"{len(session_id)} {session_id} {key}".encode()).hexdigest()


async def _present_or_forgotten_message_keys(
    reads: SqlRowReader, scope: Scope, session_id: str, keys: Iterable[str | None]
) -> set[str]:
    """Of `keys` those that the session has, or had before their messages were forgotten."""
    hashes = {message_key_hash(session_id, key): key for key in keys if key is not None}
    if not hashes:
        return set()
    binds = {"being": scope.being_id, "session": session_id, "keys": dialect.json_list_bind_value(hashes.values())}
    present = await reads.rows(_SELECT_MESSAGES_BY_KEYS, first_column_of_row, **binds)
    forgotten = await reads.rows(
        _SELECT_FORGOTTEN_KEY_HASHES,
        first_column_of_row,
        being=scope.being_id,
        hashes=dialect.json_list_bind_value(hashes),
    )
    return {*present, *(hashes[hash_] for hash_ in forgotten)}


class ConversationRepository(DatabaseRepository):
    """`ObservationLedger`, `ChatReader` and `MemoryExtractionLedger`."""

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
        if any(message.session_id != session_id for message in messages):
            raise InvalidInput("Messages can only be appended to the session that they are of.")
        async with self._database.transaction(needs_index_space=True) as transaction:
            known: set[str | None] = {*await _present_or_forgotten_message_keys(transaction, scope, session_id, keys)}
            new: list[tuple[ConversationMessage, str | None]] = []
            for message, key in zip(messages, keys, strict=True):
                if key is None or key not in known:
                    new.append((message, key))
                    known.add(key)
            if not new:
                return []
            states = await transaction.rows(
                _SELECT_SESSION_READING_PROGRESS, tuple, being=scope.being_id, session=session_id
            )
            end, watched_up_to, put_off, next_try = states[0] if states else (0, 0, 0, 0)
            caught_up = watched_up_to == end
            rows = [
                _MESSAGE_ROW_MAPPER.to_row(
                    message,
                    being_id=scope.being_id,
                    position=position,
                    key=key,
                    folded=fold_text(f"{message.speaker} {message.text}"),
                )
                for position, (message, key) in enumerate(new, start=end)
            ]
            await transaction.execute_many(_INSERT_MESSAGE, rows)
            session_row = {
                "being_id": scope.being_id,
                "session_id": session_id,
                "title": title,
                "interface": interface,
                "project": scope.project or None,
                "first_at": min(row["at"] for row in rows),
                "last_at": max(row["at"] for row in rows),
                "messages": end + len(rows),
                "watched": end + len(rows) if watched and caught_up else watched_up_to,
                "failures": 0,
                "put_off": 0,
                "abandoned": 0,
                "next_try": rows[0]["stored_at"] if end in (watched_up_to, put_off) else next_try,
            }
            await transaction.execute_many(_UPSERT_SESSION, [session_row])
            ids = [message.id for message, _ in new]
            if import_id:
                added = [row_for_import_undo("message", id_) for id_ in ids]
                if not states:
                    added.append(row_for_import_undo("session", scope.being_id, session_id))
                await record_imported_rows(transaction, import_id, added)
            await record_audit_entry(transaction, scope, "observe", new[-1][0].stored_at, ids=ids)
            return ids

    async def known_message_keys(self, scope: Scope, session_id: str, keys: Iterable[str]) -> set[str]:
        return await _present_or_forgotten_message_keys(self._database, scope, session_id, keys)

    async def messages_with_ids(self, scope: Scope, ids: Sequence[MessageId]) -> list[ConversationMessage]:
        binds = {"being": scope.being_id, "ids": dialect.json_list_bind_value(ids)}
        return records_in_order_of_ids(
            ids, await self._database.rows(_SELECT_MESSAGES_BY_IDS, _MESSAGE_ROW_MAPPER.from_row, **binds)
        )

    async def messages_by_keys(
        self, scope: Scope, session_id: str, keys: Sequence[str]
    ) -> dict[str, ConversationMessage]:
        binds = {"being": scope.being_id, "session": session_id, "keys": dialect.json_list_bind_value(keys)}
        return dict(await self._database.rows(_SELECT_MESSAGES_BY_KEYS, _to_key_and_message, **binds))

    async def last_message_key(self, scope: Scope, session_id: str) -> str | None:
        binds = {"being": scope.being_id, "session": session_id}
        return next(iter(await self._database.rows(_SELECT_LAST_MESSAGE_KEY, first_column_of_row, **binds)), None)

    async def recent_messages(
        self, scope: Scope, *, limit: int, session_id: str | None = None, other_than: str | None = None
    ) -> list[ConversationMessage]:
        statement = _SELECT_LATEST_MESSAGES if session_id is None else _SELECT_LATEST_MESSAGES_IN_SESSION
        binds = {"being": scope.being_id, "session": session_id, "other_than": other_than, "limit": limit}
        binds |= {"project": scope.project} if session_id is None else {}
        return (await self._database.rows(statement, _MESSAGE_ROW_MAPPER.from_row, **binds))[::-1]

    async def sessions(self, scope: Scope, *, limit: int, all_projects: bool = False) -> list[RecordedChatSession]:
        binds = {"being": scope.being_id, "project": scope.project, "all_projects": all_projects, "limit": limit}
        return await self._database.rows(_SELECT_SESSIONS, _CHAT_SESSION_ROW_MAPPER.from_row, **binds)

    async def sessions_with_unread_messages(self, *, now: datetime, limit: int) -> list[SessionWithUnreadMessages]:
        binds = {"now": microseconds_from_moment(now), "limit": limit}
        return await self._database.rows(
            _SELECT_SESSIONS_WITH_UNREAD_MESSAGES, _UNREAD_SESSION_ROW_MAPPER.from_row, **binds
        )

    async def session_messages_between_positions(
        self, scope: Scope, session_id: str, *, start: int, end: int
    ) -> list[ConversationMessage]:
        binds = {"being": scope.being_id, "session": session_id, "start": start, "end": end}
        return await self._database.rows(_SELECT_MESSAGES_BETWEEN_POSITIONS, _MESSAGE_ROW_MAPPER.from_row, **binds)

    async def earlier_and_unread_spoken_messages(
        self, scope: Scope, session_id: str, *, start: int, before: int, unread: int
    ) -> tuple[list[ConversationMessage], list[ConversationMessage]]:
        binds = {"being": scope.being_id, "session": session_id, "start": start}
        earlier = await self._database.rows(
            _SELECT_SPOKEN_MESSAGES_BEFORE_POSITION, _MESSAGE_ROW_MAPPER.from_row, **binds, limit=before
        )
        return earlier[::-1], await self._database.rows(
            _SELECT_SPOKEN_MESSAGES_FROM_POSITION, _MESSAGE_ROW_MAPPER.from_row, **binds, limit=unread
        )

    async def mark_messages_read_up_to_position(
        self, scope: Scope, session_id: str, *, up_to: int, abandoned: int = 0
    ) -> None:
        row = {"being": scope.being_id, "session": session_id, "up_to": up_to, "new_abandoned": abandoned}
        async with self._database.transaction() as transaction:
            await transaction.execute_many(_MARK_MESSAGES_READ, [row])

    async def postpone_unread_messages(self, scope: Scope, session_id: str, *, up_to: int, until: datetime) -> None:
        row = {"being": scope.being_id, "session": session_id, "up_to": up_to, "until": microseconds_from_moment(until)}
        async with self._database.transaction() as transaction:
            await transaction.execute_many(_POSTPONE_UNREAD_MESSAGES, [row])

    async def retry_session_later(self, scope: Scope, session_id: str, *, next_try: datetime, failed: bool) -> None:
        row = {
            "being": scope.being_id,
            "session": session_id,
            "again_at": microseconds_from_moment(next_try),
            "new_failures": failed,
        }
        async with self._database.transaction() as transaction:
            await transaction.execute_many(_RETRY_SESSION_LATER, [row])

    async def ids_of_messages_with_memories(self, scope: Scope, ids: Sequence[MessageId]) -> set[MessageId]:
        binds = {"being": scope.being_id, "ids": dialect.json_list_bind_value(ids)}
        return set(await self._database.rows(_SELECT_MESSAGES_WITH_MEMORIES, first_column_of_row, **binds))

    async def unread_message_totals_across_beings(self) -> UnreadMessageTotals:
        [(unread, put_off, abandoned)] = await self._database.rows(_SELECT_UNREAD_MESSAGE_TOTALS, tuple)
        return UnreadMessageTotals(unread=unread, put_off=put_off, abandoned=abandoned)


def _to_key_and_message(row: Row) -> tuple[str, ConversationMessage]:
    return row[0], _MESSAGE_ROW_MAPPER.from_row(row[1:])
