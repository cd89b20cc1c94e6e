"""❹ Memories that say the same are merged; dying ones that say nothing else die (spec P6 ❹, rulings 2, 3, 11)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from madeleine.memory.embedding import cached_vectors_of_any_precision
from madeleine.memory.language_model import RejectedModelAnswer
from madeleine.memory.model import (
    LIVING_STATUSES,
    Cluster,
    ClusterId,
    Memory,
    MemoryId,
    Vector,
)
from madeleine.memory.rules.dynamics.importance import end_of_keep, status_from_decayed_importance
from madeleine.memory.rules.storing.likeness import describe_difference_in_facts
from madeleine.patrol.deciding.answers import (
    AgentDecision,
    CheckedDecisionAnswer,
    CurrentOfferedMemories,
    DecisionAnswer,
    DecisionAnswerSchema,
    DecisionHandler,
)
from madeleine.patrol.deciding.compress import summary_as_memory
from madeleine.patrol.deciding.dying import requests_about_dying_memories
from madeleine.patrol.deciding.merged import survivor_after_merge
from madeleine.patrol.deciding.passages import join_episodes_into_passages
from madeleine.patrol.deciding.possible_duplicates import (
    CONSOLIDATION_REQUEST_LIMITS,
    batches_of_similar_memories,
    ids_of_possible_duplicates,
    memories_closest_to_another_group,
)
from madeleine.patrol.deciding.requests import (
    STORING_TIME_SORT_KEY,
    DecisionRequest,
    DecisionRequestLimits,
    MemoryInDecisionRequest,
    offered_memories_split_by_request_size,
    offered_memories_within_limits,
)
from madeleine.patrol.unit_of_work import UnitOfWork, patrol_fields_from_memory

IMPORTANCE_FLOOR_OF_KEPT_MEMORY = 0.15
"""0.15 × exp(−30 / 30) is above the floor of 0.05: a kept memory is not asked about again within 30 days."""
DYING_MEMORIES_DECISION_KEY = ""
MAX_DYING_MEMORIES_READ = 500
"""Dying memories that are asked about in one patrol at most, the oldest."""


class MemoryMergeAnswerSchema(DecisionAnswerSchema):
    survivor: int
    absorbed: list[int]


class ConsolidationAnswerSchema(DecisionAnswerSchema):
    merges: list[MemoryMergeAnswerSchema]
    make_dead: list[int]
    keep: list[int]


@dataclass(frozen=True, slots=True)
class MemoryMerge:
    survivor: MemoryId
    absorbed: tuple[MemoryId, ...]

    @property
    def memory_ids(self) -> tuple[MemoryId, ...]:
        return self.survivor, *self.absorbed


@dataclass(frozen=True, slots=True)
class ConsolidationAnswer(DecisionAnswer):
    kind = "consolidate"
    schema = ConsolidationAnswerSchema

    merges: tuple[MemoryMerge, ...] = ()
    make_dead: tuple[MemoryId, ...] = ()
    keep: tuple[MemoryId, ...] = ()

    @classmethod
    def _from_relevant_decision_fields(cls, decision: AgentDecision) -> ConsolidationAnswer | RejectedModelAnswer:
        if any(len(merge) < 2 for merge in decision.merges):
            return RejectedModelAnswer(
                f"Offer {decision.offer}: each of merges names its survivor, then what that absorbs."
            )
        merges = [MemoryMerge(survivor, tuple(absorbed)) for survivor, *absorbed in decision.merges]
        return ConsolidationAnswer(tuple(merges), tuple(decision.make_dead), tuple(decision.keep))

    def complaints(self, request: DecisionRequest) -> Iterator[str]:
        absorbed = [id_ for merge in self.merges for id_ in merge.absorbed]
        named = [*(merge.survivor for merge in self.merges), *absorbed, *self.make_dead, *self.keep]
        yield from self.id_complaints(named, request)
        for merge in self.merges:
            if not merge.absorbed:
                yield f"The merge into {merge.survivor!r} absorbs nothing: name what it absorbs, or leave it out."
        offered = {memory.id: memory for memory in request.memories}
        for id_ in (*(merge.survivor for merge in self.merges), *absorbed):
            if id_ in offered and offered[id_].truth != "current":
                yield f"Memory {id_!r} is {offered[id_].truth}: it is never merged, as survivor or absorbed."
        for id_ in (*absorbed, *self.make_dead):
            if id_ in offered and offered[id_].pinned:
                yield f"Memory {id_!r} is pinned: it may be a survivor, never absorbed or in make_dead."
        for id_ in (*self.make_dead, *self.keep):
            if id_ in offered and offered[id_].status != "dying":
                yield f"Memory {id_!r} is {offered[id_].status}: make_dead and keep take dying memories only."
        dying = (memory for memory in request.memories if memory.status == "dying" and memory.part_of not in named)
        undecided = [memory.id for memory in dying if memory.id not in named]
        if undecided:
            yield f"Decide every dying memory, in merges, make_dead or keep: {', '.join(map(repr, undecided))}."

    def checked_against_current_memories(self, current: CurrentOfferedMemories) -> CheckedDecisionAnswer:
        merges: list[MemoryMerge] = []
        left_out: list[str] = []
        for merge in self.merges:
            if reason := current.describe_change_since_offer(merge.survivor):
                left_out.append(f"{merge.survivor} {reason}: nothing was merged into it.")
                continue
            obstacles = {id_: _merge_obstacle(id_, merge.survivor, current) for id_ in merge.absorbed}
            if absorbed := current.unblocked_memory_ids(
                obstacles, f"it was not merged into {merge.survivor}", left_out
            ):
                merges.append(MemoryMerge(merge.survivor, absorbed))
        make_dead, kept = self._make_dead_and_keep_with_text_parts(current.request)
        if not_merged := self._dying_memories_not_merged(merges, current):
            kept += not_merged
            left_out.append(f"{', '.join(not_merged)}: kept instead.")
        obstacles = {
            id_: current.describe_change_since_offer(id_) or _obstacle_to_making_dead(current.memories[id_])
            for id_ in make_dead
        }
        make_dead = current.unblocked_memory_ids(obstacles, "it was not made dead", left_out)
        keep = current.unblocked_memory_ids(
            {id_: current.describe_change_since_offer(id_) for id_ in kept}, "as it is", left_out
        )
        return CheckedDecisionAnswer(ConsolidationAnswer(tuple(merges), make_dead, keep), tuple(left_out))

    def _dying_memories_not_merged(
        self, merges: Sequence[MemoryMerge], current: CurrentOfferedMemories
    ) -> tuple[MemoryId, ...]:
        """Memories that are dying, as they were offered, and that the answer would merge although they may not be: they
        are kept, for whoever merges two wants what they tell to live. Else the same is offered again without end."""
        offered = {memory.id: (memory.status, memory.truth) for memory in current.request.memories}
        merged = {id_ for merge in merges for id_ in merge.memory_ids}
        not_merged = {id_ for merge in self.merges for id_ in merge.memory_ids} - merged
        return tuple(
            id_
            for id_, status_and_truth in offered.items()
            if id_ in not_merged
            and not current.describe_change_since_offer(id_)
            and current.memories[id_].status == "dying"
            and status_and_truth == ("dying", current.memories[id_].truth)
        )

    def _make_dead_and_keep_with_text_parts(
        self, request: DecisionRequest
    ) -> tuple[tuple[MemoryId, ...], tuple[MemoryId, ...]]:
        """`make_dead` and `keep` with the other parts of each text: they are let go of with its first one, else kept,
        unless the answer names them (ADR 82)."""
        named = {id_ for merge in self.merges for id_ in merge.memory_ids}
        named.update(self.make_dead, self.keep)
        parts = [memory for memory in request.memories if memory.part_of in named and memory.id not in named]
        let_go = tuple(memory.id for memory in parts if memory.part_of in self.make_dead)
        return self.make_dead + let_go, self.keep + tuple(part.id for part in parts if part.id not in let_go)


ADVICE_TO_KEEP_BOTH_FACTS = (
    "two facts are never merged (keep both, or, if one has changed, supersede the older one by update_memory or store)"
)


def _merge_obstacle(id_: MemoryId, survivor: MemoryId, current: CurrentOfferedMemories) -> str:
    if reason := current.describe_change_since_offer(id_):
        return reason
    memory = current.memories[id_]
    if any(current.request.other_parts_of_text(one) for one in (id_, survivor)):
        return "is, or its survivor is, the first of several parts of a text, of which only the beginnings were shown"
    if {memory.truth, current.memories[survivor].truth} != {"current"}:
        return "is not true any more, or its survivor is not"
    if memory.compression_source or current.memories[survivor].compression_source:
        return "is, or its survivor is, a summary or a passage, which tells of several memories"
    if memory.pinned:
        return "is pinned by now"
    if (memory.project, memory.level) != (current.memories[survivor].project, current.memories[survivor].level):
        return "belongs to another project, or is kept for another time, than its survivor"
    if difference := describe_difference_in_facts(memory.scene.action, current.memories[survivor].scene.action):
        return f"{difference}; {ADVICE_TO_KEEP_BOTH_FACTS}"
    # What a summary stands for is not recalled; what is merged into it would not be either.
    hidden = current.memories[survivor].compressed and not memory.compressed
    return "would not be recalled, as its survivor has a summary that stands for it" if hidden else ""


def _obstacle_to_making_dead(memory: Memory) -> str:
    if memory.pinned:
        return "is pinned by now"
    return "" if memory.status == status_from_decayed_importance(memory) == "dying" else "was recalled since"


class ConsolidationDecisionHandler(DecisionHandler[ConsolidationAnswer]):
    answer_type = ConsolidationAnswer
    embeds_texts = True

    async def keys_that_may_need_decision(self) -> list[str]:
        """What is dying, in all clusters together, then the clusters with fresh memories."""
        counts = [count for count in await self.context.reads.memory_counts_of_each_cluster() if count.unconsolidated]
        fresh = [count for count in counts if count.unconsolidated > count.dying]
        fresh.sort(key=lambda count: (-count.unconsolidated, count.cluster_id))
        dying = [DYING_MEMORIES_DECISION_KEY] if any(count.dying for count in counts) else []
        return [*dying, *(count.cluster_id for count in fresh)]

    async def build_requests_for_key(self, key: str) -> list[DecisionRequest]:
        reads = self.context.reads
        if key == DYING_MEMORIES_DECISION_KEY:
            dying = await reads.dying_memories(limit=MAX_DYING_MEMORIES_READ)
            # What was recalled since ❸ is active again at the next.
            still = [memory for memory in dying if status_from_decayed_importance(memory) == "dying"]
            return await asyncio.to_thread(requests_about_dying_memories, still, self.limits)
        clusters = await reads.clusters([ClusterId(key)])
        if not clusters:
            return []
        living = [state for state in await reads.states_of_cluster_members(ClusterId(key)) if state.status != "dead"]
        hashes = [state.content_hash for state in living]
        by_hash = await cached_vectors_of_any_precision(reads, self.context.services.embedding_model_name, hashes)
        embedded = [state for state in living if state.content_hash in by_hash]
        vectors: dict[MemoryId, Vector] = {}
        if embedded:
            rows = np.stack([by_hash[state.content_hash] for state in embedded])
            centred = self.context.services.embedder.vector_space.centred_by_language(rows)
            vectors = {state.id: row for state, row in zip(embedded, centred, strict=True)}
        memories = await reads.memories_with_ids([state.id for state in living])
        return await asyncio.to_thread(consolidation_requests, clusters[0], memories, vectors, self.limits)

    def texts_to_embed(self, answer: ConsolidationAnswer, current: CurrentOfferedMemories) -> list[str]:
        now = self.context.services.now()
        changed = memories_changed_by_consolidation(answer, current, now)
        rewritten = (one for one in changed if _is_changed_in_merged_fields(one, current))
        made = new_passage_memories_from_dropped_scenes(answer, current, now)
        return [memory.embedded_text for memory in (*rewritten, *(passage for passage, _ in made))]

    async def apply_answer(
        self, work: UnitOfWork, answer: ConsolidationAnswer, current: CurrentOfferedMemories
    ) -> dict[str, int]:
        changed = memories_changed_by_consolidation(answer, current, work.now)
        for memory in changed:
            work.put_memory_state(patrol_fields_from_memory(memory))
        work.rewritten_memories += [memory for memory in changed if _is_changed_in_merged_fields(memory, current)]
        # A summary that has died stands for nothing: its sources are recalled again, unless they had faded before it.
        released = await work.transaction.source_ids_of_summaries(answer.make_dead)
        work.compressed |= dict.fromkeys(released)
        for state in await work.load_memory_states(released):
            if state.status == "dying":
                work.put_memory_state(replace(state, status="dead", reactivation_count=0))
        made = new_passage_memories_from_dropped_scenes(answer, current, work.now)
        for passage, sources in made:
            work.add_memory(passage)
            work.compressed |= dict.fromkeys((source.id for source in sources), passage.id)
        hashes = {memory.content_hash for memory in (*work.rewritten_memories, *(passage for passage, _ in made))}
        work.new_vectors |= {hash_: vector for hash_, vector in work.prepared.vectors.items() if hash_ in hashes}
        await work.recompute_cluster_vectors(memory.cluster_id for memory in changed)
        return {
            "merged": len(answer.merges),
            "absorbed": sum(len(merge.absorbed) for merge in answer.merges),
            "made_dead": len(answer.make_dead),
            "joined_to_passages": sum(len(sources) for _, sources in made),
            "kept": len(answer.keep),
        }


def new_passage_memories_from_dropped_scenes(
    answer: ConsolidationAnswer, current: CurrentOfferedMemories, now: datetime
) -> list[tuple[Memory, Sequence[Memory]]]:
    """Passages that hold what was let go of, word for word by session and day, each with its scenes: these are dead,
    and what they told is found as long as somebody asks for it, at the cost of one memory."""
    let_go = [current.memories[id_] for id_ in answer.make_dead]
    return [(summary_as_memory(text, part, now), part) for part, text in join_episodes_into_passages(let_go)]


MERGED_MEMORY_FIELDS = ("scene", "feeling", "emotions", "emotion", "lesson", "category", "valid_from")


def _is_changed_in_merged_fields(memory: Memory, current: CurrentOfferedMemories) -> bool:
    before = current.memories[memory.id]
    return any(getattr(memory, name) != getattr(before, name) for name in MERGED_MEMORY_FIELDS)


def consolidation_requests(
    cluster: Cluster,
    members: Sequence[Memory],
    vectors: Mapping[MemoryId, Vector],
    limits: DecisionRequestLimits = CONSOLIDATION_REQUEST_LIMITS,
) -> list[DecisionRequest]:
    """Every fresh living member is in exactly one request (spec P6 ❹), with those similar to it; after them the
    consolidated ones that may say the same, which may be in several. Fresh ones that nothing resembles have a request
    of their own, without a choice. `vectors`: of the members that have one, without what their language shares."""
    living = sorted((memory for memory in members if memory.status in LIVING_STATUSES), key=STORING_TIME_SORT_KEY)
    fresh = [memory for memory in living if memory.fresh and memory.status == "active"]
    # What a summary stands for is not recalled: a memory merged into it would not be either. And a summary, which tells
    # of several memories, repeats none.
    mergeable = [m for m in living if not (m.compressed or m.compression_source) and m.truth == "current"]
    fresh_unless_summaries = [memory for memory in fresh if not memory.compression_source]
    resembled = ids_of_possible_duplicates(fresh_unless_summaries, mergeable, vectors)
    to_decide = [memory for memory in fresh if memory.id in resembled]
    partners = [memory for memory in mergeable if not memory.fresh]
    requests: list[DecisionRequest] = []

    def add(memories: Sequence[MemoryInDecisionRequest], *, has_choice: bool = True) -> None:
        requests.append(
            DecisionRequest(
                kind="consolidate",
                memories=tuple(memories),
                cluster_id=cluster.id,
                cluster=cluster.name,
                has_choice=has_choice,
            )
        )

    for batch in batches_of_similar_memories(to_decide, vectors, limits, room_for_partners=bool(partners)):
        counterparts = ids_of_possible_duplicates(partners, batch, vectors)
        like = memories_closest_to_another_group([one for one in partners if one.id in counterparts], batch, vectors)
        nearest = like[: limits.partners]
        offered = offered_memories_within_limits([*batch, *nearest], "consolidate", limits)
        add(offered, has_choice=len(offered) > 1 or offered[0].status == "dying")
    others = [memory for memory in fresh if memory.id not in resembled]
    for part in offered_memories_split_by_request_size(others, "consolidate"):
        add(part, has_choice=False)
    return requests


# --- what memories become ---------------------------------------------------------------------------------------


def memories_changed_by_consolidation(
    answer: ConsolidationAnswer, current: CurrentOfferedMemories, now: datetime
) -> list[Memory]:
    """The memories that change, as they become. `answer` was checked against `current`. Every offered memory that is
    still as it was offered is fresh no longer. A survivor's embed text changes with its timeline."""
    memories = current.memories
    changed: dict[MemoryId, Memory] = {}
    for merge in answer.merges:
        absorbed = [memories[id_] for id_ in merge.absorbed]
        survivor = survivor_after_merge(memories[merge.survivor], absorbed)
        was_dying = memories[merge.survivor].status == "dying"
        changed[merge.survivor] = _as_kept_memory(survivor, now) if was_dying else survivor
        changed |= {memory.id: replace(as_dead_memory(memory), absorbed_into=merge.survivor) for memory in absorbed}
    changed |= {id_: as_dead_memory(memories[id_]) for id_ in answer.make_dead}
    changed |= {id_: memory_after_keep_decision(memories[id_], now) for id_ in answer.keep}
    for id_ in (offered.id for offered in current.request.memories):
        if id_ not in changed and not current.describe_change_since_offer(id_) and memories[id_].fresh:
            changed[id_] = replace(memories[id_], fresh=False)
    return list(changed.values())


def memory_after_keep_decision(memory: Memory, now: datetime) -> Memory:
    """It still holds: its clock starts again, as by a recall, and it lasts a month at least (rulings 2 and 20); nobody
    is asked about it again for six times its age (ADR 86)."""
    return _as_kept_memory(replace(memory, reactivation_count=memory.reactivation_count + 1, fresh=False), now)


def _as_kept_memory(memory: Memory, now: datetime) -> Memory:
    importance = max(memory.importance, IMPORTANCE_FLOOR_OF_KEPT_MEMORY)
    kept_until = end_of_keep(memory.created_at, now)
    kept = replace(memory, session_count=0, importance=importance, kept_until=kept_until)
    return replace(kept, status=status_from_decayed_importance(kept))


def as_dead_memory(memory: Memory) -> Memory:
    """Its reactivations start again, so that it comes back only if it is recalled from now on (ruling 3)."""
    return replace(memory, status="dead", reactivation_count=0, fresh=False)
