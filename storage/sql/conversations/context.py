"""What a context reads: profile, notes inbox, diary, recent memories and messages (spec P5, P8, H5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from sqlalchemy import bindparam, delete, exists, func, insert, literal, literal_column, or_, select, update

from madeleine.memory.context.ports import SessionStartMemories
from madeleine.memory.core_blocks.values import CoreBlock
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.notes import SCENE_NOTE_TYPE
from madeleine.memory.lessons.values import REPORT_FAILURE_TOOL_NAME
from madeleine.memory.model import Emotion, Memory, MemoryId, Note, NoteId, NoteState, Scope
from madeleine.memory.patrol_records import DiaryEntry, ThoughtsForNextSession
from madeleine.memory.profile import ProfileEntry, duplicate_preference_error
from madeleine.memory.text.normalization import fold_text
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.conversations.chat import ConversationRepository
from madeleine.storage.sql.conversations.core_blocks import read_core_blocks
from madeleine.storage.sql.conversations.session_start import read_memory_groups_for_session_start
from madeleine.storage.sql.database.dialect import equals_any, upsert_statement
from madeleine.storage.sql.database.engine import Row, SqlRowReader, Transaction
from madeleine.storage.sql.database.mapping import (
    RowMapper,
    conditions_for_row_by_key_and_being,
    decode_json_list_cached,
    encode_json_list,
    first_column_of_row,
    row_of_being_binds,
    update_row_of_being_statement,
)
from madeleine.storage.sql.database.memory_rows import MEMORY_COLUMNS, MEMORY_IS_IN_BOUND_PROJECT, memory_from_row
from madeleine.storage.sql.database.tables import (
    beings_table,
    diary_entries_table,
    memories_table,
    notes_table,
    profile_entries_table,
)
from madeleine.storage.sql.memories.knowledge import read_organisation_knowledge

MAX_READ_POLICIES = 50
"""The most that the setting allows."""
MAX_UNNAMED_PREFERENCES_IN_PROFILE = 200
"""Procedural memories without an entry of their own that a profile shows: the latest."""

MAX_LATEST_MEMORIES_READ_FOR_EMOTIONS = 6
"""Latest memories of a session among which one with emotions is looked for: about a snippet's (spec T2)."""

_b, _d, _m, _n, _p = (beings_table.c, diary_entries_table.c, memories_table.c, notes_table.c, profile_entries_table.c)
_BEING_ID_BIND = bindparam("being", type_=_p.being_id.type)

_PROFILE_ENTRY_ROW_MAPPER = RowMapper(ProfileEntry, profile_entries_table)
_SELECT_PROJECTS = (
    select(_m.project)
    .distinct()
    .where(
        _m.being_id == _BEING_ID_BIND,
        or_(_m.project.is_not(None), _m.level.is_not(None)),  # as the index has it
        _m.project.is_not(None),
    )
    .order_by(_m.project)
    .limit(bindparam("limit"))
)
_SELECT_PROFILE_ENTRIES = (
    select(*_PROFILE_ENTRY_ROW_MAPPER.columns, _m.action)
    .outerjoin(memories_table, _m.id == _p.memory_id)
    .where(
        _p.being_id == _BEING_ID_BIND,
        # An absorbed memory is told by its survivor, which is in the profile itself.
        or_(_p.memory_id.is_(None), (_m.status != "dead") & (_m.compressed.is_(False)) & (_m.truth == "current")),
        MEMORY_IS_IN_BOUND_PROJECT,
    )
    .order_by(_p.kind, func.coalesce(_m.seq, 0), _p.name)
)
# A procedural memory is a preference, also without an entry (spec 001, 1.6).
_UNNAMED_PREFERENCE_ROW_MAPPER = RowMapper(
    ProfileEntry, kind=literal("preferences"), name=_m.id, value=_m.action, updated_at=_m.created_at, memory_id=_m.id
)
_SELECT_UNNAMED_PREFERENCES = (
    select(*_UNNAMED_PREFERENCE_ROW_MAPPER.columns)
    .where(
        _m.being_id == _BEING_ID_BIND,
        # As text, for SQLite to know that it is what `ix_memories_procedural` holds.
        _m.category == literal_column("'procedural'"),
        equals_any(_m.status, literal_column("'active'"), literal_column("'dying'")),
        _m.compressed.is_(False),
        _m.truth == "current",
        MEMORY_IS_IN_BOUND_PROJECT,
        _m.tool != literal_column(f"'{REPORT_FAILURE_TOOL_NAME}'"),
        ~exists().where(_p.memory_id == _m.id),
    )
    .order_by(_m.seq.desc())
    .limit(bindparam("most"))
)
_IS_BOUND_PROFILE_ENTRY = (
    _p.being_id == _BEING_ID_BIND,
    _p.kind == bindparam("old_kind"),
    _p.name == bindparam("old_name"),
)
_SELECT_PROFILE_ENTRY_NAME = select(_p.name).where(*_IS_BOUND_PROFILE_ENTRY)
_SELECT_MEMORY_ID_OF_REPLACED_ENTRY = (
    select(_p.memory_id)
    .join(memories_table, _m.id == _p.memory_id)
    .where(*_IS_BOUND_PROFILE_ENTRY, _m.status != "dead")
)
_IS_OTHER_ENTRY_OF_SAME_MEMORY = (
    _p.being_id == _BEING_ID_BIND,
    _p.memory_id == bindparam("same_memory"),
    _p.name != bindparam("old_name"),
)
_SELECT_OTHER_ENTRY_NAMES_OF_SAME_MEMORY = select(_p.name).where(
    *_IS_OTHER_ENTRY_OF_SAME_MEMORY, _p.name != _p.memory_id
)
_DELETE_OTHER_ENTRIES_OF_SAME_MEMORY = delete(profile_entries_table).where(*_IS_OTHER_ENTRY_OF_SAME_MEMORY)
_UPSERT_PROFILE_ENTRY = upsert_statement(profile_entries_table, "value", "enabled", "memory_id", "updated_at")
_DELETE_PROFILE_ENTRY = delete(profile_entries_table).where(*_IS_BOUND_PROFILE_ENTRY)

