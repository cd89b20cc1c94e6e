"""What a step's working copy reads, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from madeleine.memory.model import Cluster, ClusterId, RunId
from madeleine.patrol.unit_of_work import UnitOfWork
from tests.doubles import ADA, FakeWordStatistics, a_memory
from tests.fakes.patrol_ledger import FakePatrolTransaction
from tests.unit.patrol.nights import MODEL, World, axis, lean


class CountingTransaction(FakePatrolTransaction):
    """Remembers which clusters were asked for."""

    asked: Sequence[ClusterId] | None = ()

    async def clusters(self, ids: Sequence[ClusterId] | None = None) -> list[Cluster]:
        self.asked = None if ids is None or self.asked is None else [*self.asked, *ids]
        return await super().clusters(ids)


@pytest.fixture
def world() -> World:
    return World()


def begun(world: World) -> tuple[UnitOfWork, CountingTransaction]:
    transaction = CountingTransaction(ADA, world.ledger.state, world.ledger.cached)
    return UnitOfWork(ADA, transaction, FakeWordStatistics(), MODEL, run=RunId("run")), transaction


async def test_a_cluster_that_is_recomputed_is_read_alone(world: World) -> None:
    """Beside 3,000 clusters each decision read them all, with the writer held: 128 ms."""
    one = world.cluster("One", lean(0.5))
    world.cluster("Two", axis(1))
    world.put(a_memory("of one"), axis(2), one)
    work, transaction = begun(world)
    await work.recompute([one.id])
    assert transaction.asked == [one.id]
    [changed] = work.changes().clusters
    assert changed.vector is not None
    assert changed.vector.tolist() == axis(2).tolist()


async def test_a_cluster_read_after_a_memory_was_moved_counts_it_where_it_is(world: World) -> None:
    one, two = world.cluster("One", axis(0)), world.cluster("Two", axis(1))
    moved = world.put(a_memory("moved"), axis(0), one)
    world.put(a_memory("stays"), axis(0), one)
    work, _ = begun(world)
    [subject] = await work.states([moved.id])
    work.put(replace(subject, cluster_id=two.id))
    await work.read_clusters([one.id])
    await work.read_clusters()
    assert (work.active_count(one.id), work.active_count(two.id)) == (1, 1)


async def test_a_cluster_that_was_removed_is_not_read_again(world: World) -> None:
    one = world.cluster("One", axis(0))
    work, _ = begun(world)
    await work.read_clusters([one.id])
    del work.clusters[one.id]
    await work.recompute([one.id])
    await work.read_clusters()
    assert one.id not in work.clusters
    assert work.changes().removed_clusters == (one.id,)
