"""A step's working copy of what it looks at: the step changes it, and the difference is written in one transaction."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import Cluster, ClusterId, ContentHash, Memory, MemoryId, ModelName, Note, RunId, Vector
from madeleine.memory.patrol_records import DecisionRequestId, DiaryEntry, MemoryState, PatrolChanges, Thoughts
from madeleine.memory.ports import WordStatistics
from madeleine.memory.rules.dynamics.grouping import mean_vector
from madeleine.memory.rules.dynamics.roots import ROOTS, Root
from madeleine.memory.scope import Scope
from madeleine.patrol.ports import PatrolTransaction

CLUSTERS_AT_ONCE = 200
"""Read in one go to be recomputed: one by one, each costs two queries of milliseconds."""


@dataclass(frozen=True, slots=True)
class Evening:
    """What was prepared before the transaction, with a model's help: memories from notes, the notes' new states,
    vectors of those memories, the prototypes of the roots, float32 (k, dim) each, both empty while the embedding model
    cannot be had; and the roots that a language model has chosen (spec P6 ❶)."""

    memories: tuple[Memory, ...] = ()
    notes: tuple[Note, ...] = ()
    vectors: Mapping[ContentHash, Vector] = field(default_factory=dict)
    prototypes: Mapping[Root, NDArray[np.float32]] = field(default_factory=dict)
    chosen: Mapping[MemoryId, Root] = field(default_factory=dict)


class Night:
    """The working copy of one step. Not safe for use by two tasks. A memory is read when it is asked for, and so is a
    cluster that is recomputed; other clusters, and how many memories each has, by `read`."""

    def __init__(
        self,
        scope: Scope,
        transaction: PatrolTransaction,
        words: WordStatistics,
        model: ModelName,
        *,
        run: RunId,
        evening: Evening | None = None,
    ) -> None:
        self.scope = scope
        self.words = words
        self.evening = evening or Evening()
        self.model = model
        self.new: tuple[Memory, ...] = ()
        self.notes: tuple[Note, ...] = ()
        self.clusters: dict[ClusterId, Cluster] = {}
        self.also = PatrolChanges()
        """What a step changes besides."""
        self.spared: frozenset[ClusterId] = frozenset()
        """Clusters that ❼ leaves: this run has just made them."""
        self._transaction = transaction
        self._run = run
        self._subjects: dict[MemoryId, MemoryState] = {}
        self._before: dict[MemoryId, MemoryState] = {}
        self._vectors: dict[ContentHash, Vector] = dict(self.evening.vectors)
        self._clusters_before: dict[ClusterId, Cluster] = {}
        self._members: dict[ClusterId | None, dict[MemoryId, None]] = defaultdict(dict)
        self._read_members: set[ClusterId] = set()
        self._active: Counter[ClusterId | None] = Counter()
        self._read: set[ClusterId] = set()
        self._has_read_all = False

    async def read(self, ids: Iterable[ClusterId] | None = None) -> None:
        """The clusters of `ids`, or all: by whoever asks about clusters. All take the longer the more there are, and
        the writer is held meanwhile, so a step that knows which ones it needs, or finds nothing to do, goes without."""
        wanted = None if ids is None else [id_ for id_ in dict.fromkeys(ids) if self._is_unread(id_)]
        if self._has_read_all or wanted == []:
            return
        found = [one for one in await self._transaction.clusters(wanted) if self._is_unread(one.id)]
        counts = [one for one in await self._transaction.cluster_counts(wanted) if self._is_unread(one.cluster_id)]
        self._has_read_all = wanted is None
        self._read.update(wanted if wanted is not None else (one.id for one in found))
        self._clusters_before |= {one.id: one for one in found}
        self.clusters |= {one.id: one for one in found}
        # What was put until now has been counted; it is not in the tables yet.
        self._active.update({one.cluster_id: one.active for one in counts})

    def _is_unread(self, id_: ClusterId) -> bool:
        return id_ not in self._read and id_ not in self.clusters

    # --- memories -----------------------------------------------------------------------------------------------

    async def increment_session_counts(self) -> int:
        """❷ for all at once; how many active memories there are."""
        return await self._transaction.increment_session_counts(self._run)

    async def unclustered(self, *, limit: int) -> list[MemoryState]:
        return self._seen(await self._transaction.unclustered(limit=limit))

    async def with_outdated_status(self) -> list[MemoryState]:
        return self._seen(await self._transaction.with_outdated_status())

    async def recalled_dead(self) -> list[MemoryState]:
        return self._seen(await self._transaction.recalled_dead())

    async def members(self, cluster_id: ClusterId) -> list[MemoryState]:
        """In the order of their arrival, dead ones too."""
        await self._read_members_of([cluster_id])
        return [self._subjects[id_] for id_ in self._members[cluster_id]]

    async def _read_members_of(self, ids: Sequence[ClusterId]) -> None:
        if unread := [id_ for id_ in ids if id_ not in self._read_members]:
            self._read_members.update(unread)
            self._seen(await self._transaction.members(*unread))

    async def active_vectors(self, ids: Sequence[ClusterId]) -> dict[ClusterId, list[Vector]]:
        """Of their active memories, as far as these have been embedded; all read at once."""
        await self._read_members_of(ids)
        active = {id_: await self.active(id_) for id_ in ids}
        vectors = await self.vectors([subject for of_one in active.values() for subject in of_one])
        return {id_: [vectors[one.id] for one in of_one if one.id in vectors] for id_, of_one in active.items()}

    async def active(self, cluster_id: ClusterId) -> list[MemoryState]:
        return [subject for subject in await self.members(cluster_id) if subject.status == "active"]

    def active_count(self, cluster_id: ClusterId) -> int:
        return self._active[cluster_id]

    async def subject(self, id_: MemoryId) -> MemoryState | None:
        """As it is by now; None if there is no such memory."""
        if id_ not in self._subjects:
            self._seen(await self._transaction.states([id_]))
        return self._subjects.get(id_)

    async def states(self, ids: Sequence[MemoryId]) -> list[MemoryState]:
        self._seen(await self._transaction.states([id_ for id_ in ids if id_ not in self._subjects]))
        return [self._subjects[id_] for id_ in ids if id_ in self._subjects]

    def _seen(self, found: Iterable[MemoryState]) -> list[MemoryState]:
        """What was read, as it is by now."""
        seen = []
        for subject in found:
            if subject.id not in self._subjects:
                self._before[subject.id] = self._subjects[subject.id] = subject
                self._members[subject.cluster_id][subject.id] = None
            seen.append(self._subjects[subject.id])
        return seen

    def put(self, subject: MemoryState) -> None:
        """Change a memory that was read, or add one."""
        old = self._subjects.get(subject.id)
        if old is not None:
            self._active[old.cluster_id] -= old.status == "active"
            if old.cluster_id != subject.cluster_id:
                self._members[old.cluster_id].pop(subject.id, None)
        self._active[subject.cluster_id] += subject.status == "active"
        self._members[subject.cluster_id][subject.id] = None
        self._subjects[subject.id] = subject

    def move(self, subjects: Iterable[MemoryState], to: ClusterId) -> None:
        for subject in list(subjects):
            self.put(replace(subject, cluster_id=to))

    async def vectors(self, subjects: Sequence[MemoryState]) -> dict[MemoryId, Vector]:
        """Of those that have been embedded."""
        unknown = [s.content_hash for s in subjects if s.content_hash not in self._vectors]
        self._vectors |= await self._transaction.vectors(self.model, unknown)
        return {s.id: self._vectors[s.content_hash] for s in subjects if s.content_hash in self._vectors}

    async def whole(self, subjects: Sequence[MemoryState]) -> list[Memory]:
        new = {memory.id: memory for memory in self.new}
        stored = await self._transaction.memories([s.id for s in subjects if s.id not in new])
        return [*stored, *(new[s.id] for s in subjects if s.id in new)]

    async def summarised_by(self, ids: Sequence[MemoryId]) -> list[MemoryId]:
        """What these, or what they have absorbed, stand for as summaries."""
        return await self._transaction.summarised_by(ids)

    async def diary_until_now(self) -> tuple[DiaryEntry | None, Thoughts]:
        """The last entry, and the points for the next session (spec P8)."""
        return await self._transaction.last_diary(), await self._transaction.thoughts()

    # --- clusters -----------------------------------------------------------------------------------------------

    def root(self, name: Root) -> Cluster:
        """The being's root of that name, made when it is first needed (spec P3)."""
        assert self._has_read_all, "it may be there"
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

    def add_sub_cluster(self, name: str, parent: ClusterId) -> Cluster:
        cluster = Cluster(id=ClusterId(str(uuid.uuid4())), being_id=self.scope.being_id, name=name, parent_id=parent)
        self.clusters[cluster.id] = cluster
        self._read_members.add(cluster.id)
        return cluster

    def remove(self, cluster: Cluster) -> None:
        del self.clusters[cluster.id]

    async def recompute(self, ids: Iterable[ClusterId]) -> None:
        """A cluster's vector is the mean of its active memories' vectors (spec P3). One whose memories are all asleep
        keeps its last one, by which ❼ finds its nearest sibling."""
        wanted = list(dict.fromkeys(ids))
        await self.read(wanted)
        there = [id_ for id_ in wanted if id_ in self.clusters]
        for start in range(0, len(there), CLUSTERS_AT_ONCE):
            some = there[start : start + CLUSTERS_AT_ONCE]
            # A root may have tens of thousands.
            means = await asyncio.to_thread(_means, await self.active_vectors(some))
            for id_, mean in means.items():
                if mean is not None:
                    self.clusters[id_] = replace(self.clusters[id_], vector=mean, model=self.model)

    def vector_of(self, cluster: Cluster) -> Vector | None:
        """None also where it was computed with another model (ruling 6)."""
        return cluster.vector if cluster.model == self.model else None

    def settle(self, offer: DecisionRequestId) -> None:
        """It was decided upon; nobody can decide it again."""
        self.also = replace(self.also, decided=(*self.also.decided, offer))

    # --- the difference -----------------------------------------------------------------------------------------

    async def write(self, step: str) -> None:
        await self._transaction.apply(self.changes(), run=self._run, step=step)

    def changes(self) -> PatrolChanges:
        new = {memory.id for memory in self.new}
        return replace(
            self.also,
            new=(*self.also.new, *(_as_new(memory, self._subjects[memory.id]) for memory in self.new)),
            notes=self.notes,
            states=tuple(s for s in self._subjects.values() if s.id not in new and s != self._before[s.id]),
            clusters=tuple(c for c in self.clusters.values() if c is not self._clusters_before.get(c.id)),
            removed_clusters=tuple(id_ for id_ in self._clusters_before if id_ not in self.clusters),
        )


def _means(vectors: Mapping[ClusterId, Sequence[Vector]]) -> dict[ClusterId, Vector | None]:
    return {id_: mean_vector(np.stack(rows)) if rows else None for id_, rows in vectors.items()}


def state_of(memory: Memory) -> MemoryState:
    return MemoryState(
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


def _as_new(memory: Memory, subject: MemoryState) -> Memory:
    return replace(
        memory,
        status=subject.status,
        fresh=subject.fresh,
        cluster_id=subject.cluster_id,
        session_count=subject.session_count,
    )
