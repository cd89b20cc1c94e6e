"""Old sessions become summaries; their memories are kept (spec L3)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime

from madeleine.memory.model import Memory, MemoryId, Provenance, Scene
from madeleine.patrol.context import PatrolContext
from madeleine.patrol.deciding.answers import Summary
from madeleine.patrol.deciding.checks import CurrentState
from madeleine.patrol.deciding.decision_type import DecisionType
from madeleine.patrol.deciding.requests import DecisionRequest, compression_requests
from madeleine.patrol.unit_of_work import UnitOfWork


class Compress(DecisionType[Summary]):
    kind = "compress"
    embeds_texts = True

    async def pending(self, context: PatrolContext) -> list[str]:
        """Above the threshold the oldest half of it (spec L3, 3.1)."""
        threshold = context.services.config.compression_threshold
        sessions = await context.reads.sessions()
        oldest = sessions[: max(1, threshold // 2)] if len(sessions) > threshold else []
        return [session.session_id for session in oldest]

    async def requests(self, context: PatrolContext, key: str) -> list[DecisionRequest]:
        return compression_requests(key, await context.reads.session_memories(key))

    def new_texts(
        self, context: PatrolContext, request: DecisionRequest, answer: Summary, current: CurrentState
    ) -> list[str]:
        return [summary_of(answer.summary, request, current, context.services.now()).embed_text]

    async def apply(
        self, context: PatrolContext, work: UnitOfWork, request: DecisionRequest, answer: Summary, current: CurrentState
    ) -> Mapping[str, int]:
        summary = summary_of(answer.summary, request, current, context.services.now())
        work.add(summary)
        work.new_vectors |= work.prepared.vectors
        work.compressed |= {memory.id: summary.id for memory in request.memories}
        return {"summaries": 1, "compressed": len(request.memories)}


def summary_of(text: str, request: DecisionRequest, current: CurrentState, now: datetime) -> Memory:
    """A semantic memory of the session's beginning, as important as the most important of its sources."""
    sources = [current.memories[memory.id] for memory in request.memories]
    first = min(sources, key=lambda memory: memory.happened_at)
    return Memory(
        id=MemoryId(str(uuid.uuid4())),
        being_id=first.being_id,
        scene=Scene(
            action=text,
            actors=tuple(dict.fromkeys(actor for memory in sources for actor in memory.scene.actors)),
            when=(first.happened_at.date().isoformat(),),
        ),
        provenance=Provenance(tool="run_patrol", session_id=request.session_id),
        created_at=now,
        happened_at=first.happened_at,
        importance=max(memory.importance for memory in sources),
        category="semantic",
        themes=tuple(dict.fromkeys(theme for memory in sources for theme in memory.themes))[:5],
        compression_source=True,
    )
