"""Scrubbing: what was erased from the ledger's tables leaves the files of ledger and index as well (ADR 0012)."""

from __future__ import annotations

import asyncio

from madeleine.memory.index import Index
from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.ingest.ports import ScrubLedger


class Scrubber:
    """Works off the marks that `forget` leaves. One task calls `run`, others request it and wait.

    The marks are in the ledger: what a killed process leaves undone is done by the next one.
    """

    def __init__(self, ledger: ScrubLedger, keeper: IndexKeeper, index: Index) -> None:
        self._ledger = ledger
        self._keeper = keeper
        self._index = index
        self._requested = asyncio.Event()
        self._requested.set()  # the last process may have left something
        self._waiting: list[asyncio.Future[bool]] = []

    async def requested(self) -> None:
        """Returns when there may be something to scrub."""
        await self._requested.wait()

    def request(self) -> None:
        self._requested.set()

    async def run_and_wait(self, *, within_seconds: float) -> bool:
        """Request a run, and wait until the bytes of everything forgotten before are gone. False if the run failed or
        takes longer: it goes on, or is repeated."""
        finished: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(finished)
        self.request()
        done, _ = await asyncio.wait({finished}, timeout=within_seconds)
        return bool(done) and finished.result()

    async def run(self) -> int:
        """The number of memories whose bytes are gone. Raises `MadeleineError`, and keeps the marks then."""
        self._requested.clear()
        waiting, self._waiting = self._waiting, []
        succeeded = False
        try:
            count = await self._scrub()
            succeeded = True
            return count
        finally:
            for finished in waiting:
                if not finished.done():
                    finished.set_result(succeeded)

    async def _scrub(self) -> int:
        pending = await self._ledger.pending_scrubs()
        if not pending:
            return 0
        await self._keeper.remove_memories(list(dict.fromkeys(id_ for _, id_ in pending)))
        # Memories that were changed by the erasure are marked, too: their old points are replaced first.
        await self._keeper.catch_up(to_now=True)
        await self._ledger.scrub()
        await self._index.scrub()
        # Only now: until here a crash must find them.
        await self._ledger.clear_scrubs([mark for mark, _ in pending])
        return len(pending)
