"""The only place that joins adapters to ports: opens a data directory and hands out the use cases."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Protocol

from inference.dense import DenseEmbedder
from inference.stems import stem
from memory.audit import Audit
from memory.context.asked import ContextFlags
from memory.context.context import BuildContext
from memory.context.profile import Profile
from memory.errors import IndexTorn, InvalidInput
from memory.ingest.erasure import Erasure
from memory.ingest.forget import Forget
from memory.ingest.index_keeper import IndexKeeper, Progress
from memory.ingest.store import StoreScenes
from memory.ingest.update import UpdateMemory
from memory.model import MemoryId, ModelName
from memory.patrol_ports import PatrolLedger
from memory.ports import AuditReader, Embedder, Index, NoteLedger
from memory.recall.recall import Recall
from memory.recall.revisit import Revisit
from memory.recall.search import Search
from memory.recall.tagged import MessageSearch
from memory.rules.secrets import Redact, as_it_stands, redacted
from memory.tokens import TokenLedger
from memory.watch.drawn import StoreDrawn
from memory.watch.familiar import Familiar
from memory.watch.observe import Observe
from memory.watch.remember import Remember
from memory.watch.thread import MemoryThread, ThreadConfig
from patrol.round import PatrolConfig
from patrol.run import News, Patrol
from server.background import Background
from server.owner import own
from server.recalling import recall_config, reranker_of
from server.settings import Settings
from storage.sql.ledger import Ledger, open_ledger
from storage.sql.tokens import open_tokens
from tools.tool import UseCases

logger = logging.getLogger(__name__)

LEDGER = "memory.db"
INDEX = "index"
MODELS = "models"
INDEX_BUILT = "index_built"
"""The ledger's word for where the index is that was filled to the end; one that was not is built again."""
COLLECTION = "collection"
"""The ledger's word for its collection on a Qdrant server."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def today() -> date:
    """Where the machine is: a diary's day is the one that its people have."""
    return datetime.now().astimezone().date()


def local_day(at: datetime) -> date:
    """The day that a moment is on where the machine is."""
    return at.astimezone().date()


class TextModel(Embedder, Protocol):
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
    thread: MemoryThread


@asynccontextmanager
async def open_memory(
    settings: Settings,
    *,
    rebuild: bool = False,
    progress: Progress | None = None,
    embedder: TextModel | None = None,
    background: bool = True,
    news: Callable[[News], None] | None = None,
) -> AsyncIterator[OpenMemory]:
    """Own the data directory, open the ledger, heal the index, start the work in the background. `news` is told of
    every patrol.

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
        if reranker := reranker_of(settings, settings.data_dir / MODELS):
            stack.push_async_callback(reranker.close)
        erasure = Erasure(ledger, keeper, index)
        work = Background(keeper, index, embedder.warm_up, erasure)
        if background:
            await stack.enter_async_context(_running(work))

        async def caught_up() -> None:
            work.wake()  # should it fail now, the background tries again
            await keeper.catch_up()

        async def taken_out(ids: Sequence[MemoryId]) -> None:
            erasure.ask()  # should it fail now, that takes them out
            await keeper.take_out(ids)

        turn = asyncio.Lock()
        store = StoreScenes(
            ledger, index, embedder, now=utc_now, wrote=work.wake, redact=redaction(settings), turn=turn
        )
        familiar = Familiar(ledger, index, embedder)
        remember = Remember(store, ledger, familiar, day_of=local_day)
        thread = MemoryThread(ledger, ledger, familiar, remember, now=utc_now, config=thread_config(settings))
        update = UpdateMemory(ledger, index, embedder, turn, now=utc_now, wrote=work.wake, redact=redaction(settings))
        forget = Forget(ledger, keeper, erasure, turn, now=utc_now)
        by_message = MessageSearch(ledger, stem)
        recall = Recall(
            ledger,
            index,
            embedder,
            ledger.activations,
            now=utc_now,
            config=recall_config(settings),
            reranker=reranker,
            costs=ledger,
            redact=redaction(settings),
        )
        by_message = MessageSearch(ledger, stem)
        use = UseCases(
            store=store,
            update=update,
            forget=forget,
            recall=recall,
            search=Search(ledger, ledger.activations, by_message=by_message, now=utc_now),
            revisit=Revisit(ledger, ledger.activations, now=utc_now),
            patrol=Patrol(
                ledger,
                index,
                embedder,
                ledger.activations,
                now=utc_now,
                wrote=caught_up,
                removed=taken_out,
                redact=redaction(settings),
                config=patrol_config(settings),
                news=news,
                turn=turn,
                today=today,
            ),
            audit=Audit(ledger.activations, now=utc_now),
            observe=Observe(
                ledger,
                StoreDrawn(remember, ledger),
                now=utc_now,
                redact=redaction(settings),
                appended=thread.wake,
            ),
            context=BuildContext(
                ledger,
                recall,
                by_message,
                embedder,
                ledger.activations,
                now=utc_now,
                today=today,
                flags=context_flags(settings),
                token_limit=settings.context_token_limit,
            ),
            profile=Profile(ledger, store, update, forget, now=utc_now, redact=redaction(settings)),
        )
        await use.patrol.recover()
        yield OpenMemory(use, ledger, index, embedder, keeper, thread)


def redaction(settings: Settings) -> Redact:
    return redacted if settings.redact else as_it_stands


def patrol_config(settings: Settings) -> PatrolConfig:
    return PatrolConfig(
        token_budget=settings.patrol_token_budget,
        step_seconds=settings.patrol_step_seconds,
        compression_threshold=settings.compression_threshold,
    )


def thread_config(settings: Settings) -> ThreadConfig:
    return ThreadConfig(
        settle=timedelta(seconds=settings.thread_settle_seconds),
        token_budget=settings.thread_token_budget,
        records=settings.thread_records,
    )


def context_flags(settings: Settings) -> ContextFlags:
    return ContextFlags(**settings.model_dump(include=set(ContextFlags.__dataclass_fields__)))


@asynccontextmanager
async def notes_inbox(settings: Settings) -> AsyncIterator[NoteLedger]:
    """The ledger alone: it may be opened beside a running server, the index may not."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with open_ledger(settings.data_dir / LEDGER) as ledger:
        yield ledger


