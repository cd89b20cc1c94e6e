"""Forgetting on purpose (rulings 11 and 25): the only way in which anything is ever erased, and then everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import datetime

from madeleine.memory.chat import MessageId
from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.ingest.index_keeper import IndexKeeper, Scrubber
from madeleine.memory.ingest.ports import ForgetLedger
from madeleine.memory.model import MemoryId, Scope

SCRUB_WAIT_SECONDS = 20.0
"""How long a call waits for the last bytes: 10,000 memories take about 4 s, 50,000 may take longer than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """`erased`: ids that no answer shows any more. `missing`: ids of no memory or message of this being. `related`:
    memories that stay (`ports.Erased`). `diary_entries`, `messages`: how many were removed with them. `bytes_gone`:
    whether the files are scrubbed; if not yet, that goes on in the background."""

    erased: tuple[MemoryId | MessageId, ...]
    missing: tuple[MemoryId | MessageId, ...]
    related: tuple[MemoryId, ...]
    bytes_gone: bool
    diary_entries: int = 0
    messages: int = 0


@dataclass(frozen=True, eq=False)
class Forget:
    """The use case. Forgetting the same again finds nothing, and waits for the files to be scrubbed.

    `write_lock` is shared with `StoreScenes`, so that nothing is stored or reinforced between the two steps.
    """

    ledger: ForgetLedger
    keeper: IndexKeeper
    scrubber: Scrubber
    write_lock: asyncio.Lock
    _: KW_ONLY
    now: Callable[[], datetime]

    async def __call__(self, scope: Scope, ids: Sequence[MemoryId | MessageId]) -> Forgotten:
        """Erase the memories and messages, and the messages that the memories rest on. Not stopped by a caller that
        goes away.

        Raises `StorageError`; nothing is erased then.
        """
        return await asyncio.shield(self._forget(scope, list(dict.fromkeys(ids))))

    async def _forget(self, scope: Scope, ids: Sequence[MemoryId | MessageId]) -> Forgotten:
        async with self.write_lock:
            erased = await self.ledger.forget(scope, ids, at=self.now())
            # A memory that the ledger lacks is in no answer, and the scrubber removes it again.
            with suppress(IndexUnavailable):
                await self.keeper.remove_memories(erased.ids)
        bytes_gone = await self.scrubber.run_and_wait(within_seconds=SCRUB_WAIT_SECONDS)
        gone = {*erased.ids, *erased.messages}
        return Forgotten(
            erased=tuple(id_ for id_ in ids if id_ in gone),
            missing=tuple(id_ for id_ in ids if id_ not in gone),
            related=erased.related,
            bytes_gone=bytes_gone,
            diary_entries=erased.diary_entries,
            messages=len(erased.messages),
        )
