"""spec L1, step 4: the mean of a being's memories, at the cost of what is new."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from madeleine.memory.ingest import being_statistics
from madeleine.memory.ingest.being_statistics import BeingCentroids
from madeleine.memory.model import EmbeddingModelName, Scope, Vector
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.storage.sql.ledger import LedgerRepositories
from tests.contracts.ledger.ledger_values import apply_changes, states
from tests.doubles import ADA, BOB, unit
from tests.household import Household


@dataclass
class Watched:
    """A source of changes that notes how much was read."""

    ledger: LedgerRepositories
    read: list[int] = field(default_factory=list)

    async def last_audit_number_and_whether_changed(self, scope: Scope, *, after: int) -> tuple[int, bool]:
        return await self.ledger.recall.last_audit_number_and_whether_changed(scope, after=after)

    async def memory_sequence_numbers_and_vectors_after(
        self, scope: Scope, model: EmbeddingModelName, *, after: int, limit: int
    ) -> list[tuple[int, Vector | None]]:
        found = await self.ledger.recall.memory_sequence_numbers_and_vectors_after(
            scope, model, after=after, limit=limit
        )
        self.read.append(len(found))
        return found


def mean(home: Household, *texts: str) -> Vector:
    return unit(np.sum([home.embedder.vector(text) for text in texts], axis=0))


def centroids(home: Household) -> tuple[BeingCentroids, Watched]:
    source = Watched(home.ledger)
    return BeingCentroids(source, home.embedder), source


async def test_without_memories_there_is_none(home: Household) -> None:
    await home.store("somebody else's", scope=BOB)
    assert await centroids(home)[0].centroid(ADA) is None


async def test_it_is_the_mean_of_the_being_s_own_vectors(home: Household) -> None:
    await home.store("a red boat", "the green house")
    await home.store("a wolf in the snow", scope=BOB)
    center = await centroids(home)[0].centroid(ADA)
    assert center == pytest.approx(mean(home, "a red boat", "the green house"))


async def test_only_what_is_new_is_read_again(home: Household) -> None:
    mine, source = centroids(home)
    await home.store("a red boat", "the green house")
    await mine.centroid(ADA)
    await home.store("snow")
    center = await mine.centroid(ADA)
    assert center == pytest.approx(mean(home, "a red boat", "the green house", "snow"))
    await mine.centroid(ADA)
    assert [count for count in source.read if count] == [2, 1]


async def test_three_that_ask_at_once_read_everything_once(home: Household) -> None:
    mine, source = centroids(home)
    await home.store("a red boat", "the green house")
    results = await asyncio.gather(*(mine.centroid(ADA) for _ in range(3)))
    assert [count for count in source.read if count] == [2]
    assert all(one == pytest.approx(mean(home, "a red boat", "the green house")) for one in results)


async def test_it_is_read_in_pages(home: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(being_statistics, "CENTROID_VECTORS_PER_PAGE", 2)
    mine, source = centroids(home)
    texts = ("boat", "house", "snow", "wolf", "lamp")
    await home.store(*texts)
    assert await mine.centroid(ADA) == pytest.approx(mean(home, *texts))
    assert source.read == [2, 2, 1, 0]


async def test_it_is_right_again_after_each_kind_of_change(home: Household) -> None:
    mine, _ = centroids(home)
    boat, house, snow, _ = await home.store("boat", "house", "snow", "wolf")
    await mine.centroid(ADA)
    await home.ledger.erasure.forget(ADA, [boat.id], at=home.clock())
    assert await mine.centroid(ADA) == pytest.approx(mean(home, "house", "snow", "wolf"))
    await home.correct(house.id, text="lamp")
    assert await mine.centroid(ADA) == pytest.approx(mean(home, "lamp", "snow", "wolf"))
    died = replace((await states(home.ledger))[snow.id], status="dead")
    await apply_changes(home.ledger, PatrolChanges(states=(died,)))
    await home.run_patrol(steps=["age"])  # what a patrol does is told at its end
    assert await mine.centroid(ADA) == pytest.approx(mean(home, "lamp", "wolf"))
    fresh, _ = centroids(home)
    assert await fresh.centroid(ADA) == pytest.approx(await mine.centroid(ADA))


async def test_two_who_ask_at_once_are_told_the_same_and_count_nothing_twice(home: Household) -> None:
    mine, source = centroids(home)
    await home.store("boat", "house")
    await mine.centroid(ADA)
    await home.store("snow")
    for found in await asyncio.gather(mine.centroid(ADA), mine.centroid(ADA)):
        assert found == pytest.approx(mean(home, "boat", "house", "snow"))
    assert await mine.centroid(ADA) == pytest.approx(mean(home, "boat", "house", "snow"))
    assert [count for count in source.read if count] == [2, 1], "the second goes on from what the first has read"


async def test_another_being_s_changes_cost_nothing(home: Household) -> None:
    mine, source = centroids(home)
    await home.store("boat")
    [other] = await home.store("house", scope=BOB)
    await mine.centroid(ADA)
    await home.ledger.erasure.forget(BOB, [other.id], at=home.clock())
    await mine.centroid(ADA)
    assert [count for count in source.read if count] == [1]


async def test_one_that_is_embedded_later_is_counted_then(home: Household) -> None:
    mine, _ = centroids(home)
    await home.store("boat")
    home.embedder.available = False
    [late] = await home.store("house")
    home.embedder.available = True
    await home.store("snow")
    assert await mine.centroid(ADA) == pytest.approx(mean(home, "boat", "snow"))
    await home.ledger.patrols.cache_vectors(
        home.embedder.model_name, {late.content_hash: home.embedder.vector("house")}
    )
    assert await mine.centroid(ADA) == pytest.approx(mean(home, "boat", "house", "snow"))


async def test_sums_of_the_longest_unused_are_let_go(home: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(being_statistics, "MAX_CACHED_CENTROID_SUMS", 1)
    mine, source = centroids(home)
    await home.store("boat")
    await home.store("house", scope=BOB)
    for scope in (ADA, BOB, ADA):
        assert await mine.centroid(scope) is not None
    assert [count for count in source.read if count] == [1, 1, 1]
