"""Opens a data directory: its lock, ledger, models and index, and the use cases over them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from madeleine.inference.dense import DenseEmbedder
from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import IndexNeedsRebuild
from madeleine.memory.index import Index
from madeleine.memory.ingest.index_keeper import IndexKeeper, Progress
from madeleine.memory.ingest.scrubbing import Scrubber
from madeleine.memory.watch.thread import MemoryThread
from madeleine.patrol.run import PatrolEvent
from madeleine.server.background.index_upkeep import IndexUpkeep
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.data_directory import own_directory
from madeleine.server.wiring.ledgers import LEDGER_FILE
from madeleine.server.wiring.recall_config import reranker_of
from madeleine.server.wiring.use_cases import build_use_cases
from madeleine.storage.qdrant.schema import Fingerprint
from madeleine.storage.sql.ledger import Ledger, open_ledger
from madeleine.tools.tool import UseCases

logger = logging.getLogger(__name__)

INDEX_FOLDER = "index"
MODELS_FOLDER = "models"
INDEX_BUILT_SETTING = "index_built"
"""The ledger's setting for the place of the completed index; an incomplete one is rebuilt."""
COLLECTION_SETTING = "collection"
"""The ledger's setting for its collection on a Qdrant server."""


class TextModel(Embedder, Protocol):
    """Embeds texts and counts their tokens; loaded at its first use."""

    async def dimension(self) -> int:
        """Of its vectors, without loading it. Raises `InvalidInput` for an unknown model."""
        ...

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class OpenMemory:
    use: UseCases
    ledger: Ledger
    index: Index
    embedder: TextModel
    keeper: IndexKeeper
    thread: MemoryThread


@asynccontextmanager
async def open_memory(
    settings: Settings,
    *,
    rebuild: bool = False,
    progress: Progress | None = None,
    embedder: TextModel | None = None,
    background: bool = True,
    on_patrol_event: Callable[[PatrolEvent], None] | None = None,
) -> AsyncIterator[OpenMemory]:
    """Lock the data directory, open the ledger, repair the index, start the background work.

    Raises `StorageBusy`, `StorageError`, `InvalidInput` for an unknown model. Whatever was opened is closed at the end.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(own_directory(settings.data_dir))
        ledger = await stack.enter_async_context(open_ledger(settings.data_dir / LEDGER_FILE))
        embedder = embedder or DenseEmbedder(settings.embedding_model, settings.data_dir / MODELS_FOLDER)
        stack.push_async_callback(embedder.close)
        index, keeper = await open_index(settings, ledger, embedder, rebuild=rebuild, progress=progress)
        stack.push_async_callback(index.close)
        if reranker := reranker_of(settings, settings.data_dir / MODELS_FOLDER):
            stack.push_async_callback(reranker.close)
        scrubber = Scrubber(ledger.erasure, keeper, index)
        work = IndexUpkeep(keeper, index, embedder.warm_up, scrubber)
        if background:
            await stack.enter_async_context(_running(work))

        use, thread = build_use_cases(
            settings,
            ledger,
            index,
            embedder,
            reranker=reranker,
            keeper=keeper,
            scrubber=scrubber,
            on_write=work.wake,
            on_patrol_event=on_patrol_event,
        )
        await use.patrol.recover()
        yield OpenMemory(use, ledger, index, embedder, keeper, thread)


@asynccontextmanager
async def _running(work: IndexUpkeep) -> AsyncIterator[None]:
    task = asyncio.create_task(work.run(), name="background")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def open_index(
    settings: Settings,
    ledger: Ledger,
    embedder: TextModel,
    *,
    rebuild: bool,
    progress: Progress | None,
) -> tuple[Index, IndexKeeper]:
    """The index, equal to the ledger: caught up from its pending marks, or rebuilt if it is damaged, incomplete, of
    another model, in another place than before, or differs from the ledger in the number of memories."""
    fingerprint = Fingerprint(embedder.model, await embedder.dimension())
    place, open_there, create_there = await _index_place(settings, ledger, fingerprint)
    if not rebuild and await ledger.index_source.setting(INDEX_BUILT_SETTING) == place:
        try:
            async with _closed_on_error(await open_there()) as index:
                keeper = IndexKeeper(ledger.index_source, index, embedder)
                # The last process may have been killed between the ledger and the index.
                await keeper.remove_memories([id_ for _, id_ in await ledger.erasure.pending_scrubs()])
                await keeper.catch_up()
                await keeper.require_complete()
                return index, keeper
        except IndexNeedsRebuild as error:
            logger.warning("rebuilding the index from the ledger: %s", error)
    await ledger.index_source.set_setting(INDEX_BUILT_SETTING, None)
    async with _closed_on_error(await create_there()) as index:
        keeper = IndexKeeper(ledger.index_source, index, embedder)
        await keeper.rebuild(progress)
        await keeper.catch_up()
        await ledger.index_source.set_setting(INDEX_BUILT_SETTING, place)
        return index, keeper


async def _index_place(
    settings: Settings, ledger: Ledger, fingerprint: Fingerprint
) -> tuple[str, Callable[[], Awaitable[Index]], Callable[[], Awaitable[Index]]]:
    """Its name, and how to open the index there or create an empty one."""
    if not settings.qdrant_url:
        from madeleine.storage.qdrant.edge import EdgeIndex

        path = settings.data_dir / INDEX_FOLDER
        return "edge", partial(EdgeIndex.open, path, fingerprint), partial(EdgeIndex.create_anew, path, fingerprint)
    from madeleine.storage.qdrant.server import ServerIndex

    # One for each ledger: a rebuild drops it first.
    collection = await ledger.index_source.setting(COLLECTION_SETTING)
    if collection is None:
        collection = f"madeleine-{uuid.uuid4().hex}"
        await ledger.index_source.set_setting(COLLECTION_SETTING, collection)
    url = settings.qdrant_url
    open_there = partial(ServerIndex.open, url, fingerprint, collection=collection)
    return url, open_there, partial(ServerIndex.create_anew, url, fingerprint, collection=collection)


@asynccontextmanager
async def _closed_on_error(index: Index) -> AsyncIterator[Index]:
    try:
        yield index
    except BaseException:
        await index.close()
        raise
