"""A patrol's working copy of a being's memory: steps change it, and the difference is written in one transaction."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from memory.model import Cluster, ClusterId, ContentHash, Memory, MemoryId, ModelName, Note, Vector
from memory.ports import PatrolChanges, PatrolTransaction, Subject, WordStatistics
from memory.rules.grouping import mean_vector
from memory.rules.roots import ROOTS, Root
from memory.scope import Scope


@dataclass(frozen=True, slots=True)
class Evening:
    """What was prepared before the transaction, with the model's help: memories from notes, the notes' new states,
    vectors of those memories, and the prototypes of the roots, float32 (k, dim) each; both empty while the model
    cannot be had."""

    memories: tuple[Memory, ...] = ()
    notes: tuple[Note, ...] = ()
    vectors: Mapping[ContentHash, Vector] = field(default_factory=dict)
    prototypes: Mapping[Root, NDArray[np.float32]] = field(default_factory=dict)


class Night:
    """The working copy. Not safe for use by two tasks."""

    def __init__(
        self, scope: Scope, transaction: PatrolTransaction, words: WordStatistics, model: ModelName, evening: Evening
    ) -> None:
        self.scope = scope
        self.words = words
        self.evening = evening
        self.new: tuple[Memory, ...] = ()
        self.notes: tuple[Note, ...] = ()
        self.subjects: dict[MemoryId, Subject] = {}
        self.clusters: dict[ClusterId, Cluster] = {}
        self._transaction = transaction
        self._model = model
        self._vectors: dict[ContentHash, Vector] = dict(evening.vectors)
        self._before: dict[MemoryId, Subject] = {}
        self._clusters_before: dict[ClusterId, Cluster] = {}
        self._members: dict[ClusterId | None, dict[MemoryId, None]] = defaultdict(dict)

    async def read(self) -> None:
        self._before = {subject.id: subject for subject in await self._transaction.subjects()}
        self._clusters_before = {cluster.id: cluster for cluster in await self._transaction.clusters()}
        self.subjects = dict(self._before)
        self.clusters = dict(self._clusters_before)
        for subject in self.subjects.values():
            self._members[subject.cluster_id][subject.id] = None

    # --- memories -----------------------------------------------------------------------------------------------

    def members(self, cluster_id: ClusterId | None) -> list[Subject]:
        """In the order of their arrival, dead ones too."""
        return [self.subjects[id_] for id_ in self._members[cluster_id]]

    def active(self, cluster_id: ClusterId) -> list[Subject]:
        return [subject for subject in self.members(cluster_id) if subject.status == "active"]

    def put(self, subject: Subject) -> None:
        """Add or change a memory."""
        if (old := self.subjects.get(subject.id)) is not None and old.cluster_id != subject.cluster_id:
            self._members[old.cluster_id].pop(subject.id, None)
        self._members[subject.cluster_id][subject.id] = None
        self.subjects[subject.id] = subject

    def move(self, subjects: Iterable[Subject], to: ClusterId) -> None:
        for subject in list(subjects):
            self.put(replace(subject, cluster_id=to))

    async def vectors(self, subjects: Sequence[Subject]) -> dict[MemoryId, Vector]:
        """Of those that have been embedded."""
        unknown = [s.content_hash for s in subjects if s.content_hash not in self._vectors]
        self._vectors |= await self._transaction.vectors(self._model, unknown)
        return {s.id: self._vectors[s.content_hash] for s in subjects if s.content_hash in self._vectors}

    async def whole(self, subjects: Sequence[Subject]) -> list[Memory]:
        new = {memory.id: memory for memory in self.new}
        stored = await self._transaction.memories([s.id for s in subjects if s.id not in new])
        return [*stored, *(new[s.id] for s in subjects if s.id in new)]

    # --- clusters -----------------------------------------------------------------------------------------------

    def root(self, name: Root) -> Cluster:
        """The being's root of that name, made when it is first needed (spec P3)."""
        for cluster in self.clusters.values():
            if cluster.is_root and cluster.name == name:
                return cluster
        id_ = ClusterId(str(uuid.uuid4()))
        root = Cluster(id=id_, being_id=self.scope.being_id, name=name, parent_id=id_, is_root=True)
        self.clusters[id_] = root
        return root

    def roots(self) -> list[Cluster]:
        return [self.root(name) for name in ROOTS]

    def sub_clusters(self) -> list[Cluster]:
        return [cluster for cluster in self.clusters.values() if not cluster.is_root]

    def add_sub_cluster(self, name: str, parent: Cluster) -> Cluster:
        cluster = Cluster(id=ClusterId(str(uuid.uuid4())), being_id=self.scope.being_id, name=name, parent_id=parent.id)
        self.clusters[cluster.id] = cluster
        return cluster

    def remove(self, cluster: Cluster) -> None:
        del self.clusters[cluster.id]

    async def recompute(self, ids: Iterable[ClusterId]) -> None:
        """A cluster's vector is the mean of its active memories' vectors (spec P3). One whose memories are all asleep
        keeps its last one, by which ❼ finds its nearest sibling."""
        for id_ in ids:
            if id_ in self.clusters and (rows := list((await self.vectors(self.active(id_))).values())):
                mean = mean_vector(np.stack(rows))
                if mean is not None:
                    self.clusters[id_] = replace(self.clusters[id_], vector=mean, model=self._model)

    def vector_of(self, cluster: Cluster) -> Vector | None:
        """None also where it was computed with another model (ruling 6)."""
        return cluster.vector if cluster.model == self._model else None

    # --- the difference -----------------------------------------------------------------------------------------

    def changes(self) -> PatrolChanges:
        new = {memory.id: memory for memory in self.new}
        return PatrolChanges(
            new=tuple(_as_new(memory, self.subjects[memory.id]) for memory in self.new),
            notes=self.notes,
            subjects=tuple(
                s
                for s in self.subjects.values()
                if s.id not in new and s is not self._before[s.id] and s != self._before[s.id]
            ),
            clusters=tuple(c for c in self.clusters.values() if c is not self._clusters_before.get(c.id)),
            removed_clusters=tuple(id_ for id_ in self._clusters_before if id_ not in self.clusters),
        )


def subject_of(memory: Memory) -> Subject:
    return Subject(
        id=memory.id,
        content_hash=memory.content_hash,
        importance=memory.importance,
        status=memory.status,
        fresh=memory.fresh,
        pinned=memory.pinned,
        cluster_id=memory.cluster_id,
        absorbed_into=memory.absorbed_into,
        session_count=memory.session_count,
        reactivation_count=memory.reactivation_count,
    )


def _as_new(memory: Memory, subject: Subject) -> Memory:
    return replace(
        memory,
        status=subject.status,
        fresh=subject.fresh,
        cluster_id=subject.cluster_id,
        session_count=subject.session_count,
    )
