"""❹ What says the same is merged; what is dying and says nothing else is let go (spec P6 ❹, rulings 2 and 3)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from madeleine.memory.language import Rejected
from madeleine.memory.model import ClusterId, ContentHash, Memory
from madeleine.patrol.deciding.answers import Answer, Consolidation
from madeleine.patrol.deciding.checks import checked
from madeleine.patrol.deciding.effects import consolidated
from madeleine.patrol.deciding.offer import Kind, Offer
from madeleine.patrol.deciding.offering import consolidation_offers
from madeleine.patrol.matter import Applied, Topic, heaviest_first, present, vectors_of
from madeleine.patrol.night import Night, state_of
from madeleine.patrol.ports import PatrolReads
from madeleine.patrol.round import World


class Consolidate:
    kind: Kind = "consolidate"

    async def waiting(self, world: World, view: PatrolReads) -> list[Topic]:
        counts = [count for count in await view.cluster_counts() if count.unconsolidated]
        return heaviest_first([Topic("consolidate", count.cluster_id, count.unconsolidated) for count in counts])

    async def offers(self, world: World, view: PatrolReads, topic: Topic) -> list[Offer]:
        found = await view.clusters([ClusterId(topic.key)])
        if not found:
            return []
        [cluster] = found
        living = [subject for subject in await view.members(cluster.id) if subject.status != "dead"]
        vectors = await view.vectors(world.model, [subject.content_hash for subject in living])
        by_id = vectors_of({subject.id: subject.content_hash for subject in living}, vectors)
        memories = await view.memories([subject.id for subject in living])
        return await asyncio.to_thread(consolidation_offers, cluster, memories, by_id)

    async def texts(self, world: World, view: PatrolReads, offer: Offer, answer: Answer) -> Mapping[ContentHash, str]:
        now = await present(view, offer)
        found = checked(answer, offer, now)
        if isinstance(found, Rejected) or not isinstance(found.answer, Consolidation):
            return {}
        changed = consolidated(found.answer, offer, now.memories)
        return {one.content_hash: one.embed_text for one in changed if _is_retold(one, now.memories[one.id])}

    async def apply(self, night: Night, offer: Offer, answer: Answer, world: World) -> Applied | Rejected:
        now = await present(night, offer)
        found = checked(answer, offer, now)
        if isinstance(found, Rejected):
            return found
        assert isinstance(found.answer, Consolidation)
        changed = consolidated(found.answer, offer, now.memories)
        for memory in changed:
            night.put(state_of(memory))
        retold = tuple(memory for memory in changed if _is_retold(memory, now.memories[memory.id]))
        hashes = {memory.content_hash for memory in retold}
        # A summary that has died tells of nothing: what it stood for speaks for itself again.
        unhidden = await night.summarised_by(found.answer.make_dead)
        night.also = replace(
            night.also,
            compressed={**night.also.compressed, **dict.fromkeys(unhidden)},
            rewritten=(*night.also.rewritten, *retold),
            model=night.model,
            vectors={hash_: vector for hash_, vector in night.evening.vectors.items() if hash_ in hashes},
        )
        await night.recompute({memory.cluster_id for memory in changed if memory.cluster_id is not None})
        merges = found.answer.merges
        return Applied(
            {
                "merged": len(merges),
                "absorbed": sum(len(merge.absorbed) for merge in merges),
                "made_dead": len(found.answer.make_dead),
            },
            found.left_out,
        )


def _is_retold(memory: Memory, before: Memory) -> bool:
    return memory.scene != before.scene
