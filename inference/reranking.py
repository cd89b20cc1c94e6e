"""Re-ranking by a cross-encoder (ONNX Runtime), in a thread of its own, loaded when first needed.

A query is worth a short wait, no more: a model that is still being fetched, does not load or does not finish in time is
not available, and the caller goes on without it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from madeleine.inference.cross_encoder import cross_encoder_directory_from_path, load_directory_cross_encoder
from madeleine.inference.loading import ModelLoader, load_fastembed_model, model_load_errors_translated
from madeleine.memory.errors import RerankerUnavailable

logger = logging.getLogger(__name__)

MAX_RERANKING_SECONDS = 2.0
MAX_RERANKED_TEXT_CHARS = 4_000
"""Characters: no such model reads more."""
RERANKING_BATCH_PAIRS = 8
"""Pairs in one run of the model: rows are padded to the longest of their run."""


class CrossEncoder(Protocol):
    """As fastembed has it, and `inference.cross_encoder`."""

    def rerank(self, query: str, documents: Iterable[str], batch_size: int = 64) -> Iterable[float]:
        """A number for each, greater is better, without bounds."""


def load_cross_encoder(name: str, models_dir: Path) -> CrossEncoder:
    """A model that fastembed knows, which it fetches; or one in the directory `name`. Raises `RerankerUnavailable`."""
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    with model_load_errors_translated(name, RerankerUnavailable, "check MADELEINE_RERANKER and the network"):
        if directory := cross_encoder_directory_from_path(name):
            return load_directory_cross_encoder(directory)
        return load_fastembed_model(TextCrossEncoder, name, cache_dir=str(models_dir / "hub"))


class CrossEncoderReranker:
    """`memory.recall.ports.Reranker` over one model."""

    def __init__(
        self,
        name: str,
        models_dir: Path,
        *,
        patience: float = MAX_RERANKING_SECONDS,
        loader: Callable[[str, Path], CrossEncoder] = load_cross_encoder,
    ) -> None:
        """`name`: of a model, or a directory. `patience`: seconds that a call takes at most, loading included. Raises
        `InvalidInput` for a directory without a model."""
        cross_encoder_directory_from_path(name)
        self._name = name
        self._patience = patience
        self._loading: ModelLoader[CrossEncoder, RerankerUnavailable] = ModelLoader(
            name, lambda: loader(name, models_dir), RerankerUnavailable, logger=logger
        )
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reranking")
        self._closed = threading.Event()

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        loading = self._loading.current_or_new_attempt()
        try:
            async with asyncio.timeout(self._patience):
                model = await asyncio.shield(loading)
                return await self._score_in_worker_thread(model, query, texts)
        except TimeoutError:
            doing = "it did not answer" if loading.done() else "it is still being fetched and loaded, and was not there"
            raise RerankerUnavailable(self._name, f"{doing} within {self._patience:g} s") from None

    async def close(self) -> None:
        self._closed.set()
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def _score_in_worker_thread(self, model: CrossEncoder, query: str, texts: Sequence[str]) -> list[float]:
        """A caller that gave up is not worked for any longer than one run of the model takes."""
        given_up = threading.Event()

        def work() -> list[float]:
            scores: list[float] = []
            for start in range(0, len(texts), RERANKING_BATCH_PAIRS):
                if given_up.is_set() or self._closed.is_set():
                    break
                batch = [text[:MAX_RERANKED_TEXT_CHARS] for text in texts[start : start + RERANKING_BATCH_PAIRS]]
                scores += map(
                    sigmoid, model.rerank(query[:MAX_RERANKED_TEXT_CHARS], batch, batch_size=RERANKING_BATCH_PAIRS)
                )
            return scores

        try:
            scores = await asyncio.get_running_loop().run_in_executor(self._worker, work)
        except Exception as error:  # onnxruntime raises errors of no common kind
            logger.exception("re-ranking by %s failed", self._name)
            raise RerankerUnavailable(self._name, "it failed; the log tells more") from error
        finally:
            given_up.set()
        if len(scores) != len(texts) or not all(map(math.isfinite, scores)):
            raise RerankerUnavailable(self._name, "its answer is not one number for each text")
        return scores


def sigmoid(score: float) -> float:
    """A model's number made a share in [0, 1]; NaN stays what it is."""
    return (1 + math.tanh(score / 2)) / 2
