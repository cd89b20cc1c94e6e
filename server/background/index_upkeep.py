"""Opens the index, equal to the ledger, and keeps it so in the background: pending index marks, missing vectors,
optimisation of the index, erasure of forgotten bytes."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import (
    EmbeddingUnavailable,
    IndexDiskFull,
    IndexNeedsRebuild,
    IndexUnavailable,
    StorageError,
    StorageFull,
)
from madeleine.memory.graph.graph import ExtractGraph
from madeleine.memory.index import Index
from madeleine.memory.ingest.erased_bytes import MAX_SCRUB_WAIT_SECONDS, ErasedBytesScrubber
from madeleine.memory.ingest.index_keeper import IndexKeeper, ReportRebuildProgress
from madeleine.memory.model import MemoryId, model_name_at_full_precision
from madeleine.server.background.index_origin import INDEX_FOLDERS, SourceLedgerStateOfIndex
from madeleine.server.background.index_place import BUILT_INDEX_LOCATION_SETTING, live_and_spare_index_locations
from madeleine.server.settings.settings import Settings
from madeleine.storage.qdrant.schema import IndexFingerprint
from madeleine.storage.resources import return_unused_process_memory
from madeleine.storage.sql.ledger import LedgerRepositories

logger = logging.getLogger(__name__)

INDEX_CATCH_UP_DELAY_SECONDS = 2.0
"""After a store: time in which more stores may follow, before the index is made durable and the marks are cleared."""
OTHER_SERVER_CHANGE_BATCHING_DELAY_SECONDS = 0.2
"""After a notification: what follows it at once is taken in with it."""
OTHER_SERVERS_CHANGES_POLL_SECONDS = 30.0
EMBED_RETRY_SECONDS = 60.0
GRAPH_EXTRACTION_DELAY_SECONDS, GRAPH_EXTRACTION_PAUSE_SECONDS = 30.0, 0.2
"""After a write, and between two pages of some 10 ms: one part in twenty of a core."""
MIN_NEW_MEMORIES_TO_OPTIMIZE_INDEX = 2_000
"""New memories in the index from which an optimisation pays; fewer are searched by brute force in less than a
millisecond."""


class LazyEmbedder(Embedder, Protocol):
    """Embeds texts and counts their tokens; loaded at its first use."""

    async def dimension(self) -> int:
        """Of its vectors, without loading it. Raises `InvalidInput` for an unknown model."""

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


class BackgroundIndexUpkeep:
    """`wake` is called after each write. `run` goes on until it is cancelled."""

    def __init__(
        self,
        keeper: IndexKeeper,
        index: Index,
        warm_up: Callable[[], Awaitable[None]],
        scrubber: ErasedBytesScrubber,
        remember_origin: Callable[[], Awaitable[None]] | None = None,
        *,
        extract_graph: ExtractGraph | None = None,
    ) -> None:
        """`remember_origin` is called after the index was brought up to the ledger, `extract_graph` a while after
        memories have changed."""
        self.keeper = keeper
        self.scrubber = scrubber
        self._index = index
        self._warm_up = warm_up
        self._remember_origin = remember_origin
        self._extract_graph = extract_graph
        self._graph_wanted = asyncio.Event()
        self._graph_wanted.set()
        self._written = asyncio.Event()
        self._vectors_wanted = asyncio.Event()
        self._modules_frozen = False
        self._changes = MIN_NEW_MEMORIES_TO_OPTIMIZE_INDEX
        """Since the last optimisation; at the start one may pay: the index is new, or its last process was killed."""

    def wake_background_tasks(self) -> None:
        self._written.set()
        self._vectors_wanted.set()
        self._graph_wanted.set()

    async def index_marked_memories(self) -> None:
        """Bring the index up to the ledger now. Should it fail, the background tries again."""
        self.wake_background_tasks()
        await self.keeper.index_marked_memories()

    async def remove_memories(self, ids: Sequence[MemoryId]) -> None:
        """Remove memories from the index now. Should it fail, the background tries again."""
        self.scrubber.request()
        await self.keeper.remove_memories(ids)

    @asynccontextmanager
    async def run_in_background(self) -> AsyncIterator[None]:
        """Run in the background meanwhile. What was forgotten leaves the files before it ends, in bounded time."""
        async with run_task_during_block(self.run(), "background") as task:
            try:
                yield
            finally:
                if self.scrubber.has_pending_scrub_without_failure and not task.done():
                    await self.scrubber.request_and_wait(within_seconds=MAX_SCRUB_WAIT_SECONDS)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            unavailable = (StorageFull, IndexUnavailable)
            tasks.create_task(
                _repeat_forever_with_retry(
                    self._index_marked_and_optimize, "updating the index", INDEX_CATCH_UP_DELAY_SECONDS, unavailable
                )
            )
            tasks.create_task(
                _repeat_forever_with_retry(self._fill_in_vectors, "adding missing vectors", EMBED_RETRY_SECONDS)
            )
            if self._extract_graph:
                tasks.create_task(
                    _repeat_forever_with_retry(
                        self._extract_graph_when_due, "extracting the entity graph", GRAPH_EXTRACTION_DELAY_SECONDS
                    )
                )
            tasks.create_task(
                _repeat_forever_with_retry(
                    self._scrub_erased_bytes_when_due,
                    "erasing forgotten memories from the files",
                    self.scrubber.retry_seconds,
                )
            )

    async def _index_marked_and_optimize(self) -> None:
        self._changes += await self.keeper.index_marked_memories()
        if self._remember_origin:
            await self._remember_origin()
        if self._changes >= MIN_NEW_MEMORIES_TO_OPTIMIZE_INDEX:
            self._changes = 0
            await self._index.optimize_if_worthwhile()
        await self._written.wait()
        await asyncio.sleep(INDEX_CATCH_UP_DELAY_SECONDS)
        self._written.clear()

    async def _extract_graph_when_due(self) -> None:
        """A while after writes, when more may have come: a question that needs it before draws it itself."""
        await self._graph_wanted.wait()
        await asyncio.sleep(GRAPH_EXTRACTION_DELAY_SECONDS)
        self._graph_wanted.clear()
        assert self._extract_graph
        await self._extract_graph(pause_seconds=GRAPH_EXTRACTION_PAUSE_SECONDS)

    async def _scrub_erased_bytes_when_due(self) -> None:
        await self.scrubber.wait_until_scrub_due()
        try:
            if await self.scrubber.scrub_once():
                self._changes = MIN_NEW_MEMORIES_TO_OPTIMIZE_INDEX  # the index was rewritten, without its graph
                self.wake_background_tasks()
        except Exception:  # the marks are still there
            self.scrubber.request()
            raise

    async def _fill_in_vectors(self) -> None:
        # Again after each write: its vector may be missing because the model was still being loaded.
        self._vectors_wanted.clear()
        await self._warm_up()
        if not self._modules_frozen:
            self._modules_frozen = True
            gc.freeze()  # loaded modules stay; visiting them takes 0.1 s in each full collection
            await asyncio.to_thread(return_unused_process_memory)  # 15 MB that loading a model has needed
        await self.keeper.embed_memories_without_vector()
        if await self.keeper.embed_missing_pieces():
            self._written.set()
        await self._vectors_wanted.wait()
        await asyncio.sleep(EMBED_RETRY_SECONDS)


@asynccontextmanager
async def sync_index_with_other_servers(
    ledger: LedgerRepositories, upkeep: BackgroundIndexUpkeep
) -> AsyncIterator[None]:
    """Bring the index up to what other servers commit, meanwhile: at each of their notifications, and once in
    `OTHER_SERVERS_CHANGES_POLL_SECONDS` for what was missed. Nothing where the ledger is this process's alone."""
    changed = asyncio.Event()

    async def take_in() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(OTHER_SERVERS_CHANGES_POLL_SECONDS):
                await changed.wait()
        await asyncio.sleep(OTHER_SERVER_CHANGE_BATCHING_DELAY_SECONDS)
        changed.clear()
        upkeep.scrubber.request()
        await upkeep.index_marked_memories()

    follow = ledger.database.watch_commits_of_other_servers(changed.set)
    if follow is None:
        yield
        return
    unavailable = (StorageError, IndexUnavailable)
    taking_in = _repeat_forever_with_retry(
        take_in, "following the other servers", INDEX_CATCH_UP_DELAY_SECONDS, unavailable
    )
    async with run_task_during_block(follow, "notifications"), run_task_during_block(taking_in, "following"):
        yield


