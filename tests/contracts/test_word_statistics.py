"""What every source of word statistics must do; the embedded index and the fake do it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from madeleine.memory.index import WordIdfSource
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from tests.contracts.index_points import ADA, BOB, FINGERPRINT, point
from tests.doubles import FakeWordStatistics

KNOWN = ["harbor", "violin", "orchard"]
ABSENT = "counterrevolutionaries"
"""A word of no memory; longer than the known ones, by which the fake goes."""


class WordStatisticsContract:
    """A fixture `statistics` gives those of a being whose memories hold the words of `KNOWN`."""

    async def test_each_word_has_its_value_in_the_order_of_the_words(self, statistics: WordIdfSource) -> None:
        values = await statistics.idf(ADA, KNOWN)
        assert len(values) == len(KNOWN)
        assert min(values) >= 0
        assert await statistics.idf(ADA, KNOWN[::-1]) == values[::-1]
        assert [(await statistics.idf(ADA, [word]))[0] for word in KNOWN] == values

    async def test_a_word_of_no_memory_has_the_greatest_value(self, statistics: WordIdfSource) -> None:
        *known, absent = await statistics.idf(ADA, [*KNOWN, ABSENT])
        assert absent > max(known)

    async def test_no_words_have_no_values(self, statistics: WordIdfSource) -> None:
        assert await statistics.idf(ADA, []) == []

    async def test_a_being_without_memories_has_values_too(self, statistics: WordIdfSource) -> None:
        assert len(await statistics.idf(BOB, KNOWN)) == len(KNOWN)


class TestEdgeIndex(WordStatisticsContract):
    @pytest.fixture
    async def statistics(self, tmp_path: Path) -> AsyncIterator[EmbeddedQdrantIndex]:
        index = await EmbeddedQdrantIndex.open(tmp_path / "index", FINGERPRINT)
        await index.upsert([point(number, " ".join(KNOWN[:number])) for number in (1, 2, 3)])
        yield index
        await index.close()


class TestFakeWordStatistics(WordStatisticsContract):
    @pytest.fixture
    def statistics(self) -> FakeWordStatistics:
        return FakeWordStatistics()