_NOTE_ROW_MAPPER = RowMapper(Note, notes_table)
_SELECT_NOTES = select(*_NOTE_ROW_MAPPER.columns).where(_n.being_id == _BEING_ID_BIND)
_of_type = (_n.type == bindparam("note_type"), _n.state == bindparam("note_state"))
_SELECT_NOTES_OF_TYPE_AND_STATE = _SELECT_NOTES.where(*_of_type).order_by(_n.created_at, _n.seq)
# A scene is for the patrol, unless it could not be read.
_IS_OPEN_NOTE = or_((_n.state == "unread") & (_n.type != SCENE_NOTE_TYPE), _n.state == "parse_failed")
_SELECT_OPEN_NOTES = (
    _SELECT_NOTES.where(_IS_OPEN_NOTE).order_by(_n.created_at.desc(), _n.seq.desc()).limit(bindparam("limit"))
)
_COUNT_UNREADABLE_NOTES = select(func.count()).where(_n.state == "parse_failed")
_SELECT_CLOSABLE_NOTE = select(_n.id).where(
    *conditions_for_row_by_key_and_being(notes_table), or_(_n.type != SCENE_NOTE_TYPE, _n.state == "parse_failed")
)
_INSERT_NOTE = insert(notes_table)
_UPDATABLE_NOTE_FIELDS = ("state", "reason", "content", "memory_id")
_UPDATE_NOTE = update_row_of_being_statement(notes_table, *_UPDATABLE_NOTE_FIELDS, "folded")
_CLOSE_NOTE = update(notes_table).where(*conditions_for_row_by_key_and_being(notes_table)).values(state="done")
_DELETE_NOTE = delete(notes_table).where(*conditions_for_row_by_key_and_being(notes_table))

_DIARY_ENTRY_ROW_MAPPER = RowMapper(DiaryEntry, diary_entries_table)
_own_entries = select(*_DIARY_ENTRY_ROW_MAPPER.columns).where(_d.being_id == _BEING_ID_BIND)
_SELECT_LAST_DIARY_ENTRY = _own_entries.order_by(_d.written_at.desc()).limit(1)
_SELECT_DIARY_ENTRIES_SINCE = (
    _own_entries.where(_d.date >= bindparam("day")).order_by(_d.date.desc()).limit(bindparam("limit"))
)
_UPSERT_DIARY_ENTRY = upsert_statement(diary_entries_table, "text", "sources", "written_at")
_THOUGHTS_FOR_NEXT_SESSION_ROW_MAPPER = RowMapper(ThoughtsForNextSession, points=_b.think, sources=_b.think_sources)
_SELECT_THOUGHTS_FOR_NEXT_SESSION = select(*_THOUGHTS_FOR_NEXT_SESSION_ROW_MAPPER.columns).where(
    _b.being_id == _BEING_ID_BIND
)
_UPSERT_THOUGHTS_FOR_NEXT_SESSION = upsert_statement(beings_table, "think", "think_sources")

