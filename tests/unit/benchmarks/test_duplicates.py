"""spec T6: repeated facts are recognised and changed facts kept apart, with the real model."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from benchmarks.duplicates import hand_written
from benchmarks.duplicates.made_up import run
from benchmarks.made_up_sentences import CHANGES, sentences
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory_store


@pytest.mark.parametrize("pairs", [40, pytest.param(300, marks=pytest.mark.slow)])
async def test_no_changed_fact_is_merged_and_nine_of_ten_paraphrases_are_recognised(tmp_path: Path, pairs: int) -> None:
    async with open_memory_store(Settings(data_dir=tmp_path), background=False) as memory:
        near, paraphrased, _ = await run(memory.use_cases.store, pairs, seed=7)
    assert near.missed == []
    assert near.reinforced == 0
    assert paraphrased.reinforced + paraphrased.linked >= 0.9 * pairs, paraphrased.missed


@pytest.mark.parametrize(
    "language",
    [pytest.param(code, marks=pytest.mark.slow) for code in hand_written.languages()],
)
async def test_no_changed_fact_of_a_language_is_taken_for_one_told_again(tmp_path: Path, language: str) -> None:
    """Ruling 13: another order, role, opposite or value; and another case, day, lesson or feeling is the same fact."""
    async with open_memory_store(Settings(data_dir=tmp_path), background=False) as memory:
        counts = await hand_written.run(memory.use_cases.store, language)
    groups = hand_written.sums(counts, lambda _, kind, __: hand_written.group_of(kind))
    assert (groups["changed"]["told"], groups["changed"]["reinforced"]) == (106, 0)
    assert groups["told again"]["reinforced"] >= 0.98 * groups["told again"]["told"]


def test_the_sentences_are_reproducible_and_varied() -> None:
    first, again = ([sentence.text() for sentence in itertools.islice(sentences(1), 500)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 500
    topics = {sentence.topic[0] for sentence in itertools.islice(sentences(1), 500)}
    assert len(topics) > 90
    assert len(CHANGES) == 4
