"""Memories as points of the index."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.index import IndexPoint
from madeleine.memory.ingest.ports import StoreIndex
from madeleine.memory.model import ContentHash, Memory, Vector
from madeleine.memory.rules.prompting.memory_block import recallable_text
from madeleine.memory.text.terms import memory_words

logger = logging.getLogger(__name__)

MIN_LEGIBLE_SHARE = 0.5
"""Share of a text's letters that the model must be able to read for its vector to mean anything."""


async def index_points(
    memories: Sequence[Memory], vectors: Mapping[ContentHash, Vector], embedder: Embedder
) -> list[IndexPoint]:
    """Without a vector where the model cannot read the text: such vectors lie close to everything."""
    tokens = await embedder.count_tokens([recallable_text(memory) for memory in memories])
    return [
        IndexPoint(
            memory=memory,
            words=memory_words(memory),
            vector=vectors.get(memory.content_hash)
            if embedder.coverage(memory.embed_text) >= MIN_LEGIBLE_SHARE
            else None,
            tokens=count,
        )
        for memory, count in zip(memories, tokens, strict=True)
    ]


async def index_now(index: StoreIndex, points: Sequence[IndexPoint]) -> None:
    """After a commit. Its pending marks stay until the index is on disk; a failure here is made good from them."""
    try:
        await index.upsert(points)
    except IndexUnavailable as error:
        logger.warning("indexing is postponed: %s", error)
