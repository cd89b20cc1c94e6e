"""The use cases, each given what it needs of an open data directory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from madeleine.inference.stems import stem
from madeleine.memory.audit import Audit
from madeleine.memory.context.context import BuildContext
from madeleine.memory.context.flags import ContextFlags
from madeleine.memory.context.profile import EditProfile
from madeleine.memory.ingest.centroid import Centroids
from madeleine.memory.ingest.erasure import Erasure
from madeleine.memory.ingest.forget import Forget
from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.ingest.pour import Ingest
from madeleine.memory.ingest.rarity import Rarity
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.ingest.update import UpdateMemory
from madeleine.memory.model import MemoryId
from madeleine.memory.ports import Embedder, Index
from madeleine.memory.recall.browse import BrowseMemories
from madeleine.memory.recall.ports import Reranker
from madeleine.memory.recall.recall import Recall
from madeleine.memory.recall.search import Search
from madeleine.memory.recall.tagged import MessageSearch
from madeleine.memory.rules.storing.secrets import Redact, as_it_stands, redacted
from madeleine.memory.watch.drawn import StoreDrawn
from madeleine.memory.watch.familiar import Familiar
from madeleine.memory.watch.observe import Observe
from madeleine.memory.watch.remember import Remember
from madeleine.memory.watch.thread import MemoryThread, ThreadConfig
from madeleine.patrol.context import PatrolConfig, PatrolServices
from madeleine.patrol.run import Patrol, PatrolEvent
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import local_day, today, utc_now
from madeleine.server.wiring.recall_config import recall_config
from madeleine.storage.sql.ledger import Ledger
from madeleine.tools.tool import UseCases


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What is open. `wake` tells the background that the index has something to catch up with."""

    settings: Settings
    ledger: Ledger
    index: Index
    embedder: Embedder
    reranker: Reranker | None
    keeper: IndexKeeper
    erasure: Erasure
    wake: Callable[[], None]
    on_patrol_event: Callable[[PatrolEvent], None] | None


def build(parts: Parts) -> tuple[UseCases, MemoryThread]:
    settings, ledger, index, embedder = parts.settings, parts.ledger, parts.index, parts.embedder
    keeper, erasure, redact = parts.keeper, parts.erasure, redaction(parts.settings)

    async def caught_up() -> None:
        parts.wake()  # should it fail now, the background tries again
        await keeper.catch_up()

    async def taken_out(ids: Sequence[MemoryId]) -> None:
        erasure.ask()  # should it fail now, that takes them out
        await keeper.take_out(ids)

    turn = asyncio.Lock()
    store = StoreScenes(ledger, index, embedder, now=utc_now, wrote=parts.wake, redact=redact, turn=turn)
    familiar = Familiar(ledger, index, embedder)
    remember = Remember(store, ledger, familiar, day_of=local_day)
    thread = MemoryThread(ledger, ledger, familiar, remember, now=utc_now, config=thread_config(settings))
    update = UpdateMemory(ledger, index, embedder, turn, now=utc_now, wrote=parts.wake, redact=redact)
    forget = Forget(ledger, keeper, erasure, turn, now=utc_now)
    by_message = MessageSearch(ledger, stem)
    recall = Recall(
        ledger,
        index,
        embedder,
        ledger.activations,
        now=utc_now,
        config=recall_config(settings),
        reranker=parts.reranker,
        costs=ledger,
        redact=redact,
    )
    use = UseCases(
        store=store,
        ingest=Ingest(
            ledger,
            store,
            embedder,
            Centroids(ledger, embedder.model),
            Rarity(index),
            now=utc_now,
            redact=redact,
            threshold=settings.ingest_threshold,
        ),
        update=update,
        forget=forget,
        recall=recall,
        search=Search(ledger, ledger.activations, by_message=by_message, now=utc_now),
        browse=BrowseMemories(ledger, ledger.activations, now=utc_now),
        patrol=Patrol(
            PatrolServices(
                ledger=ledger,
                words=index,
                embedder=embedder,
                now=utc_now,
                today=today,
                redact=redact,
                config=patrol_config(settings),
                write_lock=turn,
            ),
            ledger.activations,
            update_index=caught_up,
            on_removed=taken_out,
            on_event=parts.on_patrol_event,
        ),
        audit=Audit(ledger.activations, now=utc_now),
        observe=Observe(
            ledger,
            StoreDrawn(remember, ledger),
            now=utc_now,
            redact=redact,
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
        profile=EditProfile(ledger, store, update, forget, now=utc_now, redact=redact),
    )
    return use, thread


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