_SELECT_RECENTLY_ACTIVATED_MEMORIES = (
    select(*MEMORY_COLUMNS)
    .where(
        _m.being_id == _BEING_ID_BIND,
        MEMORY_IS_IN_BOUND_PROJECT,
        _m.last_activated.is_not(None),
        _m.status != "dead",
        _m.compressed.is_(False),
        _m.truth == "current",
        func.trim(_m.action) != "",
    )
    .order_by(_m.last_activated.desc(), _m.id)
    .limit(bindparam("limit"))
)
_SELECT_LATEST_EMOTIONS_OF_SESSION = (
    select(_m.emotions)
    .where(_m.being_id == _BEING_ID_BIND, _m.session_id == bindparam("session"), _m.session_id != "")
    .order_by(_m.turn.desc())
    .limit(MAX_LATEST_MEMORIES_READ_FOR_EMOTIONS)
)


async def read_notes(reads: SqlRowReader, scope: Scope, type_: str, state: NoteState) -> list[Note]:
    """Oldest first."""
    binds = {"being": scope.being_id, "note_type": type_, "note_state": state}
    return await reads.rows(_SELECT_NOTES_OF_TYPE_AND_STATE, _NOTE_ROW_MAPPER.from_row, **binds)


async def update_note_rows(transaction: Transaction, scope: Scope, changed: Sequence[Note]) -> None:
    rows = [
        row_of_being_binds(scope, note.id, note, _UPDATABLE_NOTE_FIELDS, folded=fold_text(note.content))
        for note in changed
    ]
    await transaction.execute_many(_UPDATE_NOTE, rows)


async def read_last_written_diary_entry(reads: SqlRowReader, scope: Scope) -> DiaryEntry | None:
    entries = await reads.rows(_SELECT_LAST_DIARY_ENTRY, _DIARY_ENTRY_ROW_MAPPER.from_row, being=scope.being_id)
    return entries[0] if entries else None


async def write_diary_entry(transaction: Transaction, scope: Scope, entry: DiaryEntry) -> None:
    await transaction.execute_many(
        _UPSERT_DIARY_ENTRY, [_DIARY_ENTRY_ROW_MAPPER.to_row(entry, being_id=scope.being_id)]
    )


async def read_thoughts_for_next_session(reads: SqlRowReader, scope: Scope) -> ThoughtsForNextSession:
    thoughts = await reads.rows(
        _SELECT_THOUGHTS_FOR_NEXT_SESSION, _THOUGHTS_FOR_NEXT_SESSION_ROW_MAPPER.from_row, being=scope.being_id
    )
    return thoughts[0] if thoughts else ThoughtsForNextSession()


async def write_thoughts_for_next_session(transaction: Transaction, scope: Scope, new: ThoughtsForNextSession) -> None:
    thoughts = {"think": encode_json_list(new.points), "think_sources": encode_json_list(new.sources)}
    await transaction.execute_many(
        _UPSERT_THOUGHTS_FOR_NEXT_SESSION, [{"being_id": scope.being_id, "cycle": 0, **thoughts}]
    )


def _to_profile_entry(row: Row) -> ProfileEntry:
    """An entry with the present text of its memory, which may have been corrected since."""
    *columns, action = row
    entry = _PROFILE_ENTRY_ROW_MAPPER.from_row(tuple(columns))
    if action is None:
        return entry
    return replace(entry, value=action if entry.is_learnt_from_memory else action.removeprefix(f"{entry.name}: "))


def _profile_entry_binds(scope: Scope, entry: ProfileEntry) -> dict[str, Any]:
    return {"being": scope.being_id, "old_kind": entry.kind, "old_name": entry.name}


