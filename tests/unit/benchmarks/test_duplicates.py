"""spec T6: what is told again is known again, and what is told otherwise is kept apart; with the real model."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from benchmarks.duplicates import run
from benchmarks.told import KINDS, sentences
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import open_memory


@pytest.mark.parametrize("pairs", [40, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_no_other_fact_is_merged_and_nine_of_ten_tellings_are_known_again(tmp_path: Path, pairs: int) -> None:
    async with open_memory(Settings(data_dir=tmp_path), background=False) as memory:
        near, again, _ = await run(memory.use.store, pairs, seed=7)
    assert near.missed == []
    assert near.reinforced == 0
    assert again.reinforced + again.linked >= 0.9 * pairs, again.missed


def test_the_sentences_are_the_same_each_time_and_many_sorts_of_them() -> None:
    first, again = ([one.plainly() for one in itertools.islice(sentences(1), 500)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 500
    topics = {one.topic[0] for one in itertools.islice(sentences(1), 500)}
    assert len(topics) > 90
    assert len(KINDS) == 4
