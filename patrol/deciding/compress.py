"""Compress old sessions: a summary stands for their memories, which are kept (spec L3)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from madeleine.memory.model import LIVING_STATUSES, Memory, MemoryId, Provenance, Scene
from madeleine.memory.rules.dynamics.windows import is_still_to_come
from madeleine.memory.rules.storing.secrets import RedactText
from madeleine.patrol.deciding.answers import (
    CurrentOfferedMemories,
    DecisionAnswer,
    DecisionAnswerSchema,
    DecisionHandler,
)
from madeleine.patrol.deciding.passages import (
    is_episode_that_summaries_may_hide,
    is_joinable_episode,
    passages_of_summarised_scenes,
)
from madeleine.patrol.deciding.requests import (
    DECISION_REQUEST_LIMITS_FOR_MODEL,
    EVENT_TIME_SORT_KEY,
    DecisionRequest,
    DecisionRequestLimits,
    offered_memories_split_by_request_size,
)
from madeleine.patrol.unit_of_work import UnitOfWork


class SessionSummaryAnswerSchema(DecisionAnswerSchema):
    summary: str


@dataclass(frozen=True, slots=True)
class SessionSummaryAnswer(DecisionAnswer):
    kind = "compress"
    schema = SessionSummaryAnswerSchema

    summary: str
    is_passage: bool = False
    """It holds its sources word for word."""

    def normalized(self) -> SessionSummaryAnswer:
        return replace(self, summary=self.summary.strip())

    def redacted(self, redact: RedactText) -> SessionSummaryAnswer:
        return replace(self, summary=redact(self.summary).text)

    def complaints(self, request: DecisionRequest) -> Iterator[str]:
        return self.text_complaints("summary", self.summary)


class SessionSummaryDecisionHandler(DecisionHandler[SessionSummaryAnswer]):
    answer_type = SessionSummaryAnswer
    embeds_texts = True

    async def keys_that_may_need_decision(self) -> list[str]:
        """Above the threshold the oldest half of it (spec L3, 3.1); to an agent, whom each answer asks anew, as many as
        are above it, without those of one memory, which a summary does not shorten."""
        threshold = self.context.services.config.compression_threshold
        sessions = await self.context.reads.unsummarised_sessions()
        above = max(0, len(sessions) - threshold)
        count = above if self.asks_agent else max(1, threshold // 2) * (above > 0)
        return [one.session_id for one in sessions[:count] if one.memories > 1 or not self.asks_agent]

    async def overdue_unsummarised_session_ids(self) -> list[str]:
        """Of those beyond one and a half times the threshold, which nobody has summarised, the ones of two memories or
        more."""
        sessions = await self.context.reads.unsummarised_sessions()
        overdue = len(sessions) - self.context.services.config.compression_threshold * 3 // 2
        return [session.session_id for session in sessions[: max(0, overdue)] if session.memories > 1]

    async def build_requests_for_key(self, key: str) -> list[DecisionRequest]:
        now = self.context.services.now()
        told = await self.context.reads.summarisable_session_memories(key)
        memories = [memory for memory in told if not is_still_to_come(memory, now)]  # ADR 100
        return await asyncio.to_thread(session_compression_requests, key, memories, self.limits)

    def texts_to_embed(self, answer: SessionSummaryAnswer, current: CurrentOfferedMemories) -> list[str]:
        made = summary_and_passage_memories_with_sources(answer, current, self.context.services.now())
        return [memory.embedded_text for memory, _ in made]

    async def apply_answer(
        self, work: UnitOfWork, answer: SessionSummaryAnswer, current: CurrentOfferedMemories
    ) -> dict[str, int]:
        for made, sources in summary_and_passage_memories_with_sources(answer, current, self.context.services.now()):
            work.add_memory(made)
            work.compressed |= dict.fromkeys((source.id for source in sources), made.id)
        work.new_vectors |= work.prepared.vectors
        return {"summaries": 1, "compressed": len(current.request.memories)}


def summary_and_passage_memories_with_sources(
    answer: SessionSummaryAnswer, current: CurrentOfferedMemories, now: datetime
) -> list[tuple[Memory, Sequence[Memory]]]:
    """The memories that stand for a session, each with those that it hides: the summary alone, where it holds them word
    for word or tells of one short scene; else the summary, and passages that hold them."""
    sources = [current.memories[memory.id] for memory in current.request.memories]
    summary = summary_as_memory(answer.summary, sources, now)
    if answer.is_passage or (len(sources) == 1 and is_joinable_episode(sources[0])):
        return [(summary, sources)]
    passages = passages_of_summarised_scenes(sources)
    return [(summary, []), *((summary_as_memory(text, part, now, summary.id), part) for part, text in passages)]


def summary_as_memory(text: str, sources: Sequence[Memory], now: datetime, told_in: MemoryId | None = None) -> Memory:
    """A semantic memory of the beginning of its sources, as important as the most important of them. `told_in`: a
    summary that tells of them as well. It is not fresh: nobody is asked whether it says the same as another."""
    first = min(sources, key=lambda memory: memory.happened_at)
    return Memory(
        id=MemoryId(str(uuid.uuid4())),
        being_id=first.being_id,
        scene=Scene(
            action=text,
            actors=tuple(dict.fromkeys(actor for memory in sources for actor in memory.scene.actors)),
            when=(first.happened_at.date().isoformat(),),
        ),
        provenance=Provenance(tool="run_patrol", session_id=first.provenance.session_id),
        created_at=now,
        happened_at=first.happened_at,
        importance=max(memory.importance for memory in sources),
        category="semantic",
        themes=tuple(dict.fromkeys(theme for memory in sources for theme in memory.themes))[:5],
        compression_source=True,
        fresh=False,
        compressed_into=told_in,
        project=first.project,
        level=first.level,
    )


def session_compression_requests(
    session_id: str,
    memories: Sequence[Memory],
    limits: DecisionRequestLimits = DECISION_REQUEST_LIMITS_FOR_MODEL["compress"],
) -> list[DecisionRequest]:
    """The living episodic memories of a session that no summary stands for yet, in the order in which they happened
    (spec L3); a session too long for one request becomes several, each to be summarised by itself."""
    episodes = filter(is_episode_that_summaries_may_hide, memories)
    uncompressed = [m for m in episodes if m.status in LIVING_STATUSES and not m.compressed]
    by_place: dict[tuple[str | None, str | None], list[Memory]] = {}
    for memory in sorted(uncompressed, key=EVENT_TIME_SORT_KEY):
        by_place.setdefault((memory.project, memory.level), []).append(memory)
    return [
        DecisionRequest(kind="compress", memories=tuple(part), session_id=session_id)
        for together in by_place.values()
        for part in offered_memories_split_by_request_size(together, "compress", limits)
    ]
