"""Background work: pending index marks, missing vectors, optimisation of the index, erasure of forgotten bytes."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable

from madeleine.memory.errors import EmbeddingUnavailable, IndexUnavailable, StorageFull
from madeleine.memory.index import Index
from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.ingest.scrubbing import Scrubber

logger = logging.getLogger(__name__)

CATCH_UP_SECONDS = 2.0
"""After a store: time in which more stores may follow, before the index is made durable and the marks are cleared."""
EMBED_RETRY_SECONDS = 60.0
ERASE_RETRY_SECONDS = 60.0
OPTIMIZE_AFTER = 2_000
"""New memories in the index from which an optimisation pays; fewer are searched by brute force in less than a
millisecond."""


class IndexUpkeep:
    """`wake` is called after each write. `run` goes on until it is cancelled."""

    def __init__(
        self, keeper: IndexKeeper, index: Index, warm_up: Callable[[], Awaitable[None]], scrubber: Scrubber
    ) -> None:
        self._keeper = keeper
        self._scrubber = scrubber
        self._index = index
        self._warm_up = warm_up
        self._written = asyncio.Event()
        self._vectors_wanted = asyncio.Event()
        self._changes = OPTIMIZE_AFTER
        """Since the last optimisation; at the start one may pay: the index is new, or its last process was killed."""

    def wake(self) -> None:
        self._written.set()
        self._vectors_wanted.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_index(), name="keep index")
            tasks.create_task(self._fill_in_vectors(), name="fill in vectors")
            tasks.create_task(self._erase(), name="erase")

    async def _keep_index(self) -> None:
        while True:
            try:
                self._changes += await self._keeper.catch_up()
                if self._changes >= OPTIMIZE_AFTER:
                    self._changes = 0
                    await self._index.optimize()
                await self._written.wait()
                await asyncio.sleep(CATCH_UP_SECONDS)
                self._written.clear()
            except Exception as error:  # the marks stay, for a later turn or start
                if isinstance(error, (IndexUnavailable, StorageFull)):
                    logger.warning("updating the index failed, retrying: %s", error)
                else:
                    logger.exception("updating the index failed, retrying")
                self._written.set()
                await asyncio.sleep(CATCH_UP_SECONDS)

    async def _erase(self) -> None:
        while True:
            await self._scrubber.requested()
            try:
                if await self._scrubber.run():
                    self._changes = OPTIMIZE_AFTER  # the index was rewritten, without its graph
                    self.wake()
            except Exception:  # the marks are still there
                logger.exception("erasing forgotten memories from the files failed, retrying")
                await asyncio.sleep(ERASE_RETRY_SECONDS)
                self._scrubber.request()

    async def _fill_in_vectors(self) -> None:
        while True:
            # Again after each write: its vector may be missing because the model was still being loaded.
            self._vectors_wanted.clear()
            try:
                await self._warm_up()
                if not gc.get_freeze_count():
                    gc.freeze()  # loaded modules stay; visiting them takes 0.1 s in each full collection
                await self._keeper.embed_missing()
                await self._vectors_wanted.wait()
            except StorageFull as error:
                logger.warning("adding missing vectors failed, retrying: %s", error)
            except EmbeddingUnavailable as error:
                logger.info("%s; retrying in %.0f s", error, EMBED_RETRY_SECONDS)
            except Exception:
                logger.exception("adding missing vectors failed, retrying")
            await asyncio.sleep(EMBED_RETRY_SECONDS)
