"""The notes inbox."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select, update

from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.notes import SCENE
from madeleine.memory.model import Note, NoteId, Scope
from madeleine.memory.text.normalization import fold
from madeleine.storage.sql.database.engine import Reads, Repository, Transaction
from madeleine.storage.sql.database.mapping import Mapped, own_row, own_row_binds, scalar, update_own_row
from madeleine.storage.sql.database.tables import notes
from madeleine.storage.sql.operations.audit import record_audit

_n = notes.c
_NOTE = Mapped(Note, notes)
_UNREAD = (
    select(*_NOTE.columns)
    .where(_n.being_id == bindparam("being"), _n.state == "unread", _n.type == bindparam("wanted"))
    .order_by(_n.created_at, _n.seq)
)
_OPEN = (
    select(*_NOTE.columns)
    .where(_n.being_id == bindparam("being"), _n.state == "unread", _n.type != SCENE)
    .order_by(_n.created_at.desc(), _n.seq.desc())
    .limit(bindparam("limit"))
)
_IS = select(_n.id).where(_n.being_id == bindparam("being"), _n.id == bindparam("target"), _n.type != SCENE)
_CLOSE = update(notes).where(*own_row(notes)).values(state="done")
_REMOVE = delete(notes).where(*own_row(notes))
_UPDATE = update_own_row(notes, "state", "reason", "content", "folded", "memory_id")
_INSERT = insert(notes)


async def unread_notes(reads: Reads, scope: Scope, type_: str) -> list[Note]:
    return await reads.rows(_UNREAD, _NOTE.from_row, being=scope.being_id, wanted=type_)


async def update_notes(transaction: Transaction, scope: Scope, changed: Sequence[Note]) -> None:
    rows = [
        own_row_binds(
            scope,
            note.id,
            state=note.state,
            reason=note.reason,
            content=note.content,
            folded=fold(note.content),
            memory_id=note.memory_id,
        )
        for note in changed
    ]
    await transaction.run(_UPDATE, rows)


class NoteRepository(Repository):
    """`NoteLedger`, and the notes of a profile and a context."""

    async def add_note(self, scope: Scope, note: Note) -> None:
        if note.being_id != scope.being_id:
            raise InvalidInput("A note can only be left for the being that the connection serves.")
        row = _NOTE.to_row(note, folded=fold(note.content))
        async with self._database.transaction(grows=True) as transaction:
            await transaction.run(_INSERT, [row])
            await record_audit(transaction, scope, "note", note.created_at, ids=[note.id])

    async def open_notes(self, scope: Scope, *, limit: int) -> list[Note]:
        """The latest that are unread and no scenes, oldest first."""
        return (await self._database.rows(_OPEN, _NOTE.from_row, being=scope.being_id, limit=limit))[::-1]

    async def close_note(self, scope: Scope, note_id: NoteId, *, at: datetime, remove: bool = False) -> bool:
        binds = own_row_binds(scope, note_id)
        async with self._database.transaction() as transaction:
            if not await transaction.rows(_IS, scalar, **binds):
                return False
            await transaction.run(_REMOVE if remove else _CLOSE, [binds])
            await record_audit(transaction, scope, "note", at, tool="profile", ids=[note_id])
            return True