class ContextRepository(ConversationRepository):
    """`ContextLedger`, `ProfileLedger` and `NoteRecorder`."""

    async def policies(self) -> list[Memory]:
        return (await read_organisation_knowledge(self._database, ["policy"], limit=MAX_READ_POLICIES))[::-1]

    async def core_blocks(self, scope: Scope) -> list[CoreBlock]:
        return await read_core_blocks(self._database, scope)

    async def profile_entries(self, scope: Scope) -> list[ProfileEntry]:
        binds = {"being": scope.being_id, "project": scope.project}
        entries = await self._database.rows(_SELECT_PROFILE_ENTRIES, _to_profile_entry, **binds)
        unnamed = await self._database.rows(
            _SELECT_UNNAMED_PREFERENCES,
            _UNNAMED_PREFERENCE_ROW_MAPPER.from_row,
            most=MAX_UNNAMED_PREFERENCES_IN_PROFILE,
            **binds,
        )
        return [*entries, *reversed(unnamed)]

    async def projects(self, scope: Scope, *, limit: int) -> list[str]:
        return await self._database.rows(_SELECT_PROJECTS, first_column_of_row, being=scope.being_id, limit=limit)

    async def write_profile_entry(self, scope: Scope, entry: ProfileEntry) -> MemoryId | None:
        async with self._database.transaction(needs_index_space=True) as transaction:
            replaced: list[MemoryId] = await transaction.rows(
                _SELECT_MEMORY_ID_OF_REPLACED_ENTRY, first_column_of_row, **_profile_entry_binds(scope, entry)
            )
            if entry.memory_id is not None:
                binds = {"being": scope.being_id, "same_memory": entry.memory_id, "old_name": entry.name}
                if names := await transaction.rows(
                    _SELECT_OTHER_ENTRY_NAMES_OF_SAME_MEMORY, first_column_of_row, **binds
                ):
                    raise duplicate_preference_error(names[0])
                await transaction.execute_many(_DELETE_OTHER_ENTRIES_OF_SAME_MEMORY, [binds])
            await transaction.execute_many(
                _UPSERT_PROFILE_ENTRY, [_PROFILE_ENTRY_ROW_MAPPER.to_row(entry, being_id=scope.being_id)]
            )
            ids = [entry.audit_id, *([entry.memory_id] if entry.memory_id else [])]
            await record_audit_entry(transaction, scope, "profile", entry.updated_at, tool="profile", ids=ids)
        return next((id_ for id_ in replaced if id_ != entry.memory_id), None)

    async def remove_profile_entry(self, scope: Scope, entry: ProfileEntry, *, at: datetime) -> bool:
        binds = _profile_entry_binds(scope, entry)
        async with self._database.transaction() as transaction:
            if not await transaction.rows(_SELECT_PROFILE_ENTRY_NAME, first_column_of_row, **binds):
                return False
            await transaction.execute_many(_DELETE_PROFILE_ENTRY, [binds])
            await record_audit_entry(transaction, scope, "profile", at, tool="profile", ids=[entry.audit_id])
            return True

    async def add_note(self, scope: Scope, note: Note) -> None:
        if note.being_id != scope.being_id:
            raise InvalidInput("A note can only be left for the being that the connection serves.")
        async with self._database.transaction(needs_index_space=True) as transaction:
            await transaction.execute_many(
                _INSERT_NOTE, [_NOTE_ROW_MAPPER.to_row(note, folded=fold_text(note.content))]
            )
            await record_audit_entry(transaction, scope, "note", note.created_at, ids=[note.id])

    async def list_open_notes(self, scope: Scope, *, limit: int) -> list[Note]:
        newest = await self._database.rows(
            _SELECT_OPEN_NOTES, _NOTE_ROW_MAPPER.from_row, being=scope.being_id, limit=limit
        )
        return newest[::-1]

    async def count_unreadable_notes(self) -> int:
        """Of all beings: marked `[PARSE_FAILED]`, and not yet told anew."""
        return int((await self._database.rows(_COUNT_UNREADABLE_NOTES, first_column_of_row))[0])

    async def close_note(self, scope: Scope, note_id: NoteId, *, at: datetime, remove: bool = False) -> bool:
        binds = row_of_being_binds(scope, note_id)
        async with self._database.transaction() as transaction:
            if not await transaction.rows(_SELECT_CLOSABLE_NOTE, first_column_of_row, **binds):
                return False
            await transaction.execute_many(_DELETE_NOTE if remove else _CLOSE_NOTE, [binds])
            await record_audit_entry(transaction, scope, "note", at, tool="profile", ids=[note_id])
            return True

    async def thoughts_for_next_session(self, scope: Scope) -> ThoughtsForNextSession:
        return await read_thoughts_for_next_session(self._database, scope)

    async def diary_entries_since(self, scope: Scope, date: str, *, limit: int) -> list[DiaryEntry]:
        binds = {"being": scope.being_id, "day": date, "limit": limit}
        return (await self._database.rows(_SELECT_DIARY_ENTRIES_SINCE, _DIARY_ENTRY_ROW_MAPPER.from_row, **binds))[::-1]

    async def recently_activated_memories(self, scope: Scope, *, limit: int) -> list[Memory]:
        binds = {"being": scope.being_id, "project": scope.project}
        return await self._database.rows(_SELECT_RECENTLY_ACTIVATED_MEMORIES, memory_from_row, limit=limit, **binds)

    async def emotions_of_latest_session_memory(self, scope: Scope, session_id: str) -> tuple[Emotion, ...]:
        labels = await self._database.rows(
            _SELECT_LATEST_EMOTIONS_OF_SESSION,
            lambda row: decode_json_list_cached(row[0]),
            being=scope.being_id,
            session=session_id,
        )
        return next((cast("tuple[Emotion, ...]", tuple(emotions)) for emotions in labels if emotions), ())

    async def memory_groups_for_session_start(
        self, scope: Scope, *, now: datetime, due_until: datetime, changed_since: datetime, limit: int
    ) -> SessionStartMemories:
        return await read_memory_groups_for_session_start(
            self._database, scope, now=now, due_until=due_until, changed_since=changed_since, limit=limit
        )
