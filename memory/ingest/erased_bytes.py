"""Takes what was forgotten out of the bytes on disk, within a promised time (ruling 25, ADR 12)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from madeleine.memory.index import Index
from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.ingest.ports import ErasedBytesLedger

DEFAULT_PROMISED_ERASURE_SECONDS = 60.0
MAX_SCRUB_RETRY_SECONDS = 60.0
MAX_SCRUB_BATCHING_DELAY_SECONDS = 2.0
"""Time in which more may be forgotten, before the files are rewritten without it."""
MAX_SCRUB_WAIT_SECONDS = 20.0
"""Of a call that waits, and of closing: rewriting the files takes about 4 s at 10,000 memories."""


@dataclass(eq=False)
class ErasedBytesScrubber:
    """Removes what was erased from the ledger's tables from the files of ledger and index as well (ADR 0012).

    Works off the marks that `forget` leaves. One task calls `scrub_once`, others request it and may wait. The marks are
    in the ledger: the next process does what a killed process leaves undone.
    """

    ledger: ErasedBytesLedger
    keeper: IndexKeeper
    index: Index
    promised_seconds: float = DEFAULT_PROMISED_ERASURE_SECONDS
    """Within which the bytes of what was forgotten are gone (ruling 25)."""
    _requested: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _waited_for: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _waiting: list[asyncio.Future[bool]] = field(default_factory=list, init=False)
    _running: bool = field(default=False, init=False)
    _failed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._requested.set()  # the last process may have left something

    @property
    def retry_seconds(self) -> float:
        """Pause after a failed run."""
        return min(MAX_SCRUB_RETRY_SECONDS, self.promised_seconds / 4)

    @property
    def has_pending_scrub_without_failure(self) -> bool:
        """There may be something to scrub, and the last run did not fail."""
        return (self._requested.is_set() or self._running) and not self._failed

    async def wait_until_scrub_due(self) -> None:
        """Returns when there may be something to scrub, and somebody waits for it or others have had a moment to
        forget more: each run rewrites all files."""
        await self._requested.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(min(MAX_SCRUB_BATCHING_DELAY_SECONDS, self.promised_seconds / 4)):
                await self._waited_for.wait()

    def request(self) -> None:
        self._requested.set()

    async def request_and_wait(self, *, within_seconds: float) -> bool:
        """Request a run, and wait until the bytes of everything forgotten before are gone. False if the run failed or
        takes longer: it goes on, or is repeated."""
        finished: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(finished)
        self.request()
        self._waited_for.set()
        done, _ = await asyncio.wait({finished}, timeout=within_seconds)
        return bool(done) and finished.result()

    async def scrub_once(self) -> int:
        """Returns the number of memories whose bytes are gone. Raises `MadeleineError`, and keeps the marks then."""
        self._requested.clear()
        self._waited_for.clear()
        waiting, self._waiting = self._waiting, []
        self._running, succeeded = True, False
        try:
            count = await self._scrub()
            succeeded = True
            return count
        finally:
            self._running, self._failed = False, not succeeded
            for finished in waiting:
                if not finished.done():
                    finished.set_result(succeeded)

    async def _scrub(self) -> int:
        pending = await self.ledger.pending_scrub_marks_with_memory_ids()
        if not pending:
            return 0
        await self.keeper.remove_memories(list(dict.fromkeys(id_ for _, id_ in pending)))
        # Memories that were changed by the erasure are marked, too: their old points are replaced first.
        await self.keeper.index_marked_memories()
        await self.ledger.scrub_deleted_bytes()
        for index in (self.index, *([self.keeper.successor.index] if self.keeper.successor else [])):
            await index.scrub_deleted_bytes()
        # Only now: until here a crash must find them.
        await self.ledger.clear_scrub_marks([mark for mark, _ in pending])
        return len(pending)
