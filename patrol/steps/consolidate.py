"""❹ Memories that say the same are merged; dying ones that say nothing else die (spec P6 ❹, rulings 2, 3, 11)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from madeleine.memory.model import (
    ClusterId,
    DatedAction,
    Memory,
    MemoryId,
    WhenItem,
    parse_moment,
    when_date,
)
from madeleine.memory.rules.dynamics.importance import flagged
from madeleine.patrol.context import PatrolContext
from madeleine.patrol.deciding.answers import Consolidation
from madeleine.patrol.deciding.checks import CurrentState, change_since
from madeleine.patrol.deciding.decision_type import DecisionType
from madeleine.patrol.deciding.requests import DecisionRequest, consolidation_requests, shortened
from madeleine.patrol.unit_of_work import UnitOfWork, state_of

SURVIVOR_IMPORTANCE_BONUS = 0.05
"""Added to a survivor's importance, once a merge (spec P6 ❹)."""
ACTION_CHARACTERS = 2_000
"""Of an action in a timeline."""


class Consolidate(DecisionType[Consolidation]):
    kind = "consolidate"
    embeds_texts = True

    async def pending(self, context: PatrolContext) -> list[str]:
        counts = [count for count in await context.reads.cluster_counts() if count.unconsolidated]
        counts.sort(key=lambda count: (-count.unconsolidated, count.cluster_id))
        return [count.cluster_id for count in counts]

    async def requests(self, context: PatrolContext, key: str) -> list[DecisionRequest]:
        reads = context.reads
        clusters = await reads.clusters([ClusterId(key)])
        if not clusters:
            return []
        living = [state for state in await reads.members(ClusterId(key)) if state.status != "dead"]
        by_hash = await reads.vectors(context.services.embedding_model, [state.content_hash for state in living])
        vectors = {state.id: by_hash[state.content_hash] for state in living if state.content_hash in by_hash}
        memories = await reads.memories([state.id for state in living])
        return await asyncio.to_thread(consolidation_requests, clusters[0], memories, vectors)

    def new_texts(
        self, context: PatrolContext, request: DecisionRequest, answer: Consolidation, current: CurrentState
    ) -> list[str]:
        changed = consolidated(answer, request, current.memories)
        return [memory.embed_text for memory in changed if _is_rewritten(memory, current)]

    async def apply(
        self,
        context: PatrolContext,
        work: UnitOfWork,
        request: DecisionRequest,
        answer: Consolidation,
        current: CurrentState,
    ) -> Mapping[str, int]:
        changed = consolidated(answer, request, current.memories)
        for memory in changed:
            work.put(state_of(memory))
        work.rewritten += [memory for memory in changed if _is_rewritten(memory, current)]
        hashes = {memory.content_hash for memory in work.rewritten}
        work.new_vectors |= {hash_: vector for hash_, vector in work.prepared.vectors.items() if hash_ in hashes}
        # A summary that has died stands for nothing: its sources are recalled again.
        work.compressed |= dict.fromkeys(await work.transaction.summarised_by(answer.make_dead))
        await work.recompute(memory.cluster_id for memory in changed)
        return {
            "merged": len(answer.merges),
            "absorbed": sum(len(merge.absorbed) for merge in answer.merges),
            "made_dead": len(answer.make_dead),
        }


def _is_rewritten(memory: Memory, current: CurrentState) -> bool:
    return memory.scene != current.memories[memory.id].scene


# --- what memories become ---------------------------------------------------------------------------------------


def consolidated(answer: Consolidation, request: DecisionRequest, memories: Mapping[MemoryId, Memory]) -> list[Memory]:
    """The memories that change, as they become. `answer` was checked against `memories`. Every offered memory that is
    still as it was offered is fresh no longer. A survivor's embed text changes with its timeline."""
    changed: dict[MemoryId, Memory] = {}
    for merge in answer.merges:
        absorbed = [memories[id_] for id_ in merge.absorbed]
        changed[merge.survivor] = survivor_of(memories[merge.survivor], absorbed)
        changed |= {memory.id: replace(dead(memory), absorbed_into=merge.survivor) for memory in absorbed}
    changed |= {id_: dead(memories[id_]) for id_ in answer.make_dead}
    current = CurrentState(memories)
    for id_ in (offered.id for offered in request.memories):
        if id_ not in changed and not change_since(id_, request, current) and memories[id_].fresh:
            changed[id_] = replace(memories[id_], fresh=False)
    return list(changed.values())


def survivor_of(survivor: Memory, absorbed: Sequence[Memory]) -> Memory:
    """Keeps its words and when it happened; takes over the others' histories and reactivations, and is as recently
    activated as the latest of them."""
    importance = min(1.0, survivor.importance + SURVIVOR_IMPORTANCE_BONUS)
    session_count = min(memory.session_count for memory in (survivor, *absorbed))
    return replace(
        survivor,
        scene=replace(survivor.scene, when=merged_when(survivor, absorbed)),
        importance=importance,
        session_count=session_count,
        reactivation_count=survivor.reactivation_count + sum(memory.reactivation_count for memory in absorbed),
        status=flagged(survivor.status, importance=importance, session_count=session_count, pinned=survivor.pinned),
        fresh=False,
    )


def dead(memory: Memory) -> Memory:
    """Its reactivations start again, so that it comes back only if it is recalled from now on (ruling 3)."""
    return replace(memory, status="dead", reactivation_count=0, fresh=False)


def merged_when(survivor: Memory, absorbed: Sequence[Memory]) -> tuple[WhenItem, ...]:
    """The survivor's own entries as they are, then the histories of the others by date, undated ones last (spec P4).
    Nothing twice, and not what the survivor says itself of that day. A survivor without entries begins with its day,
    for the first entry is read as a memory's date."""
    own = {(when_date(item), item.action) for item in history(survivor)}
    items = {(when_date(item), item.action): item for memory in absorbed for item in history(memory)}
    new = sorted((key for key in items if key not in own), key=lambda key: (parse_moment(key[0]) is None, key))
    first = survivor.scene.when or ((survivor.happened_at.date().isoformat(),) if new else ())
    return (*first, *(items[key] for key in new))


def history(memory: Memory) -> list[DatedAction]:
    """Its action on each of its plain dates, on the day it happened if it has none; then what it took over before."""
    when = memory.scene.when
    dates = [when_date(item) for item in when if isinstance(item, str)] or [memory.happened_at.date().isoformat()]
    dated = [DatedAction(date, memory.scene.action) for date in dates]
    dated += [item for item in when if isinstance(item, DatedAction)]
    return [replace(item, action=shortened(item.action, ACTION_CHARACTERS)) for item in dated]
