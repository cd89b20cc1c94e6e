"""A memory as a point of the index."""

from __future__ import annotations

from memory.model import Memory, Vector
from memory.ports import Embedder, IndexPoint
from memory.rules.lexicon import memory_words

LEGIBLE = 0.5
"""Share of a text's letters that the model must be able to read for its vector to mean anything."""


def index_point(memory: Memory, vector: Vector | None, embedder: Embedder) -> IndexPoint:
    """Without a vector where the model cannot read the text: such vectors lie close to everything."""
    legible = embedder.coverage(memory.embed_text) >= LEGIBLE
    return IndexPoint(memory=memory, words=memory_words(memory), vector=vector if legible else None)
