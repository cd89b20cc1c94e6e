"""Opens a data directory: its lock, ledger, models and index, and the use cases over them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from madeleine.dictionaries import is_dictionary_word
from madeleine.inference.dense import DenseEmbedder
from madeleine.inference.reranking import CrossEncoderReranker
from madeleine.inference.stems import stem_english_word, stem_word_of_language
from madeleine.memory.audit import RecordAuditEvent
from madeleine.memory.context.context import BuildPromptContext
from madeleine.memory.context.profile import EditProfile
from madeleine.memory.context.values import ContextFlags
from madeleine.memory.core_blocks.core_blocks import EditCoreBlocks
from madeleine.memory.embedding import Embedder
from madeleine.memory.graph.graph import ExploreEntityGraph, ExtractGraph
from madeleine.memory.index import Index
from madeleine.memory.ingest.being_statistics import BeingCentroids, TextRarityScorer
from madeleine.memory.ingest.erased_bytes import ErasedBytesScrubber
from madeleine.memory.ingest.index_keeper import IndexKeeper, ReportRebuildProgress
from madeleine.memory.ingest.ingest import IngestText
from madeleine.memory.ingest.proposals import SupersessionCandidateSearch
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.ingest.truth import ChangeMemoryTruth
from madeleine.memory.ingest.update_and_forget import ForgetMemories, UpdateMemory
from madeleine.memory.ingest.write_lock import WriteLock
from madeleine.memory.lessons.lessons import LearnLessons, LessonConfig
from madeleine.memory.lessons.ports import WriteSkill
from madeleine.memory.model import Scope
from madeleine.memory.moving.importing import ImportMadeleineExport
from madeleine.memory.moving.ports import LedgerCopyFileRecord
from madeleine.memory.moving.statements import StoreImportedStatements
from madeleine.memory.organisation.knowledge import OrganisationKnowledge, OrganisationKnowledgeConfig
from madeleine.memory.recall.config import RecallConfig
from madeleine.memory.recall.outside_memories import FindNonMemoryMatches
from madeleine.memory.recall.ports import Reranker
from madeleine.memory.recall.recall import RecallMemories
from madeleine.memory.recall.reformulation import QueryReformulationConfig
from madeleine.memory.recall.search import (
    BrowseMemories,
    SearchByTagsFromMessage,
    SearchStoredTexts,
    find_spelling_corrections,
)
from madeleine.memory.recall.selection import NON_INFERABLE_MEMORIES_THEME_NAME
from madeleine.memory.retention.archive import MemoryArchive
from madeleine.memory.rules.ranking.matching import MatchThresholds
from madeleine.memory.rules.ranking.profiles import AllRankingProfileWeights
from madeleine.memory.rules.storing.likeness import DuplicateThresholds
from madeleine.memory.rules.storing.secrets import RedactText, redact_nothing, redact_secrets
from madeleine.memory.short_ids import ShortIdTranslator
from madeleine.memory.watch.observe import ObserveConversation
from madeleine.memory.watch.remember import FindMemoriesSimilarToTexts, RememberExtractedMemories
from madeleine.memory.watch.thread import ConversationMemoryExtractor, MemoryExtractionConfig
from madeleine.patrol.context import PatrolConfig, PatrolServices, RetentionServices
from madeleine.patrol.run import PatrolEvent, RunPatrols
from madeleine.server.background.index_upkeep import (
    BackgroundIndexUpkeep,
    LazyEmbedder,
    open_synchronized_index,
    record_source_ledger_of_index,
    sync_index_with_other_servers,
)
from madeleine.server.background.model_records import EmbeddingModelRecords
from madeleine.server.background.model_switch import EmbeddingModelSwitcher, MakeEmbedder
from madeleine.server.background.served_model import ServedEmbedderAndIndex, SwitchableEmbedderAndIndex
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import local_date_today, local_day, utc_now
from madeleine.server.wiring.data_directory import ledger_location, lock_data_directory, path_exists
from madeleine.storage.skill_files import write_skill_file
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from madeleine.tools.tool import ToolUseCases

MODELS_FOLDER = "models"


@dataclass(frozen=True, slots=True)
class OpenedMemoryStore:
    use_cases: ToolUseCases
    ledger: LedgerRepositories
    index: Index
    embedder: LazyEmbedder
    index_keeper: IndexKeeper
    memory_thread: ConversationMemoryExtractor
    model_switch: EmbeddingModelSwitcher
    pin_model: Callable[[], None]
    """To be called by a task before it uses any of these: it then ends with the model that it has begun with."""
    import_export: ImportMadeleineExport
    store_statements: StoreImportedStatements


@asynccontextmanager
async def open_memory_store(
    settings: Settings,
    *,
    rebuild: bool = False,
    progress: ReportRebuildProgress | None = None,
    embedder: LazyEmbedder | None = None,
    make_embedder: MakeEmbedder | None = None,
    background: bool = True,
    on_patrol_event: Callable[[PatrolEvent], None] | None = None,
) -> AsyncIterator[OpenedMemoryStore]:
    """Lock the data directory, open the ledger, repair the index, start the background work. `embedder` serves first,
    by default the model that was chosen last; `make_embedder` makes that of a model's name.

    Raises `StorageBusy`, `StorageError`, `InvalidInput` for an unknown model. Whatever was opened is closed at the end.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(lock_data_directory(settings.data_dir))
        ledger = await stack.enter_async_context(open_ledger(ledger_location(settings)))
        make_embedder = make_embedder or partial(_make_dense_embedder, settings.data_dir / MODELS_FOLDER)
        records = EmbeddingModelRecords(ledger.index_source)
        if embedder is None:
            await records.serve_former_default_until_switched(settings.embedding_model)
        async with AsyncExitStack() as closed_on_error:
            first = embedder or make_embedder(await records.model_to_serve(settings.embedding_model))
            closed_on_error.push_async_callback(first.close)
            first_index = await open_synchronized_index(settings, ledger, first, rebuild=rebuild, progress=progress)
            served = SwitchableEmbedderAndIndex(
                ServedEmbedderAndIndex(first, first_index, await records.calibration(first.model_name))
            )
            closed_on_error.pop_all()
        stack.push_async_callback(served.close)
        embedder, index = served.embedder, served.index
        keeper = IndexKeeper(ledger.index_source, served.current_index, served.current_embedder)
        remember_origin = partial(record_source_ledger_of_index, settings, ledger)
        await remember_origin()
        stack.push_async_callback(remember_origin)
        if reranker := reranker_from_settings(settings, settings.data_dir / MODELS_FOLDER):
            stack.push_async_callback(reranker.close)
        scrubber = ErasedBytesScrubber(ledger.erasure, keeper, served.current_index, settings.erasure_seconds)
        upkeep = BackgroundIndexUpkeep(
            keeper,
            served.current_index,
            served.current_embedder.warm_up,
            scrubber,
            remember_origin,
            extract_graph=ExtractGraph(ledger.graph_extraction),
        )
        write_lock = WriteLock()
        switch = EmbeddingModelSwitcher(
            settings, ledger, served, keeper, make_embedder, write_lock, upkeep.wake_background_tasks
        )
        if background:
            await stack.enter_async_context(upkeep.run_in_background())
            await stack.enter_async_context(switch.run_requested_switches_in_background())
            await stack.enter_async_context(sync_index_with_other_servers(ledger, upkeep))
        use, thread = _build_use_cases(
            settings,
            ledger,
            index,
            embedder,
            upkeep,
            write_lock=write_lock,
            reranker=reranker,
            on_patrol_event=on_patrol_event,
        )
        await use.patrol.roll_back_unfinished_runs()
        import_export = ImportMadeleineExport(
            ledger.imports,
            keeper,
            scrubber,
            embedder,
            write_lock,
            now=utc_now,
            redact=redaction_from_settings(settings),
            on_commit=upkeep.wake_background_tasks,
            write_access=settings.organisation_write_access,
        )
        yield OpenedMemoryStore(
            use,
            ledger,
            index,
            embedder,
            keeper,
            thread,
            switch,
            served.pin_task_to_current_pair,
            import_export,
            StoreImportedStatements(ledger.imports, use.store),
        )


