"""A ledger and an index at home in a directory, and recall over them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from madeleine.memory.embedding import Embedder
from madeleine.memory.index import RecallIndex
from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.ingest.ports import StoreBatch
from madeleine.memory.language_model import ModelCostRecorder
from madeleine.memory.model import Memory, MemoryId
from madeleine.memory.recall.config import RecallConfig
from madeleine.memory.recall.ports import Reranker
from madeleine.memory.recall.recall import RecallMemories, RecallResult
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.qdrant.schema import IndexFingerprint
from tests.doubles import ADA, Clock, FakeActivationLog, WordEmbedder
from tests.fakes.ledger import InMemoryLedger

DIM = 1024
"""So many that no two words here share a bucket: texts without a common word are at cosine 0."""


@dataclass
class Home:
    ledger: InMemoryLedger
    index: EmbeddedQdrantIndex
    embedder: WordEmbedder
    activations: FakeActivationLog = field(default_factory=FakeActivationLog)

    async def put(self, *memories: Memory) -> None:
        """Into the ledger and the index."""
        vectors = {memory.content_hash: self.embedder.vector(memory.embedded_text) for memory in memories}
        await self.ledger.memories.commit_store_batch(
            ADA, StoreBatch(new=memories, model=self.embedder.model_name, vectors=vectors)
        )
        await IndexKeeper(self.ledger.index_source, self.index, self.embedder).index_marked_memories()

    def recall(
        self,
        index: RecallIndex | None = None,
        embedder: Embedder | None = None,
        *,
        config: RecallConfig | None = None,
        reranker: Reranker | None = None,
        costs: ModelCostRecorder | None = None,
    ) -> RecallMemories:
        return RecallMemories(
            self.ledger.recall,
            index or self.index,
            embedder or self.embedder,
            self.activations,
            now=Clock(),
            config=config or RecallConfig(),
            reranker=reranker,
            costs=costs,
        )


@asynccontextmanager
async def opened(directory: Path, embedder: WordEmbedder) -> AsyncIterator[Home]:
    index = await EmbeddedQdrantIndex.open(directory / "index", IndexFingerprint(embedder.model_name, embedder.dim))
    yield Home(InMemoryLedger(), index, embedder)
    await index.close()


def ids(found: RecallResult | Sequence[Memory]) -> list[MemoryId]:
    return [memory.id for memory in ([m for m, _ in found.memories] if isinstance(found, RecallResult) else found)]
