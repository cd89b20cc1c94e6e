"""Work off the request path: pending index marks, missing vectors, optimisation, the remains of what was forgotten. One
task, one owner."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable

from madeleine.memory.errors import EmbeddingUnavailable, IndexUnavailable, StorageFull
from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.ingest.scrubbing import Scrubber
from madeleine.memory.ports import Index

logger = logging.getLogger(__name__)

CATCH_UP_SECONDS = 2.0
"""After a store: time in which more may come, before the index is made durable and the marks are cleared."""
EMBED_RETRY_SECONDS = 60.0
ERASE_RETRY_SECONDS = 60.0
OPTIMIZE_AFTER = 2_000
"""Memories brought in since the last optimisation from which the next one pays; fewer are searched by brute force in
less than a millisecond."""


class Background:
    """`wake()` says that something was written. `run()` goes on until it is cancelled."""

    def __init__(
        self, keeper: IndexKeeper, index: Index, warm_up: Callable[[], Awaitable[None]], scrubber: Scrubber
    ) -> None:
        self._keeper = keeper
        self._erasure = scrubber
        self._index = index
        self._warm_up = warm_up
        self._written = asyncio.Event()
        self._unseen = asyncio.Event()
        self._since_optimize = OPTIMIZE_AFTER
        """At the start it may pay: the index was just built anew, or its last server was killed."""

    def wake(self) -> None:
        self._written.set()
        self._unseen.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_index(), name="keep index")
            tasks.create_task(self._fill_in_vectors(), name="fill in vectors")
            tasks.create_task(self._erase(), name="erase")

    async def _keep_index(self) -> None:
        while True:
            try:
                self._since_optimize += await self._keeper.catch_up()
                if self._since_optimize >= OPTIMIZE_AFTER:
                    self._since_optimize = 0
                    await self._index.optimize()
                await self._written.wait()
                await asyncio.sleep(CATCH_UP_SECONDS)
                self._written.clear()
            except Exception as error:  # the marks stay: a later turn or start works them off
                if isinstance(error, (IndexUnavailable, StorageFull)):
                    logger.warning("the index could not be brought up to date: %s", error)
                else:
                    logger.exception("the index could not be brought up to date")
                self._written.set()
                await asyncio.sleep(CATCH_UP_SECONDS)

    async def _erase(self) -> None:
        while True:
            await self._erasure.asked()
            try:
                if await self._erasure.finish():
                    self._since_optimize = OPTIMIZE_AFTER  # the index was written anew, without its graph
                    self.wake()
            except Exception:  # the marks are still there
                logger.exception("what was forgotten has not left the files yet")
                await asyncio.sleep(ERASE_RETRY_SECONDS)
                self._erasure.ask()

    async def _fill_in_vectors(self) -> None:
        while True:
            # Again after each write: it may have been decided upon while the model was still being loaded.
            self._unseen.clear()
            try:
                await self._warm_up()
                if not gc.get_freeze_count():
                    gc.freeze()  # what is loaded by now stays for good; to walk it at each full collection takes 0.1 s
                await self._keeper.embed_missing()
                await self._unseen.wait()
            except StorageFull as error:
                logger.warning("vectors could not be filled in: %s", error)
            except EmbeddingUnavailable as error:
                logger.info("%s; the next try is in %.0f s", error, EMBED_RETRY_SECONDS)
            except Exception:
                logger.exception("vectors could not be filled in")
            await asyncio.sleep(EMBED_RETRY_SECONDS)
