"""The online switch of the embedding model (spec O7): `madeleine models switch` asks for it, the process that owns the
memory carries it out.

    embed       every text by the new model, into the ledger: a killed process goes on where it was
    build       a second index, beside the one that serves
    verify      its number of memories, the vectors of a sample, and searches for them
    change over one transaction of the ledger says which model and which index serve; calls under way keep the old

Until then the old model serves, and a killed process comes back with it. The old vectors stay in the ledger, so that
the way back is short.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import numpy as np

from madeleine.inference import ENGLISH_MODEL_NAME, FP32_MODEL_NAME, PACKAGED_MODEL_NAME
from madeleine.memory.embedding import Embedder, embed_with_cache, model_name_of_piece_vectors
from madeleine.memory.errors import EmbeddingUnavailable, InvalidInput, MadeleineError
from madeleine.memory.index import Index
from madeleine.memory.ingest.index_keeper import BACKGROUND_EMBED_BATCH_TEXTS, EmbedderAndIndex, IndexKeeper
from madeleine.memory.model import (
    ALL_MEMORY_STATUSES,
    Memory,
    Scope,
    model_name_at_full_precision,
    model_name_in_both_precisions,
)
from madeleine.memory.vector_space import (
    MIN_LEGIBILITY_OF_EMBEDDED_TEXT,
    CosineCalibration,
    fit_cosine_calibration_to_reference_model,
)
from madeleine.server.background.index_origin import INDEX_FOLDERS, SourceLedgerStateOfIndex
from madeleine.server.background.index_place import (
    BUILT_INDEX_LOCATION_SETTING,
    SECOND_INDEX_IN_USE_SETTING,
    IndexStorageLocation,
    live_and_spare_index_locations,
)
from madeleine.server.background.index_upkeep import LazyEmbedder, run_task_during_block
from madeleine.server.background.model_records import (
    EMBEDDING_CALIBRATIONS_SETTING,
    REFUSED_MODEL_SWITCH_SETTING,
    SERVING_EMBEDDING_MODEL_SETTING,
    WANTED_EMBEDDING_MODEL_SETTING,
    EmbeddingModelRecords,
    EmbeddingModelSwitchRecord,
    RefusedModelSwitchRecord,
    WantedEmbeddingModelRecord,
)
from madeleine.server.background.served_model import ServedEmbedderAndIndex, SwitchableEmbedderAndIndex
from madeleine.server.settings.settings import Settings
from madeleine.storage.qdrant.schema import IndexFingerprint
from madeleine.storage.sql.ledger import LedgerRepositories

logger = logging.getLogger(__name__)

MODEL_SWITCH_REQUEST_POLL_SECONDS = 1.0
MODEL_SWITCH_RETRY_SECONDS = 30.0
MODEL_SWITCH_PAUSE_TO_BATCH_TIME_RATIO = 0.25
"""Of the time that a batch took, before the next: whoever recalls meanwhile has the processor."""
CALIBRATION_SAMPLE_TEXT_COUNT = 400
"""80,000 pairs: their hundredth part is known to a hundredth of the cosine."""
MEMORIES_SAMPLED_TO_VERIFY_NEW_INDEX = 40
MIN_SAME_VECTOR_COSINE = 0.999
MIN_VERIFIED_MEMORIES_FOUND_SHARE = 0.95
"""Of the sample that the index's graph must find first by their own vectors; a graph may miss some."""
VECTORS_DELETED_PER_BATCH = 2_000

MakeEmbedder = Callable[[str], LazyEmbedder]
"""Of a model's name or directory. Raises `InvalidInput`."""


class ModelSwitchCheckFailed(MadeleineError):
    """The new model, or its index, is not what it must be; the old one goes on."""


