"""Checks of a ledger on PostgreSQL: whether it can be reached, and what this server's index has still to take in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from madeleine.memory.errors import MadeleineError
from madeleine.server.counted import count_phrase
from madeleine.server.doctor.findings import DoctorFinding
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.data_directory import open_ledger_without_index

MAX_PENDING_INDEX_MARKS_COUNTED = 1_000
POSTGRES_BACKUP_ADVICE = "pg_dump makes one; docs/postgresql.md has the commands."


def findings_about_postgres(settings: Settings) -> Iterator[DoctorFinding]:
    try:
        memories, pending = asyncio.run(_count_memories_and_pending_index_marks(settings))
    except MadeleineError as error:
        yield DoctorFinding("ledger", "problem", str(error), "Check that PostgreSQL runs, and MADELEINE_DATABASE_URL.")
        return
    total = f"{count_phrase(sum(memories.values()), 'memory', 'memories')} of {count_phrase(len(memories), 'being')}"
    details = {"memories": memories}
    yield DoctorFinding("ledger", "ok", f"The memory is in PostgreSQL: {total}.", details=details)
    yield DoctorFinding("backup", "note", "Madeleine makes no backups of PostgreSQL.", POSTGRES_BACKUP_ADVICE)
    more = " or more" if pending == MAX_PENDING_INDEX_MARKS_COUNTED else ""
    text = f"{pending}{more} changes wait to be taken in by this server's index."
    yield DoctorFinding("index", "ok", text, details={"pending": pending})


async def _count_memories_and_pending_index_marks(settings: Settings) -> tuple[dict[str, int], int]:
    async with open_ledger_without_index(settings, create=False) as ledger:
        pending = await ledger.index_source.pending_index_marks_with_memory_ids(limit=MAX_PENDING_INDEX_MARKS_COUNTED)
        return await ledger.index_source.count_memories_by_being(), len(pending)
