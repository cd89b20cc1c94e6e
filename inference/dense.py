"""Dense embedding (spec O7) by ONNX Runtime, in a worker thread of its own, loaded when first needed."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from madeleine.inference import (
    ENGLISH_MODEL_NAME,
    FP32_MODEL_NAME,
    PACKAGED_MODEL_NAME,
    fp32_model,
    space_measurement,
)
from madeleine.inference.adapted import AdaptedEmbeddingModel, read_adapted_embedding_model_if_any
from madeleine.inference.default_model import engines, english_encoder
from madeleine.inference.default_model.sources import find_english_encoder_source
from madeleine.inference.loading import (
    ModelLoader,
    load_fastembed_model,
    model_load_errors_translated,
    register_fastembed_model,
)
from madeleine.inference.model_directory import embedding_model_directory_from_path, load_directory_embedding_engine
from madeleine.memory.errors import EmbeddingUnavailable, InvalidInput
from madeleine.memory.model import EmbeddingModelName
from madeleine.memory.vector_space import VectorSpace

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from tokenizers import Tokenizer

logger = logging.getLogger(__name__)

TEXTS_PER_EMBEDDING_BATCH = 4
"""Texts of like length that one run of the model takes together: rows are padded to the longest of their run. With 16
texts of 200 tokens took a fifth more of processor time, and half as much memory again."""
MAX_MODEL_LOAD_WAIT_SECONDS = 3.0
"""How long a store or a recall waits for a model that may have to be fetched first."""
MAX_MODEL_LOAD_WAIT_SECONDS_AT_CLOSE = 10.0
MAX_SMALL_EMBEDDING_BATCH_TEXTS = 2
"""A call with at most these is worked off beside longer ones."""
MAX_INLINE_TOKENIZED_CHARS = 2_000
"""The tokenizer takes 1 ms for these, and a thread would add to it."""


@dataclass(frozen=True, slots=True)
class LoadedEmbeddingModel:
    embed: Callable[[list[str]], NDArray[np.float32]]
    """Texts to unit rows, float32, (n, dim), in their order; called in any thread."""
    tokenizer: Tokenizer
    """The model's own, without its truncation: long texts are counted whole."""
    space: VectorSpace


def embedding_dimension(name: str) -> int:
    """Dimension of the model's vectors, known without loading it. Raises `InvalidInput` for a name nobody knows."""
    if name == PACKAGED_MODEL_NAME:
        return engines.DIMENSION
    if name in (ENGLISH_MODEL_NAME, FP32_MODEL_NAME):
        return english_encoder.WIDTH
    if directory := read_adapted_embedding_model_if_any(name) or embedding_model_directory_from_path(name):
        return directory.dimension
    from fastembed import TextEmbedding

    try:
        return TextEmbedding.get_embedding_size(name)
    except ValueError as error:
        raise InvalidInput(
            f"MADELEINE_EMBEDDING_MODEL names {name!r}, which fastembed does not know. "
            f"Leave it out for {PACKAGED_MODEL_NAME}, or take a name from fastembed's list of supported models, "
            f"or a directory with model.onnx and tokenizer.json."
        ) from error


def load_embedding_model(name: str, models_dir: Path) -> LoadedEmbeddingModel:
    """The default model from this package, one in a directory, or any other by fastembed, which fetches it. Raises
    `EmbeddingUnavailable`, `InvalidInput`."""
    if name == PACKAGED_MODEL_NAME:
        both = engines.load_both_encoders()
        return LoadedEmbeddingModel(both.embed, both.tokenizer, space_measurement.packaged_vector_space())
    if name == ENGLISH_MODEL_NAME:
        english = engines.load_english_encoder()
        return LoadedEmbeddingModel(english.embed, english.tokenizer, space_measurement.english_vector_space())
    if adapted := read_adapted_embedding_model_if_any(name):
        return _load_adapted_model(adapted, models_dir)
    if directory := embedding_model_directory_from_path(name):
        with model_load_errors_translated(
            directory.name_with_content_hash, EmbeddingUnavailable, "check MADELEINE_EMBEDDING_MODEL"
        ):
            own = load_directory_embedding_engine(directory)
        space = read_or_measure_vector_space_of_model(directory.name_with_content_hash, models_dir, own.embed)
        return LoadedEmbeddingModel(own.embed, _tokenizer_without_truncation(own.tokenizer), space)
    fetched = _load_fastembed_engine(name, models_dir)
    embed = partial(embed_in_batches, fetched)
    space = (
        space_measurement.english_vector_space()
        if name == FP32_MODEL_NAME
        else read_or_measure_vector_space_of_model(name, models_dir, embed)
    )
    tokenizer = getattr(fetched.model, "tokenizer", None)
    if tokenizer is None:
        raise EmbeddingUnavailable(name, "it has no tokenizer of its own")
    return LoadedEmbeddingModel(embed, _tokenizer_without_truncation(tokenizer), space)


def _load_adapted_model(adapted: AdaptedEmbeddingModel, models_dir: Path) -> LoadedEmbeddingModel:
    base = load_embedding_model(adapted.base, models_dir)

    def embed(texts: list[str]) -> NDArray[np.float32]:
        return adapted.adapt_vectors(base.embed(texts))

    return LoadedEmbeddingModel(
        embed, base.tokenizer, read_or_measure_vector_space_of_model(adapted.name_with_content_hash, models_dir, embed)
    )


def read_or_measure_vector_space_of_model(
    name: str, models_dir: Path, embed: Callable[[list[str]], NDArray[np.float32]]
) -> VectorSpace:
    """Of a model that does not come with this package: measured when it is first loaded, then kept beside it."""
    kept = models_dir / "spaces" / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}.npz"
    return space_measurement.read_or_measure_vector_space(kept, embed)


