"""The use cases, each given what it needs of an open data directory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from madeleine.inference.stems import stem
from madeleine.memory.audit import Audit
from madeleine.memory.context.context import BuildContext
from madeleine.memory.context.profile import EditProfile
from madeleine.memory.context.values import ContextFlags
from madeleine.memory.ingest.centroid import Centroids
from madeleine.memory.ingest.forget import Forget
from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.ingest.ingest import Ingest
from madeleine.memory.ingest.rarity import Rarity
from madeleine.memory.ingest.scrubbing import Scrubber
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.ingest.update import UpdateMemory
from madeleine.memory.model import MemoryId
from madeleine.memory.ports import Embedder, Index
from madeleine.memory.recall.browse import BrowseMemories
from madeleine.memory.recall.ports import Reranker
from madeleine.memory.recall.recall import Recall
from madeleine.memory.recall.search import Search
from madeleine.memory.recall.tagged import MessageSearch
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets, without_redaction
from madeleine.memory.watch.drawn import StoreAgentMemories
from madeleine.memory.watch.observe import Observe
from madeleine.memory.watch.remember import Remember
from madeleine.memory.watch.similar import SimilarMemories
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
    scrubber: Scrubber
    wake: Callable[[], None]
    on_patrol_event: Callable[[PatrolEvent], None] | None


def build(parts: Parts) -> tuple[UseCases, MemoryThread]:
    settings, ledger, index, embedder = parts.settings, parts.ledger, parts.index, parts.embedder
    keeper, scrubber, redact = parts.keeper, parts.scrubber, redaction(parts.settings)

    async def caught_up() -> None:
        parts.wake()  # should it fail now, the background tries again
        await keeper.catch_up()

    async def taken_out(ids: Sequence[MemoryId]) -> None:
        scrubber.ask()  # should it fail now, that takes them out
        await keeper.remove_memories(ids)

    turn = asyncio.Lock()
    store = StoreScenes(ledger.memories, index, embedder, now=utc_now, wrote=parts.wake, redact=redact, turn=turn)
    similar = SimilarMemories(ledger.recall, index, embedder)
    remember = Remember(store, ledger.memories, similar, day_of=local_day)
    thread = MemoryThread(
        ledger.conversations, ledger.costs, similar, remember, now=utc_now, config=thread_config(settings)
    )
    update = UpdateMemory(ledger.revisions, index, embedder, turn, now=utc_now, wrote=parts.wake, redact=redact)
    forget = Forget(ledger.erasure, keeper, scrubber, turn, now=utc_now)
    by_message = MessageSearch(ledger.search, stem)
    recall = Recall(
        ledger.recall,
        index,
        embedder,
        ledger.activations,
        now=utc_now,
        config=recall_config(settings),
        reranker=parts.reranker,
        costs=ledger.costs,
        redact=redact,
    )
    use = UseCases(
        store=store,
        ingest=Ingest(
            ledger.ingestion,
            store,
            embedder,
            Centroids(ledger.centroids, embedder.model),
            Rarity(index),
            now=utc_now,
            redact=redact,
            threshold=settings.ingest_threshold,
        ),
        update=update,
        forget=forget,
        recall=recall,
        search=Search(ledger.search, ledger.activations, by_message=by_message, now=utc_now),
        browse=BrowseMemories(ledger.browsing, ledger.activations, now=utc_now),
        patrol=Patrol(
            PatrolServices(
                ledger=ledger.patrols,
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
            ledger.conversations,
            StoreAgentMemories(remember, ledger.memories),
            now=utc_now,
            redact=redact,
            appended=thread.wake,
        ),
        context=BuildContext(
            ledger.context,
            recall,
            by_message,
            embedder,
            ledger.activations,
            now=utc_now,
            today=today,
            flags=context_flags(settings),
            token_limit=settings.context_token_limit,
        ),
        profile=EditProfile(ledger.profile, store, update, forget, now=utc_now, redact=redact),
    )
    return use, thread


def redaction(settings: Settings) -> Redact:
    return redact_secrets if settings.redact else without_redaction


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
