"""Dense embedding by fastembed (ONNX Runtime), in a worker thread of its own, loaded when first needed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from inference import packaged
from inference.scripts import latin_share
from memory.errors import EmbeddingUnavailable, InvalidInput
from memory.model import ModelName

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from tokenizers import Tokenizer

logger = logging.getLogger(__name__)
T = TypeVar("T")

BATCH_PADDING = 16
"""Texts of like length that one run of the model takes together: rows are padded to the longest of their run."""
RETRY_SECONDS = 60.0
"""After a failure to load, the next try comes no sooner: each may wait for a network."""
BYTES_PER_TOKEN = 1
"""Upper estimate while there is no tokenizer: no tokenizer makes more tokens than bytes."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    engine: TextEmbedding
    reads_all_scripts: bool
    tokenizer: Tokenizer
    """The model's own, without its truncation: long texts are counted whole."""


def dimension(name: str) -> int:
    """Dimension of the model's vectors, known without loading it. Raises `InvalidInput` for a name nobody knows."""
    if name == packaged.NAME:
        return packaged.DIM
    from fastembed import TextEmbedding

    try:
        return TextEmbedding.get_embedding_size(name)
    except ValueError as error:
        raise InvalidInput(
            f"MADELEINE_EMBEDDING_MODEL names {name!r}, which fastembed does not know. "
            f"Leave it out for {packaged.NAME}, or take a name from fastembed's list of supported models."
        ) from error


def load(name: str, models_dir: Path) -> LoadedModel:
    """The default model from its wheel; any other by fastembed, which fetches it. Raises `EmbeddingUnavailable`."""
    try:
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource, PoolingType
    except ImportError as error:
        raise EmbeddingUnavailable(name, f"fastembed cannot be imported: {error}") from error
    # One thread: with two, a second busy core makes every run slower.
    if name == packaged.NAME:
        files = packaged.prepare(models_dir)
        alias = "madeleine/all-MiniLM-L6-v2"
        if not any(known["model"] == alias for known in TextEmbedding.list_supported_models()):
            TextEmbedding.add_custom_model(
                alias,
                pooling=PoolingType.MEAN,
                normalization=True,
                sources=ModelSource(hf=packaged.NAME),
                dim=packaged.DIM,
                model_file=str(files.onnx),
            )
        try:
            engine = TextEmbedding(alias, specific_model_path=str(files.directory), threads=1)
        except Exception as error:  # onnxruntime and tokenizers raise errors of no common kind
            raise EmbeddingUnavailable(name, f"it does not load: {error}") from error
        return LoadedModel(engine, reads_all_scripts=False, tokenizer=_whole_text_tokenizer(engine))
    try:
        engine = TextEmbedding(name, cache_dir=str(models_dir / "hub"), threads=1)
    except Exception as error:  # fastembed and the hub raise errors of no common kind
        reason = " ".join(str(error).split())[:300]
        raise EmbeddingUnavailable(name, f"it could not be loaded ({reason}); check the name and the network") from error
    described: list[dict[str, Any]] = TextEmbedding.list_supported_models()
    words = next((str(d.get("description", "")) for d in described if d["model"].lower() == name.lower()), "")
    return LoadedModel(
        engine, reads_all_scripts="english" not in words.lower(), tokenizer=_whole_text_tokenizer(engine)
    )


def _whole_text_tokenizer(engine: TextEmbedding) -> Tokenizer:
    from tokenizers import Tokenizer

    truncating = getattr(engine.model, "tokenizer", None)
    if truncating is None:
        raise EmbeddingUnavailable(engine.model_name, "it has no tokenizer of its own")
    tokenizer = Tokenizer.from_str(truncating.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class DenseEmbedder:
    """`memory.ports.Embedder` and `memory.ports.TokenCounter` over one model.

    One worker thread: calls are done one after the other, so a batch never competes with a query for the core it runs on
    longer than its current run of `BATCH_PADDING` texts.
    """

    def __init__(
        self, name: str, models_dir: Path, *, loader: Callable[[str, Path], LoadedModel] = load
    ) -> None:
        self._name = ModelName(name)
        self._models_dir = models_dir
        self._loader = loader
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedding")
        self._loaded: LoadedModel | None = None
        self._failure: EmbeddingUnavailable | None = None
        self._failed_at = 0.0

    @property
    def model(self) -> ModelName:
        return self._name

    @property
    def failure(self) -> EmbeddingUnavailable | None:
        """Why the model could not be had at the last try, or None."""
        return self._failure

    def coverage(self, text: str) -> float:
        every_script = self._loaded.reads_all_scripts if self._loaded else self._name != packaged.NAME
        return 1.0 if every_script else latin_share(text)

    async def dimension(self) -> int:
        """Of the vectors. Raises `InvalidInput` for a name that nobody knows."""
        return await asyncio.to_thread(dimension, self._name)

    async def warm_up(self) -> None:
        """Load the model now. Raises `EmbeddingUnavailable`."""
        await self._in_worker(self._model)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return await self._in_worker(lambda: self._embed(list(texts)))

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        try:
            return await self._in_worker(lambda: self._count(list(texts)))
        except EmbeddingUnavailable:
            return [len(text.encode()) // BYTES_PER_TOKEN for text in texts]

    async def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def _in_worker(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _model(self) -> LoadedModel:
        if self._loaded:
            return self._loaded
        if self._failure and time.monotonic() - self._failed_at < RETRY_SECONDS:
            raise self._failure
        try:
            self._loaded = self._loader(self._name, self._models_dir)
        except EmbeddingUnavailable as error:
            logger.warning("%s", error)
            self._failure, self._failed_at = error, time.monotonic()
            raise
        self._failure = None
        return self._loaded

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        engine = self._model().engine
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        rows = list(engine.embed([texts[i] for i in order], batch_size=BATCH_PADDING))
        found = np.empty((len(texts), engine.embedding_size), np.float32)
        found[order] = np.asarray(rows, np.float32).reshape(len(texts), engine.embedding_size)
        return found

    def _count(self, texts: list[str]) -> list[int]:
        encoded = self._model().tokenizer.encode_batch(texts, add_special_tokens=False)
        return [len(one.ids) for one in encoded]