@asynccontextmanager
async def chat_history(settings: Settings) -> AsyncIterator[Observe]:
    """The ledger alone, as for the inbox: messages need no index."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with open_ledger(settings.data_dir / LEDGER) as ledger:
        yield Observe(ledger, now=utc_now, redact=redaction(settings))


@asynccontextmanager
async def audit_trail(settings: Settings) -> AsyncIterator[AuditReader]:
    """The ledger alone, as for the inbox. Raises `InvalidInput` where there is none."""
    async with _ledger_for_reading(settings) as ledger:
        yield ledger


@asynccontextmanager
async def _ledger_for_reading(settings: Settings) -> AsyncIterator[Ledger]:
    """Reading makes none."""
    if not (settings.data_dir / LEDGER).exists():
        raise InvalidInput(f"There is no memory in {settings.data_dir} yet. Set MADELEINE_DATA_DIR to where it is.")
    async with open_ledger(settings.data_dir / LEDGER) as ledger:
        yield ledger


@asynccontextmanager
async def patrol_runs(settings: Settings) -> AsyncIterator[PatrolLedger]:
    """The ledger alone, as for the audit. Raises `InvalidInput` where there is none."""
    async with _ledger_for_reading(settings) as ledger:
        yield ledger


@asynccontextmanager
async def open_token_ledger(settings: Settings) -> AsyncIterator[TokenLedger]:
    """On connections of its own, beside a running server and before the memory is open."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with open_tokens(settings.data_dir / LEDGER) as tokens:
        yield tokens


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
    """The index, equal to the ledger: caught up from its marks, or built anew when it is torn, of another model, in
    another place than before, not finished, or does not hold as many memories as the ledger."""
    place = await _index_place(settings, ledger, await embedder.dimension(), embedder.model)
    if not rebuild and await ledger.setting(INDEX_BUILT) == place.name:
        try:
            async with _closed_on_error(await place.open()) as index:
                keeper = IndexKeeper(ledger, index, embedder)
                # The last process may have been killed between the ledger and the index.
                await keeper.take_out([id_ for _, id_ in await ledger.remains()])
                await keeper.catch_up()
                await keeper.require_complete()
                return index, keeper
        except IndexTorn as error:
            logger.warning("the index is built anew from the ledger: %s", error)
    await ledger.set_setting(INDEX_BUILT, None)
    async with _closed_on_error(await place.create_anew()) as index:
        keeper = IndexKeeper(ledger, index, embedder)
        await keeper.rebuild(progress)
        await keeper.catch_up()
        await ledger.set_setting(INDEX_BUILT, place.name)
        return index, keeper


@dataclass(frozen=True, slots=True)
class _IndexPlace:
    """Where the index is, and how to get at it there."""

    name: str
    open: Callable[[], Awaitable[Index]]
    create_anew: Callable[[], Awaitable[Index]]


async def _index_place(settings: Settings, ledger: Ledger, dim: int, model: ModelName) -> _IndexPlace:
    from storage.qdrant.schema import Fingerprint

    fingerprint = Fingerprint(model, dim)
    if not settings.qdrant_url:
        from storage.qdrant.edge import EdgeIndex

        where = settings.data_dir / INDEX, fingerprint
        return _IndexPlace("edge", partial(EdgeIndex.open, *where), partial(EdgeIndex.create_anew, *where))
    from storage.qdrant.server import ServerIndex

    # Of its own for each ledger: what is built anew is dropped before, and must be nobody else's.
    collection = await ledger.setting(COLLECTION)
    if collection is None:
        collection = f"madeleine-{uuid.uuid4().hex}"
        await ledger.set_setting(COLLECTION, collection)
    on_server = partial(ServerIndex.open, settings.qdrant_url, fingerprint, collection=collection)
    anew = partial(ServerIndex.create_anew, settings.qdrant_url, fingerprint, collection=collection)
    return _IndexPlace(settings.qdrant_url, on_server, anew)


@asynccontextmanager
async def _closed_on_error(index: Index) -> AsyncIterator[Index]:
    try:
        yield index
    except BaseException:
        await index.close()
        raise