def _build_use_cases(
    settings: Settings,
    ledger: LedgerRepositories,
    index: Index,
    embedder: Embedder,
    upkeep: BackgroundIndexUpkeep,
    *,
    write_lock: WriteLock,
    reranker: Reranker | None,
    on_patrol_event: Callable[[PatrolEvent], None] | None,
) -> tuple[ToolUseCases, ConversationMemoryExtractor]:
    redact = redaction_from_settings(settings)
    store = StoreScenes(
        ledger.memories,
        index,
        embedder,
        now=utc_now,
        on_commit=upkeep.wake_background_tasks,
        callback_for_newly_indexed_memories=upkeep.keeper.callback_for_newly_indexed_memories,
        redact=redact,
        write_lock=write_lock,
        search_superseded=SupersessionCandidateSearch(index),
        thresholds=DuplicateThresholds(settings.same_scene_cosine, settings.min_resemblance),
    )
    similar = FindMemoriesSimilarToTexts(ledger.recall, index, embedder)
    remember = RememberExtractedMemories(
        store.store_already_redacted_scenes, ledger.memories, similar, day_of=local_day, redact=redact
    )
    thread_config = MemoryExtractionConfig(
        settle_time=timedelta(seconds=settings.thread_settle_seconds),
        token_budget=settings.thread_token_budget,
        records_exchanges=settings.thread_records,
    )
    patrol_services = PatrolServices(
        ledger=ledger.patrols,
        word_idf=index,
        embedder=embedder,
        now=utc_now,
        local_day=local_day,
        redact=redact,
        write_lock=write_lock,
        retention=RetentionServices(ledger.archive, settings.retention),
        config=PatrolConfig(
            token_budget=settings.patrol_token_budget,
            step_seconds=settings.patrol_step_seconds,
            compression_threshold=settings.compression_threshold,
            undoable_runs=settings.patrol_undoable_runs,
        ),
    )
    levels = settings.memory_level_config
    thread = ConversationMemoryExtractor(
        ledger.conversations, ledger.patrols, remember, now=utc_now, config=thread_config, levels=levels
    )
    update = UpdateMemory(
        ledger.memories, index, embedder, write_lock, now=utc_now, on_commit=upkeep.wake_background_tasks, redact=redact
    )
    forget = ForgetMemories(
        ledger.erasure, upkeep.keeper, upkeep.scrubber, write_lock, now=utc_now, is_copy_there=path_exists
    )
    by_message = SearchByTagsFromMessage(ledger.search, stem_english_word)
    recall = RecallMemories(
        ledger.recall,
        index,
        embedder,
        ledger.activations,
        now=utc_now,
        config=recall_config_from_settings(settings),
        reranker=reranker,
        costs=ledger.patrols,
        redact=redact,
        respell=partial(
            find_spelling_corrections,
            ledger.search,
            sources=("memories",),
            stem=stem_word_of_language,
            is_word=is_dictionary_word,
        ),
    )
    truth = ChangeMemoryTruth(ledger.memories, store)
    audit = RecordAuditEvent(ledger.activations, now=utc_now)
    use = ToolUseCases(
        store=store,
        ingest=IngestText(
            ledger.memories,
            store,
            embedder,
            BeingCentroids(ledger.recall, embedder),
            TextRarityScorer(index),
            now=utc_now,
            redact=redact,
            threshold=settings.ingest_threshold,
        ),
        update=update,
        change_truth=truth,
        forget=forget,
        recall=recall,
        search=SearchStoredTexts(
            ledger.search, ledger.activations, search_by_tags=by_message, now=utc_now, stem=stem_word_of_language
        ),
        find_non_memory_matches=FindNonMemoryMatches(ledger.context, by_message),
        browse=BrowseMemories(ledger.recall, ledger.activations, now=utc_now),
        patrol=RunPatrols(
            patrol_services,
            ledger.activations,
            update_index=upkeep.index_marked_memories,
            on_memories_removed=upkeep.remove_memories,
            on_event=on_patrol_event,
        ),
        audit=audit,
        observe=ObserveConversation(
            ledger.conversations,
            remember.store_memory_extracted_by_agent,
            now=utc_now,
            redact=redact,
            on_append=thread.notify_of_new_messages,
        ),
        context=BuildPromptContext(
            ledger.context,
            recall,
            by_message,
            embedder,
            ledger.activations,
            now=utc_now,
            today=local_date_today,
            flags=ContextFlags(**settings.model_dump(include=set(ContextFlags.model_fields))),
            token_limit=settings.context_token_limit,
        ),
        profile=EditProfile(ledger.context, store, update, forget, now=utc_now, redact=redact),
        organisation=OrganisationKnowledge(
            ledger.knowledge, truth, forget, recall, audit, config=organisation_config_from_settings(settings)
        ),
        lessons=LearnLessons(
            ledger.lessons,
            store,
            update,
            embedder,
            now=utc_now,
            config=LessonConfig(min_confidence=settings.lesson_min_confidence),
            write_skill=make_skill_writer(settings, ledger),
            costs=ledger.patrols,
        ),
        graph=ExploreEntityGraph(ledger.graph, ExtractGraph(ledger.graph_extraction), now=utc_now, redact=redact),
        core_blocks=EditCoreBlocks(ledger.core_blocks, upkeep.scrubber.request, now=utc_now, redact=redact),
        archive=MemoryArchive(
            ledger.archive,
            ledger.archive,
            embedder,
            write_lock,
            now=utc_now,
            update_index=upkeep.index_marked_memories,
            config=settings.retention,
            redact=redact,
        ),
        short_ids=ShortIdTranslator(ledger.short_ids),
    )
    return use, thread


