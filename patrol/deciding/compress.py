"""Old sessions become summaries; their memories are kept (spec L3)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from madeleine.memory.model import LIVING, Memory, MemoryId, Provenance, Scene
from madeleine.memory.rules.storing.secrets import Redact
from madeleine.patrol.deciding.answers import Decision, DecisionType, RawAnswer, RequestState, Resolution
from madeleine.patrol.deciding.requests import BY_EVENT_TIME, DecisionRequest, offered_in_parts
from madeleine.patrol.unit_of_work import UnitOfWork


class SummarySchema(RawAnswer):
    summary: str


@dataclass(frozen=True, slots=True)
class SessionSummary(Resolution):
    kind = "compress"
    schema = SummarySchema

    summary: str

    @classmethod
    def _from_own_fields(cls, decision: Decision) -> SessionSummary:
        return SessionSummary(decision.summary)

    def normalized(self) -> SessionSummary:
        return SessionSummary(self.summary.strip())

    def redacted(self, redact: Redact) -> SessionSummary:
        return SessionSummary(redact(self.summary).text)

    def complaints(self, request: DecisionRequest) -> Iterator[str]:
        return self.text_complaints("summary", self.summary)


class CompressSessions(DecisionType[SessionSummary]):
    answer_type = SessionSummary
    embeds_texts = True

    async def pending(self) -> list[str]:
        """Above the threshold the oldest half of it (spec L3, 3.1)."""
        threshold = self.context.services.config.compression_threshold
        sessions = await self.context.reads.sessions()
        oldest = sessions[: max(1, threshold // 2)] if len(sessions) > threshold else []
        return [session.session_id for session in oldest]

    async def requests(self, key: str) -> list[DecisionRequest]:
        return compression_requests(key, await self.context.reads.session_memories(key))

    def new_texts(self, answer: SessionSummary, current: RequestState) -> list[str]:
        return [summary_memory(answer.summary, current, self.context.services.now()).embed_text]

    async def apply(self, work: UnitOfWork, answer: SessionSummary, current: RequestState) -> dict[str, int]:
        summary = summary_memory(answer.summary, current, self.context.services.now())
        work.add(summary)
        work.new_vectors |= work.prepared.vectors
        work.compressed |= {memory.id: summary.id for memory in current.request.memories}
        return {"summaries": 1, "compressed": len(current.request.memories)}


def summary_memory(text: str, current: RequestState, now: datetime) -> Memory:
    """A semantic memory of the session's beginning, as important as the most important of its sources."""
    sources = [current.memories[memory.id] for memory in current.request.memories]
    first = min(sources, key=lambda memory: memory.happened_at)
    return Memory(
        id=MemoryId(str(uuid.uuid4())),
        being_id=first.being_id,
        scene=Scene(
            action=text,
            actors=tuple(dict.fromkeys(actor for memory in sources for actor in memory.scene.actors)),
            when=(first.happened_at.date().isoformat(),),
        ),
        provenance=Provenance(tool="run_patrol", session_id=current.request.session_id),
        created_at=now,
        happened_at=first.happened_at,
        importance=max(memory.importance for memory in sources),
        category="semantic",
        themes=tuple(dict.fromkeys(theme for memory in sources for theme in memory.themes))[:5],
        compression_source=True,
    )


def compression_requests(session_id: str, memories: Sequence[Memory]) -> list[DecisionRequest]:
    """The living episodic memories of a session that no summary stands for yet, in the order in which they happened
    (spec L3); a session too long for one request becomes several, each to be summarised by itself."""
    uncompressed = [m for m in memories if m.category == "episodic" and m.status in LIVING and not m.compressed]
    parts = offered_in_parts(sorted(uncompressed, key=BY_EVENT_TIME), "compress")
    return [DecisionRequest(kind="compress", memories=tuple(part), session_id=session_id) for part in parts]
