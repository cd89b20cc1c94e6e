"""How rare words are, looked up once for many texts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.index import NONSENSE_WORD_FOR_MAX_IDF
from madeleine.memory.ingest.being_statistics import WORDS_PER_IDF_QUERY, TextRarityScorer
from madeleine.memory.model import Scope
from tests.doubles import ADA, BOB, FakeWordStatistics


class Asked(FakeWordStatistics):
    """A word is as rare as it is long; notes what it was asked."""

    def __init__(self, absent_term_idf: float) -> None:
        super().__init__()
        self.absent_term_idf = absent_term_idf
        self.questions: list[list[str]] = []

    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]:
        if list(words) != [NONSENSE_WORD_FOR_MAX_IDF]:
            self.questions.append(list(words))
        return [self.absent_term_idf if word == NONSENSE_WORD_FOR_MAX_IDF else value for word, value in zip(
            words, await super().idf(scope, words), strict=True)]  # fmt: skip


async def test_it_is_the_mean_share_of_the_greatest() -> None:
    """(8 + 4) / 2 of 8, and 2 of 8."""
    found = await TextRarityScorer(Asked(8.0)).rarities(ADA, ["a dinosaur eggs", "ox", ""])
    assert found == pytest.approx([0.75, 0.25, 0.0])


async def test_a_word_is_looked_up_once() -> None:
    statistics = Asked(8.0)
    mine = TextRarityScorer(statistics)
    await mine.rarities(ADA, ["wolf snow", "snow"])
    await mine.rarities(ADA, ["snow boat"])
    assert statistics.questions == [["snow", "wolf"], ["boat"]]


async def test_all_are_looked_up_again_for_another_being_and_when_there_is_much_more() -> None:
    statistics = Asked(8.0)
    mine = TextRarityScorer(statistics)
    await mine.rarities(ADA, ["snow"])
    await mine.rarities(BOB, ["snow"])
    statistics.absent_term_idf = 8.1
    await mine.rarities(BOB, ["snow"])
    statistics.absent_term_idf = 8.3
    await mine.rarities(BOB, ["snow"])
    assert statistics.questions == [["snow"]] * 3


async def test_many_words_are_asked_for_some_at_a_time() -> None:
    statistics = Asked(8.0)
    texts = [f"q{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(2 * WORDS_PER_IDF_QUERY + 1)]
    await TextRarityScorer(statistics).rarities(ADA, texts)
    assert [len(question) for question in statistics.questions] == [WORDS_PER_IDF_QUERY, WORDS_PER_IDF_QUERY, 1]


async def test_in_a_small_store_nothing_is_looked_up_and_nothing_is_rare() -> None:
    statistics = Asked(5.0)
    assert await TextRarityScorer(statistics).rarities(ADA, ["snow"]) == [0.0]
    assert statistics.questions == []


async def test_without_an_index_nothing_is_rare() -> None:
    statistics = Asked(8.0)
    statistics.fails_with = IndexUnavailable("it is away")
    assert await TextRarityScorer(statistics).rarities(ADA, ["snow", "boat"]) == [0.0, 0.0]
