"""What a context reads: profile, notes, diary, recent memories and messages (spec P5, H5)."""

from __future__ import annotations

from sqlalchemy import bindparam, func, select

from madeleine.memory.model import Memory, Scope
from madeleine.memory.patrol_records import DiaryEntry, Thoughts
from madeleine.storage.sql.conversations.chat import ConversationRepository
from madeleine.storage.sql.database.memory_rows import MEMORY, to_memory
from madeleine.storage.sql.database.tables import memories
from madeleine.storage.sql.operations.profile import ProfileRepository
from madeleine.storage.sql.patrols.diary import diary_since, read_thoughts

_m = memories.c
_RECENT = (
    select(*MEMORY)
    .where(
        _m.being_id == bindparam("being"),
        _m.last_activated.is_not(None),
        _m.status != "dead",
        _m.compressed.is_(False),
        func.trim(_m.action) != "",
    )
    .order_by(_m.last_activated.desc(), _m.id)
    .limit(bindparam("limit"))
)


class ContextRepository(ProfileRepository, ConversationRepository):
    """`ContextLedger`."""

    async def thoughts(self, scope: Scope) -> Thoughts:
        return await read_thoughts(self._database, scope)

    async def diary_since(self, scope: Scope, date: str, *, limit: int) -> list[DiaryEntry]:
        return await diary_since(self._database, scope, date, limit)

    async def recently_activated(self, scope: Scope, *, limit: int) -> list[Memory]:
        return await self._database.rows(_RECENT, to_memory, being=scope.being_id, limit=limit)
