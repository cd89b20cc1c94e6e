"""Diary and think_md (spec P8)."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from madeleine.memory.model import Scope
from madeleine.memory.patrol_records import DiaryEntry, Thoughts
from madeleine.storage.sql.database.dialect import insert_or_update
from madeleine.storage.sql.database.engine import Reads, Transaction
from madeleine.storage.sql.database.mapping import Mapped, json_texts
from madeleine.storage.sql.database.patrol_tables import beings, diary

_d, _b = diary.c, beings.c
_MAPPED = Mapped(DiaryEntry, diary)
_ENTRY = select(*_MAPPED.columns).where(_d.being_id == bindparam("being"))
_LAST = _ENTRY.order_by(_d.written_at.desc()).limit(1)
_OF = _ENTRY.where(_d.date == bindparam("day"))
_SINCE = _ENTRY.where(_d.date >= bindparam("day")).order_by(_d.date.desc()).limit(bindparam("limit"))
_WRITE = insert_or_update(diary, "text", "sources", "written_at")
_POINTS = Mapped(Thoughts, points=_b.think, sources=_b.think_sources)
_THOUGHTS = select(*_POINTS.columns).where(_b.being_id == bindparam("being"))
_WRITE_THOUGHTS = insert_or_update(beings, "think", "think_sources")


async def since(reads: Reads, scope: Scope, date: str, limit: int) -> list[DiaryEntry]:
    """The latest of those of that date and later, oldest first."""
    return (await reads.rows(_SINCE, _MAPPED.from_row, being=scope.being_id, day=date, limit=limit))[::-1]


async def last(reads: Reads, scope: Scope) -> DiaryEntry | None:
    found = await reads.rows(_LAST, _MAPPED.from_row, being=scope.being_id)
    return found[0] if found else None


async def of(reads: Reads, scope: Scope, date: str) -> DiaryEntry | None:
    found = await reads.rows(_OF, _MAPPED.from_row, being=scope.being_id, day=date)
    return found[0] if found else None


async def write(transaction: Transaction, scope: Scope, entry: DiaryEntry) -> None:
    await transaction.run(_WRITE, [_MAPPED.to_row(entry, being_id=scope.being_id)])


async def thoughts(reads: Reads, scope: Scope) -> Thoughts:
    found = await reads.rows(_THOUGHTS, _POINTS.from_row, being=scope.being_id)
    return found[0] if found else Thoughts()


async def write_thoughts(transaction: Transaction, scope: Scope, new: Thoughts) -> None:
    row = {
        "being_id": scope.being_id,
        "cycle": 0,
        "think": json_texts(new.points),
        "think_sources": json_texts(new.sources),
    }
    await transaction.run(_WRITE_THOUGHTS, [row])
