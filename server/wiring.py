"""The only place that joins adapters to ports: opens a data directory and hands out the use cases."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from inference.dense import DenseEmbedder
from memory.errors import IndexTorn
from memory.ingest.index_keeper import IndexKeeper, Progress
from memory.ingest.store import StoreScenes
from memory.ports import Embedder, Index, NoteLedger, TokenCounter
from memory.recall.recall import Recall, RecallConfig
from memory.recall.revisit import Revisit
from memory.recall.search import Search
from memory.rules.matching import MatchThresholds
from patrol.run import Patrol
from server.background import Background
from server.owner import own
from server.settings import Settings
from storage.sql.ledger import Ledger, open_ledger
from tools.tool import UseCases

logger = logging.getLogger(__name__)

LEDGER = "memory.db"
INDEX = "index"
MODELS = "models"
INDEX_BUILT = "index_built"
"""The ledger's word for an index that was filled to the end; one that was not is built again."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class TextModel(Embedder, TokenCounter, Protocol):
    """One model for meaning and for token counts, loaded when it is first needed."""

    async def dimension(self) -> int:
        """Of its vectors, without loading it. Raises `InvalidInput` for a model that nobody knows."""
        ...

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class OpenMemory:
    """A data directory at work."""

    use: UseCases
    ledger: Ledger
    index: Index
    embedder: TextModel
    keeper: IndexKeeper


@asynccontextmanager
async def open_memory(
    settings: Settings,
    *,
    rebuild: bool = False,
    progress: Progress | None = None,
    embedder: TextModel | None = None,
    background: bool = True,
) -> AsyncIterator[OpenMemory]:
    """Own the data directory, open the ledger, heal the index, start the work in the background.

    Raises `StorageBusy`, `StorageError`, `InvalidInput` for a model that nobody knows. What was opened is closed again
    in any case.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(own(settings.data_dir))
        ledger = await stack.enter_async_context(open_ledger(settings.data_dir / LEDGER))
        embedder = embedder or DenseEmbedder(settings.embedding_model, settings.data_dir / MODELS)
        stack.push_async_callback(embedder.close)
        index, keeper = await open_index(settings, ledger, embedder, rebuild=rebuild, progress=progress)
        stack.push_async_callback(index.close)
        work = Background(keeper, index, embedder.warm_up)
        if background:
            await stack.enter_async_context(_running(work))
        thresholds = MatchThresholds(cosine=settings.recall_threshold)
        use = UseCases(
            store=StoreScenes(ledger, index, embedder, now=utc_now, wrote=work.wake),
            recall=Recall(
                ledger,
                index,
                embedder,
                embedder,
                ledger.activations,
                now=utc_now,
                config=RecallConfig(thresholds=thresholds),
            ),
            search=Search(ledger, ledger.activations, now=utc_now),
            revisit=Revisit(ledger, ledger.activations, now=utc_now),
            patrol=Patrol(ledger, index, embedder, ledger.activations, now=utc_now, wrote=keeper.catch_up),
        )
        yield OpenMemory(use, ledger, index, embedder, keeper)


@asynccontextmanager
async def notes_inbox(settings: Settings) -> AsyncIterator[NoteLedger]:
    """The ledger alone: it may be opened beside a running server, the index may not."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with open_ledger(settings.data_dir / LEDGER) as ledger:
        yield ledger


@asynccontextmanager
async def _running(work: Background) -> AsyncIterator[None]:
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
    """The index, equal to the ledger: caught up from its marks, or built anew when it is torn, of another model,
    not finished, or does not hold as many memories as the ledger."""
    dim = await embedder.dimension()
    if settings.qdrant_url:
        return await _open_server(settings, ledger, embedder, dim, rebuild=rebuild, progress=progress)
    from storage.qdrant.edge import EdgeIndex
    from storage.qdrant.schema import Fingerprint

    directory = settings.data_dir / INDEX
    fingerprint = Fingerprint(embedder.model, dim)
    index: EdgeIndex | None = None
    try:
        if not rebuild and await ledger.setting(INDEX_BUILT):
            index = await EdgeIndex.open(directory, fingerprint)
            keeper = IndexKeeper(ledger, index, embedder)
            await keeper.catch_up()
            if await keeper.is_complete():
                return index, keeper
            raise IndexTorn(f"it holds {await index.count()} memories, the ledger {await ledger.count_memories()}")
    except IndexTorn as error:
        logger.warning("the index is built anew from the ledger: %s", error)
        if index is not None:
            await index.close()
    except BaseException:
        if index is not None:
            await index.close()
        raise
    await ledger.set_setting(INDEX_BUILT, False)
    index = await EdgeIndex.create_anew(directory, fingerprint)
    try:
        keeper = IndexKeeper(ledger, index, embedder)
        await keeper.rebuild(progress)
        await keeper.catch_up()
        await ledger.set_setting(INDEX_BUILT, True)
    except BaseException:
        await index.close()
        raise
    return index, keeper


async def _open_server(
    settings: Settings,
    ledger: Ledger,
    embedder: TextModel,
    dim: int,
    *,
    rebuild: bool,
    progress: Progress | None,
) -> tuple[Index, IndexKeeper]:
    from storage.qdrant.schema import Fingerprint
    from storage.qdrant.server import ServerIndex

    index = await ServerIndex.open(settings.qdrant_url, Fingerprint(embedder.model, dim))
    keeper = IndexKeeper(ledger, index, embedder)
    await keeper.catch_up()
    if rebuild or not await keeper.is_complete():
        await keeper.rebuild(progress)
        await keeper.catch_up()
    return index, keeper

