"""Forgetting on purpose (ruling 11): the only way in which anything is ever erased, and then everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from memory.errors import IndexUnavailable
from memory.ingest.erasure import Erasure
from memory.ingest.index_keeper import IndexKeeper
from memory.model import MemoryId
from memory.ports import ForgetLedger
from memory.scope import Scope

PATIENCE_S = 20.0
"""How long a call waits for the last bytes: 10,000 memories take about 4 s, 50,000 may take longer than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """`erased` is in no answer any more. `missing`: this being has no such memory. `related` stays, and
    `diary_entries` were removed with them (`ports.Erased`). `bytes_gone`: whether the files hold nothing of it any
    more, either; if not yet, that goes on by itself."""

    erased: tuple[MemoryId, ...]
    missing: tuple[MemoryId, ...]
    related: tuple[MemoryId, ...]
    bytes_gone: bool
    diary_entries: int = 0


class Forget:
    """The use case. Forgetting the same again finds nothing, and waits for what is left of the first time."""

    def __init__(
        self,
        ledger: ForgetLedger,
        keeper: IndexKeeper,
        erasure: Erasure,
        turn: asyncio.Lock,
        *,
        now: Callable[[], datetime],
    ) -> None:
        """`turn` is the one that `StoreScenes` takes: nothing is stored or reinforced between the two steps."""
        self._ledger = ledger
        self._keeper = keeper
        self._erasure = erasure
        self._turn = turn
        self._now = now

    async def __call__(self, scope: Scope, ids: Sequence[MemoryId]) -> Forgotten:
        """Raises `StorageError`; nothing is erased then. Once begun it is done, also for a caller who goes away."""
        return await asyncio.shield(self._forget(scope, list(dict.fromkeys(ids))))

    async def _forget(self, scope: Scope, ids: Sequence[MemoryId]) -> Forgotten:
        async with self._turn:
            erased = await self._ledger.forget(scope, ids, at=self._now())
            # What the ledger has not is in no answer, and the erasure takes it out again.
            with suppress(IndexUnavailable):
                await self._keeper.take_out(erased.ids)
        bytes_gone = await self._erasure.done(within_seconds=PATIENCE_S)
        return Forgotten(
            erased=erased.ids,
            missing=tuple(id_ for id_ in ids if id_ not in erased.ids),
            related=erased.related,
            bytes_gone=bytes_gone,
            diary_entries=erased.diary_entries,
        )