def _load_fastembed_engine(name: str, models_dir: Path) -> TextEmbedding:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    source = find_english_encoder_source() if name == FP32_MODEL_NAME else None
    with model_load_errors_translated(name, EmbeddingUnavailable, "check the name and the network"):
        if source is None:
            return load_fastembed_model(TextEmbedding, name, cache_dir=str(models_dir / "hub"))
        onnx_file, directory = fp32_model.check_and_lay_out_fp32_model(source, models_dir)
        alias = "madeleine/all-MiniLM-L6-v2"
        register_fastembed_model(
            TextEmbedding,
            alias,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf=name),
            dim=english_encoder.WIDTH,
            model_file=str(onnx_file),
        )
        return load_fastembed_model(TextEmbedding, alias, specific_model_path=str(directory))


def _tokenizer_without_truncation(truncating: Tokenizer) -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(truncating.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class DenseEmbedder:
    """`memory.embedding.Embedder` over one model.

    It is loaded when first needed, in a thread of its own that nobody has to wait for at the end. Calls are then worked
    off one after the other in one worker thread; those of a text or two in another, so that nobody who recalls has to
    wait for a document that is ingested.
    """

    def __init__(
        self,
        name: str,
        models_dir: Path,
        *,
        loader: Callable[[str, Path], LoadedEmbeddingModel] = load_embedding_model,
        patience: float | None = None,
    ) -> None:
        """`name`: of the model, or a directory. `patience`: seconds that a call waits for a model that is being loaded;
        as long as it takes for a model that is on the disk, a few seconds for one that has to be fetched. Raises
        `InvalidInput` for a directory without a model."""
        directory = read_adapted_embedding_model_if_any(name) or embedding_model_directory_from_path(name)
        self._name = directory.name_with_content_hash if directory else EmbeddingModelName(name)
        self._configured_name = name
        has_source = name == FP32_MODEL_NAME and find_english_encoder_source() is not None
        comes_with_package = name in (PACKAGED_MODEL_NAME, ENGLISH_MODEL_NAME)
        self._is_on_disk = comes_with_package or has_source or directory is not None
        self._patience = MAX_MODEL_LOAD_WAIT_SECONDS if patience is None and not self._is_on_disk else patience
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedding")
        self._small_batch_worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedding a few")
        self._loading: ModelLoader[LoadedEmbeddingModel, EmbeddingUnavailable] = ModelLoader(
            name, lambda: loader(name, models_dir), EmbeddingUnavailable, logger=logger
        )

    @property
    def model_name(self) -> EmbeddingModelName:
        return self._name

    @property
    def load_failure(self) -> EmbeddingUnavailable | None:
        """Why the model could not be had at the last try, or None."""
        return self._loading.failure

    @property
    def vector_space(self) -> VectorSpace:
        if self._name == PACKAGED_MODEL_NAME:
            return space_measurement.packaged_vector_space()
        if self._name in (ENGLISH_MODEL_NAME, FP32_MODEL_NAME):
            return space_measurement.english_vector_space()
        model = self._loading.loaded
        return model.space if model else VectorSpace.create_without_languages()

    async def dimension(self) -> int:
        """Of the vectors. Raises `InvalidInput` for a name that nobody knows."""
        return await asyncio.to_thread(embedding_dimension, self._configured_name)

    async def warm_up(self) -> None:
        """Load the model now, however long it takes. Raises `EmbeddingUnavailable`."""
        await asyncio.shield(self._loading.current_or_new_attempt())

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        model = await self._wait_for_loaded_model()
        worker = self._small_batch_worker if len(texts) <= MAX_SMALL_EMBEDDING_BATCH_TEXTS else self._worker
        return await asyncio.get_running_loop().run_in_executor(worker, model.embed, list(texts))

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        try:
            model = await self._wait_for_loaded_model()
        except EmbeddingUnavailable:
            return [len(text.encode()) for text in texts]  # no tokenizer makes more tokens than bytes
        if sum(map(len, texts)) <= MAX_INLINE_TOKENIZED_CHARS:
            return _count_tokens(model, texts)
        # In any thread: the model may be busy for long.
        return await asyncio.to_thread(_count_tokens, model, texts)

    async def close(self) -> None:
        """A model that is loaded from the disk is waited for: ONNX Runtime ends a process that ends meanwhile."""
        if self._is_on_disk:
            await self._loading.wait_for_running_attempt(MAX_MODEL_LOAD_WAIT_SECONDS_AT_CLOSE)
        for worker in (self._worker, self._small_batch_worker):
            worker.shutdown(wait=False, cancel_futures=True)

    async def _wait_for_loaded_model(self) -> LoadedEmbeddingModel:
        if self._loading.loaded:
            return self._loading.loaded
        attempt = self._loading.current_or_new_attempt()
        waited = time.monotonic() - self._loading.began
        patience = None if self._patience is None else max(0.0, self._patience - waited)
        await asyncio.wait({attempt}, timeout=patience)
        if not attempt.done():
            raise EmbeddingUnavailable(self._name, "it is still being fetched and loaded; nothing needs to be done")
        return attempt.result()


def embed_in_batches(engine: TextEmbedding, texts: list[str]) -> NDArray[np.float32]:
    """float32, (n, dim), unit rows, in the order of `texts`."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    rows = list(engine.embed([texts[i] for i in order], batch_size=TEXTS_PER_EMBEDDING_BATCH))
    vectors = np.empty((len(texts), engine.embedding_size), np.float32)
    vectors[order] = np.asarray(rows, np.float32).reshape(vectors.shape)
    return vectors


def _count_tokens(model: LoadedEmbeddingModel, texts: Sequence[str]) -> list[int]:
    # Without the offsets of the tokens, which take a third of the time.
    return [len(encoding) for encoding in model.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