@asynccontextmanager
async def run_task_during_block(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[asyncio.Task[None]]:
    """Run it in a task of that name meanwhile, and cancel it at the end."""
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _repeat_forever_with_retry(
    work: Callable[[], Awaitable[None]],
    description: str,
    retry_seconds: float,
    expected: tuple[type[Exception], ...] = (StorageFull,),
) -> None:
    """Without an end. A failed work is repeated after a pause: the ledger's marks are still there. Those that are
    `expected` are logged without a traceback."""
    while True:
        try:
            await work()
            continue
        except EmbeddingUnavailable as error:
            logger.info("%s; retrying in %.0f s", error, retry_seconds)
        except expected as error:
            logger.warning("%s failed, retrying: %s", description, error)
        except Exception:
            logger.exception("%s failed, retrying", description)
        await asyncio.sleep(retry_seconds)


async def open_synchronized_index(
    settings: Settings,
    ledger: LedgerRepositories,
    embedder: LazyEmbedder,
    *,
    rebuild: bool,
    progress: ReportRebuildProgress | None,
) -> Index:
    """The index, equal to the ledger: caught up from its pending marks, or rebuilt if it is damaged, incomplete, of
    another model, in another place than before, or differs from the ledger in the number of memories."""
    # Vectors of another precision serve until they are replaced.
    fingerprint = IndexFingerprint(model_name_at_full_precision(embedder.model_name), await embedder.dimension())
    place, spare = await live_and_spare_index_locations(settings, ledger)
    origin = await SourceLedgerStateOfIndex.of_ledger(ledger)
    for folder in INDEX_FOLDERS:
        matches_index = await asyncio.to_thread(origin.matches_index, settings.data_dir / folder)
        rebuild = rebuild or (not matches_index and folder == INDEX_FOLDERS[place.second])
    if not settings.qdrant_url:
        await spare.remove()  # of a switch that did not come to its end
    if not rebuild and await ledger.index_source.setting(BUILT_INDEX_LOCATION_SETTING) == place.name:
        try:
            async with _close_index_on_error(await place.open(fingerprint)) as index:
                keeper = IndexKeeper(ledger.index_source, index, embedder)
                # The last process may have been killed between the ledger and the index.
                await keeper.remove_memories(
                    [id_ for _, id_ in await ledger.erasure.pending_scrub_marks_with_memory_ids()]
                )
                try:
                    await keeper.index_marked_memories()
                except IndexDiskFull as error:  # the marks stay, and the background tries again
                    logger.warning("updating the index failed, retrying: %s", error)
                await keeper.require_all_memories_indexed()
                return index
        except IndexNeedsRebuild as error:
            logger.warning("rebuilding the index from the ledger: %s", error)
    await ledger.index_source.set_setting(BUILT_INDEX_LOCATION_SETTING, None)
    async with _close_index_on_error(await place.recreate(fingerprint)) as index:
        keeper = IndexKeeper(ledger.index_source, index, embedder)
        await keeper.rebuild(progress)
        await keeper.index_marked_memories()
        await ledger.index_source.set_setting(BUILT_INDEX_LOCATION_SETTING, place.name)
        return index


async def record_source_ledger_of_index(settings: Settings, ledger: LedgerRepositories) -> None:
    place, _ = await live_and_spare_index_locations(settings, ledger)
    origin = await SourceLedgerStateOfIndex.of_ledger(ledger)
    await asyncio.to_thread(origin.write, settings.data_dir / INDEX_FOLDERS[place.second])


@asynccontextmanager
async def _close_index_on_error(index: Index) -> AsyncIterator[Index]:
    try:
        yield index
    except BaseException:
        await index.close()
        raise
