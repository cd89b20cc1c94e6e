"""Making forgetting real: what left the ledger's tables leaves the files as well (ADR 0012)."""

from __future__ import annotations

import asyncio

from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.ingest.ports import ScrubLedger
from madeleine.memory.ports import Index


class Scrubber:
    """Works off the marks that `forget` leaves. One task calls `finish`, others ask for it and wait.

    The marks are in the ledger: what a killed process leaves undone is found and finished by the next one.
    """

    def __init__(self, source: ScrubLedger, keeper: IndexKeeper, index: Index) -> None:
        self._source = source
        self._keeper = keeper
        self._index = index
        self._asked = asyncio.Event()
        self._asked.set()  # the last process may have left something
        self._waiting: list[asyncio.Future[bool]] = []

    async def asked(self) -> None:
        """Returns when there may be something to finish."""
        await self._asked.wait()

    def ask(self) -> None:
        self._asked.set()

    async def done(self, *, within_seconds: float) -> bool:
        """Ask, and wait until all that was forgotten before is gone from the files. False if it failed or takes longer:
        it goes on, or is tried again."""
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self.ask()
        done, _ = await asyncio.wait({turn}, timeout=within_seconds)
        return bool(done) and turn.result()

    async def finish(self) -> int:
        """The number of memories whose last bytes are gone. Raises `MadeleineError`; the marks are kept then."""
        self._asked.clear()
        waiting, self._waiting = self._waiting, []
        succeeded = False
        try:
            found = await self._work_off()
            succeeded = True
            return found
        finally:
            for turn in waiting:
                if not turn.done():
                    turn.set_result(succeeded)

    async def _work_off(self) -> int:
        remains = await self._source.pending_scrubs()
        if not remains:
            return 0
        await self._keeper.remove_memories(list(dict.fromkeys(id_ for _, id_ in remains)))
        # Others told of it, too, and were marked when they ceased to: what the index has of them is replaced first.
        await self._keeper.catch_up(to_now=True)
        await self._source.scrub()
        await self._index.scrub()
        # Only now: until here a crash must find them.
        await self._source.clear_scrubs([mark for mark, _ in remains])
        return len(remains)
