"""Diary and think_md (spec P8)."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from madeleine.memory.model import Scope
from madeleine.memory.patrol_records import DiaryEntry, Thoughts
from madeleine.storage.sql.database.dialect import insert_or_update
from madeleine.storage.sql.database.engine import Reads, Transaction
from madeleine.storage.sql.database.mapping import Mapped, json_texts
from madeleine.storage.sql.database.tables import beings, diary

_d, _b = diary.c, beings.c
_DIARY_ENTRY = Mapped(DiaryEntry, diary)
_own_entries = select(*_DIARY_ENTRY.columns).where(_d.being_id == bindparam("being"))
_SELECT_LAST_ENTRY = _own_entries.order_by(_d.written_at.desc()).limit(1)
_SELECT_SINCE = _own_entries.where(_d.date >= bindparam("day")).order_by(_d.date.desc()).limit(bindparam("limit"))
_UPSERT_ENTRY = insert_or_update(diary, "text", "sources", "written_at")
_THOUGHTS = Mapped(Thoughts, points=_b.think, sources=_b.think_sources)
_SELECT_THOUGHTS = select(*_THOUGHTS.columns).where(_b.being_id == bindparam("being"))
_UPSERT_THOUGHTS = insert_or_update(beings, "think", "think_sources")


async def diary_since(reads: Reads, scope: Scope, date: str, limit: int) -> list[DiaryEntry]:
    """The latest entries of that date and later, oldest first."""
    return (await reads.rows(_SELECT_SINCE, _DIARY_ENTRY.from_row, being=scope.being_id, day=date, limit=limit))[::-1]


async def last_diary(reads: Reads, scope: Scope) -> DiaryEntry | None:
    entries = await reads.rows(_SELECT_LAST_ENTRY, _DIARY_ENTRY.from_row, being=scope.being_id)
    return entries[0] if entries else None


async def write_diary(transaction: Transaction, scope: Scope, entry: DiaryEntry) -> None:
    await transaction.run(_UPSERT_ENTRY, [_DIARY_ENTRY.to_row(entry, being_id=scope.being_id)])


async def read_thoughts(reads: Reads, scope: Scope) -> Thoughts:
    thoughts = await reads.rows(_SELECT_THOUGHTS, _THOUGHTS.from_row, being=scope.being_id)
    return thoughts[0] if thoughts else Thoughts()


async def write_thoughts(transaction: Transaction, scope: Scope, new: Thoughts) -> None:
    thoughts = {"think": json_texts(new.points), "think_sources": json_texts(new.sources)}
    await transaction.run(_UPSERT_THOUGHTS, [{"being_id": scope.being_id, "cycle": 0, **thoughts}])
