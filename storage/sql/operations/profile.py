"""Profile data by kind and name (spec P5)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, exists, func, literal, literal_column, or_, select

from madeleine.memory.model import MemoryId, Scope
from madeleine.memory.profile import ProfileEntry, duplicate_preference
from madeleine.storage.sql.conversations.notes import NoteRepository
from madeleine.storage.sql.database.dialect import either, insert_or_update
from madeleine.storage.sql.database.engine import Row
from madeleine.storage.sql.database.mapping import Mapped, from_micros, scalar
from madeleine.storage.sql.database.tables import memories, profile
from madeleine.storage.sql.operations.audit import record_audit

MAX_UNNAMED = 200
"""Of procedural memories without an entry of their own: the latest."""

_p, _m = profile.c, memories.c
_BEING = bindparam("being", type_=_p.being_id.type)
_ENTRY = Mapped(ProfileEntry, profile)
_ALL = (
    select(_p.kind, _p.name, _p.value, _p.enabled, _p.memory_id, _p.updated_at, _m.action)
    .outerjoin(memories, _m.id == _p.memory_id)
    .where(
        _p.being_id == _BEING,
        # What was absorbed is told by its survivor, which is in the profile itself.
        or_(_p.memory_id.is_(None), (_m.status != "dead") & (_m.compressed.is_(False))),
    )
    .order_by(_p.kind, func.coalesce(_m.seq, 0), _p.name)
)
# Whether or not somebody has made an entry of it: a procedural memory is a preference (spec 001, 1.6).
_UNNAMED = (
    select(literal("preferences"), _m.id, _m.action, literal(1), _m.id, _m.created_at, _m.action)
    .where(
        _m.being_id == _BEING,
        # As text, for SQLite to know that it is what `ix_memories_procedural` holds.
        _m.category == literal_column("'procedural'"),
        either(_m.status, literal_column("'active'"), literal_column("'dying'")),
        _m.compressed.is_(False),
        ~exists().where(_p.memory_id == _m.id),
    )
    .order_by(_m.seq.desc())
    .limit(bindparam("most"))
)
_OF_NAME = (_p.being_id == _BEING, _p.kind == bindparam("old_kind"), _p.name == bindparam("old_name"))
_REPLACED = select(_p.memory_id).join(memories, _m.id == _p.memory_id).where(*_OF_NAME, _m.status != "dead")
_OTHERS = (_p.being_id == _BEING, _p.memory_id == bindparam("of_memory"), _p.name != bindparam("old_name"))
_NAMED_OTHERS = select(_p.name).where(*_OTHERS, _p.name != _p.memory_id)
_DELETE_OTHERS = delete(profile).where(*_OTHERS)
_WRITE = insert_or_update(profile, "value", "enabled", "memory_id", "updated_at")
_IS = select(_p.name).where(*_OF_NAME)
_DELETE = delete(profile).where(*_OF_NAME)


def _to_entry(row: Row) -> ProfileEntry:
    kind, name, value, enabled, memory_id, updated_at, action = row
    if action is not None:
        # What the memory says now: it may have been corrected since.
        value = action if name == memory_id else action.removeprefix(f"{name}: ")
    return ProfileEntry(
        kind=kind,
        name=name,
        value=value,
        enabled=bool(enabled),
        memory_id=memory_id,
        updated_at=from_micros(updated_at),
    )


def _named(scope: Scope, entry: ProfileEntry) -> dict[str, Any]:
    return {"being": scope.being_id, "old_kind": entry.kind, "old_name": entry.name}


class ProfileRepository(NoteRepository):
    """`ProfileLedger`."""

    async def profile(self, scope: Scope) -> list[ProfileEntry]:
        named = await self._database.rows(_ALL, _to_entry, being=scope.being_id)
        unnamed = await self._database.rows(_UNNAMED, _to_entry, being=scope.being_id, most=MAX_UNNAMED)
        return [*named, *reversed(unnamed)]

    async def write_entry(self, scope: Scope, entry: ProfileEntry) -> MemoryId | None:
        async with self._database.transaction(grows=True) as transaction:
            replaced: list[MemoryId] = await transaction.rows(_REPLACED, scalar, **_named(scope, entry))
            if entry.memory_id is not None:
                others = {"being": scope.being_id, "of_memory": entry.memory_id, "old_name": entry.name}
                if named := await transaction.rows(_NAMED_OTHERS, scalar, **others):
                    raise duplicate_preference(named[0])
                await transaction.run(_DELETE_OTHERS, [others])
            await transaction.run(_WRITE, [_ENTRY.to_row(entry, being_id=scope.being_id)])
            ids = [entry.id, *([entry.memory_id] if entry.memory_id else [])]
            await record_audit(transaction, scope, "profile", entry.updated_at, tool="profile", ids=ids)
        return next((id_ for id_ in replaced if id_ != entry.memory_id), None)

    async def remove_entry(self, scope: Scope, entry: ProfileEntry, *, at: datetime) -> bool:
        async with self._database.transaction() as transaction:
            if not await transaction.rows(_IS, scalar, **_named(scope, entry)):
                return False
            await transaction.run(_DELETE, [_named(scope, entry)])
            await record_audit(transaction, scope, "profile", at, tool="profile", ids=[entry.id])
            return True
