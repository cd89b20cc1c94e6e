"""Marks that have the files rewritten: nothing else takes deleted bytes out of them (ADR 12)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime

from sqlalchemy import insert

from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import microseconds_from_moment
from madeleine.storage.sql.database.tables import pending_scrub_marks_table

_INSERT_PENDING_SCRUB_MARK = insert(pending_scrub_marks_table)


async def mark_erased_ids_for_scrubbing(transaction: Transaction, erased_ids: Iterable[str]) -> None:
    """For each of what is gone, by which the index loses it, too. By the clock of this machine, since a promise to a
    person runs from now (ruling 25)."""
    now = microseconds_from_moment(datetime.now(UTC))
    await transaction.execute_many(
        _INSERT_PENDING_SCRUB_MARK, [{"memory_id": id_, "erased_at": now} for id_ in erased_ids]
    )


async def mark_files_for_scrub(transaction: Transaction) -> None:
    """For what is no memory's."""
    await mark_erased_ids_for_scrubbing(transaction, [str(uuid.uuid4())])
