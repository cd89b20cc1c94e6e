"""Forgetting on purpose (rulings 11 and 25): the only way in which anything is ever erased, and then everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from madeleine.memory.chat import MessageId
from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.ingest.ports import ForgetLedger
from madeleine.memory.ingest.scrubbing import Scrubber
from madeleine.memory.model import MemoryId
from madeleine.memory.scope import Scope

PATIENCE_S = 20.0
"""How long a call waits for the last bytes: 10,000 memories take about 4 s, 50,000 may take longer than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """`erased`, of those named, is in no answer any more. `missing`: this being has no such memory or message.
    `related` stays; `diary_entries` were removed with them, and so many `messages` (`ports.Erased`). `bytes_gone`:
    whether the files hold nothing of it any more, either; if not yet, that goes on by itself."""

    erased: tuple[MemoryId | MessageId, ...]
    missing: tuple[MemoryId | MessageId, ...]
    related: tuple[MemoryId, ...]
    bytes_gone: bool
    diary_entries: int = 0
    messages: int = 0


class Forget:
    """The use case. Forgetting the same again finds nothing, and waits for what is left of the first time."""

    def __init__(
        self,
        ledger: ForgetLedger,
        keeper: IndexKeeper,
        scrubber: Scrubber,
        turn: asyncio.Lock,
        *,
        now: Callable[[], datetime],
    ) -> None:
        """`turn` is the one that `StoreScenes` takes: nothing is stored or reinforced between the two steps."""
        self._ledger = ledger
        self._keeper = keeper
        self._erasure = scrubber
        self._turn = turn
        self._now = now

    async def __call__(self, scope: Scope, ids: Sequence[MemoryId | MessageId]) -> Forgotten:
        """With a memory go the messages that it was drawn from. Once begun it is done, also for a caller who goes away.

        Raises `StorageError`; nothing is erased then.
        """
        return await asyncio.shield(self._forget(scope, list(dict.fromkeys(ids))))

    async def _forget(self, scope: Scope, ids: Sequence[MemoryId | MessageId]) -> Forgotten:
        async with self._turn:
            erased = await self._ledger.forget(scope, ids, at=self._now())
            # What the ledger has not is in no answer, and the scrubber takes it out again.
            with suppress(IndexUnavailable):
                await self._keeper.remove_memories(erased.ids)
        bytes_gone = await self._erasure.done(within_seconds=PATIENCE_S)
        gone = {*erased.ids, *erased.messages}
        return Forgotten(
            erased=tuple(id_ for id_ in ids if id_ in gone),
            missing=tuple(id_ for id_ in ids if id_ not in gone),
            related=erased.related,
            bytes_gone=bytes_gone,
            diary_entries=erased.diary_entries,
            messages=len(erased.messages),
        )
