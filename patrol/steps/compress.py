"""Old sessions become summaries; what they were made from is kept (spec L3)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from madeleine.memory.language import Rejected
from madeleine.memory.model import ContentHash, Memory, MemoryId, Provenance, Scene
from madeleine.patrol.deciding.answers import Answer, Summary
from madeleine.patrol.deciding.checks import Present, checked
from madeleine.patrol.deciding.offer import Kind, Offer
from madeleine.patrol.deciding.offering import compress_offer
from madeleine.patrol.matter import Applied, Topic, present
from madeleine.patrol.night import Night, state_of
from madeleine.patrol.ports import PatrolReads
from madeleine.patrol.round import World


class Compress:
    kind: Kind = "compress"

    async def waiting(self, world: World, view: PatrolReads) -> list[Topic]:
        """Above the threshold the oldest half of it (spec L3, 3.1)."""
        threshold = world.config.compression_threshold
        sessions = await view.sessions()
        if len(sessions) <= threshold:
            return []
        return [Topic("compress", one.session_id, one.memories) for one in sessions[: max(1, threshold // 2)]]

    async def offers(self, world: World, view: PatrolReads, topic: Topic) -> list[Offer]:
        return compress_offer(topic.key, await view.session_memories(topic.key))

    async def texts(self, world: World, view: PatrolReads, offer: Offer, answer: Answer) -> Mapping[ContentHash, str]:
        now = await present(view, offer)
        found = checked(answer, offer, now)
        if isinstance(found, Rejected) or not isinstance(found.answer, Summary):
            return {}
        summary = summary_of(found.answer.summary, offer, now, world.now())
        return {summary.content_hash: summary.embed_text}

    async def apply(self, night: Night, offer: Offer, answer: Answer, world: World) -> Applied | Rejected:
        now = await present(night, offer)
        found = checked(answer, offer, now)
        if isinstance(found, Rejected):
            return found
        assert isinstance(found.answer, Summary)
        summary = summary_of(found.answer.summary, offer, now, world.now())
        night.new = (*night.new, summary)
        night.put(state_of(summary))
        sources = {memory.id: summary.id for memory in offer.memories}
        night.also = replace(
            night.also,
            compressed={**night.also.compressed, **sources},
            model=night.model,
            vectors={**night.also.vectors, **night.evening.vectors},
        )
        return Applied({"summaries": 1, "compressed": len(sources)}, found.left_out)


def summary_of(text: str, offer: Offer, now: Present, at: datetime) -> Memory:
    """A semantic memory of the session's beginning, as important as the most important of its sources."""
    sources = [now.memories[shown.id] for shown in offer.memories]
    first = min(sources, key=lambda memory: memory.happened_at)
    return Memory(
        id=MemoryId(str(uuid.uuid4())),
        being_id=first.being_id,
        scene=Scene(
            action=text,
            actors=tuple(dict.fromkeys(actor for memory in sources for actor in memory.scene.actors)),
            when=(first.happened_at.date().isoformat(),),
        ),
        provenance=Provenance(tool="run_patrol", session_id=offer.session_id),
        created_at=at,
        happened_at=first.happened_at,
        importance=max(memory.importance for memory in sources),
        category="semantic",
        themes=tuple(dict.fromkeys(theme for memory in sources for theme in memory.themes))[:5],
        compression_source=True,
    )
