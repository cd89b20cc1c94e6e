"""Builds the use cases over an open data directory: the only place that joins adapters to ports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
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


def build_use_cases(
    settings: Settings,
    ledger: Ledger,
    index: Index,
    embedder: Embedder,
    *,
    reranker: Reranker | None,
    keeper: IndexKeeper,
    scrubber: Scrubber,
    on_write: Callable[[], None],
    on_patrol_event: Callable[[PatrolEvent], None] | None,
) -> tuple[UseCases, MemoryThread]:
    """`on_write` is called when the index has to catch up with the ledger."""
    redact = redaction(settings)

    async def catch_up() -> None:
        on_write()  # should it fail now, the background tries again
        await keeper.catch_up()

    async def remove_from_index(ids: Sequence[MemoryId]) -> None:
        scrubber.request()  # should it fail now, that removes them
        await keeper.remove_memories(ids)

    write_lock = asyncio.Lock()
    store = StoreScenes(
        ledger.memories, index, embedder, now=utc_now, on_commit=on_write, redact=redact, write_lock=write_lock
    )
    similar = SimilarMemories(ledger.recall, index, embedder)
    remember = Remember(store.store_redacted, ledger.memories, similar, day_of=local_day, redact=redact)
    thread_config = ThreadConfig(
        settle=timedelta(seconds=settings.thread_settle_seconds),
        token_budget=settings.thread_token_budget,
        records=settings.thread_records,
    )
    patrol_config = PatrolConfig(
        token_budget=settings.patrol_token_budget,
        step_seconds=settings.patrol_step_seconds,
        compression_threshold=settings.compression_threshold,
    )
    thread = MemoryThread(ledger.conversations, ledger.costs, similar, remember, now=utc_now, config=thread_config)
    update = UpdateMemory(ledger.memories, index, embedder, write_lock, now=utc_now, on_commit=on_write, redact=redact)
    forget = Forget(ledger.erasure, keeper, scrubber, write_lock, now=utc_now)
    by_message = MessageSearch(ledger.search, stem)
    recall = Recall(
        ledger.recall,
        index,
        embedder,
        ledger.activations,
        now=utc_now,
        config=recall_config(settings),
        reranker=reranker,
        costs=ledger.costs,
        redact=redact,
    )
    use = UseCases(
        store=store,
        ingest=Ingest(
            ledger.memories,
            store,
            embedder,
            Centroids(ledger.recall, embedder.model),
            Rarity(index),
            now=utc_now,
            redact=redact,
            threshold=settings.ingest_threshold,
        ),
        update=update,
        forget=forget,
        recall=recall,
        search=Search(ledger.search, ledger.activations, by_message=by_message, now=utc_now),
        browse=BrowseMemories(ledger.recall, ledger.activations, now=utc_now),
        patrol=Patrol(
            PatrolServices(
                ledger=ledger.patrols,
                words=index,
                embedder=embedder,
                now=utc_now,
                today=today,
                redact=redact,
                config=patrol_config,
                write_lock=write_lock,
            ),
            ledger.activations,
            update_index=catch_up,
            on_removed=remove_from_index,
            on_event=on_patrol_event,
        ),
        audit=Audit(ledger.activations, now=utc_now),
        observe=Observe(
            ledger.conversations,
            remember.agent_memory,
            now=utc_now,
            redact=redact,
            on_append=thread.wake,
        ),
        context=BuildContext(
            ledger.context,
            recall,
            by_message,
            embedder,
            ledger.activations,
            now=utc_now,
            today=today,
            flags=ContextFlags(**settings.model_dump(include=set(ContextFlags.__dataclass_fields__))),
            token_limit=settings.context_token_limit,
        ),
        profile=EditProfile(ledger.context, store, update, forget, now=utc_now, redact=redact),
    )
    return use, thread


def redaction(settings: Settings) -> Redact:
    return redact_secrets if settings.redact else without_redaction
