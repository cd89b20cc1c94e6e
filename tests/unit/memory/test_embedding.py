"""Vectors of texts from the cache and from the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from madeleine.memory.embedding import embed_with_cache
from madeleine.memory.model import ContentHash, EmbeddingModelName, Vector, content_hash
from tests.doubles import WordEmbedder


class Cache:
    def __init__(self, **vectors: Vector) -> None:
        self.by_hash = {content_hash(text): vector for text, vector in vectors.items()}

    async def cached_vectors_by_hash(
        self, model: EmbeddingModelName, hashes: Sequence[ContentHash]
    ) -> dict[ContentHash, Vector]:
        return {hash_: self.by_hash[hash_] for hash_ in hashes if hash_ in self.by_hash}


VECTOR = np.ones(4, np.float32)


async def test_missing_texts_are_embedded_once_each_in_one_batch() -> None:
    embedder = WordEmbedder()
    embedded = await embed_with_cache(embedder, Cache(b=VECTOR), ["c", "a", "b", "c", "a"])
    assert embedder.batches == [["c", "a"]]
    assert set(embedded.vectors) == {content_hash(text) for text in "abc"}
    assert embedded.error is None
    assert embedded.error_text == ""


async def test_known_vectors_win_and_foreign_ones_are_left_out() -> None:
    embedder = WordEmbedder()
    known = {content_hash("a"): VECTOR, content_hash("x"): VECTOR}
    embedded = await embed_with_cache(embedder, Cache(), ["a"], known)
    assert embedder.batches == []
    assert list(embedded.vectors) == [content_hash("a")]


async def test_an_unavailable_model_leaves_what_is_cached_and_the_reason() -> None:
    embedder = WordEmbedder()
    embedder.available = False
    embedded = await embed_with_cache(embedder, Cache(a=VECTOR), ["a", "b"])
    assert list(embedded.vectors) == [content_hash("a")]
    assert "told to be away" in embedded.error_text