@dataclass(eq=False)
class EmbeddingModelSwitcher:
    """`run` goes on until it is cancelled. `write_lock`: of all that write memories."""

    settings: Settings
    ledger: LedgerRepositories
    served: SwitchableEmbedderAndIndex
    keeper: IndexKeeper
    make_embedder: MakeEmbedder
    write_lock: asyncio.Lock
    wake_upkeep: Callable[[], None]
    _records: EmbeddingModelRecords = field(init=False)

    def __post_init__(self) -> None:
        self._records = EmbeddingModelRecords(self.ledger.index_source)

    def run_requested_switches_in_background(self) -> AbstractAsyncContextManager[asyncio.Task[None]]:
        return run_task_during_block(self.run_model_switch_loop(), "model switch")

    async def run_model_switch_loop(self) -> None:
        while True:
            pause = MODEL_SWITCH_REQUEST_POLL_SECONDS
            try:
                if wanted := await self._records.wanted_model():
                    await self.switch_or_record_refusal(wanted)
            except Exception as error:
                pause = MODEL_SWITCH_RETRY_SECONDS
                known = isinstance(error, MadeleineError)
                logger.warning("switching the model failed, retrying: %s", error, exc_info=None if known else error)
            await asyncio.sleep(pause)

    async def switch_or_record_refusal(self, wanted: WantedEmbeddingModelRecord) -> None:
        """Raises `MadeleineError` for what may pass; what cannot is recorded, and the request is gone."""
        try:
            await self._switch_to_wanted_model(wanted)
        except (ModelSwitchCheckFailed, InvalidInput, EmbeddingUnavailable) as error:
            logger.warning("the model is not switched to %s: %s", wanted.model, error)
            refused = RefusedModelSwitchRecord(request=wanted.request, reason=str(error))
            await self.ledger.index_source.save_store_settings(
                {REFUSED_MODEL_SWITCH_SETTING: refused.model_dump(), WANTED_EMBEDDING_MODEL_SETTING: None}
            )

    async def _switch_to_wanted_model(self, wanted: WantedEmbeddingModelRecord) -> None:
        old = self.served.current
        embedder = self.make_embedder(wanted.model)
        switched = False
        try:
            fingerprint = IndexFingerprint(
                model_name_at_full_precision(embedder.model_name), await embedder.dimension()
            )
            await embedder.warm_up()
            if embedder.model_name == old.embedder.model_name:
                raise ModelSwitchCheckFailed(f"{wanted.model} serves already.")
            await self._embed_all(embedder)
            live, spare = await live_and_spare_index_locations(self.settings, self.ledger)
            calibration = await self._calibrate_cosines_of_model(embedder)
            async with self._build_new_index(spare, fingerprint, embedder) as index:
                await self._verify_new_index(embedder, index)
                pair = ServedEmbedderAndIndex(embedder, index, calibration)
                await self._record_switch_and_serve_new_model(wanted, pair, spare)
                switched = True
        finally:
            if not switched:
                await embedder.close()
        logger.info(
            "the embedding model is %s now; %s has served until now", embedder.model_name, old.embedder.model_name
        )
        self.wake_upkeep()
        await self.served.close_when_unused(old)
        # Calls that ended with the old model have left memories without a vector of the new.
        await self.keeper.embed_memories_without_vector()
        await live.remove()
        kept = (
            *model_name_in_both_precisions(embedder.model_name),
            *model_name_in_both_precisions(old.embedder.model_name),
        )
        kept = (*kept, *map(model_name_of_piece_vectors, kept))
        await self.ledger.index_source.drop_vectors_except_of_models(kept, at_once=VECTORS_DELETED_PER_BATCH)

    async def _embed_all(self, embedder: Embedder) -> None:
        while True:
            started = time.monotonic()
            if not await self.keeper.embed_next_batch_with_new_model(embedder):
                return
            await asyncio.sleep(MODEL_SWITCH_PAUSE_TO_BATCH_TIME_RATIO * (time.monotonic() - started))

    async def _embed_texts_stored_meanwhile(self, embedder: Embedder) -> None:
        """What was stored since, for the index that is being kept up, but for less than a batch: as long as others
        store there is always some, and the change-over embeds it."""
        while await self.keeper.embed_next_batch_with_new_model(embedder) == BACKGROUND_EMBED_BATCH_TEXTS:
            await self.keeper.index_marked_memories()
        await self.keeper.index_marked_memories()

    @asynccontextmanager
    async def _build_new_index(
        self, place: IndexStorageLocation, fingerprint: IndexFingerprint, embedder: Embedder
    ) -> AsyncIterator[Index]:
        """Filled, and kept up by the keeper until it serves; gone if it does not come to that."""
        index = await place.recreate(fingerprint)
        try:
            self.keeper.successor = EmbedderAndIndex(embedder, index)
            await self.keeper.fill_successor_index()
            await index.optimize_if_worthwhile()
            yield index
        finally:
            self.keeper.successor = None
            if self.served.current.index is not index:
                await index.close()
                await place.remove()

    async def _verify_new_index(self, embedder: Embedder, index: Index) -> None:
        """Raises `ModelSwitchCheckFailed`."""
        indexed, kept = await index.count(), await self.ledger.index_source.count_memories()
        if indexed < kept - len(await self.ledger.index_source.pending_index_marks_with_memory_ids(limit=10_000)):
            raise ModelSwitchCheckFailed(f"The new index holds {indexed} of {kept} memories. Try again.")
        await self._embed_texts_stored_meanwhile(embedder)
        texts = await self._first_memories(CALIBRATION_SAMPLE_TEXT_COUNT)
        sample = texts[:: max(1, len(texts) // MEMORIES_SAMPLED_TO_VERIFY_NEW_INDEX)]
        if not sample:
            return
        vectors = await embedder.embed([memory.embedded_text for memory in sample])
        checked = found = 0
        for memory, vector in zip(sample, vectors, strict=True):
            if embedder.vector_space.legibility_of_text_behind_vector(vector) < MIN_LEGIBILITY_OF_EMBEDDED_TEXT:
                continue  # it is found by its words alone
            checked += 1
            [cosine] = await index.cosines([memory.id], vector)
            if cosine < MIN_SAME_VECTOR_COSINE and await self._is_unchanged_and_has_vector(memory, embedder):
                raise ModelSwitchCheckFailed(
                    "A text has another vector in the new index than the model gives it. Try again."
                )
            near = await index.nearest(Scope(memory.being_id), vector, limit=1, statuses=ALL_MEMORY_STATUSES)
            found += bool(near) and near[0][1] >= MIN_SAME_VECTOR_COSINE
        if found < MIN_VERIFIED_MEMORIES_FOUND_SHARE * checked:
            raise ModelSwitchCheckFailed(f"Of {checked} memories the new index finds only {found}. Try again.")

    async def _is_unchanged_and_has_vector(self, memory: Memory, embedder: Embedder) -> bool:
        """Whether it still has the text of the sample, and that has a vector: not if it is but stored."""
        now = await self.ledger.index_source.memories_of_any_being([memory.id])
        known = await self.ledger.index_source.cached_vectors_by_hash(embedder.model_name, [memory.content_hash])
        return bool(known) and [one.content_hash for one in now] == [memory.content_hash]

    async def _first_memories(self, limit: int) -> list[Memory]:
        return await self.ledger.index_source.memories_after_id(after=None, limit=limit)

    async def _calibrate_cosines_of_model(self, embedder: Embedder) -> CosineCalibration | None:
        """None for the default model, and for a store of few texts."""
        texts = [memory.embedded_text for memory in await self._first_memories(CALIBRATION_SAMPLE_TEXT_COUNT)]
        return await calibrate_cosines_against_default_model(embedder, self.make_embedder, self.ledger, texts)

    async def _record_switch_and_serve_new_model(
        self, wanted: WantedEmbeddingModelRecord, pair: ServedEmbedderAndIndex, place: IndexStorageLocation
    ) -> None:
        """Raises `ModelSwitchCheckFailed` if another request has come meanwhile."""
        source, configured = self.ledger.index_source, self.settings.embedding_model
        await self._embed_texts_stored_meanwhile(pair.embedder)
        # What is stored before has a vector of both models, what is stored afterwards one of the new.
        async with self.write_lock:
            while await self.keeper.embed_next_batch_with_new_model(pair.embedder):
                pass
            await self.keeper.index_marked_memories()
            if await self._records.wanted_model() != wanted:
                raise ModelSwitchCheckFailed("Another switch was asked for meanwhile.")
            async with self.keeper.pause_index_changes():
                await pair.index.flush()
                origin = await SourceLedgerStateOfIndex.of_ledger(self.ledger)
                if not self.settings.qdrant_url:
                    await asyncio.to_thread(origin.write, self.settings.data_dir / INDEX_FOLDERS[place.second])
                serving = EmbeddingModelSwitchRecord(
                    model=wanted.model,
                    previous=await self._records.model_to_serve(configured),
                    configured=configured,
                    request=wanted.request,
                )
                calibrated = (
                    {
                        EMBEDDING_CALIBRATIONS_SETTING: await self._records.calibrations_with_added(
                            pair.embedder.model_name, pair.calibration
                        )
                    }
                    if pair.calibration
                    else {}
                )
                await source.save_store_settings(
                    {
                        SERVING_EMBEDDING_MODEL_SETTING: serving.model_dump(),
                        BUILT_INDEX_LOCATION_SETTING: place.name,
                        SECOND_INDEX_IN_USE_SETTING: place.second,
                        WANTED_EMBEDDING_MODEL_SETTING: None,
                    }
                    | calibrated
                )
                self.served.switch_to(pair)


async def calibrate_cosines_against_default_model(
    embedder: Embedder, make_embedder: MakeEmbedder, ledger: LedgerRepositories, texts: Sequence[str]
) -> CosineCalibration | None:
    """By the default model's vectors of the same texts. None for the default model itself and its encoder of English,
    by which thresholds were measured, for too few texts, and while either model is unavailable."""
    if embedder.model_name in (PACKAGED_MODEL_NAME, ENGLISH_MODEL_NAME, FP32_MODEL_NAME):
        return None
    reference = make_embedder(PACKAGED_MODEL_NAME)
    try:
        own, other = [await embed_with_cache(model, ledger.index_source, texts) for model in (embedder, reference)]
        if own.error or other.error or not texts:
            return None
        rows = np.asarray(list(own.vectors.values()), np.float32)
        reference_rows = np.asarray([other.vectors[hash_] for hash_ in own.vectors], np.float32)
        return await asyncio.to_thread(
            fit_cosine_calibration_to_reference_model,
            embedder.vector_space,
            rows,
            reference.vector_space,
            reference_rows,
        )
    finally:
        await reference.close()
