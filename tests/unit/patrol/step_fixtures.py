"""Units of work over dictionaries, for the tests of the steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import Cluster, EmbeddingModelName, Memory, Note, RunId, Vector
from madeleine.memory.rules.dynamics.clustering import RootClusterName
from madeleine.patrol.unit_of_work import PreparedStepInputs, UnitOfWork
from tests.doubles import ADA, NOW, FakeWordStatistics, at_cosine
from tests.fakes.patrol_ledger import FakePatrolLedger, FakePatrolTransaction

DIM = 8
MODEL = EmbeddingModelName("words")


def lean(cosine: float, axis: int = 1) -> Vector:
    """At that cosine to the first axis."""
    return at_cosine(cosine, DIM, axis)


def axis(number: int) -> Vector:
    return np.asarray(np.eye(DIM, dtype=np.float32)[number])


BUSINESS, PRIVATE = axis(6), axis(7)
PROTOTYPES: Mapping[RootClusterName, NDArray[np.float32]] = {
    "Business": np.stack([BUSINESS] * 3), "Private": np.stack([PRIVATE] * 3)
}  # fmt: skip


class StepStore:
    """A ledger with both roots, and a way to run a step over it and see what it wrote."""

    def __init__(self) -> None:
        self.ledger = FakePatrolLedger()
        self.business = self.ledger.put_cluster("Business")
        self.private = self.ledger.put_cluster("Private")

    def cluster(
        self, name: str, vector: Vector | None = None, parent: Cluster | None = None, *, decided: bool = True
    ) -> Cluster:
        """`decided`: a mind has made it, or has left it as it is (❻)."""
        cluster = self.ledger.put_cluster(name, parent or self.private, vector)
        if decided:
            self.ledger.state.declined[f"split:{cluster.id}"] = 0
        return cluster

    def put(self, memory: Memory, vector: Vector | None = None, cluster: Cluster | None = None) -> Memory:
        return self.ledger.put(replace(memory, cluster_id=cluster.id if cluster else None), vector)

    def now(self, memory: Memory) -> Memory:
        return self.ledger.memory(memory)

    def home(self, memory: Memory) -> str:
        """The name of the cluster it is in now, "" for none."""
        id_ = self.now(memory).cluster_id
        return self.ledger.state.clusters[id_].name if id_ else ""

    def names(self) -> set[str]:
        return {cluster.name for cluster in self.ledger.state.clusters.values()}

    def transaction(self) -> FakePatrolTransaction:
        return FakePatrolTransaction(ADA, self.ledger.state, self.ledger.cached)

    async def begin(
        self,
        memories: tuple[Memory, ...] = (),
        notes: tuple[Note, ...] = (),
        *,
        prototypes: Mapping[RootClusterName, NDArray[np.float32]] = PROTOTYPES,
        now: datetime = NOW,
    ) -> UnitOfWork:
        prepared = PreparedStepInputs(memories, notes, {}, prototypes)
        work = UnitOfWork(
            ADA, self.transaction(), FakeWordStatistics(), MODEL, run=RunId("run"), now=now, prepared=prepared
        )
        await work.load_clusters()
        return work

    async def write(self, work: UnitOfWork) -> None:
        await self.transaction().apply_changes(work.collect_changes(), run=RunId("run"), step="")
