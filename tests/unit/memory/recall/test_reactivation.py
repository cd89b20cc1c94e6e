"""spec P6 ❺, P9 to P11: how much each way of recalling counts for a memory's revival, over the real ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from madeleine.inference.stems import stem_english_word
from madeleine.memory.keyword_search import KeywordQuery
from madeleine.memory.language_model import Prompt
from madeleine.memory.model import Memory
from madeleine.memory.recall.search import BrowseMemories, SearchByTagsFromMessage, SearchStoredTexts
from tests.doubles import ADA
from tests.household import Household, ScriptedModel, household, new_store, shown_memories


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Household]:
    async with household(new_store(tmp_path, tmp_path / "memory.db")) as found:
        yield found


async def counts(home: Household, *memories: Memory) -> list[int]:
    await home.ledger.activations.flush()
    return [(await home.now(one)).reactivation_count for one in memories]


async def dead_and_alive(home: Household) -> tuple[Memory, Memory]:
    """Both in one cluster: the faded one was let go."""
    await home.store("Ann tuned the harp at noon", importance=0.9)
    await home.store("Ben tuned the harp at noon", importance=0.0501)
    await home.run_patrol(steps=["assign", "age", "flag"])

    def let_go(prompt: Prompt) -> object:
        return {
            "merges": [],
            "make_dead": [n for n, line in enumerate(shown_memories(prompt), start=1) if '"dying"' in line],
            "keep": [],
        }

    await home.run_patrol(ScriptedModel(consolidate=let_go), steps=["consolidate"])
    found = {one.status: one for one in await home.all()}
    return found["active"], found["dead"]


async def test_a_cluster_that_is_recalled_counts_one_for_the_living_and_two_for_the_dead(home: Household) -> None:
    """spec P10: "dead nodes by +2 (aggressive revival signal), active nodes by +1"."""
    alive, dead = await dead_and_alive(home)
    assert alive.cluster_id == dead.cluster_id
    assert alive.cluster_id is not None
    browse = BrowseMemories(home.ledger.recall, home.ledger.activations, now=home.clock)
    await browse.memories_of_cluster(ADA, alive.cluster_id, limit=9)
    assert await counts(home, alive, dead) == [1, 2]


async def test_a_cluster_is_listed_with_how_its_active_memories_felt(home: Household) -> None:
    """ruling 21"""
    await dead_and_alive(home)
    browse = BrowseMemories(home.ledger.recall, home.ledger.activations, now=home.clock)
    assert [mood for _, mood in await browse.clusters_with_moods(ADA)] == [None] * len(
        await browse.clusters_with_moods(ADA)
    )
    felt = await home.store("Ann laughed about the harp", emotions=("joy", "amusement"))
    await home.run_patrol(steps=["assign"])
    moods = {cluster.id: mood for cluster, mood in await browse.clusters_with_moods(ADA)}
    cluster_id = (await home.now(felt[0])).cluster_id
    assert cluster_id
    mood = moods[cluster_id]
    assert mood
    assert mood.emotions == ("amusement", "joy")
    assert mood.vector.valence > 0.5


async def test_a_search_hit_counts_one_for_a_living_and_two_for_a_dead_memory(home: Household) -> None:
    """spec P11: "`search_memory` increments active nodes by +1 and dead nodes by +2 for all matching results"."""
    alive, dead = await dead_and_alive(home)
    other, _ = await home.store("Carl slept", "Carl woke")
    search = SearchStoredTexts(
        home.ledger.search,
        home.ledger.activations,
        search_by_tags=SearchByTagsFromMessage(home.ledger.search, stem_english_word),
        now=home.clock,
    )
    await search(ADA, KeywordQuery(terms=("harp",)))
    assert await counts(home, alive, dead, other) == [1, 2, 0]


async def test_a_dead_memory_read_often_enough_is_revived_by_the_next_patrol(home: Household) -> None:
    """spec P6 ❺: "This condition can be satisfied after `reactivation_count` is incremented"."""
    _, dead = await dead_and_alive(home)
    browse = BrowseMemories(home.ledger.recall, home.ledger.activations, now=home.clock)
    await home.run_patrol()
    assert (await home.now(dead)).status == "dead"
    for _ in range(12):  # 0.0501 × exp(−(1 / 25) / 30) = 0.05003
        await browse.by_ids(ADA, [dead.id])
    await home.run_patrol()
    assert (await home.now(dead)).status == "active"