def _make_dense_embedder(models_dir: Path, model: str) -> DenseEmbedder:
    return DenseEmbedder(model, models_dir)


def redaction_from_settings(settings: Settings) -> RedactText:
    return redact_secrets if settings.redact else redact_nothing


def recall_config_from_settings(settings: Settings) -> RecallConfig:
    return RecallConfig(
        thresholds=MatchThresholds(likeness=settings.recall_threshold),
        ranking=settings.ranking,
        profiles=AllRankingProfileWeights(associative=settings.associative_weights),
        themes=(NON_INFERABLE_MEMORIES_THEME_NAME,) if settings.recall_non_inferable_only else (),
        min_importance=settings.recall_min_importance,
        reformulation=QueryReformulationConfig(
            max_rounds=int(settings.recall_reformulation), seconds=settings.recall_reformulation_seconds
        ),
    )


def make_skill_writer(settings: Settings, ledger: LedgerRepositories) -> WriteSkill | None:
    """Each file is named among the copies of the memory: who forgets the lesson is told of it (ruling 25)."""
    directory = settings.skill_directory
    if directory is None:
        return None

    async def write(scope: Scope, name: str, text: str) -> None:
        path = await asyncio.to_thread(write_skill_file, directory, name, text)
        copy = LedgerCopyFileRecord(path=str(path), kind="export", being_id=scope.being_id, made_at=utc_now())
        await ledger.copies.record_ledger_copy(copy)

    return write


def organisation_config_from_settings(settings: Settings) -> OrganisationKnowledgeConfig:
    return OrganisationKnowledgeConfig(
        write_access=settings.organisation_write_access,
        max_policies=settings.organisation_policies,
        max_retrieved=settings.organisation_retrieved,
    )


def reranker_from_settings(settings: Settings, models_dir: Path) -> CrossEncoderReranker | None:
    """Loads nothing before its first use."""
    if not settings.reranker:
        return None
    return CrossEncoderReranker(settings.reranker, models_dir, patience=settings.reranker_seconds)
