"""spec P4, L2, L4, ruling 8: what the index is told of a memory."""

from __future__ import annotations

import numpy as np
import pytest

from madeleine.memory.ingest.index_keeper import index_points_from_memories
from madeleine.memory.rules.prompting import render_memory_line
from madeleine.memory.vector_space import VectorSpace
from tests.doubles import WordEmbedder, a_memory


@pytest.mark.parametrize("legible", [True, False])
async def test_a_text_that_the_model_cannot_read_has_words_and_no_vector(legible: bool) -> None:
    """rulings 8 and 16: such a vector lies close to everything."""
    action = "We like sushi in the rain"
    embedder, memory = WordEmbedder(), a_memory(action)
    embedder.vector_space = VectorSpace(np.zeros((1, embedder.dim), np.float32), np.array([legible], np.float32))
    cached = embedder.vector(action)
    [point] = await index_points_from_memories([memory], {memory.content_hash: cached}, embedder)
    assert point.memory == memory
    assert action in point.words
    assert (point.vector is not None) is legible
    if point.vector is not None:
        assert np.array_equal(point.vector, cached)


async def test_each_memory_has_its_own_vector_and_none_before_it_is_embedded() -> None:
    """spec T5"""
    embedder = WordEmbedder()
    one, waiting, other = a_memory("Played the violin"), a_memory("Lit a lantern"), a_memory("Ate saffron")
    vectors = {memory.content_hash: embedder.vector(memory.embedded_text) for memory in (other, one)}
    points = await index_points_from_memories([one, waiting, other], vectors, embedder)
    assert [point.memory for point in points] == [one, waiting, other]
    assert [point.vector is vectors.get(point.memory.content_hash) for point in points] == [True] * 3
    assert points[1].vector is None


async def test_tokens_are_those_of_the_line_in_a_prompt_and_of_what_else_a_recall_may_say() -> None:
    """spec L2, L4: a budget is spent on what is said of a memory, not on what is embedded or searched."""
    fact = a_memory("The lantern hangs in the old orchard", when=("2026-02-27",), setting="garden", category="semantic")
    felt = a_memory("Lit a lantern", when=("2026-02-27",), feeling="calm and glad", lesson="bring matches")
    points = await index_points_from_memories([fact, felt], {}, WordEmbedder())
    assert render_memory_line(felt) == "[EPISODIC] 2026-02-27: Lit a lantern"
    assert [point.tokens for point in points] == [8 + 3, 7 + 3 + 2]
