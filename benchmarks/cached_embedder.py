"""Several stores of one run share the vectors of equal texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from madeleine.inference.dense import DenseEmbedder
from madeleine.memory.model import EmbeddingModelName
from madeleine.memory.vector_space import VectorSpace


class CachedEmbedder:
    """A `LazyEmbedder` that computes each vector once for all stores. `rows`: vectors that are known, by text; new ones
    are added."""

    def __init__(self, inner: DenseEmbedder, rows: dict[str, NDArray[np.float32]] | None = None) -> None:
        self._inner = inner
        self._rows = {} if rows is None else rows
        self._tokens: dict[str, int] = {}

    @property
    def model_name(self) -> EmbeddingModelName:
        return self._inner.model_name

    @property
    def vector_space(self) -> VectorSpace:
        return self._inner.vector_space

    async def dimension(self) -> int:
        return await self._inner.dimension()

    async def warm_up(self) -> None:
        await self._inner.warm_up()

    async def close(self) -> None:
        """Do nothing: it outlives the stores that close it."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if missing := [text for text in dict.fromkeys(texts) if text not in self._rows]:
            self._rows |= dict(zip(missing, await self._inner.embed(missing), strict=True))
        return np.stack([self._rows[text] for text in texts])

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        if missing := [text for text in dict.fromkeys(texts) if text not in self._tokens]:
            self._tokens |= dict(zip(missing, await self._inner.count_tokens(missing), strict=True))
        return [self._tokens[text] for text in texts]
