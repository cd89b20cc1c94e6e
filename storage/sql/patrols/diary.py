"""Diary and think_md (spec P8)."""

from __future__ import annotations

import json

from sqlalchemy import bindparam, select

from madeleine.memory.patrol_records import DiaryEntry, Thoughts
from madeleine.memory.scope import Scope
from madeleine.storage.sql.database.dialect import insert_or_update
from madeleine.storage.sql.database.engine import Reads, Row, Transaction
from madeleine.storage.sql.database.patrol_tables import beings, diary
from madeleine.storage.sql.database.rows import json_texts, texts
from madeleine.storage.sql.database.times import from_micros, to_micros

_d, _b = diary.c, beings.c
_ENTRY = select(_d.date, _d.text, _d.sources, _d.written_at).where(_d.being_id == bindparam("being"))
_LAST = _ENTRY.order_by(_d.written_at.desc()).limit(1)
_OF = _ENTRY.where(_d.date == bindparam("day"))
_SINCE = _ENTRY.where(_d.date >= bindparam("day")).order_by(_d.date.desc()).limit(bindparam("limit"))
_WRITE = insert_or_update(diary, "text", "sources", "written_at")
_THOUGHTS = select(_b.think, _b.think_sources).where(_b.being_id == bindparam("being"))
_WRITE_THOUGHTS = insert_or_update(beings, "think", "think_sources")


async def since(reads: Reads, scope: Scope, date: str, limit: int) -> list[DiaryEntry]:
    """The latest of those of that date and later, oldest first."""
    return (await reads.rows(_SINCE, _to_entry, being=scope.being_id, day=date, limit=limit))[::-1]


async def last(reads: Reads, scope: Scope) -> DiaryEntry | None:
    found = await reads.rows(_LAST, _to_entry, being=scope.being_id)
    return found[0] if found else None


async def of(reads: Reads, scope: Scope, date: str) -> DiaryEntry | None:
    found = await reads.rows(_OF, _to_entry, being=scope.being_id, day=date)
    return found[0] if found else None


async def write(transaction: Transaction, scope: Scope, entry: DiaryEntry) -> None:
    row = {
        "being_id": scope.being_id,
        "date": entry.date,
        "text": entry.text,
        "sources": json.dumps(entry.sources),
        "written_at": to_micros(entry.written_at),
    }
    await transaction.run(_WRITE, [row])


async def thoughts(reads: Reads, scope: Scope) -> Thoughts:
    found = await reads.rows(_THOUGHTS, _to_thoughts, being=scope.being_id)
    return found[0] if found else Thoughts()


async def write_thoughts(transaction: Transaction, scope: Scope, new: Thoughts) -> None:
    row = {
        "being_id": scope.being_id,
        "cycle": 0,
        "think": json_texts(new.points),
        "think_sources": json_texts(new.sources),
    }
    await transaction.run(_WRITE_THOUGHTS, [row])


def _to_entry(row: Row) -> DiaryEntry:
    date, text, sources, written_at = row
    return DiaryEntry(date=date, text=text, sources=texts(sources), written_at=from_micros(written_at))


def _to_thoughts(row: Row) -> Thoughts:
    return Thoughts(points=texts(row[0]), sources=texts(row[1]))
