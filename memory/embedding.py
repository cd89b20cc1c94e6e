"""The embedding model, and vectors of stored texts: cached in the ledger, else computed by the model (spec L1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.errors import EmbeddingUnavailable
from madeleine.memory.model import ContentHash, EmbeddingModelName, Vector, content_hash, model_name_in_both_precisions
from madeleine.memory.vector_space import VectorSpace

VectorByContentHash = dict[ContentHash, Vector]
"""By the content hash of the text."""


_PIECE_VECTORS_NAME_SUFFIX = "+pieces"


def model_name_of_piece_vectors(model: EmbeddingModelName) -> EmbeddingModelName:
    """The name under which the vectors of a text's pieces are cached, one behind the other, by the hash of the text."""
    return EmbeddingModelName(f"{model}{_PIECE_VECTORS_NAME_SUFFIX}")


def is_model_name_of_piece_vectors(model: EmbeddingModelName) -> bool:
    return model.endswith(_PIECE_VECTORS_NAME_SUFFIX)


class Embedder(Protocol):
    """Text to vectors, and to tokens. One call is one batch; work is done in a worker thread."""

    @property
    def model_name(self) -> EmbeddingModelName: ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32, (n, dim), unit rows, in the order of `texts`. Raises `EmbeddingUnavailable`."""

    @property
    def vector_space(self) -> VectorSpace:
        """Undivided until the model has been loaded once, unless it is the default one."""

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text by the model's own tokenizer; an upper estimate while the model cannot be had."""


class VectorCache(Protocol):
    async def cached_vectors_by_hash(
        self, model: EmbeddingModelName, hashes: Sequence[ContentHash]
    ) -> VectorByContentHash:
        """A text that this model has never embedded is left out."""


class WritableVectorCache(VectorCache, Protocol):
    async def cache_vectors(self, model: EmbeddingModelName, vectors: Mapping[ContentHash, Vector]) -> None: ...


@dataclass(frozen=True, slots=True)
class EmbeddingOutcome:
    """`vectors` by content hash. `error`: why some of the texts have none; None if all have one."""

    vectors: VectorByContentHash
    error: EmbeddingUnavailable | None = None

    @property
    def error_text(self) -> str:
        """The error as text, "" for none."""
        return str(self.error) if self.error else ""


async def embed_with_cache(
    embedder: Embedder, cache: VectorCache, texts: Iterable[str], known: Mapping[ContentHash, Vector] | None = None
) -> EmbeddingOutcome:
    """Vectors of `texts`: from `known`, else from the cache, else from the model, which gets each missing text once, in
    one batch and in the order of `texts`.

    Does not write to the cache: that is for the transaction which stores the text. While the model is unavailable, the
    answer holds the vectors that are known or cached, and the error.
    """
    by_hash = {content_hash(text): text for text in texts}
    vectors = {hash_: vector for hash_, vector in (known or {}).items() if hash_ in by_hash}
    vectors |= await cache.cached_vectors_by_hash(
        embedder.model_name, [hash_ for hash_ in by_hash if hash_ not in vectors]
    )
    missing = [hash_ for hash_ in by_hash if hash_ not in vectors]
    if not missing:
        return EmbeddingOutcome(vectors)
    try:
        rows = await embedder.embed([by_hash[hash_] for hash_ in missing])
    except EmbeddingUnavailable as error:
        return EmbeddingOutcome(vectors, error)
    return EmbeddingOutcome(vectors | dict(zip(missing, rows, strict=True)))


async def cached_vectors_of_any_precision(
    cache: VectorCache, model: EmbeddingModelName, hashes: Sequence[ContentHash]
) -> VectorByContentHash:
    """Cached vectors of the model, else of the same model in another precision: to search and to compare by until the
    model has embedded the text, not to be kept as its own."""
    vectors: VectorByContentHash = {}
    for precision in model_name_in_both_precisions(model):
        if missing := [hash_ for hash_ in hashes if hash_ not in vectors]:
            vectors |= await cache.cached_vectors_by_hash(precision, missing)
    return vectors
