"""What the memory thread has still to read, what it could not, and what it has spent: read from the ledger alone,
beside a running host or without one."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path

from madeleine.memory.watch.extraction import EXTRACTION_PURPOSE
from madeleine.memory.watch.thread import TOKEN_BUDGET_PERIOD
from madeleine.server.background.index_origin import require_ledger_of_index
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.data_directory import LEDGER_FILE
from madeleine.storage.sql.ledger import open_ledger


def read_thread_status(data_dir: Path) -> dict[str, int]:
    """Messages of all beings that are `unread`, `put_off` of these and `abandoned`; `tokens` of the last 24 hours.
    Empty without a ledger. Raises `StorageError`."""
    path = data_dir / LEDGER_FILE
    require_ledger_of_index(path)
    return asyncio.run(_read_thread_status(path)) if path.exists() else {}


async def _read_thread_status(path: Path) -> dict[str, int]:
    async with open_ledger(path) as ledger:
        backlog = await ledger.conversations.thread_backlog()
        tokens = await ledger.patrols.tokens_since(EXTRACTION_PURPOSE, utc_now() - TOKEN_BUDGET_PERIOD)
        return asdict(backlog) | {"tokens": tokens}


def thread_status_line(counts: dict[str, int]) -> str:
    return (
        f"Memory thread: {counts['unread']} messages unread ({counts['put_off']} of them put off until more is said), "
        f"{counts['abandoned']} abandoned after failures, {counts['tokens']:,} tokens in 24 hours."
    )
