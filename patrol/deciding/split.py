"""❻ A sub-cluster that has grown too large is split by topic (spec P6 ❻)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from madeleine.memory.language_model import RejectedModelAnswer
from madeleine.memory.model import Cluster, ClusterId, Memory, MemoryId
from madeleine.memory.rules.dynamics.naming import MAX_CLUSTER_NAME_CHARS
from madeleine.memory.rules.storing.secrets import RedactText
from madeleine.patrol.deciding.answers import (
    AgentDecision,
    CheckedDecisionAnswer,
    CurrentOfferedMemories,
    DecisionAnswer,
    DecisionAnswerSchema,
    DecisionHandler,
)
from madeleine.patrol.deciding.requests import (
    DECISION_REQUEST_LIMITS_FOR_MODEL,
    STORING_TIME_SORT_KEY,
    DecisionRequest,
    DecisionRequestLimits,
    offered_memories_within_limits,
    offered_memory_from_memory,
    topic_key_of,
)
from madeleine.patrol.unit_of_work import UnitOfWork

MAX_UNSPLIT_CLUSTER_MEMORIES = 10
"""Active memories above which a sub-cluster is to be split."""
MIN_CHANGED_MEMORIES_TO_OFFER_SPLIT_AGAIN = 5
"""Memories, or a half, by which a cluster must have changed to be offered again after its split was declined, or after
it was divided: what a mind has just looked through is one topic to it."""
MIN_SPLIT_PART_MEMORIES = 2
"""Memories of a new sub-cluster, and of what remains."""


class ClusterSplitPartAnswerSchema(DecisionAnswerSchema):
    name: str
    memories: list[int]


class ClusterSplitAnswerSchema(DecisionAnswerSchema):
    parts: list[ClusterSplitPartAnswerSchema]


@dataclass(frozen=True, slots=True)
class ClusterSplitPart:
    name: str
    memories: tuple[MemoryId, ...]


@dataclass(frozen=True, slots=True)
class ClusterSplitAnswer(DecisionAnswer):
    """New sub-clusters; a memory in none of them stays."""

    kind = "split"
    schema = ClusterSplitAnswerSchema

    parts: tuple[ClusterSplitPart, ...] = ()

    @classmethod
    def _from_relevant_decision_fields(cls, decision: AgentDecision) -> ClusterSplitAnswer | RejectedModelAnswer:
        if not all(decision.parts):
            return RejectedModelAnswer(
                f"Offer {decision.offer}: each of parts begins with its name, its memories follow."
            )
        return ClusterSplitAnswer(tuple(ClusterSplitPart(name, tuple(memories)) for name, *memories in decision.parts))

    def normalized(self) -> ClusterSplitAnswer:
        return ClusterSplitAnswer(tuple(replace(part, name=" ".join(part.name.split())) for part in self.parts))

    def normalized_answer_or_rejection(self, request: DecisionRequest) -> ClusterSplitAnswer | RejectedModelAnswer:
        """A part that has the name of the cluster is what stays in it."""
        own = request.cluster.casefold()
        moving = tuple(part for part in self.normalized().parts if part.name.casefold() != own)
        return DecisionAnswer.normalized_answer_or_rejection(replace(self, parts=moving), request)

    def redacted(self, redact: RedactText) -> ClusterSplitAnswer:
        return ClusterSplitAnswer(tuple(replace(part, name=redact(part.name).text) for part in self.parts))

    def complaints(self, request: DecisionRequest) -> Iterator[str]:
        named = [id_ for part in self.parts for id_ in part.memories]
        yield from self.id_complaints(named, request)
        # By their numbers: a complaint goes into a prompt and a report, where no name that somebody made up belongs.
        names = Counter(part.name.casefold() for part in self.parts)
        ids = {name for memory in request.memories for name in (memory.id, memory.short_id)}
        for number, part in enumerate(self.parts, start=1):
            if part.name in ids:
                yield f"Part {number} has no name: each part begins with a name of its own, its memories follow."
            yield from self.text_complaints(f"The name of part {number}", part.name, MAX_CLUSTER_NAME_CHARS)
            if len(set(part.memories)) < MIN_SPLIT_PART_MEMORIES:
                yield f"Part {number} has fewer than {MIN_SPLIT_PART_MEMORIES} memories: add some, or leave it out."
            if part.name and names[part.name.casefold()] > 1:
                yield f"The name of part {number} is taken: give each part one of its own."
        if self.parts and len(request.memories) - len(set(named)) < MIN_SPLIT_PART_MEMORIES:
            least = f"At least {MIN_SPLIT_PART_MEMORIES} of the memories shown"
            yield f"{least} must stay in no part: take some out, or a whole part."

    def checked_against_current_memories(self, current: CurrentOfferedMemories) -> CheckedDecisionAnswer:
        if not self.parts:
            return CheckedDecisionAnswer(self)
        if current.is_root or current.active_count <= MAX_UNSPLIT_CLUSTER_MEMORIES:
            few = f"The cluster has {current.active_count} active memories by now: too few, so it was not split."
            return CheckedDecisionAnswer(ClusterSplitAnswer(), ("A root is never split." if current.is_root else few,))
        parts: list[ClusterSplitPart] = []
        left_out: list[str] = []
        remaining = current.active_count
        # By their numbers: a report is kept, and the name may tell of what is forgotten later.
        for number, part in enumerate(self.parts, start=1):
            obstacles = {
                id_: current.describe_change_since_offer(id_) or _obstacle_if_not_active(current.memories[id_])
                for id_ in part.memories
            }
            members = current.unblocked_memory_ids(obstacles, f"it was not moved to part {number}", left_out)
            if len(members) < MIN_SPLIT_PART_MEMORIES:
                few = (
                    f"Part {number}: fewer than {MIN_SPLIT_PART_MEMORIES} of its memories are left, so it was not made."
                )
                left_out.append(few)
            elif remaining - len(members) < MIN_SPLIT_PART_MEMORIES:
                left_out.append(f"Part {number}: the cluster would keep too few memories, so it was not made.")
            else:
                remaining -= len(members)
                parts.append(ClusterSplitPart(part.name, members))
        return CheckedDecisionAnswer(ClusterSplitAnswer(tuple(parts)), tuple(left_out))


def _obstacle_if_not_active(memory: Memory) -> str:
    return "" if memory.status == "active" else "is dying by now"


class ClusterSplitDecisionHandler(DecisionHandler[ClusterSplitAnswer]):
    answer_type = ClusterSplitAnswer

    async def keys_that_may_need_decision(self) -> list[str]:
        reads = self.context.reads
        declined = await reads.cluster_size_by_declined_topic()
        counts = [
            count
            for count in await reads.memory_counts_of_each_cluster()
            if count.active > MAX_UNSPLIT_CLUSTER_MEMORIES
            and has_size_changed_since_declined_split(count.active, declined.get(_split_topic_key(count.cluster_id)))
        ]
        clusters = await reads.clusters([count.cluster_id for count in counts])
        roots = {cluster.id for cluster in clusters if cluster.is_root}
        counts.sort(key=lambda count: (-count.active, count.cluster_id))
        return [count.cluster_id for count in counts if count.cluster_id not in roots]

    async def build_requests_for_key(self, key: str) -> list[DecisionRequest]:
        reads = self.context.reads
        clusters = await reads.clusters([ClusterId(key)])
        if not clusters:
            return []
        active = [
            state.id for state in await reads.states_of_cluster_members(ClusterId(key)) if state.is_part_of_cluster_mean
        ]
        return cluster_split_requests(clusters[0], await reads.memories_with_ids(active), self.limits)

    async def apply_answer(
        self, work: UnitOfWork, answer: ClusterSplitAnswer, current: CurrentOfferedMemories
    ) -> dict[str, int]:
        cluster_id = current.request.cluster_id
        new_clusters: list[ClusterId] = []
        if answer.parts and cluster_id:
            parent = work.clusters[cluster_id].parent_id
            for part in answer.parts:
                cluster = work.create_empty_sub_cluster(part.name, parent)
                work.move_memory_states_to_cluster(await work.load_memory_states(part.memories), cluster.id)
                new_clusters.append(cluster.id)
            await work.recompute_cluster_vectors([cluster_id, *new_clusters])
        if cluster_id:
            work.declined = {
                _split_topic_key(id_): work.active_status_member_count(id_) for id_ in (cluster_id, *new_clusters)
            }
        self.context.split_cluster_ids.update(new_clusters)
        return {"new_clusters": len(new_clusters), "moved": sum(len(part.memories) for part in answer.parts)}


def _split_topic_key(id_: ClusterId) -> str:
    return topic_key_of("split", id_)


def cluster_ids_of_decided_splits(declined_topics: Iterable[str]) -> set[ClusterId]:
    """The clusters that a decision has divided, has made, or has left as they are; of `declined_topics` others are left
    out."""
    prefix = _split_topic_key(ClusterId(""))
    return {ClusterId(topic.removeprefix(prefix)) for topic in declined_topics if topic.startswith(prefix)}


def has_size_changed_since_declined_split(active_count: int, declined_count: int | None) -> bool:
    """Whether a cluster of so many active memories has changed enough to be offered again: `declined_count` is what it
    had when it was declined, or divided (ruling 20). One memory more a day would bring the same question every day."""
    if declined_count is None:
        return True
    return abs(active_count - declined_count) >= max(MIN_CHANGED_MEMORIES_TO_OFFER_SPLIT_AGAIN, declined_count // 2)


def cluster_split_requests(
    cluster: Cluster,
    active: Sequence[Memory],
    limits: DecisionRequestLimits = DECISION_REQUEST_LIMITS_FOR_MODEL["split"],
) -> list[DecisionRequest]:
    """At most one; none where there is nothing to split: a root, or no more than 10 active memories (spec P6 ❻). Of
    more memories than fit, it has a sample that spans the cluster's time (ruling 17)."""
    members = sorted((memory for memory in active if memory.status == "active"), key=STORING_TIME_SORT_KEY)
    if cluster.is_root or len(members) <= MAX_UNSPLIT_CLUSTER_MEMORIES:
        return []
    sizes = [offered_memory_from_memory(memory, "split", limits).size_bytes for memory in members]
    count = min(limits.memories, int(limits.size * len(members) / max(1, sum(sizes))), len(members))
    sample = [members[round(i * (len(members) - 1) / max(1, count - 1))] for i in range(max(2, count))]
    offered = offered_memories_within_limits(list(dict.fromkeys(sample)), "split", limits)
    return [DecisionRequest(kind="split", memories=offered, cluster_id=cluster.id, cluster=cluster.name)]
