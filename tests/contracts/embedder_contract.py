"""What every embedder must do. An adapter's tests inherit `EmbedderContract` and give it an `embedder`."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pytest

from madeleine.memory.embedding import Embedder


class Model(Embedder, Protocol):
    """One adapter serves both ports: the tokens are the model's own."""


TEXTS = [
    "We shared a bowl of ramen.",
    "The build fails on Windows.",
    "a",
    "A much longer sentence than the others, about a walk by the sea on a cold Sunday, and what was said then.",
    "ラーメンを食べた。",
    "🙂",
    "We shared a bowl of ramen.",
    "1 2 3",
    "ramen\nand\tgyoza",
    *(f"Memory number {i} of a batch that is longer than one run of the model." for i in range(20)),
]


class EmbedderContract:
    async def test_rows_are_unit_vectors_of_float32(self, embedder: Model) -> None:
        rows = await embedder.embed(TEXTS)
        assert rows.dtype == np.float32
        assert rows.ndim == 2
        assert np.linalg.norm(rows, axis=1).tolist() == pytest.approx([1.0] * len(TEXTS), abs=1e-5)

    async def test_rows_stand_in_the_order_of_the_texts(self, embedder: Model) -> None:
        rows = await embedder.embed(TEXTS)
        backwards = await embedder.embed(TEXTS[::-1])
        assert np.allclose(rows, backwards[::-1], atol=1e-5)

    async def test_every_row_has_the_same_dimension(self, embedder: Model) -> None:
        one, many = await embedder.embed(["a"]), await embedder.embed(TEXTS)
        assert one.shape[1] == many.shape[1] > 0
        assert many.shape[0] == len(TEXTS)

    async def test_a_text_has_the_same_vector_alone_and_in_a_batch(self, embedder: Model) -> None:
        rows = await embedder.embed(TEXTS)
        for text, row in list(zip(TEXTS, rows, strict=True))[:10]:
            [alone] = await embedder.embed([text])
            assert np.abs(alone - row).max() < 1e-5

    async def test_the_same_text_always_has_the_same_vector(self, embedder: Model) -> None:
        first, again = await embedder.embed(TEXTS), await embedder.embed(TEXTS)
        assert np.array_equal(first, again)
        assert np.allclose(first[0], first[6], atol=1e-6)

    async def test_no_texts_give_no_rows_of_the_right_width(self, embedder: Model) -> None:
        assert (await embedder.embed([])).shape == (0, (await embedder.embed(["a"])).shape[1])

    @pytest.mark.parametrize("text", ["", " ", "\n"])
    async def test_blank_text_has_a_vector_without_nan(self, embedder: Model, text: str) -> None:
        [row] = await embedder.embed([text])
        assert np.isfinite(row).all()
        assert float(np.linalg.norm(row)) == pytest.approx(1, abs=1e-5)

    async def test_a_long_text_has_a_vector(self, embedder: Model) -> None:
        [row] = await embedder.embed(["We talked about the harbour and the old violin. " * 600])
        assert np.isfinite(row).all()
        assert float(np.linalg.norm(row)) == pytest.approx(1, abs=1e-5)

    async def test_japanese_text_has_a_vector_of_its_own(self, embedder: Model) -> None:
        ramen, tokyo = await embedder.embed(["ラーメンを食べた。", "東京に住んでいる。"])
        assert float(np.linalg.norm(ramen)) == pytest.approx(1, abs=1e-5)
        assert not np.allclose(ramen, tokyo, atol=1e-3)

    async def test_texts_that_are_alike_are_nearer_than_others(self, embedder: Model) -> None:
        one, two, other = await embedder.embed(
            ["We ate hot ramen for dinner.", "For dinner we ate ramen.", "The parser rejects invalid tokens."]
        )
        assert float(one @ two) > float(one @ other) + 0.3

    async def test_legibility_is_a_share_and_centred_vectors_have_length_one(self, embedder: Model) -> None:
        vectors = await embedder.embed(TEXTS)
        assert all(0 <= embedder.vector_space.legibility_of_text_behind_vector(vector) <= 1 for vector in vectors)
        assert np.allclose(np.linalg.norm(embedder.vector_space.centred_by_language(vectors), axis=1), 1, atol=1e-5)

    async def test_tokens_are_counted_text_by_text(self, embedder: Model) -> None:
        counts = await embedder.count_tokens(["", "ramen", "ramen ramen ramen", "word " * 2_000])
        assert counts[0] == 0
        assert 0 < counts[1] < counts[2] < counts[3]
        assert counts[3] >= 2_000
        assert await embedder.count_tokens([]) == []

    async def test_a_model_has_a_name(self, embedder: Model) -> None:
        assert embedder.model_name
