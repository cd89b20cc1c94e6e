"""What the use cases need of the world: a narrow protocol for each need. Adapters in `storage` and `inference`.

All methods are scoped: an adapter never returns or changes another being's rows, whatever ids it is given;
an id of another being is treated like one that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.candidates import CandidatePool, CandidateQuery, IndexPoint, PendingVector
from madeleine.memory.language import Answer, Prompt, Rejected, Spent
from madeleine.memory.model import MemoryId, ModelName, Scope, Status, Vector


class Embedder(Protocol):
    """Text to vectors, and to tokens. One call is one batch; work is done in a worker thread."""

    @property
    def model(self) -> ModelName: ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32, (n, dim), unit rows, in the order of `texts`. Raises `EmbeddingUnavailable`."""
        ...

    def coverage(self, text: str) -> float:
        """Share in [0, 1] of the letters of `text` in scripts that the model knows; 1 for a text without letters."""
        ...

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text by the model's own tokenizer; an upper estimate while the model cannot be had."""
        ...


class Index(Protocol):
    """The derived index. It may be thrown away at any time. `upsert` is idempotent and visible to the next query."""

    async def upsert(self, points: Sequence[IndexPoint]) -> None: ...

    async def delete(self, ids: Sequence[MemoryId]) -> None: ...

    async def candidates(self, scope: Scope, query: CandidateQuery, vector: PendingVector) -> CandidatePool: ...

    async def nearest(
        self, scope: Scope, vector: Vector, *, limit: int, statuses: Sequence[Status]
    ) -> list[tuple[MemoryId, float]]:
        """(id, cosine), nearest first."""
        ...

    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]:
        """BM25's IDF of each word over the being's memories; 0 for stop words; the greatest for words that none has."""
        ...

    async def count(self) -> int: ...

    async def scrub(self) -> None:
        """Returns when nothing of what was deleted or replaced before the call is left in the index's own files.
        Queries and upserts go on meanwhile. Raises `IndexUnavailable`; it can be tried again."""
        ...

    async def flush(self) -> None:
        """Returns when all upserts are on disk."""
        ...

    async def optimize(self) -> bool:
        """Build what makes search fast (HNSW). Queries and upserts go on meanwhile. True if anything was done."""
        ...

    async def close(self) -> None: ...


class WordStatistics(Protocol):
    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]: ...


class RandomSource(Protocol):
    """`random.Random` is one."""

    def randrange(self, stop: int, /) -> int:
        """Uniform in [0, stop)."""
        ...


class LanguageModel(Protocol):
    """Safe for use by several tasks. Retries, backoff and timeouts are its own."""

    async def ask(self, prompt: Prompt, schema: type[Answer], on_spent: Callable[[Spent], None]) -> Answer | Rejected:
        """One answer that fits the schema, or why it does not. `on_spent` is called for every call that cost tokens,
        also where the answer is invalid. Raises `LanguageModelUnavailable`, `UnusableAnswer`; never quotes the key."""
        ...
