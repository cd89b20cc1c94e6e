"""What a step's working copy reads, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from madeleine.memory.model import Cluster, ClusterId, RunId
from madeleine.patrol.unit_of_work import UnitOfWork
from tests.doubles import ADA, NOW, FakeWordStatistics, a_memory
from tests.fakes.patrol_ledger import FakePatrolTransaction
from tests.unit.patrol.step_fixtures import MODEL, StepStore, axis, lean


class CountingTransaction(FakePatrolTransaction):
    """Remembers which clusters were asked for."""

    asked: Sequence[ClusterId] | None = ()

    async def clusters(self, ids: Sequence[ClusterId] | None = None) -> list[Cluster]:
        self.asked = None if ids is None or self.asked is None else [*self.asked, *ids]
        return await super().clusters(ids)


@pytest.fixture
def store() -> StepStore:
    return StepStore()


def begun(store: StepStore) -> tuple[UnitOfWork, CountingTransaction]:
    transaction = CountingTransaction(ADA, store.ledger.state, store.ledger.cached)
    return UnitOfWork(ADA, transaction, FakeWordStatistics(), MODEL, run=RunId("run"), now=NOW), transaction


async def test_a_cluster_that_is_recomputed_is_read_alone(store: StepStore) -> None:
    """Beside 3,000 clusters each decision read them all, with the writer held: 128 ms."""
    one = store.cluster("One", lean(0.5))
    store.cluster("Two", axis(1))
    store.put(a_memory("of one"), axis(2), one)
    work, transaction = begun(store)
    await work.recompute_cluster_vectors([one.id])
    assert transaction.asked == [one.id]
    [changed] = work.collect_changes().clusters
    assert changed.vector is not None
    assert changed.vector.tolist() == axis(2).tolist()


async def test_a_cluster_read_after_a_memory_was_moved_counts_it_where_it_is(store: StepStore) -> None:
    one, two = store.cluster("One", axis(0)), store.cluster("Two", axis(1))
    moved = store.put(a_memory("moved"), axis(0), one)
    store.put(a_memory("stays"), axis(0), one)
    work, _ = begun(store)
    [subject] = await work.load_memory_states([moved.id])
    work.put_memory_state(replace(subject, cluster_id=two.id))
    await work.load_clusters([one.id])
    await work.load_clusters()
    assert (work.active_status_member_count(one.id), work.active_status_member_count(two.id)) == (1, 1)


async def test_a_cluster_that_was_removed_is_not_read_again(store: StepStore) -> None:
    one = store.cluster("One", axis(0))
    work, _ = begun(store)
    await work.load_clusters([one.id])
    del work.clusters[one.id]
    await work.recompute_cluster_vectors([one.id])
    await work.load_clusters()
    assert one.id not in work.clusters
    assert work.collect_changes().removed_clusters == (one.id,)
