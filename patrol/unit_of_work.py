"""A step's working copy of the memory: the step changes it, and the difference is written in one transaction."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.embedding import VectorByContentHash, cached_vectors_of_any_precision
from madeleine.memory.index import WordIdfSource
from madeleine.memory.model import (
    Cluster,
    ClusterId,
    EmbeddingModelName,
    Memory,
    MemoryId,
    Note,
    RunId,
    Scope,
    Vector,
    model_name_in_both_precisions,
)
from madeleine.memory.patrol_records import (
    DecisionRequestId,
    DiaryEntry,
    MemoryFieldsForPatrol,
    PatrolChanges,
    ThoughtsForNextSession,
)
from madeleine.memory.rules.dynamics.clustering import ROOT_CLUSTER_NAMES, RootClusterName, unit_mean_vector
from madeleine.memory.rules.dynamics.truth import Supersession
from madeleine.memory.vector_space import VectorSpace
from madeleine.patrol.ports import PatrolTransaction

CLUSTERS_PER_RECOMPUTE_BATCH = 200
"""Recomputed together: one by one, each costs two queries of milliseconds."""


@dataclass(frozen=True, slots=True)
class PreparedStepInputs:
    """Prepared with a model before the transaction: memories from notes, the notes' new states, vectors of new texts,
    the prototypes of the roots, float32 (k, dim) each, both empty while the embedding model is not available; and the
    roots that a language model has chosen (spec P6 ❶)."""

    memories: tuple[Memory, ...] = ()
    notes: tuple[Note, ...] = ()
    vectors: VectorByContentHash = field(default_factory=dict)
    root_prototypes: Mapping[RootClusterName, NDArray[np.float32]] = field(default_factory=dict)
    chosen_roots: Mapping[MemoryId, RootClusterName] = field(default_factory=dict)


@dataclass(eq=False)
class UnitOfWork:
    """Not safe for use by two tasks. Memories are read when they are asked for, and so is a cluster that is recomputed;
    other clusters, and how many memories each has, by `load_clusters`. `excluded_from_merge`: clusters that ❼ leaves,
    as this run has just made them."""

    scope: Scope
    transaction: PatrolTransaction
    word_idf: WordIdfSource
    embedding_model: EmbeddingModelName
    run: RunId
    now: datetime
    prepared: PreparedStepInputs = PreparedStepInputs()
    space: VectorSpace = field(default_factory=VectorSpace.create_without_languages)
    """Of the embedding model."""
    excluded_from_merge: frozenset[ClusterId] = frozenset()
    clusters: dict[ClusterId, Cluster] = field(default_factory=dict)
    # What is written besides memory states and clusters; each as in `PatrolChanges`.
    new_memories: list[Memory] = field(default_factory=list)
    notes: tuple[Note, ...] = ()
    rewritten_memories: list[Memory] = field(default_factory=list)
    compressed: dict[MemoryId, MemoryId | None] = field(default_factory=dict)
    superseded: list[Supersession] = field(default_factory=list)
    new_vectors: VectorByContentHash = field(default_factory=dict)
    diary: DiaryEntry | None = None
    thoughts: ThoughtsForNextSession | None = None
    decided_request_ids: list[DecisionRequestId] = field(default_factory=list)
    declined: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._states: dict[MemoryId, MemoryFieldsForPatrol] = {}
        self._states_before: dict[MemoryId, MemoryFieldsForPatrol] = {}
        self._vectors: VectorByContentHash = dict(self.prepared.vectors)
        self._clusters_before: dict[ClusterId, Cluster] = {}
        self._members: dict[ClusterId | None, dict[MemoryId, None]] = defaultdict(dict)
        self._clusters_with_members: set[ClusterId] = set()
        self._active: Counter[ClusterId | None] = Counter()
        self._read: set[ClusterId] = set()
        self._has_read_all = False

    # --- memories -----------------------------------------------------------------------------------------------

    def states_as_changed_in_unit(self, states: Iterable[MemoryFieldsForPatrol]) -> list[MemoryFieldsForPatrol]:
        """The memories that were read from the transaction, as they are in this working copy."""
        current = []
        for state in states:
            if state.id not in self._states:
                self._states_before[state.id] = self._states[state.id] = state
                self._members[state.cluster_id][state.id] = None
            current.append(self._states[state.id])
        return current

    async def load_memory_states(self, ids: Sequence[MemoryId]) -> list[MemoryFieldsForPatrol]:
        """Of those that exist."""
        if unread := [id_ for id_ in ids if id_ not in self._states]:
            self.states_as_changed_in_unit(await self.transaction.memory_states(unread))
        return [self._states[id_] for id_ in ids if id_ in self._states]

    async def states_of_cluster_members(self, cluster_id: ClusterId) -> list[MemoryFieldsForPatrol]:
        """In the order of their arrival, dead ones too."""
        await self.preload_cluster_members([cluster_id])
        return [self._states[id_] for id_ in self._members[cluster_id]]

    async def preload_cluster_members(self, ids: Sequence[ClusterId]) -> None:
        """All at once, so that `states_of_cluster_members` reads nothing."""
        if unread := [id_ for id_ in ids if id_ not in self._clusters_with_members]:
            self._clusters_with_members.update(unread)
            self.states_as_changed_in_unit(await self.transaction.states_of_cluster_members(*unread))

    async def load_active_member_vectors_by_cluster_id(self, ids: Sequence[ClusterId]) -> dict[ClusterId, list[Vector]]:
        """Of the clusters' active memories that are true, as far as these have been embedded; all read at once."""
        await self.preload_cluster_members(ids)
        active = {
            id_: [state for state in await self.states_of_cluster_members(id_) if state.is_part_of_cluster_mean]
            for id_ in ids
        }
        vectors = await self.load_memory_vectors([state for states in active.values() for state in states])
        return {id_: [vectors[state.id] for state in states if state.id in vectors] for id_, states in active.items()}

    def active_status_member_count(self, cluster_id: ClusterId) -> int:
        return self._active[cluster_id]

    def put_memory_state(self, state: MemoryFieldsForPatrol) -> None:
        """Change a memory that was read, or add one."""
        before = self._states.get(state.id)
        if before is not None:
            self._active[before.cluster_id] -= before.status == "active"
            if before.cluster_id != state.cluster_id:
                self._members[before.cluster_id].pop(state.id, None)
        self._active[state.cluster_id] += state.status == "active"
        self._members[state.cluster_id][state.id] = None
        self._states[state.id] = state

    def add_memory(self, memory: Memory) -> None:
        self.new_memories.append(memory)
        self.put_memory_state(patrol_fields_from_memory(memory))

    def move_memory_states_to_cluster(self, states: Iterable[MemoryFieldsForPatrol], cluster_id: ClusterId) -> None:
        for state in list(states):
            self.put_memory_state(replace(state, cluster_id=cluster_id))

    async def load_memory_vectors(self, states: Sequence[MemoryFieldsForPatrol]) -> dict[MemoryId, Vector]:
        """Of those that have been embedded."""
        unknown = [state.content_hash for state in states if state.content_hash not in self._vectors]
        self._vectors |= await cached_vectors_of_any_precision(self.transaction, self.embedding_model, unknown)
        return {state.id: self._vectors[state.content_hash] for state in states if state.content_hash in self._vectors}

    async def load_memories(self, states: Sequence[MemoryFieldsForPatrol]) -> list[Memory]:
        new = {memory.id: memory for memory in self.new_memories}
        stored = await self.transaction.memories_with_ids([state.id for state in states if state.id not in new])
        return [*stored, *(new[state.id] for state in states if state.id in new)]

    # --- clusters -----------------------------------------------------------------------------------------------

    async def load_clusters(self, ids: Iterable[ClusterId] | None = None) -> None:
        """Those of `ids`, or all. All take the longer the more there are, and the writer is held meanwhile, so a step
        that knows which ones it needs, or has nothing to do, does without."""
        wanted = None if ids is None else [id_ for id_ in dict.fromkeys(ids) if self._is_cluster_unread(id_)]
        if self._has_read_all or wanted == []:
            return
        clusters = [
            cluster for cluster in await self.transaction.clusters(wanted) if self._is_cluster_unread(cluster.id)
        ]
        counts = await self.transaction.memory_counts_of_each_cluster(wanted)
        counts = [count for count in counts if self._is_cluster_unread(count.cluster_id)]
        self._has_read_all = wanted is None
        self._read.update(wanted if wanted is not None else (cluster.id for cluster in clusters))
        self._clusters_before |= {cluster.id: cluster for cluster in clusters}
        self.clusters |= {cluster.id: cluster for cluster in clusters}
        # What was put until now has been counted; it is not in the tables yet.
        self._active.update({count.cluster_id: count.active for count in counts})

    def _is_cluster_unread(self, id_: ClusterId) -> bool:
        return id_ not in self._read and id_ not in self.clusters

    def root_clusters(self) -> list[Cluster]:
        return [self.get_or_create_root_cluster_by_name(name) for name in ROOT_CLUSTER_NAMES]

    def get_or_create_root_cluster_by_name(self, name: RootClusterName) -> Cluster:
        """The being's root of that name, made when it is first needed (spec P3)."""
        assert self._has_read_all, "it may be there"
        for cluster in self.clusters.values():
            if cluster.is_root and cluster.name == name:
                return cluster
        id_ = ClusterId(str(uuid.uuid4()))
        root = Cluster(id=id_, being_id=self.scope.being_id, name=name, parent_id=id_, is_root=True)
        self.clusters[id_] = root
        return root

    def non_root_clusters(self) -> list[Cluster]:
        return [cluster for cluster in self.clusters.values() if not cluster.is_root]

    def create_empty_sub_cluster(self, name: str, parent: ClusterId) -> Cluster:
        cluster = Cluster(id=ClusterId(str(uuid.uuid4())), being_id=self.scope.being_id, name=name, parent_id=parent)
        self.clusters[cluster.id] = cluster
        self._clusters_with_members.add(cluster.id)
        return cluster

    async def recompute_cluster_vectors(self, ids: Iterable[ClusterId | None]) -> None:
        """A cluster's vector is the mean of its active memories' vectors (spec P3). A cluster without active memories
        keeps its last one, by which ❼ finds its nearest sibling."""
        wanted = [id_ for id_ in dict.fromkeys(ids) if id_ is not None]
        await self.load_clusters(wanted)
        existing = [id_ for id_ in wanted if id_ in self.clusters]
        for start in range(0, len(existing), CLUSTERS_PER_RECOMPUTE_BATCH):
            vectors = await self.load_active_member_vectors_by_cluster_id(
                existing[start : start + CLUSTERS_PER_RECOMPUTE_BATCH]
            )
            # A root may have tens of thousands.
            for id_, mean in (await asyncio.to_thread(_mean_vectors_of_clusters, vectors)).items():
                if mean is not None:
                    self.clusters[id_] = replace(self.clusters[id_], vector=mean, model=self.embedding_model)

    def cluster_vector_of_current_model(self, cluster: Cluster) -> Vector | None:
        """None also where it was computed with another model (ruling 6)."""
        return cluster.vector if cluster.model in model_name_in_both_precisions(self.embedding_model) else None

    # --- the difference -----------------------------------------------------------------------------------------

    async def write_changes(self, step: str) -> None:
        await self.transaction.apply_changes(self.collect_changes(), run=self.run, step=step)

    def collect_changes(self) -> PatrolChanges:
        new = {memory.id for memory in self.new_memories}
        return PatrolChanges(
            new_memories=tuple(_with_memory_state(memory, self._states[memory.id]) for memory in self.new_memories),
            notes=self.notes,
            states=tuple(s for s in self._states.values() if s.id not in new and s != self._states_before[s.id]),
            rewritten_memories=tuple(self.rewritten_memories),
            compressed=self.compressed,
            superseded=tuple(self.superseded),
            clusters=tuple(c for c in self.clusters.values() if c is not self._clusters_before.get(c.id)),
            removed_clusters=tuple(id_ for id_ in self._clusters_before if id_ not in self.clusters),
            diary=self.diary,
            thoughts=self.thoughts,
            decided_request_ids=tuple(self.decided_request_ids),
            declined=self.declined,
            model=self.embedding_model if self.new_vectors else None,
            vectors=self.new_vectors,
        )


def _mean_vectors_of_clusters(vectors: Mapping[ClusterId, Sequence[Vector]]) -> dict[ClusterId, Vector | None]:
    return {id_: unit_mean_vector(np.stack(rows)) if rows else None for id_, rows in vectors.items()}


def patrol_fields_from_memory(memory: Memory) -> MemoryFieldsForPatrol:
    return MemoryFieldsForPatrol(**{field.name: getattr(memory, field.name) for field in fields(MemoryFieldsForPatrol)})


def _with_memory_state(memory: Memory, state: MemoryFieldsForPatrol) -> Memory:
    return replace(
        memory, status=state.status, fresh=state.fresh, cluster_id=state.cluster_id, session_count=state.session_count
    )
