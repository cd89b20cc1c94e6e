"""Stores of made-up memories with made-up vectors in topical groups, written straight into the ledger."""

from __future__ import annotations

import asyncio
import random
import re
import uuid
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.made_up_scenes import texts
from madeleine.inference import PACKAGED_MODEL_NAME
from madeleine.inference.default_model import engines
from madeleine.inference.dense import DenseEmbedder
from madeleine.memory.ingest.ports import StoreBatch
from madeleine.memory.model import (
    BeingId,
    Cluster,
    ClusterId,
    ContentHash,
    EmbeddingModelName,
    Memory,
    MemoryId,
    Provenance,
    RunId,
    Scene,
    Scope,
    Vector,
)
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.memory.rules.dynamics.clustering import unit_mean_vector
from madeleine.memory.vector_space import VectorSpace
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.data_directory import LEDGER_FILE
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from madeleine.storage.sql.ledger import open_ledger

SCOPE = Scope(BeingId("patrolled"), "benchmark")
MODEL = EmbeddingModelName(PACKAGED_MODEL_NAME)
STARTED = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLUSTER = 8
"""Memories in a cluster; ❻ would split one of 11."""
NEW, TO_CLUSTERS, NEW_GROUP = 200, 150, 5
"""Of the new memories, `TO_CLUSTERS` belong to known clusters, three to each; the others form groups on new topics."""
SCATTER_IN_LANDMARK_DISTANCES = 0.05
"""Standard deviation, on each axis, of a vector about its topic: mutual cosine about 0.5, to the mean above 0.6."""
IMPORTANCE, FADES = 0.5, 70
"""0.5 × exp(−70 / 30) ≤ 0.05"""
WRITTEN_AT_ONCE = 5_000
_TOPIC = re.compile(r"topic(\d+)")


@cache
def topic_vector(topic: int) -> NDArray[np.float32]:
    return unit(np.random.default_rng(topic).standard_normal(engines.DIMENSION))


def cluster_vector(text: str) -> Vector:
    """A unit vector near that of the topic the text names; a random one if it names none."""
    noise = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(engines.DIMENSION)
    topic = _TOPIC.search(text)
    return unit(topic_vector(int(topic[1])) + SCATTER_IN_LANDMARK_DISTANCES * noise if topic else noise)


def unit(values: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(values / np.linalg.norm(values), np.float32)


def memory_of(
    text: str, topic: int, *, at: datetime, cluster: ClusterId | None = None, session_count: int = 0
) -> Memory:
    """A memory; fresh unless it has a cluster."""
    return Memory(
        id=MemoryId(str(uuid.uuid4())),
        being_id=SCOPE.being_id,
        scene=Scene(action=f"topic{topic} {text}", when=(at.date().isoformat(),)),
        provenance=Provenance(tool="benchmark", session_id=f"{at.date()}"),
        created_at=at,
        happened_at=at,
        importance=IMPORTANCE,
        fresh=cluster is None,
        cluster_id=cluster,
        session_count=session_count,
    )


def batch_of(memories: Sequence[Memory]) -> StoreBatch:
    vectors = {memory.content_hash: cluster_vector(memory.embedded_text) for memory in memories}
    return StoreBatch(new=tuple(memories), model=MODEL, vectors=vectors)


class MadeUpEmbedder:
    """A `LazyEmbedder` with made-up vectors. A real model, if given, embeds the texts without a topic."""

    def __init__(self, real: DenseEmbedder | None = None) -> None:
        self._real = real

    @property
    def model_name(self) -> EmbeddingModelName:
        return MODEL

    @property
    def vector_space(self) -> VectorSpace:
        return VectorSpace.create_without_languages()

    async def dimension(self) -> int:
        return engines.DIMENSION

    async def warm_up(self) -> None:
        if self._real:
            await self._real.warm_up()

    async def close(self) -> None:
        if self._real:
            await self._real.close()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._real and not any(_TOPIC.search(text) for text in texts):
            return await self._real.embed(texts)
        return np.stack([cluster_vector(text) for text in texts])

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) // 4 for text in texts]


async def fill(data_dir: Path, count: int, *, idle_nights: int = 1) -> None:
    """Write `count` memories in clusters of `CLUSTER`, last activated up to `idle_nights` patrols ago."""
    await asyncio.to_thread(data_dir.mkdir, mode=0o700, parents=True)
    sentences = list(texts(count, seed=count))
    roots = [_root(name) for name in ("Business", "Private")]
    async with open_ledger(data_dir / LEDGER_FILE) as ledger:
        written: list[Memory] = []
        clusters: list[Cluster] = [*roots]
        vectors: dict[ContentHash, Vector] = {}
        for start in range(0, count, CLUSTER):
            topic = start // CLUSTER
            id_ = ClusterId(str(uuid.uuid4()))
            members = [
                memory_of(
                    text,
                    topic,
                    at=STARTED - timedelta(days=(start + i) % 400 + 1),
                    cluster=id_,
                    session_count=(start + i) % idle_nights,
                )
                for i, text in enumerate(sentences[start : start + CLUSTER])
            ]
            batch = batch_of(members)
            written += batch.new
            vectors |= batch.vectors
            clusters.append(
                Cluster(
                    id=id_,
                    being_id=SCOPE.being_id,
                    name=f"topic{topic}",
                    parent_id=roots[topic % 2].id,
                    vector=unit_mean_vector(np.stack(list(batch.vectors.values()))),
                    model=MODEL,
                )
            )
            if len(written) >= WRITTEN_AT_ONCE or start + CLUSTER >= count:
                await ledger.memories.commit_store_batch(
                    SCOPE, StoreBatch(new=tuple(written), model=MODEL, vectors=vectors)
                )
                written, vectors = [], {}
        async with ledger.patrols.patrol_transaction(SCOPE) as transaction:
            await transaction.apply_changes(PatrolChanges(clusters=tuple(clusters)), run=RunId("fill"), step="fill")


def _root(name: str) -> Cluster:
    id_ = ClusterId(str(uuid.uuid4()))
    return Cluster(id=id_, being_id=SCOPE.being_id, name=name, parent_id=id_, is_root=True)


def new_memories(clustered: int, *, night: int) -> list[Memory]:
    """`NEW` memories for the next patrol, in fixed shares for known and new topics, whatever the size of the store."""
    rng = random.Random(night)
    known_topics = rng.sample(range(clustered // CLUSTER), TO_CLUSTERS // 3)
    topics = [topic for topic in known_topics for _ in range(3)]
    fresh = (NEW - TO_CLUSTERS) // NEW_GROUP
    topics += [10_000_000 + night * fresh + group for group in range(fresh) for _ in range(NEW_GROUP)]
    sentences = texts(NEW, seed=1_000 + night)
    return [memory_of(text, topic, at=STARTED) for text, topic in zip(sentences, topics, strict=True)]


@asynccontextmanager
async def open_store(
    data_dir: Path, count: int, *, idle_nights: int = 1, real: DenseEmbedder | None = None, background: bool = False
) -> AsyncIterator[OpenedMemoryStore]:
    await fill(data_dir, count, idle_nights=idle_nights)
    settings = Settings(data_dir=data_dir, being=SCOPE.being_id)
    async with open_memory_store(settings, embedder=MadeUpEmbedder(real), background=background) as memory:
        await memory.embedder.warm_up()
        if real:
            await memory.index.optimize_if_worthwhile()
        yield memory
